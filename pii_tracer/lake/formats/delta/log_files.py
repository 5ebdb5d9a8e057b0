"""The files of Delta's log: commits and checkpoints, which of these are whole, what they name, and what lies below one.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Delta Log Entries", "Checkpoints", "Sidecar File
Information".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

from pii_tracer.common.texts_within import TextsWithin
from pii_tracer.lake.formats.delta.log_paths import (
    COMMIT,
    FILE_ACTIONS,
    LOG,
    decoded,
    written_by,
)
from pii_tracer.lake.formats.stray_file_marks import UUID
from pii_tracer.lake.stores.any_place import AnyPlace, Place, file_of, opened
from pii_tracer.model.errors import EstateError

T = TypeVar("T")
Row = dict[str, Any]
"""A line of a commit or a row of a checkpoint: by kind of action, the action."""

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.[0-9a-f-]{36})?"
                         r"\.(?:parquet|json)")  # fmt: skip
_VERSIONED = re.compile(r"\.?(\d{20})\.(?:json|crc|checkpoint.*|compacted.*|\d{20}\.compacted\.json)(?:\.crc)?")
_SIDECARS = "_sidecars"
_STAGED = ("_commits", "_staged_commits")
"""Folders of commits that a coordinator or a catalog took and that were then written under their own names
(PROTOCOL.md, "Catalog-managed tables"; coordinated commits before)."""
_LEFTOVER = re.compile(rf"(?:[._]*\d{{20}}\.|.*{UUID}).*\.tmp(?:\.crc)?")
"""Written first and renamed, named by a version or a UUID; another `.tmp` is somebody's. `.N.json.UUID.tmp` (Hadoop),
`_commit_UUID.json.tmp` (delta-rs), checkpoints."""
_NUMBER = re.compile(r"[._]*(\d{20})\.")
_POINTER = re.compile(r"\.?_last_checkpoint(?:\.crc)?")
_SETTINGS_ONLY = frozenset({"commitInfo", "metaData", "protocol"})
_AT_ONCE = 16
_BATCH = 10_000


@contextmanager
def readable(folder: AnyPlace) -> Iterator[None]:
    """Inside, whatever tells that a log is damaged becomes one error.

    Raises:
        EstateError: it cannot be understood.
    """
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(folder, error) from None


def unreadable(folder: AnyPlace, error: Exception) -> EstateError:
    """What is told of a log that cannot be read."""
    return EstateError(
        f"the Delta log cannot be read: {type(error).__name__}",
        where=str(folder / LOG),
        todo="repair or restore the table's log, because the tool cannot read the table without it",
    )


def placed(table: Place, written: str) -> Place:
    """The place of a path of the log. table: its folder.

    Raises:
        EstateError: it lies in a store of another kind than the table's.
        ValueError: escapes that are no UTF-8.
    """
    try:
        text, absolute = decoded(written)
        return file_of(table, text) if absolute else table / text
    except EstateError as error:  # names of files can hold values of persons
        raise EstateError(error.what, where=str(table / LOG), todo=error.todo) from None


@dataclass(frozen=True)
class _Heads(Generic[Place]):
    """The checkpoints of one version, without sidecars. parts: by how many there are to be, by number."""

    single: list[Place]
    parts: dict[int, dict[int, Place]]

    @property
    def files(self) -> list[Place]:
        return self.single + [path for there in self.parts.values() for path in there.values()]

    @property
    def whole(self) -> bool:
        """Whether all parts of one are there; sidecars are not looked at."""
        return bool(self.single) or any(len(there) == total for total, there in self.parts.items())


class LogFiles(Generic[Place]):
    """The files of a table's log, listed once and sorted by name. folder: the table's.

    Raises:
        FileNotFoundError: there is no log.
        OSError: it cannot be listed.
    """

    def __init__(self, folder: Place) -> None:
        self.folder: Place = folder
        self._log: Place = folder / LOG
        self.there: list[Place] = sorted(self._log.iterdir(), key=str)
        self.commits: dict[int, Place] = {}
        self.checkpoints: dict[int, _Heads[Place]] = {}
        for path in self.there:
            if COMMIT.fullmatch(path.name):
                self.commits[int(path.name[:20])] = path
            elif match := _CHECKPOINT.fullmatch(path.name):
                heads = self.checkpoints.setdefault(int(match[1]), _Heads([], {}))
                if match["parts"]:
                    heads.parts.setdefault(int(match["parts"]), {})[int(match["part"])] = path
                else:
                    heads.single.append(path)

    @cached_property
    def sidecars(self) -> list[Place]:
        """What lies in their folder, hidden checksums as well."""
        try:
            return sorted((self._log / _SIDECARS).iterdir(), key=str)
        except FileNotFoundError:
            return []

    def newest(self) -> tuple[int, list[Place]]:
        """Version and files of the newest checkpoint of which everything is there; -1 and none where there is none."""
        found = ((version, self._whole(version)) for version in sorted(self.checkpoints, reverse=True))
        return next(((version, files) for version, files in found if files), (-1, []))

    def _whole(self, version: int) -> list[Place]:
        """The files of one of a version's checkpoints of which everything is there, sidecars behind; else none."""
        heads = self.checkpoints[version]
        for path in heads.single:
            needed = sidecars_of(path)
            there: list[Place] = [path]
            there += self._named(needed)
            if len(there) == 1 + len(needed):
                return there
        return next((list(parts.values()) for total, parts in heads.parts.items() if len(parts) == total), [])

    def all_of(self, version: int) -> list[Place]:
        """The files of all checkpoints of a version, whole or not, with the sidecars that are there."""
        heads = self.checkpoints[version]
        return heads.files + self._named({name for path in heads.single for name in sidecars_of(path)})

    def _named(self, names: set[str]) -> list[Place]:
        """Those of some sidecars that are there. Nothing is listed where none is asked for."""
        return [path for path in self.sidecars if path.name in names] if names else []


