"""The deletion log is only ever added to, and exports what it holds."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pii_tracer.errors import ProofError
from pii_tracer.model import Format
from pii_tracer.plan import Action
from pii_tracer.proof.deletion_log import DeletionLog, Entry, EntryState
from tests.review.plans import NOW


def entry(**changes: object) -> Entry:
    fields = {
        "request_id": "REQ-1",
        "subject": "hmac:00",
        "plan_id": "p",
        "step_id": "c1/1",
        "copy_id": "c1",
        "dataset": "file:/lake/c1",
        "format": Format.ICEBERG,
        "action": Action.ICEBERG_DELETE_ROWS,
        "state": EntryState.ERASED,
        "run_at": NOW,
        "files_removed": 3,
        "tool_version": "0.1.0",
        "evidence": "sha256:00",
    }
    return Entry.model_validate({**fields, **changes})


def test_rows_come_back_once_and_in_order(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "log.db", 'odd " estate')
    log.append([entry(), entry(state=EntryState.CONFIRMED)])
    log.append([entry()])  # a resumed run says it again
    again = DeletionLog(tmp_path / "log.db", 'odd " estate')
    assert again.entries() == (entry(), entry(state=EntryState.CONFIRMED))
    assert DeletionLog(tmp_path / "log.db", "other").entries() == ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE \"deletions e\" SET state = 'exempt'",
        'DELETE FROM "deletions e"',
        'INSERT OR REPLACE INTO "deletions e" SELECT * FROM "deletions e"',
    ],
)
def test_nothing_is_changed_or_removed(tmp_path: Path, statement: str) -> None:
    log = DeletionLog(tmp_path / "log.db", "e")
    log.append([entry()])
    connection = sqlite3.connect(tmp_path / "log.db")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert log.entries() == (entry(),)


def test_exports(tmp_path: Path) -> None:
    log = DeletionLog(tmp_path / "log.db", "e")
    log.append([entry(dataset="=cmd()"), entry(step_id="c1/2")])
    log.export_csv(tmp_path / "log.csv")
    rows = list(csv.DictReader((tmp_path / "log.csv").open()))
    assert [r["dataset"] for r in rows] == ["'=cmd()", "file:/lake/c1"]
    log.export_parquet(tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet").to_pylist()
    assert [(r["step_id"], r["run_at"], r["files_removed"]) for r in table] == [("c1/1", NOW, 3), ("c1/2", NOW, 3)]


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(ProofError, match="deletion log"):
        DeletionLog(tmp_path / "log.db", "e")
