"""What lies in an Iceberg table's folder and is not the table's: a sweep takes it for orphans."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pii_tracer.common.parallel_map import several
from pii_tracer.lake.dataset_paths import local_path
from pii_tracer.lake.formats.iceberg.metadata_json import METADATA_ENDS, metadata_json
from pii_tracer.lake.formats.stray_file_marks import (
    MARKS,
    UUID,
    has_bytes,
    told,
)


@dataclass(frozen=True)
class OtherMetadata:
    """Metadata files in a table's folder that its own one does not name, sorted, as places.

    foreign: of other tables. newer: of the table itself, younger than the one that counts.
    """

    foreign: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()


def other_metadata(table: Any, location: Path, known: Container[Path]) -> OtherMetadata:
    """Names of tables come and go, the uuid is one table's for ever (https://iceberg.apache.org/spec/#table-metadata-fields).

    Two catalogs may have given two tables one folder, or a table was dropped without its files and made anew. A younger
    file of the same table is one of a commit that failed, or of a catalog that nobody named, or its own was set back.
    table: PyIceberg's; known: metadata files that catalogs of the estate point at, which discovery tells by itself.
    """
    own = {local_path(entry.metadata_file).resolve() for entry in table.metadata.metadata_log}
    own.add(local_path(table.metadata_location).resolve())
    there = [path for end in METADATA_ENDS for path in (location / "metadata").glob(f"*{end}")]
    asked = [path for path in there if path.resolve() not in own and path.resolve() not in known]
    return _sorted_out(table, ((str(path), _identity(path.read_bytes)) for path in asked))


def other_metadata_in(table: Any, location: Any, there: Mapping[str, int], known: Container[str]) -> OtherMetadata:
    """As `other_metadata`, of a table in a store. location: its folder; there: every file in it, with bytes."""
    own = {str(location.placed(entry.metadata_file)) for entry in table.metadata.metadata_log}
    own.add(str(location.placed(table.metadata_location)))
    folder = location / "metadata"
    named = (name for name in there if name.endswith(METADATA_ENDS) and name not in own and name not in known)
    asked = [file for file in map(location.placed, named) if file.location.parent == folder.location]
    return _sorted_out(table, several(lambda file: (str(file), _identity(lambda: file.open("rb").read())), asked))


def _sorted_out(table: Any, files: Iterable[tuple[str, tuple[str, int] | None]]) -> OtherMetadata:
    uuid, updated = str(table.metadata.table_uuid), table.metadata.last_updated_ms
    told = sorted((name, *identity) for name, identity in files if identity is not None)
    return OtherMetadata(
        foreign=tuple(name for name, theirs, _ in told if theirs != uuid),
        newer=tuple(name for name, theirs, when in told if theirs == uuid and when > updated),
    )


_OWN = re.compile(rf"{UUID}|^version-hint\.text$|^v\d+(\.gz)?\.metadata\.json(\.gz)?$", re.IGNORECASE)
"""Hadoop tables number their metadata files; everything else that writers of Iceberg leave has a UUID in its name."""


def as_written(name: str) -> bool:
    """Whether a file is named as writers of Iceberg name theirs."""
    return _OWN.search(name) is not None


def strangers(location: Path, referenced: Container[Path]) -> tuple[Path, ...]:
    """Files with bytes that no snapshot names and that are not named as writers of Iceberg name theirs, sorted.

    What failed writes left, and anybody's file with a UUID in its name, looks like the table's and is not among them.
    referenced: files of the table, links followed.
    """
    return tuple(
        sorted(
            path
            for path in _files(location)
            if not as_written(path.name) and path.resolve() not in referenced and has_bytes(path)
        )
    )


def strange_objects(there: Mapping[str, int], named: Container[str]) -> list[str]:
    """As `strangers`, of a table in a store. there: every file in its folder, and its bytes; named: its own."""
    found = []
    for place, size in there.items():
        name = place.rpartition("/")[2]
        if size and place not in named and not as_written(name) and not MARKS.match(name):
            found.append(place)
    return sorted(found)


def _files(location: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(location):
        yield from (path for n in names if not told((path := Path(folder) / n).is_symlink) and not MARKS.match(n))


def _identity(read: Callable[[], bytes]) -> tuple[str, int] | None:
    """The uuid that a metadata file names, and when it was changed (ms since 1970); None where it cannot be read, which
    the scan of the folder tells.
    """
    try:
        told = metadata_json(read())
        return (str(told["table-uuid"]), int(told.get("last-updated-ms") or 0)) if told.get("table-uuid") else None
    except (OSError, EOFError, ValueError, AttributeError, TypeError):
        return None
