"""Real artifacts with a few values of other types in them: nothing stops the harvest, and order changes nothing."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.config.lineage import LineageSources, QueryLog
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.harvest import Given, harvest_all
from tests.lineage.conftest import ALIASES, COPY, PAYMENTS, SCHEMAS, column_facet, dataset, event

PROJECT = Path(__file__).with_name("dbt_clinic")
MANIFEST, CATALOG = (json.loads((PROJECT / name).read_text()) for name in ("manifest.json", "catalog.json"))
RECORDED = [
    json.loads(line)
    for file in sorted((Path(__file__).parents[3] / "sample_lineage" / "events").glob("*.ndjson"))
    for line in file.read_text(encoding="utf-8").splitlines()
]
ROW = {"sql": "INSERT INTO prod.copy SELECT user_id, pan FROM payments", "t": "2026-01-01", "s": "OK", "d": "prod"}
JUNK: list[Any] = [
    None, 5, -1, 1e300, True, "", "x", "a.b`c\"'", [], {}, [[]], [None], ["x"], {"name": 5}, {"fields": "x"},
    "2026-13-45T99:99:99Z", "SELECT", "\u202e\x00",
]  # fmt: skip
SOURCES = LineageSources(
    events=("e.json",), dbt=("manifest.json",), queries=(QueryLog(path="log", time="t", status="s", database="d"),)
)


def spoiled(value: Any, random: Random) -> Any:
    """A copy in which up to four values, or their names, are others."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []

    def walk(inside: Any) -> None:
        items = inside.items() if isinstance(inside, dict) else enumerate(inside) if isinstance(inside, list) else ()
        for key, content in items:
            places.append((inside, key))
            walk(content)

    walk(value)
    for inside, key in random.sample(places, random.randint(1, 4)):
        if isinstance(inside, dict) and key in inside and random.random() < 0.2:
            inside[str(random.choice(JUNK))] = inside.pop(key)
        elif not isinstance(inside, dict) or key in inside:
            inside[key] = copy.deepcopy(random.choice(JUNK))
    return value


@pytest.mark.parametrize("kind", ["events", "dbt", "queries"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(st.integers(0, 2**32))
def test_spoiled_artifacts_stop_nothing(tmp_path: Path, kind: str, seed: int) -> None:
    random = Random(seed)
    good = event("good", "COMPLETE", [dataset(PAYMENTS)],
                 [dataset(COPY, columnLineage=column_facet(pan=(PAYMENTS, "pan", "IDENTITY")))])  # fmt: skip
    events = [
        spoiled(random.choice(RECORDED), random) if kind == "events" else random.choice(RECORDED) for _ in range(5)
    ]
    manifest, catalog = ((spoiled(x, random) if kind == "dbt" else x) for x in (MANIFEST, CATALOG))
    rows = [spoiled(ROW, random) if kind == "queries" else ROW for _ in range(3)]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    (tmp_path / "log").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def read(told: list[Any]) -> LineageGraph:
        (tmp_path / "e.json").write_text("".join(json.dumps(e) + "\n" for e in told))
        found = harvest_all(SOURCES, Given(tmp_path, aliases=ALIASES, schemas=SCHEMAS))
        found.notes.model_dump_json()
        return found.graph

    graph = read([good, *events])
    assert COPY in graph.downstream(PAYMENTS), "what was whole is read"
    if not any(g.kind == "unreadable_event" for g in graph.gaps):  # these are told by their line
        assert read([*reversed(events), good]).digest() == graph.digest()
