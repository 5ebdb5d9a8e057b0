"""What shows that a copy was computed again: each of its files was written after the owner's job began, which began
after the sources were erased, and neither is nor begins with the bytes of a file that was there before.

Counts are not compared: nobody knows what they should be. Nor does anybody see what the job read: that it began then,
and that no earlier run of it wrote later, is its owner's word. Nor is it shown that no file was made out of an old one:
merging it behind another, cutting, compressing or converting it gives other bytes.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pii_tracer.model.canonical_json import iso, parse_time
from pii_tracer.model.waivers import MarkKey
from pii_tracer.verify.verdicts import STILL_THERE, ByteVerdict, ComputedAgain, Residue

_THERE, _BYTES, _SIZES, _PLACE = "there", "bytes", "sizes", "place"


@dataclass(frozen=True)
class WrittenFile:
    """A file that is not empty. path: values of the persons in it masked. write: mark of the write that made it;
    modified: time of that. contents: marks of its bytes (`contents_of`)."""

    path: str
    size: int
    write: str
    modified: datetime
    contents: frozenset[str]


@dataclass(frozen=True)
class Noted:
    """What was there when the sources of a copy were erased, as marks of writes and of bytes, with the sizes of the
    files. place: mark of where its location led to. at: when that was noted. began: when the owner's job began, as the
    owner says; None where nobody said it. erased_since: a source was erased again after that, or held a person again,
    so that what was computed between may count the persons."""

    writes: frozenset[str]
    contents: frozenset[str]
    sizes: frozenset[int]
    place: str
    at: datetime
    began: datetime | None = None
    erased_since: bool = False

    def is_old(self, file: WrittenFile) -> bool:
        """Whether a file may be from before the job: it was there, begins with all bytes of one that was there, or is
        not from after the job began. Stores tell times to the second."""
        late = self.began is not None and file.modified >= self.began.replace(microsecond=0)
        known = file.write in self.writes or not file.contents.isdisjoint(self.contents)
        return known or file.modified <= self.at or not late


def mark(keyed: MarkKey, *parts: object) -> str:
    """16 hex digits that stand for some parts. Without the estate's key nobody can check a guess of a small file."""
    return keyed.of_content("written file", "\0".join(map(str, parts)))[:16]


def contents_of(keyed: MarkKey, pieces: Iterable[bytes | memoryview], sizes: Collection[int] = ()) -> frozenset[str]:
    """Marks of all bytes of a file, and of its first bytes up to each of some sizes: what was only appended to begins
    with what it was."""
    digest, read, found, ends = hashlib.sha256(), 0, set[str](), sorted(sizes)
    for piece in pieces:
        rest, after = memoryview(piece), read + len(piece)
        for end in ends[bisect_left(ends, read + 1) : bisect_left(ends, after + 1)]:
            part, rest = rest[: end - read], rest[end - read :]
            digest.update(part)
            read = end
            found.add(mark(keyed, read, digest.hexdigest()))
        digest.update(rest)
        read = after
    return frozenset((*found, mark(keyed, read, digest.hexdigest())))


def note_of(files: Sequence[WrittenFile], place: str, at: datetime) -> dict[str, Any]:
    """What the journal keeps of the files that are there. place: mark of where their folder is."""
    return {
        "files": len(files),
        "at": iso(at),
        _PLACE: place,
        _SIZES: sorted({file.size for file in files}),
        _THERE: sorted({file.write for file in files}),
        _BYTES: sorted({content for file in files for content in file.contents}),
    }


def noted_in(facts: Iterable[Mapping[str, Any]], *, began: datetime | None, erased_since: bool) -> Noted | None:
    """The last note among the facts of a step; None where there is none."""
    for fact in reversed(tuple(facts)):
        writes, contents, sizes = (fact.get(name) for name in (_THERE, _BYTES, _SIZES))
        if isinstance(writes, list) and isinstance(contents, list) and isinstance(sizes, list):
            marks, at = (frozenset(map(str, writes)), frozenset(map(str, contents))), parse_time(str(fact["at"]))
            return Noted(*marks, frozenset(map(int, sizes)), str(fact.get(_PLACE)), at, began, erased_since)
    return None


def compared(verdict: ByteVerdict, noted: Noted | None, files: Sequence[WrittenFile], place: str) -> ByteVerdict:
    """The verdict on a copy that its owner computes again, with the files that should be gone as residue. place: mark
    of where its folder is."""
    if noted is None or noted.erased_since or noted.began is None or noted.place != place:
        return verdict.model_copy(update={"unverified": (*verdict.unverified, f"{verdict.root}: {_unknown(noted)}")})
    old = sorted({file.path for file in files if noted.is_old(file)})
    residue = (Residue(copy_id=verdict.copy_id, file=path, where=STILL_THERE, form="file") for path in old)
    again = ComputedAgain(before=len(noted.writes), after=sum(not noted.is_old(file) for file in files))
    return verdict.model_copy(update={"residue": (*verdict.residue, *residue), "again": again})


def _unknown(noted: Noted | None) -> str:
    if noted is None:
        return "nobody knows whether it was recomputed, because no run listed its files before"
    if noted.erased_since:
        return (
            "a source was erased again after the files were listed. Remove the table's files with all old versions. "
            "Then make a new plan with `--source-erased`, and ask the owner to recompute the table"
        )
    if noted.began is not None:
        return "its path references a different folder than when its files were listed: restore the old path"
    return "its owner did not report when the job began: run `pii-tracer confirm` for its task with `--began`"
