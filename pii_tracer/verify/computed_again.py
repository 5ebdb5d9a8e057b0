"""What shows that a copy was computed again: no file is left that was there when its sources were erased.

Counts are not compared: nobody knows what they should be. A file is recognised by the write that made it, not by its
name alone: a version's id in a bucket, a file's id in HDFS, content and time of the last write in a folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pii_tracer.model.waivers import MarkKey
from pii_tracer.verify.verdicts import STILL_THERE, ByteVerdict, ComputedAgain, Residue

_THERE, _BYTES = "there", "bytes"


@dataclass(frozen=True)
class WrittenFile:
    """A file that is not empty. path: values of the persons in it masked. write: mark of the write that made it;
    content: mark of its bytes, empty where the store does not tell."""

    path: str
    write: str
    content: str = ""


@dataclass(frozen=True)
class Noted:
    """What was there when the sources of a copy were erased, as marks of writes and of bytes. erased_since: a source
    was erased again after that, so that what was computed between may count the persons."""

    writes: frozenset[str]
    contents: frozenset[str]
    erased_since: bool = False


def mark(keyed: MarkKey, *parts: object) -> str:
    """16 hex digits that stand for some parts. Without the estate's key nobody can check a guess of a small file."""
    return keyed.of_content("written file", "\0".join(map(str, parts)))[:16]


def note_of(files: Sequence[WrittenFile]) -> dict[str, Any]:
    """What the journal keeps of the files that are there."""
    return {
        "files": len(files),
        _THERE: sorted({file.write for file in files}),
        _BYTES: sorted({file.content for file in files if file.content}),
    }


def noted_in(facts: Iterable[Mapping[str, Any]], *, erased_since: bool) -> Noted | None:
    """The last note among the facts of a step; None where there is none."""
    for fact in reversed(tuple(facts)):
        writes, contents = fact.get(_THERE), fact.get(_BYTES)
        if isinstance(writes, list) and isinstance(contents, list):
            return Noted(frozenset(map(str, writes)), frozenset(map(str, contents)), erased_since)
    return None


def compared(verdict: ByteVerdict, noted: Noted | None, files: Sequence[WrittenFile]) -> ByteVerdict:
    """The verdict on a copy that its owner computes again, with the files that should be gone as residue."""
    if noted is None or noted.erased_since:
        why = (
            "a source was erased again after the files were noted: make a new plan, and let the owner compute it again"
            if noted
            else "whether it was computed again is not known: no run has noted which files were there"
        )
        return verdict.model_copy(update={"unverified": (*verdict.unverified, f"{verdict.root}: {why}")})
    old = [file for file in files if file.write in noted.writes]
    residue = tuple(
        Residue(copy_id=verdict.copy_id, file=path, where=STILL_THERE, form="file")
        for path in sorted({file.path for file in old})
    )
    again = ComputedAgain(
        before=len(noted.writes),
        after=len(files) - len(old),
        same_bytes=sum(file.content in noted.contents for file in files if file.write not in noted.writes),
    )
    return verdict.model_copy(update={"residue": (*verdict.residue, *residue), "again": again})
