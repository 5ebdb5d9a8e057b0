"""Places in S3 that hold an estate's tables: from what catalogs and the estate file name to distinct places. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import InventoryGap, RemotePlace
from pii_tracer.lake.read_result import gap
from pii_tracer.model.datasets import PLAIN
from pii_tracer.model.gap_kinds import GapKind

NO_SETTINGS = "the estate file has no settings for S3 (`s3`)"
NOT_ASKED = "this command does not look into it"


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


def is_nameless(place: RemotePlace) -> bool:
    """Whether it is a table or a bare folder that was found in a root, and that nobody names."""
    return not place.tables and place.format is not None


def what(place: RemotePlace) -> str:
    """What lies there, as people are told."""
    if place.format is not None and is_nameless(place):
        named = (
            "a folder of data files" if place.format in PLAIN else f"a nameless {format_of(place.format).title} table"
        )
        return f"{named} lies"
    if not place.tables:
        return "files below a root of the estate lie"
    return (
        f"the table {place.tables[0]} lies" if len(place.tables) == 1 else f"the tables {', '.join(place.tables)} lie"
    )


def gap_of(place: RemotePlace) -> InventoryGap:
    """The gap that a place in S3 is where nothing is erased: it can be looked into."""
    one = is_nameless(place) or len(place.tables) == 1
    reason = f"{what(place)} in S3 and {'is' if one else 'are'} not erased: {place.untreated}"
    if place.unlisted and place.unlisted != place.untreated:
        reason += f"; the place was not searched: {place.unlisted}"
    return gap(place.dataset, GapKind.REMOTE_TABLE, reason, str(place.location))
