"""The whole path on a cluster: a master and two workers of Spark's own, whose executors are other processes than the driver."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.review.plan_file import load_plan
from pii_tracer.run.journal import Kind
from tests.e2e import clinic
from tests.e2e.crashes.test_kill import others, rows
from tests.e2e.processes import history, run_until
from tests.e2e.sparkcluster import cluster, cluster_conf, executors_worked
from tests.leaks import leaks

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]


def test_erased_by_a_cluster(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "clinic"
    base.mkdir()
    clinic.build(base, spark)
    before = rows(base)
    (tmp_path / "cluster").mkdir()
    (tmp_path / "events").mkdir()
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    with cluster(tmp_path / "cluster") as address:
        estate = yaml.safe_load((base / "pii-tracer.yaml").read_text())
        conf = estate["spark"]["conf"] | cluster_conf(tmp_path / "events")
        estate["spark"] |= {"master": address, "conf": conf}
        (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
        words = [*clinic.approve(base), "--format", "json"]
        done = run_until(words, tmp_path / "apply")
    assert done.code == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["state"], told["copies_erased"], told["copies_total"]) == ("complete", 7, 7)
    assert (told["residue"], told["unverified"], told["bystander_rows_lost"]) == ([], [], 0)
    assert others(rows(base)) == others(before)
    journal = base / "state" / "runs" / load_plan(base / "clinic.plan.json").plan.plan_id / "journal.jsonl"
    assert any(record.kind is Kind.STEP_RESULT for record in history(journal))
    assert executors_worked(tmp_path / "cluster", tmp_path / "events")
    assert "search no files" not in done.stderr
    assert leaks(clinic.PERSON, [tmp_path / "cluster", tmp_path / "events", base / "state"]) == []
