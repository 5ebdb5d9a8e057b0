"""The deletion log as an Iceberg table, in a catalog of its own beside it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.proof.deletions.deletion_log_export import schema

if TYPE_CHECKING:
    from pii_tracer.proof.deletions.log_table_rows import LogRows

_NAMES = ("log", "deletions")


def fill(folder: Path, rows: LogRows) -> None:
    """Bring the table in a folder up to date.

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
        table = catalog.create_table_if_not_exists(_NAMES, schema=schema())
        begin = rows.lacking(table.scan(selected_fields=("seq",)).to_arrow(), folder)
        if begin is not None and begin < rows.last:
            with table.update_schema() as update:
                update.union_by_name(schema())
            for missing in rows.beyond(begin):  # a crash between two is mended by the next run
                table.append(missing)
    finally:
        catalog.close()
    if begin is None:
        shutil.rmtree(folder)
        fill(folder, rows)
