"""Files in a Delta table's folder that nobody would take for the table's: a sweep, as VACUUM, removes them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from pii_tracer.lake.formats.delta.log_paths import LOG
from pii_tracer.lake.formats.delta.transaction_log import DeltaSnapshot
from pii_tracer.lake.formats.stray_file_marks import (
    MARKS,
    UUID,
    has_bytes,
    told,
)

_NAMED = re.compile(UUID, re.IGNORECASE)
_OWN_FOLDERS = frozenset(
    {LOG, "_change_data", "_delta_index", "_checkpoints", "_spark_metadata", "_symlink_format_manifest", "_temporary"}
)


def strangers(location: Path, snapshot: DeltaSnapshot[Path]) -> tuple[Path, ...]:
    """Files with bytes that no retained version names and that are named, or lie, as none of Spark or delta-rs.

    What failed writes and cut history leave looks like the table's own files and is not among them; nor is anybody's
    Parquet that does.
    """
    return tuple(
        sorted(
            path
            for path in _files(location)
            if path not in snapshot.named and not as_written(path.relative_to(location), snapshot) and has_bytes(path)
        )
    )


def strange_objects(location: str, there: Mapping[str, int], snapshot: DeltaSnapshot[Any]) -> list[str]:
    """As `strangers`, of a table in a store. there: every file in its folder, by its whole name, and its bytes."""
    named = {str(path) for path in snapshot.named}
    found = []
    for name, size in there.items():
        inside = PurePosixPath(name.removeprefix(f"{location}/"))
        known = not size or name in named or bool(_OWN_FOLDERS.intersection(inside.parts[:-1]))
        if not known and not as_written(inside, snapshot):
            found.append(name)
    return sorted(found)


def _files(location: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(location):
        # tables inside are a gap of their own, and so is what refuses to be read
        inner[:] = [n for n in inner if n not in _OWN_FOLDERS and not told((Path(folder) / n / LOG).is_dir)]
        yield from (path for n in names if not told((path := Path(folder) / n).is_symlink) and not MARKS.match(n))


def as_written(path: PurePath, snapshot: DeltaSnapshot[Any]) -> bool:
    """Whether a file of a table's folder is named as writers name what they leave there.

    Data files and deletion vectors in a folder of a partition, or under a random prefix; change files; checksums.
    """
    prefix = int(snapshot.configuration.get("delta.randomPrefixLength", "2"))
    if MARKS.match(path.name):
        return True
    places = [part for part in path.parts[:-1] if part not in _OWN_FOLDERS]
    return bool(_NAMED.search(path.name)) and all("=" in part or len(part) <= prefix for part in places)
