"""Files in a Delta table's folder that nobody would take for the table's: a sweep, as VACUUM, removes them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath

from pii_tracer.estate.delta_log import LOG, DeltaSnapshot, Place

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
"""In the name of every data file and deletion vector that Spark and delta-rs write."""
_OWN_FOLDERS = frozenset(
    {LOG, "_change_data", "_delta_index", "_checkpoints", "_spark_metadata", "_symlink_format_manifest", "_temporary"}
)
_MARKS = re.compile(r"_SUCCESS$|_committed_|_started_|_pii_tracer_|.*\.crc$")
"""What committers of Spark and Databricks leave, and runs of ours that were killed; checksums."""


def strangers(location: Path, snapshot: DeltaSnapshot[Path]) -> tuple[Path, ...]:
    """Files with bytes that no retained version names and that are named, or lie, as none of Spark or delta-rs.

    What failed writes and cut history leave looks like the table's own files and is not among them; nor is anybody's
    Parquet that does.
    """
    return tuple(
        sorted(
            path
            for path in _files(location)
            if path not in snapshot.named and not as_written(path.relative_to(location), snapshot) and _has_bytes(path)
        )
    )


def _files(location: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(location):
        # tables inside are a gap of their own, and so is what refuses to be read
        inner[:] = [n for n in inner if n not in _OWN_FOLDERS and not _told((Path(folder) / n / LOG).is_dir)]
        yield from (path for n in names if not _told((path := Path(folder) / n).is_symlink) and not _MARKS.match(n))


def _has_bytes(path: Path) -> bool:
    return _told(lambda: path.stat().st_size > 0)


def _told(look: Callable[[], bool]) -> bool:
    """What a look tells; False where a writer or a sweep took the file meanwhile, or it refuses: the scan says that."""
    try:
        return look()
    except OSError:
        return False


def as_written(path: PurePath, snapshot: DeltaSnapshot[Place]) -> bool:
    """Whether a file of a table's folder is named as writers name what they leave there.

    Data files and deletion vectors in a folder of a partition, or under a random prefix; change files; checksums.
    """
    prefix = int(snapshot.configuration.get("delta.randomPrefixLength", "2"))
    if _MARKS.match(path.name):
        return True
    places = [part for part in path.parts[:-1] if part not in _OWN_FOLDERS]
    return bool(_UUID.search(path.name)) and all("=" in part or len(part) <= prefix for part in places)
