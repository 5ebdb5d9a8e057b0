"""Which rows of the deletion log its table lacks, whatever the table's format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.model.errors import ProofError

if TYPE_CHECKING:
    import pyarrow as pa


def missing_rows(rows: pa.Table, there: pa.Table | None, folder: Path, pruned: int) -> pa.Table | None:
    """The log's rows that the table lacks; None when it still has rows that the log's retention has removed.

    Raises:
        ProofError: the table is ahead of the log, or has holes.
    """
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
