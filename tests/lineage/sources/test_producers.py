"""Whole events as producers send them: the columns are followed, or a gap says what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.graph.edges import DIRECT_SUBTYPES, EdgeType
from tests.lineage.harvesting import harvest

CASES = [json.loads(line) for line in Path(__file__).with_name("producers.jsonl").read_text().splitlines()]
"""Events with what must hold of them, as their producers' own tests and documentation show them.

state, job, run: of a run event; kind: of a JobEvent or DatasetEvent. jobf, runf: facets of job and run. ins, outs:
datasets with `columns` (their schema) and `from` (column lineage: `target <- namespace name column TYPE:SUBTYPE`, with `*`
for the whole dataset and `**` for a column of that name). edges: all columns that values, or decisions about them, go into.
gaps: the kinds of all gaps. direct: a column that has to count as one that values go into.
"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_no_event_is_lost_in_silence(case: dict[str, Any], tmp_path: Path):
    events = [_event(told, number) for number, told in enumerate(case["events"])]
    (tmp_path / "e.ndjson").write_text("".join(json.dumps(event) + "\n" for event in events))
    graph = harvest(LineageSources(events=("e.ndjson",)), tmp_path)
    edges = [edge for dataset in graph.datasets() for edge in graph.edges_into(dataset)]
    assert ", ".join(sorted({f"{e.source} -> {e.target}" for e in edges})) == case.get("edges", "")
    assert sorted({gap.kind for gap in graph.gaps}) == case.get("gaps", [])
    assert {e.type for e in edges if e.target.column == case.get("direct")} <= {EdgeType.DIRECT}


def _event(told: dict[str, Any], number: int) -> dict[str, Any]:
    if "raw" in told:
        return told["raw"]
    base = {"eventTime": told.get("at", "2026-11-01T00:00:00Z"), "producer": "https://example.org", "schemaURL": "x"}
    if told.get("kind") == "dataset":
        return base | {"dataset": _dataset(told["dataset"])}
    event = base | {"job": {"namespace": "n", "name": told["job"], "facets": told.get("jobf", {})}}
    event |= {"inputs": list(map(_dataset, told.get("ins", []))), "outputs": list(map(_dataset, told.get("outs", [])))}
    if told.get("kind") == "job":
        return event
    return event | {
        "eventType": told["state"],
        "run": {"runId": told.get("run", str(number)), "facets": told.get("runf", {})},
    }


def _dataset(told: dict[str, Any]) -> dict[str, Any]:
    facets = dict(told.get("facets", {}))
    if "columns" in told:
        pairs = (column.strip().split(" ", 1) for column in told["columns"].split(","))
        facets["schema"] = {"fields": [{"name": name, "type": kind} for name, kind in pairs]}
    if "from" in told:
        facets["columnLineage"] = _lineage(told["from"])
    more = {key: told[key] for key in ("inputFacets", "outputFacets") if key in told}
    return {"namespace": told["ns"], "name": told["name"], "facets": facets, **more}


def _lineage(lines: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    dataset = []
    for line in lines:
        target, right = line.split(" <- ")
        namespace, name, column, *how = right.split(" ")
        source: dict[str, Any] = {"namespace": namespace, "name": name, "field": column}
        if how:
            kind, _, subtype = how[0].rpartition(":")
            kind = kind or ("DIRECT" if subtype in DIRECT_SUBTYPES else "INDIRECT")
            source["transformations"] = [{"type": kind, "subtype": subtype, "masking": "masked" in how}]
        if target == "*":
            dataset.append(source)
        else:
            fields.setdefault(target.replace("**", "*"), {"inputFields": []})["inputFields"].append(source)
    return {"fields": fields, "dataset": dataset}
