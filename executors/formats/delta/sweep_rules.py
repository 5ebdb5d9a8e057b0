"""Which files in a Delta table's folder may go: by the log, by when they were removed; never a writer's in flight."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pyarrow.parquet as pq

from executors.sweep import table_folders
from executors.sweep.store_folder_sweep import Listed
from executors.sweep.table_folders import (
    files_below,
    modified,
    named,
    place_at,
    refuse_tables_inside,
)
from pii_tracer.lake.formats.delta.log_files import leftovers, mentioned
from pii_tracer.lake.formats.delta.log_paths import LOG
from pii_tracer.lake.formats.delta.stray_files import as_written
from pii_tracer.lake.formats.delta.transaction_log import log_of
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.stores.any_place import AnyPlace, opened
from pii_tracer.model.errors import RunError

_HOUR_MS = 3_600_000
_MANIFESTS = "_symlink_format_manifest"
_PHYSICAL = "delta.columnMapping.physicalName"

_KEPT_FOLDERS = frozenset({LOG, _MANIFESTS, "_checkpoints", "_spark_metadata"})
"""The log, manifests for other engines, and the state of streams: not the table's data, and not ours to sweep."""


@dataclass(frozen=True)
class Due:
    """going: files that may go now. strange: how many others lie there that are named as no writer of Delta does."""

    going: tuple[Listed, ...]
    strange: int = 0


def unreferenced(folder: AnyPlace) -> list[Listed]:
    """Files outside the log that the current version does not reference; hidden checksums of live files stay.

    The folder is listed before the log is read: a file that a writer commits in between is then referenced.

    Raises:
        RunError: another table lies inside the folder.
        EstateError: the log has a hole, or is damaged.
    """
    listed = files_below(folder)
    refuse_tables_inside(folder, listed, DELTA)
    live = log_of(folder, history=False).needed
    return [
        file
        for file in listed
        if file.path not in live and _data_file(file.path) not in live and not _KEPT_FOLDERS.intersection(file.parts)
    ]


def due(folder: AnyPlace, retain_hours: int, in_flight_hours: int) -> Due:
    """Unreferenced files that may go now.

    retain_hours: files that were removed from the table less than so long ago stay, for time travel.
    in_flight_hours: files that no commit names and that are younger stay: a writer that is at work commits its files
    after it has written all of them, and would commit a table that cannot be read.

    In S3 files stay that are named as no writer of Delta names its: a gap of the plan says so (`strange_files`).

    Raises:
        RunError, EstateError: as `unreferenced`.
    """
    candidates = unreferenced(folder)
    local = isinstance(folder, Path)
    if not candidates or (local and not retain_hours and not in_flight_hours):
        return Due(tuple(candidates))
    logged = mentioned(folder)
    own = candidates if local else _own(folder, candidates, logged)
    now = time.time_ns() // 1_000_000
    kept = [_kept_ms(file, logged, retain_hours, in_flight_hours) for file in own]
    # clocks of writers, and of S3, can be ahead of ours: what is not kept at all goes whatever its age
    going = [f for f, long in zip(own, kept, strict=True) if not long or _age(f, logged, now) >= long]
    return Due(tuple(going), len(candidates) - len(own))


def _own(folder: AnyPlace, files: Sequence[Listed], logged: Mapping[str, int]) -> list[Listed]:
    """Those that the log names, or that are named, and lie, as writers of Delta leave them."""
    snapshot = log_of(folder, history=False)
    return [f for f in files if _data_file(f.path) in logged or as_written(PurePosixPath(*f.parts), snapshot)]


def _kept_ms(file: Listed, logged: Mapping[str, int], retain_hours: int, in_flight_hours: int) -> int:
    return (retain_hours if _data_file(file.path) in logged else max(retain_hours, in_flight_hours)) * _HOUR_MS


def _age(file: Listed, logged: Mapping[str, int], now: int) -> int:
    """Milliseconds since a file was removed from the table; since it was written, where no log entry says when."""
    return now - (logged.get(_data_file(file.path), 0) or file.modified)


def _data_file(path: str) -> str:
    """The file itself, or the one that a hidden checksum belongs to."""
    front, slash, name = path.rpartition("/")
    hidden = name.startswith(".") and name.endswith(".crc")
    return f"{front}{slash}{name[1:-4]}" if hidden else path


def spent_leftovers(folder: AnyPlace, version: int, in_flight_hours: int) -> list[AnyPlace]:
    """Leftovers of writers in the log that may go: of versions below a checkpoint, and what is too old for a running
    writer to rename it still.

    Raises:
        EstateError: as `unreferenced`.
    """
    before = time.time_ns() // 1_000_000 - in_flight_hours * _HOUR_MS
    found = leftovers(folder, version)
    return [path for path, spent in found if spent or not in_flight_hours or (modified(path) or before) < before]


def empty_partitions(folder: AnyPlace) -> list[str]:
    """Folders of partitions of the table in which no file is left."""
    return table_folders.empty_partitions(folder, _KEPT_FOLDERS)


def missing(folder: AnyPlace) -> list[str]:
    """Files of the current version that are not there: the table cannot be read."""
    return table_folders.missing(folder, log_of(folder, history=False).needed)


def stale_manifests(folder: AnyPlace) -> list[str]:
    """Symlink manifests that name a file which the current version does not: their readers would lose it.

    https://docs.delta.io/latest/presto-integration.html: one line a file, absolute, not percent-encoded.
    """
    manifests = [file.path for file in files_below(folder / _MANIFESTS) if file.parts[-1] == "manifest"]
    live = log_of(folder, history=False).needed if manifests else frozenset()
    return [path for path in manifests if any(named(folder, line) not in live for line in _lines(folder, path))]


def _lines(folder: AnyPlace, path: str) -> list[str]:
    return [line for line in place_at(folder, path).read_text(encoding="utf-8").splitlines() if line]


def with_dropped_columns(folder: AnyPlace) -> list[str]:
    """Live data files that still hold a column which was dropped from the schema (column mapping by name or id).

    Raises:
        RunError: a file's footer cannot be read.
    """
    snapshot = log_of(folder, history=False)
    if snapshot.configuration.get("delta.columnMapping.mode", "none") == "none":
        return []
    kept = {str(f["metadata"].get(_PHYSICAL, f["name"])) for f in snapshot.schema["fields"]}
    try:
        # columns that the engine itself keeps for a row (row tracking) are no columns of the schema
        return [str(f.path) for f in snapshot.files if _names(f.path) - kept]
    except (OSError, ValueError) as error:
        raise RunError(
            f"a data file's footer cannot be read: {type(error).__name__}",
            where=str(folder),
            todo="repair or restore the file, then sweep again",
        ) from None


def _names(path: AnyPlace) -> set[str]:
    with opened(path) as stream:
        return {name for name in pq.read_schema(stream).names if not name.startswith("_")}
