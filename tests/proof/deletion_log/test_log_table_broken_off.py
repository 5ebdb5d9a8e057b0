"""A filling of the log's table that breaks off leaves no file behind that no later pruning takes along."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.config.proof import DeletionLogKind
from pii_tracer.model.errors import ProofError
from pii_tracer.proof.deletions import log_reading
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.deletion_log_table import fill_table
from tests.proof.deletion_log.grouped import groups
from tests.proof.deletion_log.test_deletion_log import entry
from tests.review.plans import NOW

LATE = NOW + timedelta(days=9)
pytestmark = [
    pytest.mark.parametrize("kind", [DeletionLogKind.DELTA, DeletionLogKind.ICEBERG]),
    pytest.mark.parametrize("empty", [False, True], ids=["no table", "an empty table"]),
]


def begun(folder: Path, kind: DeletionLogKind, empty: bool) -> DeletionLog:
    """A log of two rows, which its table lacks."""
    log = DeletionLog(folder / "deletion_log.sqlite", "e")
    if empty:
        fill_table(log, "e", kind)
    log.append(groups([entry(), entry(run_at=LATE)]))
    return log


def leave(table: Path) -> None:
    """A file with a row, as a writer leaves it that did not come to its end."""
    table.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"seq": [1]}), table / "left.parquet")


def numbers(folder: Path) -> list[int]:
    """Of all rows in all files, whether a table names them or not."""
    return [n for file in folder.rglob("*.parquet") for n in pq.read_table(file, columns=["seq"])["seq"].to_pylist()]


def test_one_that_was_killed_goes_with_the_next(tmp_path: Path, kind: DeletionLogKind, empty: bool) -> None:
    log = begun(tmp_path, kind, empty)
    leave(tmp_path / f"deletion_log.{kind}" / "e")
    log.prune(LATE, at=LATE)
    assert numbers(fill_table(log, "e", kind)) == [2]


def test_one_that_raises_goes_at_once_and_says_why(
    tmp_path: Path, kind: DeletionLogKind, empty: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = begun(tmp_path, kind, empty)
    monkeypatch.setattr(log_reading, "PAGE", 1)
    rows = log.rows()

    def pruned(after: int) -> Iterator[object]:
        yield next(rows)
        leave(tmp_path / f"deletion_log.{kind}" / "e")
        log.prune(LATE, at=LATE)
        yield from rows

    with monkeypatch.context() as patch:
        patch.setattr(log, "rows", pruned)
        with pytest.raises(ProofError, match="pruned during the read"):
            fill_table(log, "e", kind)
    assert numbers(tmp_path) == []
    assert numbers(fill_table(log, "e", kind)) == [2]