def sidecars_of(path: AnyPlace) -> set[str]:
    """Names of the sidecars that a checkpoint names: they lie in one folder, whatever else is written."""
    told = (row["sidecar"]["path"] for row in rows(path, ("sidecar",)) if row.get("sidecar"))
    return {unquote(written.rpartition("/")[2], errors="strict") for written in told}


def rows(path: AnyPlace, kinds: Collection[str]) -> Iterator[Row]:
    """The actions of some kinds in a file of the log; a commit gives all of them.

    Raises:
        OSError, ValueError: the file is not there, or damaged.
    """
    if path.suffix == ".json":
        yield from lines(path)
        return
    import pyarrow.parquet as pq

    with opened(path) as stream, pq.ParquetFile(stream) as file:
        wanted = [name for name in kinds if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=wanted, batch_size=_BATCH) if wanted else ():
            yield from batch.to_pylist()


def lines(path: AnyPlace) -> list[Row]:
    """The actions of a commit. Raises as `rows`."""
    with path.open("rb") as stream:
        return [json.loads(line) for line in stream if line.strip()]


def read_all(read: Callable[[AnyPlace], T], places: Sequence[AnyPlace]) -> Iterator[T]:
    """What is read from each of some files, in order; several are read at once, since each request to S3 takes its
    time. No more than these are in memory."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for start in range(0, len(places), _AT_ONCE):
            yield from pool.map(read, places[start : start + _AT_ONCE])


def complete_checkpoint(folder: AnyPlace) -> int | None:
    """Version of the newest checkpoint of which everything is there.

    Raises:
        OSError: there is no log, or it cannot be listed.
        EstateError: it is damaged.
    """
    with readable(folder):
        version, _ = files_of(folder).newest()
        return None if version < 0 else version


def files_of(folder: AnyPlace) -> LogFiles[Any]:
    """As `LogFiles`, of a place whose kind is not known to the type checker."""
    return LogFiles[Any](folder)


def files_below_checkpoint(folder: AnyPlace, version: int) -> list[AnyPlace]:
    """Log files older than a complete checkpoint, their hidden checksums, and sidecars that it does not name.

    Raises as `complete_checkpoint`.
    """
    with readable(folder):
        files = files_of(folder)
        matches = [(path, _VERSIONED.fullmatch(path.name)) for path in files.there]
        below = [path for path, match in matches if match and int(match[1]) < version]
        if files.sidecars:
            heads = [path for v, heads in files.checkpoints.items() if v >= version for path in heads.single]
            kept = {name for path in heads for name in sidecars_of(path)}
            below += [p for p in files.sidecars if p.name.removeprefix(".").removesuffix(".crc") not in kept]
        return sorted(below, key=str)


def leftovers(folder: AnyPlace, version: int) -> list[tuple[AnyPlace, bool]]:
    """What writers left in the log and no reader looks at; and whether that is certain now.

    It is for what belongs to a version below a complete checkpoint: that version was taken, or never came to be. What
    tells no version, or a later one, can be a running writer's, so that its age has to tell.

    Raises as `complete_checkpoint`.
    """
    with readable(folder):
        staged = [path for name in _STAGED for path in _inside(folder / LOG / name)]
        others: list[AnyPlace] = [*files_of(folder).there, *_inside(folder / LOG / _SIDECARS)]
        found = []
        for path, taken in (*((p, True) for p in staged), *((p, False) for p in others)):
            number, unfinished = _NUMBER.match(path.name), _LEFTOVER.fullmatch(path.name)
            spent = number is not None and int(number[1]) < version
            if unfinished or (spent and taken):
                found.append((path, spent))
        return sorted(found, key=str)


def _inside(folder: AnyPlace) -> list[AnyPlace]:
    try:
        return [path for path in folder.iterdir() if path.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_cleared(parts: Sequence[str]) -> bool:
    """Whether cutting the log takes a file of it away, or writes it again, once the table has later versions.

    parts: its path below the log's folder. What is not named here stays, whatever it is.
    """
    *folders, name = parts
    if not folders:
        return any(kind.fullmatch(name) for kind in (_VERSIONED, _LEFTOVER, _POINTER))
    if len(folders) > 1:
        return False
    return folders[0] == _SIDECARS or (folders[0] in _STAGED and bool(_NUMBER.match(name) or _LEFTOVER.fullmatch(name)))


def mentioned(folder: AnyPlace) -> dict[str, int]:
    """Absolute paths, or places in S3, of every file that any log entry names -> when it was removed (ms since 1970), 0
    where it was not.

    Removed files, change files and deletion vectors included, of all versions that the log still holds. Raises as
    `complete_checkpoint`.
    """
    with readable(folder):
        files = files_of(folder)
        paths = [p for p in files.there if p.suffix in (".json", ".parquet")]
        paths += [p for p in files.sidecars if p.suffix == ".parquet"]
        written: dict[str, int] = {}
        for told in read_all(_told, paths):
            for name, at in told:
                written[name] = max(written.get(name, 0), at)
        found: dict[str, int] = {}
        for name, at in written.items():
            place = str(placed(files.folder, name))
            found[place] = max(found.get(place, 0), at)
        return found


def _told(path: AnyPlace) -> list[tuple[str, int]]:
    """The paths that a file of the log names, as they are written, and when each was removed."""
    return [
        (name, int(action.get("deletionTimestamp") or 0) if kind == "remove" else 0)
        for kind, action in _file_actions(path, FILE_ACTIONS)
        for name in written_by(action)
    ]


def _file_actions(path: AnyPlace, kinds: Collection[str]) -> Iterator[tuple[str, Row]]:
    return ((kind, row[kind]) for row in rows(path, kinds) for kind in kinds if row.get(kind))


def tombstones_with(folder: AnyPlace, values: Collection[str]) -> int:
    """How many removed files the newest complete checkpoint still names under one of these partition values, or with a
    tag, a path or statistics that hold one.

    Tombstones stay in checkpoints until `delta.deletedFileRetentionDuration` is over (PROTOCOL.md, "Checkpoints"), each
    with its path, `partitionValues` and `tags`. Raises as `complete_checkpoint`.
    """
    with readable(folder):
        files = files_of(folder)
        version, _ = files.newest()
        there = files.all_of(version) if version >= 0 else []
        removes = [action for path in there for _, action in _file_actions(path, ("remove",))]
        search = TextsWithin(values if removes else ())
        return sum(1 for r in removes if _tells(r, values, search))


def _tells(remove: Row, values: Collection[str], search: TextsWithin) -> bool:
    if not set(dict(remove.get("partitionValues") or {}).values()).isdisjoint(values):
        return True
    tags = [str(text) for pair in dict(remove.get("tags") or {}).items() for text in pair]
    texts = [*tags, unquote(str(remove.get("path") or "")), str(remove.get("stats") or "")]
    found = (one for text in texts for one in search.found(text))
    return any(not (one.before.isalnum() or one.behind.isalnum()) for one in found)  # no longer word or number


def settings_only(folder: AnyPlace, first: int, last: int) -> bool:
    """Whether the commits of these versions change settings only: no file.

    One that is not there to be read counts as one that changes more.
    """
    for version in range(first, last + 1):
        try:
            actions = lines(folder / LOG / f"{version:020}.json")
        except (OSError, ValueError):
            return False
        if not all(_SETTINGS_ONLY.issuperset(action) for action in actions):
            return False
    return True
