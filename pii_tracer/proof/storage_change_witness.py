"""What a step did to the storage, counted beside the executor and not by it.

Before a step's first act the files of its copy are listed, with the hash of the table's newest log file, and again when
the step is verified; the difference goes into the journal. The listing is kept in the run's folder, so that it outlives
a crash between the act and its answer. What is there is hashed as well, a folder before the first act on it, versions
in a bucket before the step that deletes them: so an attestation can name what is gone by what it was. Nothing of it
decides anything: what cannot be looked at is not known.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.lake.formats.base import CommitLog
from pii_tracer.lake.formats.registry import known_format
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import canonical
from pii_tracer.model.datasets import Format, Frozen
from pii_tracer.model.errors import PiiTracerError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.proof.evidence_leaves import ScopeFile
from pii_tracer.proof.untrusted_json import canonical_object, split_lines
from pii_tracer.run.executor_protocol import (
    Check,
    Executor,
    Outcome,
    Progress,
)


class FileBefore(Frozen):
    """A file, or object version, as it was before. path: as in the verifier's scope, relative to the copy.

    sha256: hex; None where its bytes could not be had (archived).
    """

    path: str
    size: int
    sha256: str | None


@dataclass(frozen=True)
class Seen:
    """A place at a moment. files: name -> bytes, None where there are none to list (a topic).

    manifest: `sha256:…` of the newest file of the table's own log; of a bare folder over path and SHA-256 of its files,
    of a bucket over the list of versions, of a topic over id and offsets. snapshot: where there are none otherwise, in
    words that differ when it does.
    """

    files: Mapping[str, int] | None
    manifest: str | None = None
    snapshot: str | None = None


BY_VERSION = frozenset({Action.S3_DELETE_VERSIONS, Action.S3_CLEAR_VERSIONS})
"""Actions that take away versions in a bucket, which are hashed before each of them."""
BEFORE = "before"
"""Folder in that of a run: what stood in its places before its acts."""

Look = Callable[[Copy], Seen | None]
"""Lists a copy's place; None where that is not possible."""
Hashed = Callable[[Step, Copy], Iterable[FileBefore] | None]
"""Reads what a step, or the steps that begin with it, can take away from a place; None where nothing."""


class Witness:
    """An executor, watched. folder: of the run. owner: copy -> the copy that owns the place it lies in."""

    def __init__(
        self, inner: Executor, folder: Path, look: Look, hashed: Hashed, owner: Callable[[Copy], Copy | None]
    ) -> None:
        self.name = inner.name
        self._inner, self._folder = inner, folder
        self._look, self._hashed, self._owner = look, hashed, owner

    def check(self, step: Step, copy: Copy | None) -> None:
        """As the executor."""
        self._inner.check(step, copy)

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """As the executor, after the place was looked at."""
        place = self._owner(copy) if copy else None
        if place is not None:
            self._hash(step, place)
            listing = _listing(self._folder, step)
            if not listing.exists():
                _keep(listing, self._see(place))
        return self._inner.run(step, copy)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """As the executor; when it holds, what became of the place is among the facts."""
        check = self._inner.verify(step, copy)
        place = self._owner(copy) if copy else None
        before = _kept(_listing(self._folder, step)) if check.ok and place else None
        if place is None or before is None:
            return check
        return replace(check, facts={**check.facts, **_difference(before, self._see(place))})

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """As the executor."""
        return self._inner.probe(step, copy)

    def _hash(self, step: Step, place: Copy) -> None:
        by_version = step.action in BY_VERSION
        path = before_step(self._folder, step.id) if by_version else before_place(self._folder, place.id)
        if path.exists():
            return
        try:
            found = self._hashed(step, place)
            if found is not None:
                write_atomic(path, b"".join(canonical(item.model_dump()) + b"\n" for item in found))
        except (OSError, ValueError, PiiTracerError):
            return  # the executor, or the verifier, will say what is wrong with the place

    def _see(self, copy: Copy) -> Seen | None:
        try:
            return self._look(copy)
        except (OSError, ValueError, PiiTracerError):
            return None


