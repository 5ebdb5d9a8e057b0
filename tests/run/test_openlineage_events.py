"""OpenLineage events of a run: whole cycles, the same after any crash, no person in them, and no edge from them."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import attr
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openlineage.client.serde import Serde
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from pii_tracer.config.lineage import LineageSources
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.review.drift import DriftItem
from pii_tracer.run.executor_protocol import Outcome
from pii_tracer.run.journal import Journal, Record
from pii_tracer.run.openlineage_events import (
    FACET,
    FACET_SCHEMA,
    ErasureRequest,
    ErasureRunFacet,
    ErasureStep,
    RunEvents,
)
from pii_tracer.run.runner import run
from pii_tracer.schemas import ERASURE_FACET_SCHEMA
from tests.lineage.harvesting import harvest
from tests.review.plans import NOW, copy, plan, snapshot, step
from tests.run.fakes import (
    FakeExecutor,
    FakeLease,
    Fuse,
    Killed,
    Ticking,
    World,
)

PERSON = "asha.rao@clinic.example"


def the_plan() -> ErasurePlan:
    """Two copies, deleted from and verified; keys before and after."""
    return plan(
        [
            step("keys/01", None, action=Action.STAGE_KEYS),
            step("c1/01", "c1", after=["keys/01"], hazards=("I1",)),
            step("c1/99", "c1", after=["c1/01"], action=Action.VERIFY_COPY),
            step("c2/01", "c2", after=["keys/01"]),
        ],
        [copy("c1"), copy("c2")],
    )


@dataclass
class Counting(FakeExecutor):
    """Tells versions and rows as the executors of table formats do."""

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        outcome = super().run(step, copy)
        if outcome.waiting_until:
            return outcome
        return Outcome({"snapshot_before": "7", "snapshot_after": 2**60 + 8, "rows_deleted": 2})


def session(path: Path, executor: FakeExecutor, clock: Ticking, token: int = 1, **more: Any) -> tuple[Record, ...]:
    """One process over the journal; what stands in it afterwards."""
    executor.clock = clock
    try:
        journal = Journal.open(path, clock)
        run(the_plan(), {"fake": executor}, journal, clock=clock, lease=FakeLease(token), **more)
    except Killed:
        pass
    return Journal.open(path, clock).records


def told(records: tuple[Record, ...]) -> list[dict[str, Any]]:
    return [Serde.to_dict(event) for event in RunEvents(the_plan()).feed(records)]


def cycles(events: list[dict[str, Any]]) -> dict[str, list[str]]:
    """`step or "" # attempt` to the types of its events."""
    found: dict[str, list[str]] = defaultdict(list)
    for event in events:
        facet = event["run"]["facets"][FACET]
        found[f"{facet.get('step', {}).get('id', '')}#{facet['attempt']}"].append(event["eventType"])
    return dict(found)


def test_a_run_that_goes_well(tmp_path: Path) -> None:
    events = told(session(tmp_path / "j", Counting(World()), Ticking()))
    assert cycles(events) == {
        "#1": ["START", "COMPLETE"],
        "c1/01#1": ["START", "COMPLETE"],
        "c2/01#1": ["START", "COMPLETE"],
    }
    walk, begun, ended = events[0], events[1], events[2]
    assert (walk["inputs"], walk["outputs"]) == ([], [])
    assert begun["run"]["runId"] == ended["run"]["runId"] != walk["run"]["runId"]
    assert begun["run"]["facets"]["parent"]["run"]["runId"] == walk["run"]["runId"]
    assert begun["run"]["facets"]["parent"]["job"]["name"] == walk["job"]["name"] == "test.erasure"
    assert [(d["namespace"], d["name"]) for d in (*ended["inputs"], *ended["outputs"])] == [("file", "/lake/c1")] * 2
    versions = [d["facets"]["version"]["datasetVersion"] for d in (*ended["inputs"], *ended["outputs"])]
    assert versions == ["7", str(2**60 + 8)]
    assert ended["run"]["facets"][FACET]["step"]["rowsErased"] == 2


def test_each_way_a_run_can_end(tmp_path: Path) -> None:
    clock = Ticking()
    failed = told(session(tmp_path / "failed", FakeExecutor(World(), broken={"c1/01"}), clock))
    assert cycles(failed)["c1/01#1"] == ["START", "FAIL"]
    assert cycles(failed)["#1"] == ["START", "FAIL"]
    assert failed[2]["run"]["facets"]["errorMessage"]["message"] == "the engine said no (c1/01)"

    def drift(a_step: Step) -> list[DriftItem]:
        p = snapshot("/lake/c2")
        return [DriftItem("c2", p.kind, p.target, p.expected, "s2", True)] if a_step.copy_ == "c2" else []

    assert cycles(told(session(tmp_path / "b", FakeExecutor(World()), clock, drift=drift))) == {
        "#1": ["START", "ABORT"]
    }


def test_a_wait_keeps_its_run_open_over_processes(tmp_path: Path) -> None:
    world, clock, until = World(), Ticking(), NOW + timedelta(hours=2)
    waits = {"c1/01": until}
    session(tmp_path / "j", FakeExecutor(world, waits=waits), clock)
    clock.now = until
    events = told(session(tmp_path / "j", FakeExecutor(world, waits=waits), clock, 2))
    assert cycles(events) == {
        "#1": ["START", "RUNNING", "RUNNING", "COMPLETE"],
        "c1/01#1": ["START", "RUNNING", "COMPLETE"],
        "c2/01#1": ["START", "COMPLETE"],
    }


def test_what_died_is_broken_off_and_the_resumed_run_is_another(tmp_path: Path) -> None:
    world, clock = World(), Ticking()
    session(tmp_path / "j", Counting(world, Fuse(7)), clock)  # in the middle of c1/01
    before = told(Journal.open(tmp_path / "j", clock).records)
    assert cycles(before) == {"#1": ["START"], "c1/01#1": ["START"]}
    events = told(session(tmp_path / "j", Counting(world), clock, 2))
    assert cycles(events) == {
        "#1": ["START", "ABORT"],
        "c1/01#1": ["START", "ABORT"],
        "#2": ["START", "COMPLETE"],
        "c1/01#2": ["START", "COMPLETE"],
        "c2/01#1": ["START", "COMPLETE"],
    }
    assert events[2]["run"]["facets"]["errorMessage"]["message"].startswith("the runner stopped before its end")
    second = next(
        e for e in events if e["run"]["facets"][FACET].get("step") and e["run"]["facets"][FACET]["attempt"] == 2
    )
    assert second["run"]["facets"]["parent"]["run"]["runId"] == events[4]["run"]["runId"]


TERMINAL = {"COMPLETE", "FAIL", "ABORT"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moments=st.lists(st.integers(0, 14), max_size=4), broken=st.booleans())
def test_whatever_killed_it_every_run_starts_once_and_ends_once(
    tmp_path_factory: pytest.TempPathFactory, moments: list[int], broken: bool
) -> None:
    path, world, clock = tmp_path_factory.mktemp("r") / "j", World(), Ticking()
    for token, moment in enumerate(moments, 1):
        so_far = session(path, Counting(world, Fuse(moment), broken={"c2/01"} if broken else set()), clock, token)
    last = session(path, Counting(world), clock, len(moments) + 1)
    events = told(last)
    if moments:
        assert events[: len(told(so_far))] == told(so_far), "what was told before is told again in the same words"
    for name, types in cycles(events).items():
        assert types[0] == "START", name
        assert types.count("START") == 1, name
        assert [t for t in types if t in TERMINAL] == types[-1:], name
    assert len({e["run"]["runId"] for e in events}) == len(cycles(events))
    ends = [e["run"]["facets"][FACET].get("step", {}).get("id") for e in events if e["eventType"] == "COMPLETE"]
    assert sorted(e or "" for e in ends) == ["", "c1/01", "c2/01"]


def test_run_ids_are_those_of_the_plan_the_step_and_the_attempt(tmp_path: Path) -> None:
    one = told(session(tmp_path / "1", Counting(World()), Ticking()))
    two = told(session(tmp_path / "2", Counting(World()), Ticking(NOW + timedelta(days=3))))
    assert [e["run"]["runId"] for e in one] == [e["run"]["runId"] for e in two]
    assert [e["eventTime"] for e in one] != [e["eventTime"] for e in two]


# -- the facet -----------------------------------------------------------------------------------------------------

BASE = {  # the spec's own definition: https://openlineage.io/spec/2-0-2/OpenLineage.json
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "RunFacet": {
            "type": "object",
            "properties": {
                "_producer": {"type": "string", "format": "uri"},
                "_schemaURL": {"type": "string", "format": "uri"},
            },
            "required": ["_producer", "_schemaURL"],
        }
    },
}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads(ERASURE_FACET_SCHEMA.read_bytes())
    Draft202012Validator.check_schema(schema)
    base = Resource.from_contents(BASE, default_specification=DRAFT202012)
    registry = Registry().with_resource("https://openlineage.io/spec/2-0-2/OpenLineage.json", base)
    return Draft202012Validator(schema, registry=registry)


def test_every_event_has_the_facet_as_its_schema_says(tmp_path: Path, validator: Draft202012Validator) -> None:
    for event in told(session(tmp_path / "j", Counting(World()), Ticking())):
        facets = event["run"]["facets"]
        assert [e.message for e in validator.iter_errors({FACET: facets[FACET]})] == []
        assert facets[FACET]["_schemaURL"] == FACET_SCHEMA
        for change in ({"person": PERSON}, {"attempt": 0}, {"planDigest": "sha256:1"}, {"requests": []}):
            assert not validator.is_valid({FACET: {**facets[FACET], **change}}), change


def test_an_event_does_not_grow_with_the_persons(tmp_path: Path, validator: Draft202012Validator) -> None:
    """It is sent for each step: of many requests it names those that are due first, and how many there are."""
    [one] = the_plan().requests
    days = [*range(300, 0, -1)]
    many = tuple(
        one.model_copy(update={"id": f"R-{day}", "deadline": one.deadline + timedelta(days=day)}) for day in days
    )
    records = session(tmp_path / "j", Counting(World()), Ticking())
    facets = [
        Serde.to_dict(event)["run"]["facets"][FACET]
        for event in RunEvents(the_plan().model_copy(update={"requests": many})).feed(records)
    ]
    for facet in facets:
        assert [request["id"] for request in facet["requests"]] == [f"R-{day}" for day in range(1, 101)]
        assert (facet["requestCount"], validator.is_valid({FACET: facet})) == (300, True)


def test_the_schema_names_the_fields_of_the_classes() -> None:
    schema = json.loads(ERASURE_FACET_SCHEMA.read_bytes())
    assert schema["$id"] + "#/$defs/ErasureRunFacet" == FACET_SCHEMA
    facet = schema["$defs"]["ErasureRunFacet"]["allOf"][1]["properties"]
    for fields, kind in (
        (facet, ErasureRunFacet),
        (schema["$defs"]["ErasureRequest"]["properties"], ErasureRequest),
        (schema["$defs"]["ErasureStep"]["properties"], ErasureStep),
    ):
        assert set(fields) == {f.name for f in attr.fields(kind)} - {"_producer", "_schemaURL"}


# -- what must not come of them ------------------------------------------------------------------------------------


def test_harvested_back_they_make_no_edge_no_job_and_no_gap(tmp_path: Path) -> None:
    events = told(session(tmp_path / "j", Counting(World()), Ticking()))
    events += told(session(tmp_path / "k", FakeExecutor(World(), broken={"c1/01"}), Ticking()))
    (tmp_path / "events.ndjson").write_text("".join(json.dumps(e) + "\n" for e in events))
    graph = harvest(LineageSources(events=("events.ndjson",)), tmp_path)
    assert len(graph.datasets()) == 2
    for dataset in graph.datasets():
        assert graph.downstream(dataset) == graph.edges_into(dataset) == graph.jobs_into(dataset) == ()
    assert graph.gaps == ()
    # the test can fail: one run that read and wrote both datasets would say that data flowed between them
    joined = {**events[2], "outputs": events[2]["outputs"] + events[4]["outputs"]}
    (tmp_path / "events.ndjson").write_text(json.dumps(joined) + "\n")
    assert harvest(LineageSources(events=("events.ndjson",)), tmp_path).gaps


def test_no_person_is_in_them(tmp_path: Path) -> None:
    class Leaky(FakeExecutor):
        def run(self, step: Step, copy: Copy | None) -> Outcome:
            if step.id == "c1/01":
                raise ValueError(f"row {PERSON} is in the way")
            if step.id == "c2/01":
                raise RunError("a row is in the way", where="/lake/c2")
            return super().run(step, copy)

    events = told(session(tmp_path / "j", Leaky(World()), Ticking()))
    text = json.dumps(events)
    assert "unexpected ValueError" in text
    assert PERSON not in text
    assert the_plan().requests[0].id in text
    assert the_plan().requests[0].subject not in text, "a lineage store never forgets: not even by reference"


def test_times_are_those_of_the_journal(tmp_path: Path) -> None:
    records = session(tmp_path / "j", Counting(World()), Ticking())
    times = [datetime.fromisoformat(e["eventTime"].replace("Z", "+00:00")) for e in told(records)]
    assert times == sorted(times)
    assert set(times) <= {r.time for r in records}
