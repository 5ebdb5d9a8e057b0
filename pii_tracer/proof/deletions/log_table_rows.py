"""Which rows of the deletion log its table lacks, whatever the table's format."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletions.deletion_log_export import arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from pii_tracer.proof.deletions.deletion_log import DeletionLog


@dataclass(frozen=True)
class LogRows:
    """The rows of a log. pruned: the last number that its retention removed. last: that of its last row."""

    log: DeletionLog
    pruned: int
    last: int

    @classmethod
    def of(cls, log: DeletionLog) -> LogRows:
        """As the log is now."""
        prunings = log.prunings
        pruned = prunings[-1].last_seq if prunings else 0
        return cls(log, pruned, pruned + log.count())

    def beyond(self, number: int) -> Iterator[pa.Table]:
        """Arrow tables of the rows with greater numbers."""
        return arrow(self.log.rows(after=number))

    def lacking(self, there: pa.Table | None, folder: Path) -> int | None:
        """The number beyond which a table in a folder lacks rows; None when it has to be made anew: it still has rows
        that the log's retention has removed, or it has none (then a filling may have broken off, whose files no table
        names). there: its column `seq`, where there is a table.

        Raises:
            ProofError: the table is ahead of the log, or has holes.
        """
        if there is None or not there.num_rows:
            return None
        import pyarrow.compute as pc

        numbers = there["seq"]
        first, last = pc.min(numbers).as_py(), pc.max(numbers).as_py()
        gapless = pc.count_distinct(numbers).as_py() == there.num_rows == last - first + 1
        if not gapless or last > self.last or first > self.pruned + 1:
            raise ProofError(
                "the deletion log and its table differ: rows are missing in one of them",
                where=str(folder),
                todo="compare the log and its table, then restore the one that lacks rows",
            )
        return None if first <= self.pruned else int(last)


@contextmanager
def made_anew(folder: Path) -> Iterator[None]:
    """A table's folder, which is empty at first. It goes again when the table is not finished: else files with rows
    would stay which no table names, and which no later pruning takes along."""
    if folder.exists():
        shutil.rmtree(folder)
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
