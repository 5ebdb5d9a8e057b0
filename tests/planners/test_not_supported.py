"""What no executor can do is a gap in the plan, not a failure in the middle of the run."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from pii_tracer.config import Estate
from pii_tracer.errors import PlanError
from pii_tracer.inventory import Inventory, TableState
from pii_tracer.lineage.edges import Edge, EdgeType, JobRef, Subtype
from pii_tracer.lineage.facts import collect
from pii_tracer.lineage.graph import LineageGraph
from pii_tracer.model import Column, ColumnId, DatasetId, Format
from pii_tracer.plan import ErasurePlan
from planners.build import Digests, PlanInputs, build_plan
from planners.carriage import follow
from planners.evidence import Evidence
from planners.keys import SourceRows, Wanted, resolve
from planners.schedule import Retention
from planners.survey import World, survey

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
SOURCE, FOLDER = DatasetId(namespace="file", name="/w/users"), DatasetId(namespace="file", name="/w/folder")


def estate(stopped: bool) -> Estate:
    return Estate.model_validate(
        {
            "version": 1,
            "estate": "t",
            "environment": "local",
            "catalogs": {},
            "roots": ["w"],
            "lineage": {},
            "subjects": [{"name": "user", "source": "users", "key": "uid"}],
            "writers": [{"job": "nightly", "stopped": stopped}],
        }
    )


def state(dataset: DatasetId, fmt: Format, *columns: str) -> TableState:
    return TableState(
        dataset=dataset,
        table=None,
        location=dataset.name,
        format=fmt,
        snapshot="1",
        columns=tuple(Column(name=c, type="bigint") for c in columns),
    )


def plan(
    fmt: Format, subtype: Subtype, *, stopped: bool = True, retention: Retention = Retention.IMMEDIATE
) -> ErasurePlan:
    """A source and one folder that a job writes from it: with its key, or a sum of another column."""
    column = "uid" if subtype is Subtype.IDENTITY else "amount"
    edge = Edge(
        source=ColumnId(dataset=SOURCE, column=column),
        target=ColumnId(dataset=FOLDER, column=column),
        type=EdgeType.DIRECT,
        subtype=subtype,
        masking=False,
        expression=f"users.{column}" if subtype is Subtype.IDENTITY else "SUM(users.amount)",
        evidence=(),
    )
    columns = tuple(Column(name=c, type="bigint") for c in ("uid", "amount"))
    job = JobRef(
        job="j",
        sql="INSERT OVERWRITE DIRECTORY '/w/folder' SELECT 1",
        inputs=(SOURCE,),
        output=FOLDER,
        at=None,
        where="j:1",
    )
    graph = LineageGraph(
        collect(columns={SOURCE: columns}, edges=[edge], memberships=[], jobs=[job], gaps=[], aliases={"users": SOURCE})
    )
    made = estate(stopped)
    subject = made.subjects[0]
    keys = resolve(subject, SourceRows({"uid": ["1234567890", "2"]}), [Wanted("R", "subj", "1234567890")])
    found = survey(subject, SOURCE, follow(graph, SOURCE, subject), keys)
    inventory = Inventory(tables=(state(SOURCE, Format.ICEBERG, "uid", "amount"), state(FOLDER, fmt, column)))
    seen = Evidence(files=1, files_with_person=1, bytes=1, strong=frozenset({"user.uid"}))
    world = World(graph, inventory, {"/w/users": seen, "/w/folder": seen}, lambda _: False)
    from pii_tracer.config import Request

    request = Request.model_validate(
        {"id": "R", "law": "GDPR", "received": NOW, "subject": {"type": "user", "key": "1234567890"}}
    )
    inputs = PlanInputs(
        made, [request], {"R": "subj"}, [found], world, Digests("", "", "", "", ""), NOW, retention, override_reason="t"
    )
    return build_plan(inputs)


def test_a_parquet_folder_with_the_key_can_be_planned() -> None:
    assert plan(Format.PARQUET, Subtype.IDENTITY).applyable


@pytest.mark.parametrize("fmt", [Format.ORC, Format.AVRO, Format.JSON])
def test_formats_that_are_not_rewritten_are_gaps(fmt: Format) -> None:
    made = plan(fmt, Subtype.IDENTITY)
    assert not made.applyable
    assert "not supported" in made.gaps[0].reason


def test_a_bare_folder_of_aggregates_is_a_gap() -> None:
    made = plan(Format.PARQUET, Subtype.AGGREGATION)
    assert not made.applyable
    assert [g.kind for g in made.gaps] == ["cannot_be_proved"]


def test_a_running_writer_stands_against_ending_time_travel_at_once() -> None:
    made = plan(Format.PARQUET, Subtype.IDENTITY, stopped=False)
    assert [g.kind for g in made.gaps] == ["writer_running"]
    assert plan(Format.PARQUET, Subtype.IDENTITY, stopped=False, retention=Retention.RETAIN).applyable


def test_writers_are_looked_at_again_before_the_first_step() -> None:
    first = plan(Format.PARQUET, Subtype.IDENTITY).steps[0]
    assert [(p.kind, p.target, p.expected) for p in first.preconditions] == [("writers_stopped", "nightly", "true")]


def test_no_request_is_an_error() -> None:
    with pytest.raises(PlanError, match="no request"):
        build_plan(
            PlanInputs(
                estate(True),
                [],
                {},
                [],
                None,
                Digests("", "", "", "", ""),
                NOW,
                Retention.RETAIN,  # type: ignore[arg-type]
            )
        )
