"""Which files in a Delta table's folder may go: by the log, by when they were removed; never a writer's in flight."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow.parquet as pq

from executors.delta_log import live_paths, mentioned
from executors.local import as_local, empty_folders, files_below, refuse_nested
from pii_tracer.errors import RunError
from pii_tracer.estate.delta_log import read_log

_HOUR_MS = 3_600_000
_MANIFESTS = "_symlink_format_manifest"
_PHYSICAL = "delta.columnMapping.physicalName"

_KEPT_FOLDERS = frozenset({"_delta_log", _MANIFESTS, "_checkpoints", "_spark_metadata"})
"""The log, manifests for other engines, and the state of streams: not the table's data, and not ours to sweep."""


def unreferenced(folder: Path) -> list[str]:
    """Files outside the log that the current version does not reference; hidden checksums of live files stay.

    The folder is listed before the log is read: a file that a writer commits in between is then referenced.

    Raises:
        RunError: another table lies inside the folder, or the log has a hole.
    """
    refuse_nested(folder, own=lambda place: "_delta_log" in place.relative_to(folder).parts)
    there = [p for p in files_below(folder) if not _KEPT_FOLDERS.intersection(p.relative_to(folder).parts)]
    live = live_paths(folder)
    keep = live | {str(Path(p).with_name(f".{Path(p).name}.crc")) for p in live}
    return [str(p) for p in there if str(p) not in keep]


def due(folder: Path, retain_hours: int, in_flight_hours: int) -> list[str]:
    """Unreferenced files that may go now.

    retain_hours: files that were removed from the table less than so long ago stay, for time travel.
    in_flight_hours: files that no commit names and that are younger stay: a writer that is at work commits its files
    after it has written all of them, and would commit a table that cannot be read.

    Raises:
        RunError: as `unreferenced`.
    """
    candidates = unreferenced(folder)
    if not retain_hours and not in_flight_hours:
        return candidates
    named = mentioned(folder)
    now = time.time_ns() // 1_000_000
    return [p for p in candidates if _age(folder, p, named, now) >= _kept_ms(p, named, retain_hours, in_flight_hours)]


def _kept_ms(path: str, named: dict[str, int], retain_hours: int, in_flight_hours: int) -> int:
    return (retain_hours if _data_file(path) in named else max(retain_hours, in_flight_hours)) * _HOUR_MS


def _age(folder: Path, path: str, named: dict[str, int], now: int) -> int:
    """Milliseconds since a file was removed from the table; since it was written, where no log entry says when."""
    removed = named.get(_data_file(path), 0)
    try:
        return now - (removed or Path(path).stat().st_mtime_ns // 1_000_000)
    except FileNotFoundError:
        return 0


def _data_file(path: str) -> str:
    """The file itself, or the one that a hidden checksum belongs to."""
    file = Path(path)
    hidden = file.name.startswith(".") and file.name.endswith(".crc")
    return str(file.with_name(file.name[1:-4])) if hidden else path


def empty_partitions(folder: Path) -> list[Path]:
    """Folders of partitions of the table in which no file is left."""
    return [p for p in empty_folders(folder) if not _KEPT_FOLDERS.intersection(p.relative_to(folder).parts)]


def missing(folder: Path) -> list[str]:
    """Files of the current version that are not there: the table cannot be read."""
    return sorted(path for path in live_paths(folder) if ":" not in path.split("/")[0] and not Path(path).exists())


def stale_manifests(folder: Path) -> list[Path]:
    """Symlink manifests that name a file which the current version does not: their readers would lose it.

    https://docs.delta.io/latest/presto-integration.html: one line a file, absolute, not percent-encoded.
    """
    manifests = [p for p in files_below(folder / _MANIFESTS) if p.name == "manifest"]
    live = live_paths(folder) if manifests else set()
    return [p for p in manifests if any(as_local(line) not in live for line in p.read_text().splitlines() if line)]


def with_dropped_columns(folder: Path) -> list[str]:
    """Live data files that still hold a column which was dropped from the schema (column mapping by name or id).

    Raises:
        RunError: a file's footer cannot be read.
    """
    snapshot = read_log(folder)
    if snapshot.configuration.get("delta.columnMapping.mode", "none") == "none":
        return []
    kept = {str(f["metadata"].get(_PHYSICAL, f["name"])) for f in snapshot.schema["fields"]}
    try:
        # columns that the engine itself keeps for a row (row tracking) are no columns of the schema
        return [str(f.path) for f in snapshot.files if _names(f.path) - kept]
    except (OSError, ValueError) as error:
        raise RunError(
            f"a data file's footer cannot be read: {type(error).__name__}", where=str(folder), todo="look at the file"
        ) from None


def _names(path: Path) -> set[str]:
    return {name for name in pq.read_schema(path).names if not name.startswith("_")}
