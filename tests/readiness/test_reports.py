"""What a reading becomes: a page that asks nobody, SARIF, Prometheus metrics; names from outside stay harmless."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from sarif_pydantic import Sarif

from pii_tracer.readiness.canaries import Arrival, CanaryAnswer, CanaryPlace, CanarySearch
from pii_tracer.readiness.earliest_proof_day import Keeper
from pii_tracer.readiness.estate_snapshot import Coverage, EstateState, TableFacts
from pii_tracer.readiness.findings import SUMMARIES, Finding, FindingKind, Level
from pii_tracer.readiness.readiness_reading import Given, Readiness, assess
from pii_tracer.readiness.score import score
from reports.exchange.readiness_sarif import render_readiness_sarif
from reports.readiness.prometheus_metrics import render_metrics
from reports.readiness.readiness_html import render_readiness_html
from reports.readiness.readiness_text import render_readiness_text

NOW = datetime(2026, 11, 27, tzinfo=timezone.utc)
NASTY = 'lake."x"\\<script>alert(1)</script>\u202e[a](b){c}\n.t'


@pytest.fixture(scope="module")
def reading() -> Readiness:
    tables = (
        TableFacts("lake.sales.orders", "/w/orders", "sales", Coverage.FULL, (("id", "bigint"),), ("id",), 1),
        TableFacts(NASTY, "/w/n", NASTY, Coverage.NONE),
    )
    places = (CanaryPlace("lake.sales.orders", "sales", Arrival.ARRIVED), CanaryPlace(NASTY, "x", Arrival.UNKNOWN))
    canary = CanaryAnswer("wren", "user", "lake.users", "crm", True, places)
    gap = Finding(FindingKind.GAP, Level.WARNING, NASTY, NASTY, "text", "todo", gap="unknown_file")
    given = Given(
        estate="shop",
        now=NOW,
        state=EstateState(1, NOW.isoformat(), tables),
        gaps=(gap,),
        keepers=(Keeper("lakefs://r", "r", "no rules", None),),
        canaries=CanarySearch((canary,), ("topic clicks",)),
    )
    return assess(given, None)[0]


def test_the_page_asks_nobody_and_shows_names_as_they_are(reading: Readiness) -> None:
    page = render_readiness_html(reading)
    assert "<script" not in page
    assert not re.search(r"(?:src|href|url)\s*[=(]", page), "no request to anywhere"
    assert "\u202e" not in page
    assert "prefers-color-scheme:dark" in page
    assert "width=device-width" in page
    assert page.index("no: 1 finding") < page.index("Trend") < page.index("Lineage by table")


def test_the_terminal_has_the_verdict_first(reading: Readiness) -> None:
    lines = render_readiness_text(reading).splitlines()
    assert lines[0].startswith("no: 1 finding")
    assert not any("\u202e" in line for line in lines)
    fine = replace(reading, findings=())
    assert render_readiness_text(fine).startswith("yes: ")


def test_sarif_has_every_finding(reading: Readiness) -> None:
    text = render_readiness_sarif(reading, "pii-tracer.yaml")
    Sarif.model_validate_json(text)
    [run] = json.loads(text)["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [(rules[r["ruleIndex"]], r["level"]) for r in run["results"]] == [
        (f.kind.value, {"blocking": "error", "warning": "warning"}[f.level.value]) for f in reading.findings
    ]
    assert not any("[a](b)" in result["message"]["text"] for result in run["results"])


SAMPLE = re.compile(r'pii_tracer_readiness_[a-z_]+\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\} (?:[0-9.e+]+|\+Inf)')


def test_metrics_are_those_of_prometheus(reading: Readiness) -> None:
    lines = render_metrics(reading).splitlines()
    samples = [line for line in lines if not line.startswith("# ")]
    assert [line for line in samples if not SAMPLE.fullmatch(line)] == []
    assert 'pii_tracer_readiness_ready{estate="shop"} 0.0' in samples
    assert 'pii_tracer_readiness_provable_timestamp_seconds{estate="shop"} +Inf' in samples
    assert any('arrival="unknown"' in line and line.endswith(" 1.0") for line in samples)


def test_every_kind_has_its_meaning() -> None:
    assert set(SUMMARIES) == set(FindingKind)


def test_what_is_not_measured_counts_nothing() -> None:
    """No canary and no law: two of four parts are 0, and the score cannot be high."""
    source = TableFacts("a", "/a", "x", Coverage.SOURCE)
    assert score((source,), (), (), ()).points == 50
    assert score((), (), (), ()).points == 0
