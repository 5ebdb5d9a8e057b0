"""What lies in an Iceberg table's folder and is not the table's: a sweep takes it for orphans."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from pii_tracer.estate.iceberg_json import metadata_json
from pii_tracer.estate.paths import local_path
from pii_tracer.estate.s3_path import S3Path
from pii_tracer.estate.strays import MARKS, UUID, has_bytes, told
from pii_tracer.several import several

_ENDS = (".metadata.json", ".metadata.json.gz")


def other_tables(table: Any, location: Path, known: Container[Path]) -> tuple[Path, ...]:
    """Metadata files in the folder whose `table-uuid` is another one than the table's, sorted.

    Names of tables come and go, the uuid is one table's for ever (https://iceberg.apache.org/spec/#table-metadata-fields).
    Two catalogs may have given two tables one folder, or a table was dropped without its files and made anew. table:
    PyIceberg's; known: metadata files that catalogs of the estate point at, which discovery tells by itself.
    """
    own = {local_path(entry.metadata_file).resolve() for entry in table.metadata.metadata_log}
    own.add(local_path(table.metadata_location).resolve())
    there = [path for end in _ENDS for path in (location / "metadata").glob(f"*{end}")]
    uuid = str(table.metadata.table_uuid)
    return tuple(
        sorted(
            p
            for p in there
            if p.resolve() not in own and p.resolve() not in known and _uuid(p.read_bytes) not in (None, uuid)
        )
    )


def other_tables_in(table: Any, location: S3Path, there: Mapping[str, int], known: Container[str]) -> list[str]:
    """As `other_tables`, of a table in S3. there: every object in its folder, and its bytes."""
    own = {str(location.placed(entry.metadata_file)) for entry in table.metadata.metadata_log}
    own.add(str(location.placed(table.metadata_location)))
    folder, uuid = location / "metadata", str(table.metadata.table_uuid)
    named = (name for name in there if name.endswith(_ENDS) and name not in own and name not in known)
    asked = [file for file in map(location.placed, named) if file.location.parent == folder.location]
    uuids = several(lambda file: _uuid(lambda: file.open("rb").read()), asked)
    return sorted(str(file) for file, found in zip(asked, uuids, strict=True) if found not in (None, uuid))


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
    """As `strangers`, of a table in S3. there: every object in its folder, and its bytes; named: the table's files."""
    found = []
    for place, size in there.items():
        name = place.rpartition("/")[2]
        if size and place not in named and not as_written(name) and not MARKS.match(name):
            found.append(place)
    return sorted(found)


def _files(location: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(location):
        yield from (path for n in names if not told((path := Path(folder) / n).is_symlink) and not MARKS.match(n))


def _uuid(read: Callable[[], bytes]) -> str | None:
    """The uuid that a metadata file names; None where it cannot be read, which the scan of the folder tells."""
    try:
        told = metadata_json(read()).get("table-uuid")
    except (OSError, EOFError, ValueError, AttributeError):
        return None
    return str(told) if told else None
