"""`pii-tracer log`: the log looked at, exported and pruned, as an operator does it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from pii_tracer.app.execution.run_folder import RunInfo, folder_of
from pii_tracer.cli.main import run as command
from pii_tracer.cli.proof import deletion_log_command
from pii_tracer.model.plan import ErasurePlan, digest_of
from pii_tracer.proof.deletions.deletion_log import DeletionLog
from pii_tracer.proof.deletions.entries import EntryState
from tests.proof.deletion_log.grouped import groups
from tests.proof.deletion_log.test_deletion_log import entry
from tests.review.plans import NOW, plan

Log = Callable[..., int]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """An estate with a log of three rows, and the command over it."""
    estate(tmp_path, "sqlite")
    rows = [
        entry(),
        entry(request_id="REQ-2", dataset="s3:b/\u202ex"),
        entry(request_id="REQ-3", subject="hmac:03", state=EntryState.EXEMPT, run_at=NOW + timedelta(400)),
    ]
    DeletionLog(tmp_path / "state" / "deletion_log.sqlite", "clinic").append(groups(rows))
    places = ["--estate", str(tmp_path / "pii-tracer.yaml"), "--state", str(tmp_path / "state")]
    return lambda name, *more: command(["log", name, *more, *places])


def estate(folder: Path, deletion_log: object) -> None:
    made = {
        "version": 1,
        "estate": "clinic",
        "environment": "local",
        "catalogs": {},
        "roots": ["lake"],
        "lineage": {"events": []},
        "subjects": [{"name": "patient", "source": "patients", "key": "id"}],
        "deletion_log": deletion_log,
    }
    (folder / "pii-tracer.yaml").write_text(yaml.safe_dump(made))


def test_rows_are_shown_to_people_and_machines(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    assert log("show", "--request", "REQ-1") == 0
    text = capsys.readouterr().out
    assert "1 row" in text
    assert log("show") == 0
    assert "\u202e" not in capsys.readouterr().out
    assert log("show", "--format", "json", "--state-is", "exempt") == 0
    assert [(row["seq"], row["state"]) for row in json.loads(capsys.readouterr().out)] == [(3, "exempt")]
    assert log("show", "--format", "json") == 0
    told = capsys.readouterr().out
    assert told == json.dumps(json.loads(told), indent=2) + "\n"
    assert [row["seq"] for row in json.loads(told)] == [1, 2, 3]
    assert log("show", "--format", "json", "--request", "REQ-9") == 0
    assert capsys.readouterr().out == "[]\n"
    assert log("show", "--format", "csv", "--since", "2027-01-01T00:00:00Z") == 0
    assert [row["seq"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))] == ["3"]
    assert log("show", "--action", "vacuum") == 2
    assert "no action" in capsys.readouterr().err


def test_many_rows_are_shown_some_at_a_time(
    log: Log, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion_log_command, "_AT_ONCE", 2)
    monkeypatch.setenv("COLUMNS", "200")
    assert log("show") == 0
    text = capsys.readouterr().out
    assert [text.count(word) for word in ("request", "REQ-", "3 rows")] == [2, 3, 1]
    assert log("show", "--request", "REQ-9") == 0
    text = capsys.readouterr().out
    assert [text.count(word) for word in ("request", "0 rows")] == [1, 1]


def test_rows_are_exported(log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert log("export", str(tmp_path / "log.csv"), "--dataset", "s3:*") == 0
    assert [row["request_id"] for row in csv.DictReader((tmp_path / "log.csv").open())] == ["REQ-2"]
    assert log("export", str(tmp_path / "log.parquet")) == 0
    assert pq.read_table(tmp_path / "log.parquet")["seq"].to_pylist() == [1, 2, 3]
    assert log("export", str(tmp_path / "log.xlsx")) == 2
    assert "CSV or Parquet" in capsys.readouterr().err


def test_the_estate_file_says_how_long_rows_are_kept(
    log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert log("prune") == 2
    assert "does not say how long" in capsys.readouterr().err
    estate(tmp_path, {"keep_days": 30})
    assert log("prune") == 1
    assert "deletion_log" in capsys.readouterr().err
    estate(tmp_path, {"keep_days": 365, "kind": "delta"})
    begun(tmp_path, of_law("GDPR"))
    assert log("prune", "--as-of", "2026-11-22T00:00:00Z") == 0
    assert "no row is old enough" in capsys.readouterr().out
    assert log("prune", "--as-of", "2027-11-22T00:00:00Z", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 2
    assert (tmp_path / "state" / "deletion_log.delta" / "clinic").is_dir()
    assert log("show", "--format", "json") == 0
    assert [row["seq"] for row in json.loads(capsys.readouterr().out)] == [3]


@pytest.mark.parametrize(
    ("law", "days", "gone"), [("GDPR", 366, 2), ("CCPA", 366, 0), ("CCPA", 732, 2), (None, 366, 0)]
)
def test_rows_stay_as_long_as_the_law_of_their_request_says(
    log: Log, tmp_path: Path, law: str | None, days: int, gone: int
) -> None:
    """By the estate file alone the rows of a CCPA request would be gone a year too early. Without the plan nobody knows
    the law, and the strictest counts."""
    estate(tmp_path, {"keep_days": 365})
    if law:
        begun(tmp_path, of_law(law))
    assert log("prune", "--as-of", (NOW + timedelta(days=days)).isoformat()) == 0
    left = DeletionLog(tmp_path / "state" / "deletion_log.sqlite", "clinic").entries()
    assert len(left) == 3 - gone


def of_law(law: str) -> ErasurePlan:
    """The plan of the log's rows, for requests under this law."""
    one = plan().requests[0].model_copy(update={"law": law})
    named = [one.model_copy(update={"id": name, "subject": f"subj_{name}"}) for name in ("REQ-1", "REQ-2", "REQ-3")]
    return plan(plan_id=entry().plan_id, requests=tuple(named))


def begun(folder: Path, of: ErasurePlan) -> None:
    """The folder of a run of this plan, as far as the log asks for it."""
    run = folder_of(folder / "state", of.plan_id)
    file = folder / "p.plan.json"
    file.write_bytes(of.to_bytes())
    places = {"plan_file": str(file), "estate_file": str(folder / "pii-tracer.yaml"), "policy_file": "-", "state": "-"}
    run.write_info(
        RunInfo(plan_id=of.plan_id, plan_digest=digest_of(of.to_bytes()), approvals=(), trusted=None, **places)
    )


def test_looking_makes_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate(tmp_path, "sqlite")
    places = ["--estate", str(tmp_path / "pii-tracer.yaml"), "--state", str(tmp_path / "state")]
    assert command(["log", "show", *places]) == 2
    assert "no deletion log yet" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()
