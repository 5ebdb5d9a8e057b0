"""Partitions of a table outside of its folder, in a store: a hold on the table keeps them, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pii_tracer.lake.inventory import Inventory
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.locations import names_place
from planners.step_drafts import CopyDraft, is_named


def partitions_of(name: str, items: Iterable[CopyDraft], inventory: Inventory) -> Iterator[CopyDraft]:
    """The copies in which partitions of a table lie that people mean by a name, outside of that table's folder."""
    tables = set(_named(name, inventory))
    for item in items:
        if item.state is not None and item.state.partition_of in tables and not is_named(name, item.copy):
            yield item


def _named(name: str, inventory: Inventory) -> Iterator[DatasetId]:
    for place in inventory.hdfs:
        if names_place(name, place.table, str(place.location), place.location.path):
            yield place.location.dataset
    for stored in inventory.object_places:
        if names_place(name, stored.table_name, str(stored.location), stored.location.key):
            yield stored.location.dataset
    for remote in inventory.remote:
        if any(names_place(name, table, str(remote.location), remote.location.key) for table in remote.tables):
            yield remote.dataset
