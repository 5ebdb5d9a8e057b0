"""The inventory on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from pii_tracer.lake.inventory import Inventory, InventoryGap
from pii_tracer.model.gap_kinds import GapKind
from reports.inventory_text import print_inventory


def test_each_kind_of_gap_says_once_what_closes_it() -> None:
    kinds = (GapKind.OUTSIDE_ROOTS, GapKind.OUTSIDE_ROOTS, GapKind.MISSING_TABLE)
    gaps = tuple(
        InventoryGap(dataset=None, kind=kind, reason="r", evidence=f"place {n}") for n, kind in enumerate(kinds)
    )
    out = io.StringIO()
    print_inventory(Inventory(tables=(), gaps=gaps), Console(file=out, width=200))
    lines = [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]
    assert lines[-5:] == [
        "gap outside_roots: r (place 0)",
        "    to close it: Add its folder to `roots`, or to the places of `object_stores`. If the place belongs to"
        " somebody else, waive the gap.",
        "gap outside_roots: r (place 1)",
        "gap missing_table: r (place 2)",
        "    to close it: Correct the estate file, or drop the catalog's entry.",
    ]
