"""The deletion log as an Iceberg table, in a catalog of its own beside it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.proof.log_table_rows import missing_rows

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = ("log", "deletions")


def fill(folder: Path, rows: pa.Table, pruned: int) -> None:
    """Bring the table in a folder up to date. rows: the log's. pruned: the last number that its retention removed.

    Raises:
        ImportError: the catalog's library is not installed.
        ProofError: table and log do not agree.
        Exception: the table cannot be read or written.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(parents=True, exist_ok=True)
    base = folder.resolve()
    catalog = SqlCatalog("deletion_log", uri=f"sqlite:///{base / 'catalog.sqlite'}", warehouse=base.as_uri())
    try:
        catalog.create_namespace_if_not_exists(_NAMES[0])
        table = catalog.create_table_if_not_exists(_NAMES, schema=rows.schema)
        missing = missing_rows(rows, table.scan(selected_fields=("seq",)).to_arrow(), folder, pruned)
        if missing is not None and missing.num_rows:
            with table.update_schema() as update:
                update.union_by_name(rows.schema)
            table.append(missing)
    finally:
        catalog.close()
    if missing is None:
        shutil.rmtree(folder)
        fill(folder, rows, pruned)
