"""A whole plan and run that programs watch: what leaves as logs, traces and metrics is complete, and names no person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.cli.main import run
from pii_tracer.model.errors import ExitCode
from reports.watch.opentelemetry_spans import trace_of
from tests.gcs.shop import Shop
from tests.gcssupport import Gcs
from tests.hdfs.shop import MAIL, OTHERS, PERSON, USER, csv, lines
from tests.leaks import Person, leaks
from tests.otelsupport import Collector, attributes, served
from tests.prometheus import families


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("PII_TRACER_LOG", "json")
    yield from served(made)


def test_it_is_told_whole_and_without_the_person(
    gcs: Gcs, tmp_path: Path, collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = Shop.of(gcs, tmp_path)
    for folder, write in (("csv", csv), ("json", lines)):
        shop.export(folder, f"a.{folder}", write(OTHERS[0], PERSON))
        shop.export(folder, f"b.{folder}", write(PERSON, OTHERS[1]))
    out = tmp_path / "told"
    out.mkdir()
    assert shop.plan()[0] == 0
    assert shop.approve() == 0
    before = families_of(tmp_path / "run.prom", shop)
    again = families_of(tmp_path / "run.prom", shop)
    assert shop.cli("verify", str(shop.plan_file), "--read-all") == 0
    told = capsys.readouterr().err
    (out / "log").write_text(told)
    (out / "spans").write_bytes(b"".join(got.SerializeToString() for got in collector.got))
    (out / "metrics").write_text((tmp_path / "run.prom").read_text())
    assert leaks(Person((MAIL, USER)), [out]) == []

    events = [json.loads(line) for line in told.splitlines()]
    ends = [e for e in events if e["event"] == "end"]
    assert [(e["command"], e["exit_code"]) for e in ends][-3:] == [("apply", 0), ("apply", 0), ("verify", 0)]
    plan_id = json.loads(shop.plan_file.read_text())["plan_id"]
    steps = [step["id"] for step in shop.steps()]
    done = [e for e in events if e["event"] == "step_end" and "step_id" in e]
    assert sorted(e["step_id"] for e in done if e["state"] == "done") == sorted(steps)
    assert {(e["plan_id"], e["run_id"]) for e in done} == {(plan_id, plan_id)}
    assert sum(e.get("files_rewritten", 0) for e in done) == 4

    trace = trace_of(plan_id).to_bytes(16, "big")
    spans = [s for s in collector.spans() if s.trace_id == trace and "step_id" in attributes(s)]
    assert sorted(str(attributes(s)["step_id"]) for s in spans if attributes(s)["state"] == "done") == sorted(steps)
    names = {s.name for s in collector.spans()}
    assert {"pii-tracer plan", "pii-tracer apply", "pii-tracer verify", "harvesting lineage"} <= names
    assert any(name.startswith("looking for the persons in") for name in names), "scans of places"

    dated = {name for name in before if name.endswith("_timestamp_seconds")}
    assert {n: v for n, v in again.items() if n not in dated} == {n: v for n, v in before.items() if n not in dated}
    assert before["pii_tracer_run_exit_code"] == [0]
    assert before["pii_tracer_run_steps"] == [len(steps), 0, 0, 0]
    assert before["pii_tracer_run_files_rewritten_total"] == [4]
    assert before["pii_tracer_run_residue"] == [0]


def families_of(file: Path, shop: Shop) -> dict[str, list[float]]:
    """The values of the metrics of a run that is over, by name."""
    words = ("apply", str(shop.plan_file), "--trusted", str(shop.base / "approvers.yaml"), "--metrics", str(file))
    assert shop.cli(*words) == 0
    return {name: [s.value for s in family.samples] for name, family in families(file.read_text()).items()}


def test_a_run_that_is_refused_says_so(gcs: Gcs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop, file = Shop.of(gcs, tmp_path), tmp_path / "run.prom"
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    assert shop.plan()[0] == 0
    capsys.readouterr()
    words = ["--log", "json", "apply", str(shop.plan_file), "--metrics", str(file)]
    assert run([*words, "--estate", str(tmp_path / "pii-tracer.yaml"), "--state", str(tmp_path / "state")]) == 5
    error, end = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (error["event"], error["level"], end["event"], end["exit_code"]) == ("error", "error", "end", 5)
    assert "approv" in error["message"]
    told = families(file.read_text())
    assert [s.value for s in told["pii_tracer_run_exit_code"].samples] == [5]
    assert {s.labels["state"]: s.value for s in told["pii_tracer_run_steps"].samples}["done"] == 0


def test_a_place_that_is_named_by_the_person_is_masked(
    gcs: Gcs, tmp_path: Path, collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.export(f"of/{MAIL}", "a.csv", csv(OTHERS[0], PERSON))
    assert shop.plan()[0] == ExitCode.INCOMPLETE
    out = tmp_path / "told"
    out.mkdir()
    told = capsys.readouterr().err
    (out / "log").write_text(told)
    (out / "spans").write_bytes(b"".join(got.SerializeToString() for got in collector.got))
    assert leaks(Person((MAIL, USER)), [out]) == []
    assert "gs://shop/of/[" in told


def test_what_is_read_before_the_keys_are_resolved_is_told_without_the_person(
    gcs: Gcs, tmp_path: Path, collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    """Query logs, folders and tables are read first; each has the person's key or her address in its path."""
    shop = Shop.of(gcs, tmp_path)
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    log = tmp_path / "logs" / MAIL / f"user={USER}.parquet"
    log.parent.mkdir(parents=True)
    pq.write_table(pa.table({"q": ["select uid from shop.users", "select mail from shop.users"]}), log)
    place = log.relative_to(tmp_path).as_posix()
    shop.plan(lineage={"events": ["events.ndjson"], "queries": [{"path": place, "sql": "q", "dialect": "trino"}]})
    words = ("--estate", str(tmp_path / "pii-tracer.yaml"), "--state", str(tmp_path / "state"))
    for command in ("inventory", "harvest"):
        assert run([command, *words]) in (ExitCode.DONE, ExitCode.INCOMPLETE)
    told = capsys.readouterr().err
    out = tmp_path / "told"
    out.mkdir()
    (out / "log").write_text(told)
    (out / "spans").write_bytes(b"".join(got.SerializeToString() for got in collector.got))
    assert leaks(Person((MAIL, USER)), [out]) == []
    assert "query log 1 of 1: parsing 2 shapes of 2 rows" in told


@pytest.mark.parametrize("which", ["plan", "approvers", "estate", "journal"])
def test_metrics_take_the_place_of_no_file_of_the_run(
    gcs: Gcs, tmp_path: Path, capsys: pytest.CaptureFixture[str], which: str
) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.export("csv", "a.csv", csv(OTHERS[0], PERSON))
    assert shop.plan()[0] == 0
    assert shop.approve() == 0
    trusted, plan_id = shop.base / "approvers.yaml", json.loads(shop.plan_file.read_text())["plan_id"]
    journal = tmp_path / "state" / "runs" / plan_id / "journal"
    file = {"plan": shop.plan_file, "approvers": trusted, "estate": tmp_path / "pii-tracer.yaml"}.get(which, journal)
    before = file.read_bytes() if file.exists() else None
    words = ("apply", str(shop.plan_file), "--trusted", str(trusted))
    capsys.readouterr()
    assert shop.cli(*words, "--metrics", str(file)) == ExitCode.USAGE
    assert "metrics file" in capsys.readouterr().err
    assert (file.read_bytes() if file.exists() else None) == before
    assert shop.cli(*words) == 0
