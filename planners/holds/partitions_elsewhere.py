"""Partitions of a table outside of its folder, in whatever store: a hold on the table keeps what has their files."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from pii_tracer.lake.catalog_only_partitions import PlacesOfPartitions
from pii_tracer.lake.inventory import Inventory
from planners.step_drafts import CopyDraft, is_named


def partitions_of(name: str, items: Iterable[CopyDraft], inventory: Inventory) -> Iterator[CopyDraft]:
    """The copies at, in and around the places of partitions of each table that people mean by a name."""
    tables = [table for table in inventory.partitioned if table.elsewhere and table.is_named(name)]
    if not tables:
        return
    places = PlacesOfPartitions(tables)
    everywhere = sorted(place for table in tables for place in table.elsewhere)
    for item in items:
        if is_named(name, item.copy):
            continue
        there = item.copy.location
        # keys of an archive begin with its prefix, which need not be a folder
        archived = item.objects is not None and _begins_one(there, everywhere)
        if archived or places.near(there):
            yield item


def _begins_one(front: str, places: Sequence[str]) -> bool:
    """Whether one of some places begins so. places: sorted; there may be very many."""
    first = bisect_left(places, front)
    return first < len(places) and places[first].startswith(front)
