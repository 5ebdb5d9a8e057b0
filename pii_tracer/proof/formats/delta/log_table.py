"""The deletion log as a Delta table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.proof.log_table_rows import missing_rows

if TYPE_CHECKING:
    import pyarrow as pa


def fill(folder: Path, rows: pa.Table, pruned: int) -> None:
    """Bring the table in a folder up to date. rows: the log's. pruned: the last number that its retention removed.

    Raises:
        ProofError: table and log do not agree.
        Exception: the table cannot be read or written.
    """
    from deltalake import DeltaTable, write_deltalake

    there = DeltaTable(folder).to_pyarrow_table(columns=["seq"]) if DeltaTable.is_deltatable(str(folder)) else None
    missing = missing_rows(rows, there, folder, pruned)
    if missing is None:
        shutil.rmtree(folder)
        there, missing = None, rows
    if there is None or missing.num_rows:
        # Delta's own guard: no writer may remove or change a row
        configuration = {"delta.appendOnly": "true"}
        write_deltalake(folder, missing, mode="append", schema_mode="merge", configuration=configuration)