def _difference(before: Seen, after: Seen | None) -> dict[str, Any]:
    if after is None:
        return {"manifest_before": before.manifest}
    manifests = {"manifest_before": before.manifest, "manifest": after.manifest}
    if before.snapshot and after.snapshot:
        manifests |= {"snapshot_before": before.snapshot, "snapshot": after.snapshot}
    if before.files is None or after.files is None:
        return manifests
    gone = [name for name in before.files if name not in after.files]
    return {
        **manifests,
        "files_removed": len(gone),
        "bytes_removed": sum(before.files[name] for name in gone),
        "files_added": sum(name not in before.files for name in after.files),
    }


# -- kept in the run's folder ------------------------------------------------------------------------------------------


def before_place(folder: Path, copy_id: str) -> Path:
    """Where the hashes of a folder are kept; ids of copies hold only harmless characters (`step_drafts.slug`)."""
    return folder / BEFORE / f"{copy_id}.jsonl"


def before_step(folder: Path, step_id: str) -> Path:
    """Where the hashes of the versions are kept that a step is about to delete."""
    return folder / BEFORE / f"{_short(step_id)}.versions.jsonl"


def read_before(path: Path) -> tuple[FileBefore, ...]:
    """What stood there before the run began with it; nothing where nobody could look."""
    try:
        data = path.read_bytes()
    except OSError:
        return ()
    return tuple(FileBefore.model_validate(canonical_object(line)) for line in split_lines(data) if line)


def gone_files(before: Iterable[FileBefore], now: Iterable[ScopeFile]) -> Iterator[FileBefore]:
    """What stood there before and does not now, under its name and with these bytes. now: the whole place."""
    there = {(item.path, item.sha256) for item in now}
    return (item for item in before if (item.path, item.sha256) not in there)


def _listing(folder: Path, step: Step) -> Path:
    return folder / BEFORE / f"{_short(step.id)}.listing.gz"


def _short(step_id: str) -> str:
    return hashlib.sha256(step_id.encode()).hexdigest()[:16]


def _keep(path: Path, seen: Seen | None) -> None:
    if seen is not None:
        files = None if seen.files is None else dict(seen.files)
        data = json.dumps({"manifest": seen.manifest, "snapshot": seen.snapshot, "files": files}).encode()
        write_atomic(path, gzip.compress(data, mtime=0))


def _kept(path: Path) -> Seen | None:
    """None where there is none, or one that an earlier version or somebody else wrote."""
    try:
        data = json.loads(gzip.decompress(path.read_bytes()))
        return Seen(data["files"], data["manifest"], data["snapshot"])
    except (OSError, EOFError, ValueError, LookupError, TypeError, zlib.error):
        return None


# -- the newest file of a table's own log ------------------------------------------------------------------------------

_DIGITS = 40


def log_of(kind: Format | None) -> CommitLog | None:
    """Where tables of a format keep a file for each version; None where there is no such log."""
    adapter = known_format(kind)
    return adapter.commit_log if adapter else None


def manifest_of(root: Path, kind: Format | None) -> str | None:
    """SHA-256 of the newest commit (Delta), metadata file (Iceberg) or instant (Hudi); None where there is no such log.

    https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries,
    https://iceberg.apache.org/spec/#table-metadata, https://hudi.apache.org/tech-specs-1point0/#timeline
    """
    log = log_of(kind)
    if log is None:
        return None
    folders = [root / name for name in log.folders]
    there = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
    found = ((order, path) for path in there if (order := in_log(path.relative_to(root).as_posix(), kind)))
    newest = max(found, default=None)
    return "sha256:" + hashlib.sha256(newest[1].read_bytes()).hexdigest() if newest else None


def in_log(path: str, kind: Format | None) -> tuple[str, str] | None:
    """What orders a file among its table's commits, metadata files or instants; None of any other file.

    path: below the table's folder, with slashes.
    """
    folder, _, name = path.rpartition("/")
    log = log_of(kind)
    match = log.name.fullmatch(name) if log and folder in log.folders else None
    return (match[1].zfill(_DIGITS), name) if match else None
