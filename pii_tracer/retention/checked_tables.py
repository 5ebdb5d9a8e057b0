"""The tables of an inventory as the retention rules see them, read without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.formats.retention_terms import RefRetention
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.model.errors import EstateError
from pii_tracer.retention.settings_check import Table


def tables_of(
    inventory: Inventory, paths: EstatePaths, pii: Callable[[TableState], tuple[str, ...]]
) -> tuple[Table, ...]:
    """Every table of the inventory. paths: the estate's. pii: PII columns of a table, as lineage knows."""
    return tuple(_table(state, paths, pii(state)) for state in inventory.tables)


def names_of(state: TableState, base: Path) -> tuple[str, ...]:
    """The names a table goes by: its SQL name, its path from the estate file, its location, its name in lineage."""
    location = Path(state.location)
    relative = str(location.relative_to(base)) if location.is_relative_to(base) else None
    names = (state.table, relative, state.location, state.dataset.name)
    return tuple(dict.fromkeys(name for name in names if name))


def _table(state: TableState, paths: EstatePaths, pii: tuple[str, ...]) -> Table:
    refs: tuple[RefRetention, ...] = ()
    unread = None
    adapter = format_of(state.format)
    try:
        if adapter.has_references:
            refs = adapter.reference_retention(paths.place(state.location), state.metadata)
    except EstateError as error:
        unread = error.what
    return Table(
        names=names_of(state, paths.base),
        format=state.format,
        properties=state.properties if adapter.keeps_history else {},
        refs=refs,
        pii=pii,
        location=state.location,
        unread=unread,
    )
