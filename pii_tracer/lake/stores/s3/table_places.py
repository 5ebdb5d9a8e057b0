"""Places in S3 that hold an estate's tables: from what catalogs and the estate file name to distinct places. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.inventory import ICEBERG_DATA_PATHS, InventoryGap, RemotePlace
from pii_tracer.lake.read_result import gap
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import S3Location, location_of

NO_SETTINGS = "the estate file does not say how S3 is reached (`s3`)"
NOT_ASKED = "this command does not look into it"

LEADING = (*ICEBERG_DATA_PATHS, "write.metadata.path")
"""Properties of Iceberg tables that lead files elsewhere."""


def places_of(tables: Iterable[RemoteTable], why: str) -> tuple[RemotePlace, ...]:
    """One place for each location, sorted, not listed. why: for what reason."""
    found: dict[str, RemotePlace] = {}
    for table in tables:
        place = RemotePlace(
            location=table.location,
            tables=(table.title,) if table.title else (),
            format=table.format,
            unlisted=why,
            untreated=why,
        )
        known = found.get(str(table.location))
        found[str(table.location)] = place if known is None else joined(known, place)
    return tuple(found[location] for location in sorted(found))


def joined(one: RemotePlace, other: RemotePlace) -> RemotePlace:
    """Two places at one location. The format is told where all who know one say the same."""
    formats = {place.format for place in (one, other) if place.format is not None}
    doubts = sorted({place.doubt for place in (one, other) if place.doubt})
    return one.model_copy(
        update={
            "tables": tuple(sorted({*one.tables, *other.tables})),
            "format": formats.pop() if len(formats) == 1 else None,
            "doubt": "; ".join(doubts) or None,
        }
    )


def what(place: RemotePlace) -> str:
    """What lies there, as people are told."""
    if not place.tables:
        return "files below a root of the estate lie"
    return (
        f"the table {place.tables[0]} lies" if len(place.tables) == 1 else f"the tables {', '.join(place.tables)} lie"
    )


def gap_of(place: RemotePlace) -> InventoryGap:
    """The gap that a place in S3 is where nothing is erased: it can be looked into."""
    reason = f"{what(place)} in S3 and is not erased: {place.untreated}"
    if place.unlisted and place.unlisted != place.untreated:
        reason += f"; it was not looked into: {place.unlisted}"
    return gap(place.dataset, GapKind.REMOTE_TABLE, reason, str(place.location))


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
    return tuple(found), f"{number} path(s) of its metadata lead out of S3" if number else None


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
