from __future__ import annotations

import json
from pathlib import Path

import pytest

from pii_tracer.config.lineage import LineageSources, QueryLog
from pii_tracer.lineage.harvest import Given, Harvested, harvest_all
from pii_tracer.lineage.sources.query_log.statement_shapes import Shaped
from pii_tracer.lineage.sources.statement_templates import skeleton
from pii_tracer.lineage.sql.sql_lineage import Script
from tests.lineage.conftest import ALIASES, COPY, PAYMENTS, SCHEMAS, dataset, event

DAYS = [f"2026-11-{day:02}" for day in range(1, 21)]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that was parsed."""
    texts: list[str] = []
    run = Script.run
    monkeypatch.setattr(Script, "run", lambda self, text: texts.append(text) or run(self, text))
    return texts


def harvested(folder: Path, kind: str, texts: list[str]) -> Harvested:
    """The texts as told by one run a day, or by the rows of a log."""
    given = Given(folder, aliases=ALIASES, schemas=SCHEMAS)
    days = zip(DAYS, texts, strict=True)
    if kind == "events":
        told = [
            event(day, "COMPLETE", [dataset(PAYMENTS)], [], sql=text)
            | {
                "eventTime": f"{day}T00:00:00Z",
                "job": {"namespace": "j", "name": "n", "facets": {"sql": {"query": text}}},
            }
            for day, text in days
        ]
        (folder / "e.json").write_text("".join(json.dumps(e) + "\n" for e in told))
        return harvest_all(LineageSources(events=("e.json",)), given)
    rows = [{"sql": text, "at": f"{day}T00:00:00Z"} for day, text in days]
    (folder / "log").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return harvest_all(LineageSources(queries=(QueryLog(path="log", time="at"),)), given)


BOTH = pytest.mark.parametrize("kind", ["events", "log"])
COPIED = "INSERT INTO prod.copy SELECT user_id, pan FROM lake.prod.payments"


@BOTH
def test_texts_that_differ_by_day_are_parsed_once(tmp_path: Path, parsed: list[str], kind: str):
    found = harvested(tmp_path, kind, [f"{COPIED} WHERE pan > '{day}' AND pan <> 'x'" for day in DAYS])
    assert len(parsed) == 1
    assert found.graph.gaps == ()
    for edge in found.graph.edges_into(COPY):
        assert [e.runs for e in edge.evidence] == [20]
        assert edge.evidence[0].at == f"{DAYS[-1]}T00:00:00Z"
    assert {j.sql for j in found.graph.jobs_into(COPY) if j.sql} == {
        f"{COPIED} WHERE pan > '{DAYS[-1]}' AND pan <> 'x'"
    }


@BOTH
@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("INSERT INTO prod.copy SELECT sha2(concat(user_id, '{day}'), 256), pan FROM lake.prod.payments", True),
        ("INSERT INTO prod.copy SELECT CASE WHEN pan = '{day}' THEN user_id END, pan FROM lake.prod.payments", True),
        ("INSERT OVERWRITE DIRECTORY '{day}' USING csv SELECT pan FROM lake.prod.payments", True),
        ("CREATE TABLE t_{n} USING delta LOCATION '{day}' AS SELECT pan FROM lake.prod.payments", True),
        ("INSERT INTO prod.copy SELECT user_id, pan FROM lake.prod.payments WHERE pan > '{day}' ORDER BY pan", False),
        ("MERGE INTO prod.copy c USING lake.prod.payments p ON c.pan = p.pan AND p.pan < '{day}'"
         " WHEN MATCHED THEN UPDATE SET uid = p.user_id", False),
    ],
    ids=["a salt", "a condition", "a folder", "a location", "a filter", "a merge"],
)  # fmt: skip
def test_the_lineage_is_that_of_every_text_by_itself(
    tmp_path: Path, kind: str, text: str, apart: bool, parsed: list[str], monkeypatch: pytest.MonkeyPatch
):
    texts = [text.format(day=day, n=n) for n, day in enumerate(DAYS)]

    def facts() -> set[object]:
        found = harvested(tmp_path, kind, texts).graph.facts
        edges = {(e.source, e.target, e.subtype, e.expression) for e in found.edges}
        return edges | {(m.source, m.target, m.subtype) for m in found.memberships} | {j.output for j in found.jobs}

    together = facts()
    each = {"events": 20, "log": 40}[kind]  # a log's texts are parsed with markers first
    assert len(parsed) == (1 if not apart else each if "t_{n}" in text else 21)
    monkeypatch.setattr("pii_tracer.lineage.sources.openlineage.sql_facets.skeleton", lambda text: text)
    monkeypatch.setattr(
        "pii_tracer.lineage.sources.query_log.query_log_parsing.shape_of", lambda text: Shaped(text, ())
    )
    assert facts() == together


def test_what_a_skeleton_keeps():
    assert skeleton("a = '2026-11-01'") == skeleton("a = '2025-01-31'")
    assert skeleton("a = '2026-11-01 10:00:00.5'") == skeleton("a = '2026-11-02T11:00:00Z'")
    assert skeleton("GROUP BY 1") != skeleton("GROUP BY 2")
    assert skeleton("substr(a, 1, 6)") != skeleton("substr(a, 1, 8)")
    assert skeleton("a = 'Pune'") != skeleton("a = 'Delhi'")
    assert skeleton("FROM delta.`/x/2026-11-01`") != skeleton("FROM delta.`/x/2026-11-02`")
