"""The tables of an inventory as the retention rules see them, read without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Inventory, RefKind, TableState
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.errors import EstateError
from pii_tracer.retention.native_settings import RefRetention
from pii_tracer.retention.settings_check import HISTORIES, Table


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
    if state.format is ICEBERG:
        try:
            refs = iceberg_refs(paths.place(state.location), state.metadata)
        except EstateError as error:
            unread = error.what
    return Table(
        names=names_of(state, paths.base),
        format=state.format,
        properties=state.properties if state.format in HISTORIES else {},
        refs=refs,
        pii=pii,
        location=state.location,
        unread=unread,
    )


def iceberg_refs(location: Path | S3Path, metadata: str | None = None) -> tuple[RefRetention, ...]:
    """References of an Iceberg table with their own retention, sorted by name. metadata: as its catalog points at.

    Raises:
        EstateError: the metadata cannot be read.
    """
    return tuple(
        RefRetention(
            name=name,
            kind=RefKind.TAG if ref.snapshot_ref_type.value == "tag" else RefKind.BRANCH,
            snapshot=ref.snapshot_id,
            max_ref_age_ms=ref.max_ref_age_ms,
            max_snapshot_age_ms=ref.max_snapshot_age_ms,
            min_snapshots_to_keep=ref.min_snapshots_to_keep,
        )
        for name, ref in sorted(load_iceberg(location, metadata).metadata.refs.items())
    )
