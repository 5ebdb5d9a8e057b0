"""Every event of every kind of run has the form that OpenLineage's own specification asks for.

The rules are those of https://openlineage.io/spec/2-0-2/OpenLineage.json (`RunEvent` and what it refers to) and of the
facets that the events carry, restated here.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from tests.review.plans import NOW
from tests.run.fakes import (
    FakeExecutor,
    Fuse,
    Ticking,
    World,
)
from tests.run.test_openlineage_events import Counting, session, told

URI = {"type": "string", "format": "uri", "pattern": r"^https?://"}
TIME = {"type": "string", "format": "date-time", "pattern": r"(Z|[+-]\d\d:\d\d)$"}
NAMES = {"namespace": {"type": "string", "minLength": 1}, "name": {"type": "string", "minLength": 1}}
FACET = {"type": "object", "properties": {"_producer": URI, "_schemaURL": URI}, "required": ["_producer", "_schemaURL"]}


def facet(*required: str, **properties: Any) -> dict[str, Any]:
    return {"allOf": [FACET, {"properties": properties, "required": list(required)}]}


RUN_ID = {"type": "string", "format": "uuid", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
NAMED = {"type": "object", "properties": NAMES, "required": ["namespace", "name"]}
DATASET = {
    **NAMED,
    "properties": {
        **NAMES,
        "facets": {
            "type": "object",
            "properties": {"version": facet("datasetVersion", datasetVersion={"type": "string"})},
            "additionalProperties": FACET,
        },
    },
}
EVENT = {
    "type": "object",
    "required": ["eventTime", "producer", "schemaURL", "run", "job", "eventType"],
    "properties": {
        "eventTime": TIME,
        "producer": URI,
        "schemaURL": {**URI, "pattern": r"/OpenLineage\.json#/\$defs/RunEvent$"},
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "run": {
            "type": "object",
            "required": ["runId"],
            "properties": {
                "runId": RUN_ID,
                "facets": {
                    "type": "object",
                    "properties": {
                        "errorMessage": facet(
                            "message",
                            "programmingLanguage",
                            message={"type": "string"},
                            programmingLanguage={"type": "string"},
                        ),
                        "parent": facet(
                            "run",
                            "job",
                            run={"type": "object", "required": ["runId"], "properties": {"runId": RUN_ID}},
                            job=NAMED,
                        ),
                    },
                    "additionalProperties": FACET,
                },
            },
        },
        "job": {
            **NAMED,
            "properties": {
                **NAMES,
                "facets": {
                    "type": "object",
                    "properties": {
                        "jobType": facet(
                            "processingType",
                            "integration",
                            processingType={"enum": ["BATCH", "STREAMING"]},
                            integration={"type": "string"},
                        )
                    },
                    "additionalProperties": FACET,
                },
            },
        },
        "inputs": {"type": "array", "items": DATASET},
        "outputs": {"type": "array", "items": DATASET},
    },
}
VALID = Draft202012Validator(EVENT, format_checker=FormatChecker())


def runs(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The events of a run that goes well, fails, waits over two processes, is resumed after a crash, or is blocked."""
    path, clock, world = folder / "j", Ticking(), World()
    if kind == "waiting":
        waits = {"c1/01": NOW + timedelta(hours=2)}
        session(path, FakeExecutor(world, waits=waits), clock)
        clock.now = NOW + timedelta(hours=2)
        return told(session(path, FakeExecutor(world, waits=waits), clock, 2))
    if kind == "resumed":
        session(path, Counting(world, Fuse(7)), clock)
        return told(session(path, Counting(world), clock, 2))
    return told(session(path, Counting(world, broken={"c1/01"} if kind == "failed" else set()), clock))


KINDS = {
    "good": {"START", "COMPLETE"},
    "failed": {"START", "COMPLETE", "FAIL"},
    "waiting": {"START", "RUNNING", "COMPLETE"},
    "resumed": {"START", "ABORT", "COMPLETE"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_events_are_valid(tmp_path: Path, kind: str) -> None:
    events = json.loads(json.dumps(runs(tmp_path, kind)))
    for event in events:
        assert [f"{list(e.path)}: {e.message}" for e in VALID.iter_errors(event)] == []
    assert {event["eventType"] for event in events} == KINDS[kind]
    worked = [e for e in events if e["eventType"] == "COMPLETE" and "parent" in e["run"]["facets"]]
    assert worked
    assert all(e["inputs"] and e["outputs"] for e in worked)


def test_the_rules_refuse_what_the_specification_refuses(tmp_path: Path) -> None:
    event = runs(tmp_path, "good")[1]
    for change in (
        {"eventTime": "2026-11-21T09:00:00"},
        {"eventType": "DONE"},
        {"run": {"runId": "plan-1"}},
        {"job": {"name": "x"}},
        {"outputs": [{"namespace": "file"}]},
        {"producer": "pii-tracer"},
    ):
        assert not VALID.is_valid({**event, **change}), change
    del event["run"]["facets"]["parent"]["_schemaURL"]
    assert not VALID.is_valid(event)
