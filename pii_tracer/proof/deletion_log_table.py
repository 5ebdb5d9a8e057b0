"""The deletion log as a Delta or Iceberg table, for those who query it beside their other tables.

SQLite holds the log; the table gets the rows that it lacks, by their number. So a crash between the two is mended by
the next run, and no row comes twice. A table that is ahead of the log, or has holes, is refused: one of them changed.
When the log was pruned the table is made anew, so that the old rows' files are gone.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.config.proof import DeletionLogKind
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletion_log import DeletionLog
from pii_tracer.proof.deletion_log_export import arrow

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = ("log", "deletions")
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")


def fill_table(log: DeletionLog, estate: str, kind: DeletionLogKind) -> Path:
    """Bring the table beside the log up to date; where it (SQLite: the log itself) is.

    Raises:
        ProofError: table and log do not agree, or the table cannot be read or written.
    """
    if kind is DeletionLogKind.SQLITE:
        return log.path
    folder = log.path.with_suffix(f".{kind.value}") / _folder_name(estate)
    rows = arrow(log.numbered())
    prunings = log.prunings
    pruned = prunings[-1].last_seq if prunings else 0
    try:
        (_delta if kind is DeletionLogKind.DELTA else _iceberg)(folder, rows, pruned)
    except ImportError:
        raise ProofError(
            "Iceberg tables need a catalog that is not installed", todo="pip install 'pii-tracer[iceberg-log]'"
        ) from None
    except ProofError:
        raise
    except Exception as error:  # the libraries' errors have no common root below this one
        raise ProofError(
            f"the deletion log's table cannot be written: {type(error).__name__}",
            where=str(folder),
            todo="mend or move it; the log itself is whole, and the next run fills a new table from it",
        ) from None
    return folder


def _folder_name(estate: str) -> str:
    """An estate's name where it is harmless in paths and URIs, else a hash of it."""
    return estate if _PLAIN.fullmatch(estate) else "estate-" + hashlib.sha256(estate.encode()).hexdigest()[:16]


def _delta(folder: Path, rows: pa.Table, pruned: int) -> None:
    from deltalake import DeltaTable, write_deltalake

    there = DeltaTable(folder).to_pyarrow_table(columns=["seq"]) if DeltaTable.is_deltatable(str(folder)) else None
    missing = _missing(rows, there, folder, pruned)
    if missing is None:
        shutil.rmtree(folder)
        there, missing = None, rows
    if there is None or missing.num_rows:
        # Delta's own guard: no writer may remove or change a row
        configuration = {"delta.appendOnly": "true"}
        write_deltalake(folder, missing, mode="append", schema_mode="merge", configuration=configuration)


def _iceberg(folder: Path, rows: pa.Table, pruned: int) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(parents=True, exist_ok=True)
    base = folder.resolve()
    catalog = SqlCatalog("deletion_log", uri=f"sqlite:///{base / 'catalog.sqlite'}", warehouse=base.as_uri())
    try:
        catalog.create_namespace_if_not_exists(_NAMES[0])
        table = catalog.create_table_if_not_exists(_NAMES, schema=rows.schema)
        missing = _missing(rows, table.scan(selected_fields=("seq",)).to_arrow(), folder, pruned)
        if missing is not None and missing.num_rows:
            with table.update_schema() as update:
                update.union_by_name(rows.schema)
            table.append(missing)
    finally:
        catalog.close()
    if missing is None:
        shutil.rmtree(folder)
        _iceberg(folder, rows, pruned)


def _missing(rows: pa.Table, there: pa.Table | None, folder: Path, pruned: int) -> pa.Table | None:
    """The log's rows that the table lacks; None when it still has rows that the log's retention has removed."""
    stands = sorted(there["seq"].to_pylist()) if there is not None else []
    if not stands:
        return rows
    first, last = pruned + 1, pruned + rows.num_rows
    gapless = stands == list(range(stands[0], stands[-1] + 1))
    if not gapless or stands[-1] > last or stands[0] > first:
        raise ProofError(
            "the deletion log and its table do not agree: rows were taken out of one of them",
            where=str(folder),
            todo="compare them, and restore the one that lacks rows",
        )
    return None if stands[0] < first else rows.slice(stands[-1] - pruned)
