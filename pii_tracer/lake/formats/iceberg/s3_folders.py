"""Folders in S3 that an Iceberg table's metadata file leads to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.iceberg.vocabulary import LEADING
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import S3Location, location_of


def iceberg_folders(metadata: Any, file: S3Location) -> tuple[tuple[S3Location, ...], str | None]:
    """The folders in S3 in which an Iceberg table's files lie as far as its metadata file tells, the table's own first,
    none inside another; and what of them lies elsewhere, if anything.

    Rules: https://iceberg.apache.org/spec/#table-metadata-fields. Data files that only manifests name are not told.

    Raises:
        KeyError, TypeError, AttributeError: not a table's metadata.
    """
    own = metadata["location"]
    properties = metadata.get("properties") or {}
    texts = [own, *(str(properties[name]) for name in LEADING if properties.get(name))]
    files = [str(entry["metadata-file"]) for entry in metadata.get("metadata-log") or ()]
    files += [str(entry["manifest-list"]) for entry in metadata.get("snapshots") or () if entry.get("manifest-list")]
    files += [str(entry["statistics-path"]) for entry in metadata.get("statistics") or ()]
    told, elsewhere = _in_s3(texts)
    named, beyond = _in_s3(files)
    found: list[S3Location] = []
    for folder in (*told, file.parent, *(place.parent for place in named)):
        if not any(known.holds(folder) for known in found):
            found = [*(known for known in found if not folder.holds(known)), folder]
    number = elsewhere + beyond
    return tuple(found), (
        f"{counted(number, 'path in its metadata leads', 'paths in its metadata lead')} out of S3"
    ) if number else None


def _in_s3(texts: Sequence[str]) -> tuple[list[S3Location], int]:
    """The places in S3 among some locations, and how many of them lie elsewhere."""
    found = []
    for text in texts:
        try:
            place = location_of(text)
        except EstateError:
            continue
        if isinstance(place, S3Location):
            found.append(place)
    return found, len(texts) - len(found)
