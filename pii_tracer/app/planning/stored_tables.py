"""Tables in HDFS and in object stores that steps can erase, among the tables of an inventory; of the others why not."""

from __future__ import annotations

from collections.abc import Mapping

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import Inventory, InventoryGap
from pii_tracer.lake.read_result import in_order
from pii_tracer.lake.stores.erasable_stored_tables import StoredTables, read_by, tables_among
from pii_tracer.lake.stores.hdfs import discovery as hdfs_discovery
from pii_tracer.lake.stores.object_places import discovery as object_discovery
from pii_tracer.model.gap_kinds import GapKind


def with_stored_tables(inventory: Inventory, estate: Estate) -> Inventory:
    """The inventory with its tables in HDFS and in object stores."""
    if inventory.hdfs:
        inventory = _with_hdfs(inventory, tables_among(estate, inventory.hdfs))
    if inventory.object_places:
        inventory = _with_objects(inventory, tables_among(estate, inventory.object_places))
    return inventory


def _with_hdfs(inventory: Inventory, there: StoredTables) -> Inventory:
    places = [p.model_copy(update={"untreated": there.why.get(p.location)}) for p in inventory.hdfs]
    shown = {str(p.location): hdfs_discovery.gap_of(p) for p in places if p.untreated}
    return _with(inventory.model_copy(update={"hdfs": tuple(places)}), there, GapKind.HDFS_PLACE, shown)


def _with_objects(inventory: Inventory, there: StoredTables) -> Inventory:
    places = [
        p.model_copy(update={"untreated": there.why.get(p.location), "read_by": read_by(p.location, there)})
        for p in inventory.object_places
    ]
    shown = {str(p.location): object_discovery.gap_of(p) for p in places if p.untreated}
    return _with(inventory.model_copy(update={"object_places": tuple(places)}), there, GapKind.OBJECT_PLACE, shown)


def _with(inventory: Inventory, there: StoredTables, kind: GapKind, shown: Mapping[str, InventoryGap]) -> Inventory:
    gaps = [shown.get(g.evidence, g) if g.kind == kind else g for g in inventory.gaps]
    gaps += [g for found in there.found.values() for g in found.gaps]
    states = (*inventory.tables, *(found.state for found in there.found.values()))
    tables = tuple(sorted(states, key=lambda state: state.location))
    return inventory.model_copy(update={"tables": tables, "gaps": in_order(gaps)})
