"""`pii-tracer harvest` over every kind of source at once, and over sources that are not there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.cli.main import run
from pii_tracer.lineage.graph.graph_file import load
from pii_tracer.lineage.sources.dataset_descriptions import Notes
from pii_tracer.lineage.sources.openlineage.event_log import EventLog
from pii_tracer.model.datasets import DatasetId
from tests.lineage.conftest import COPY, PAYMENTS, column_facet, dataset, event
from tests.lineage.sources.marquez_standin import marquez

FACET = column_facet(pan=(PAYMENTS, "pan", "IDENTITY"))


def to(name: str, run_id: str, **facets: Any) -> dict[str, Any]:
    target = DatasetId(namespace="file", name=f"/out/{name}")
    return event(run_id, "COMPLETE", [dataset(PAYMENTS)], [dataset(target, columnLineage=FACET, **facets)])


@pytest.fixture
def estate(tmp_path: Path) -> Any:
    """An estate file with these lineage sources; gives the words for the command line."""

    def make(**lineage: Any) -> list[str]:
        (tmp_path / "data").mkdir(exist_ok=True)
        content = {
            "version": 1, "estate": "t", "environment": "local", "catalogs": {}, "roots": ["data"], "lineage": lineage,
            "subjects": [{"name": "user", "source": "lake.users", "key": "uid"}],
        }  # fmt: skip
        (tmp_path / "pii-tracer.yaml").write_text(yaml.safe_dump(content))
        return ["--estate", str(tmp_path / "pii-tracer.yaml"), "--state", str(tmp_path / "state")]

    return make


def test_every_source_is_counted_and_ends_in_one_graph(estate, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tags = {"tags": [{"key": "pii", "value": "true", "field": "pan"}]}
    (tmp_path / "events.ndjson").write_text(json.dumps(to("file", "1", tags=tags)) + "\n")
    EventLog(tmp_path / "state" / "lineage" / "events").append([to("received", "2")])
    (tmp_path / "log.jsonl").write_text(
        json.dumps({"sql": "INSERT INTO delta.`/out/log` SELECT a FROM delta.`/in`"}) + "\n"
    )
    (tmp_path / "job.sql").write_text("CREATE TABLE delta.`/out/sql` AS SELECT a FROM delta.`/in`")
    shutil.copytree(Path(__file__).with_name("dbt_clinic"), tmp_path / "dbt")
    with marquez([to("marquez", "3")]) as (url, _):
        words = estate(
            events=["events.ndjson"],
            sql=["job.sql"],
            dbt=["dbt"],
            queries=[{"path": "log.jsonl"}],
            marquez={"url": url},
        )
        assert run(["harvest", "--format", "json", *words]) == 0
        found = json.loads(capsys.readouterr().out)
        assert run(["harvest", "--format", "json", *words]) == 0
        assert json.loads(capsys.readouterr().out)["digest"] == found["digest"]
    counts = {s["source"].rpartition("/")[2]: (s["read"], s["unit"]) for s in found["sources"]}
    server = url.removeprefix("http://")
    assert counts == {
        f"Marquez at {server}": (1, "events fetched"), "events.ndjson": (1, "events"), "the event log": (2, "events"),
        "job.sql": (1, "statements"), "manifest.json": (7, "statements"), "log.jsonl": (1, "rows"),
    }  # fmt: skip
    graph = load(tmp_path / "state" / "lineage.graph")
    reached = {d.name for d in graph.downstream(PAYMENTS)}
    assert reached == {"/out/file", "/out/received", "/out/marquez"}
    assert {d.name for d in graph.downstream(DatasetId(namespace="file", name="/in"))} == {"/out/log", "/out/sql"}
    notes = Notes.model_validate_json((tmp_path / "state" / "lineage" / "notes.json").read_bytes())
    assert [(t.key, t.field) for t in notes.tags] == [("pii", "pan")]
    assert found["gaps"] == len(found["gap_list"])
    assert all(g["closes"] for g in found["gap_list"])


def test_gaps_are_listed_with_what_closes_them_and_nothing_invisible(estate, tmp_path: Path, capsys):
    broken = event("1", "COMPLETE", [dataset(PAYMENTS)], [dataset(COPY.model_copy(update={"name": "/a\x1b[2J\u202e"}))])
    (tmp_path / "events.ndjson").write_text(json.dumps(broken) + "\nrubbish\n")
    assert run(["harvest", *estate(events=["events.ndjson"])]) == 0
    out = capsys.readouterr().out
    assert "events.ndjson: 1 event\n" in out
    assert "seen in events.ndjson:2; get a complete copy of the file" in out
    assert "add the job's SQL, or an event with its columns (docs/lineage-sources.md#jobs-whose" in out
    assert "\x1b" not in out
    assert "\u202e" not in out


@pytest.mark.parametrize(
    ("lineage", "said"),
    [
        ({"marquez": {"url": "http://127.0.0.1:1"}}, "was never read"),
        ({"kafka": [{"bootstrap": "127.0.0.1:1", "topic": "x"}]}, "was never read"),
        ({"dbt": ["nowhere"]}, "does not exist"),
        ({"queries": [{"path": "nowhere"}]}, "does not exist"),
        ({"marquez": {"url": "file:///etc/passwd"}}, "lineage.marquez.url"),
        ({"queries": [{"path": "x", "colour": "red"}]}, "colour"),
    ],
)
def test_a_source_that_cannot_be_read_is_an_error(estate, lineage, said, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pii_tracer.lineage.sources.openlineage.kafka_events.TIMEOUT", 1.0)
    assert run(["harvest", *estate(**lineage)]) == 1
    assert said in capsys.readouterr().err


def test_a_source_that_was_read_before_is_a_gap(estate, capsys):
    with marquez([to("marquez", "3")]) as (url, _):
        words = estate(marquez={"url": url})
        assert run(["harvest", *words]) == 0
    assert run(["harvest", *words]) == 0
    assert "source_unreachable" in capsys.readouterr().out
