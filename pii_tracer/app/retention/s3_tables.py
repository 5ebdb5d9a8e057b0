"""Tables in S3 for the retention commands: those of Delta, also such as no step erases; others stay gaps."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.delta.s3_log import delta_tables
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.read_result import in_order
from pii_tracer.lake.stores.s3.archives import s3_clients
from pii_tracer.lake.stores.s3.object_versions import ClientFactory
from pii_tracer.model.gap_kinds import GapKind


def with_delta_tables(inventory: Inventory, estate: Estate, base: Path) -> Inventory:
    """The inventory with its Delta tables in S3 among the tables, where the estate file says how S3 is reached."""
    known = {state.location for state in inventory.tables}
    tables = [t for t in EstatePaths(estate, base).remote if str(t.location) not in known]
    if estate.s3 is None or not any(table.format is DELTA for table in tables):
        return inventory
    found, gaps = delta_tables(tables, clients_of(estate))
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
