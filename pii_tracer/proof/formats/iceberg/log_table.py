"""The deletion log as an Iceberg table, in a catalog of its own beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.proof.deletions.deletion_log_export import schema
from pii_tracer.proof.deletions.log_table_rows import made_anew

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from pii_tracer.proof.deletions.log_table_rows import LogRows

_NAMES = ("log", "deletions")
_CATALOG = "catalog.sqlite"


def fill(folder: Path, rows: LogRows) -> None:
    """Bring the table in a folder up to date.

    Raises:
        ImportError: the catalog's library is not installed.
        ProofError: table and log do not agree.
        Exception: the table cannot be read or written.
    """
    there = None
    if (folder / _CATALOG).exists():
        with _opened(folder) as table:
            there = table.scan(selected_fields=("seq",)).to_arrow()
    begin = rows.lacking(there, folder)
    if begin is None:
        with made_anew(folder):
            _append(folder, rows, rows.pruned)
    elif begin < rows.last:
        _append(folder, rows, begin)


def _append(folder: Path, rows: LogRows, begin: int) -> None:
    with _opened(folder) as table:
        with table.update_schema() as update:
            update.union_by_name(schema())
        for missing in rows.beyond(begin):  # a crash between two is mended by the next run
            table.append(missing)


@contextmanager
def _opened(folder: Path) -> Iterator[Table]:
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(parents=True, exist_ok=True)
    base = folder.resolve()
    catalog = SqlCatalog("deletion_log", uri=f"sqlite:///{base / _CATALOG}", warehouse=base.as_uri())
    try:
        catalog.create_namespace_if_not_exists(_NAMES[0])
        yield catalog.create_table_if_not_exists(_NAMES, schema=schema())
    finally:
        catalog.close()
