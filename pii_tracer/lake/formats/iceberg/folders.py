"""Folders of Iceberg tables and views, by the metadata files in them."""

from __future__ import annotations

import zlib
from pathlib import Path

from pii_tracer.lake.formats.iceberg.metadata_json import metadata_json
from pii_tracer.model.errors import EstateError


def is_iceberg(folder: Path) -> bool:
    """Whether a folder is an Iceberg table: `metadata/*.metadata.json`, which is not that of a view."""
    metadata = folder / "metadata"
    return metadata.is_dir() and any(metadata.glob("*.metadata.json")) and not is_iceberg_view(folder)


def is_iceberg_view(folder: Path) -> bool:
    """Whether a folder is an Iceberg view's, by what every metadata file of one says of itself and no table's does.

    A file that is no JSON tells nothing: the folder counts as a table's, which cannot be read.
    https://iceberg.apache.org/view-spec/#view-metadata
    """
    files = sorted((folder / "metadata").glob("*.metadata.json"))
    return bool(files) and all(map(_of_a_view, files))  # of a table's files only the first is read


def _of_a_view(file: Path) -> bool:
    try:
        told = metadata_json(file.read_bytes())
    except (OSError, ValueError, EOFError, zlib.error):
        return False
    return isinstance(told, dict) and "view-uuid" in told and "table-uuid" not in told


def location_in(metadata: Path) -> str:
    """The table's `location` (Iceberg spec, "Table Metadata Fields").

    Raises:
        EstateError: no such file, or not a metadata file.
    """
    try:
        data = metadata.read_bytes()
        return str(metadata_json(data)["location"])
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise EstateError(
            f"the metadata file that its catalog references cannot be read ({type(error).__name__})",
            where=str(metadata),
        ) from None
