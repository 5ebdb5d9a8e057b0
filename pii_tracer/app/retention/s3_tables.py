"""Tables in S3 for the retention commands: also such as no step erases; those that nothing reads there stay gaps."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.lake.inventory import Inventory, InventoryGap
from pii_tracer.lake.read_result import Found, in_order
from pii_tracer.lake.stores.s3.archive_versions import s3_clients
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.model.gap_kinds import GapKind


def with_tables_in_s3(inventory: Inventory, estate: Estate, base: Path) -> Inventory:
    """The inventory with tables in S3 among the tables, where the estate file says how S3 is reached."""
    known = {state.location for state in inventory.tables}
    tables = [t for t in EstatePaths(estate, base).remote if str(t.location) not in known]
    if estate.s3 is None:
        return inventory
    found: list[Found] = []
    gaps: list[InventoryGap] = []
    for one in table_formats():
        if any(table.format is one.name for table in tables):
            more, unread = one.tables_of_sweeps_in_s3(tables, clients_of(estate))
            found, gaps = [*found, *more], [*gaps, *unread]
    if not found and not gaps:
        return inventory
    told = {f.state.location for f in found} | {g.evidence for g in gaps}
    left = [g for g in inventory.gaps if not (g.kind == GapKind.REMOTE_TABLE and g.evidence in told)]
    return inventory.model_copy(
        update={
            "tables": tuple(sorted((*inventory.tables, *(f.state for f in found)), key=lambda s: s.location)),
            "gaps": in_order([*left, *gaps, *(g for f in found for g in f.gaps)]),
        }
    )


def clients_of(estate: Estate) -> ClientFactory:
    """Clients of S3 as the estate file says; where it says nothing there is no table to ask for one."""
    made = cache(lambda: s3_clients(estate))
    return lambda region: made()(region)
