"""Metadata of another table in an Iceberg table's folder: a sweep takes that table's files for orphans."""

from __future__ import annotations

import gzip
import json
from collections.abc import Container
from pathlib import Path
from typing import Any

from pii_tracer.estate.paths import local_path

_METADATA = ("*.metadata.json", "*.metadata.json.gz")


def other_tables(table: Any, location: Path, known: Container[Path]) -> tuple[Path, ...]:
    """Metadata files in the folder whose `table-uuid` is another one than the table's, sorted.

    Names of tables come and go, the uuid is one table's for ever (https://iceberg.apache.org/spec/#table-metadata-fields).
    Two catalogs may have given two tables one folder, or a table was dropped without its files and made anew. table:
    PyIceberg's; known: metadata files that catalogs of the estate point at, which discovery tells by itself.
    """
    own = {local_path(entry.metadata_file).resolve() for entry in table.metadata.metadata_log}
    own.add(local_path(table.metadata_location).resolve())
    there = [path for pattern in _METADATA for path in (location / "metadata").glob(pattern)]
    uuid = str(table.metadata.table_uuid)
    return tuple(
        sorted(p for p in there if p.resolve() not in own and p.resolve() not in known and _uuid(p) not in (None, uuid))
    )


def _uuid(path: Path) -> str | None:
    """The uuid that a metadata file names; None where it cannot be read, which the scan of the folder tells."""
    try:
        data = path.read_bytes()
        told = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).get("table-uuid")
    except (OSError, EOFError, ValueError, AttributeError):
        return None
    return str(told) if told else None
