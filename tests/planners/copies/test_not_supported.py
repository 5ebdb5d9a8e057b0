"""What no executor can do is a gap in the plan, not a failure in the middle of the run."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import (
    Edge,
    EdgeType,
    JobRef,
    Subtype,
)
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    Column,
    ColumnId,
    DatasetId,
    Format,
    Strategy,
)
from pii_tracer.model.errors import PlanError
from pii_tracer.model.plan import ErasurePlan
from planners.build import Digests, PlanInputs, build_plan
from planners.copies.classification import recognise
from planners.copies.executor_support import no_rebuild
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.copies.scan_evidence import Evidence
from planners.locate.key_location import follow
from planners.locate.sql.rebuild_statement import recorded
from planners.locate.subject_survey import World, survey
from planners.schedule.step_dates import Retention
from tests.planners.estates import PERSON, dataset, graph_of
from tests.waivers import MARKS

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
        table="lake.core.users" if fmt is ICEBERG else None,
        location=dataset.name,
        format=fmt,
        snapshot="1",
        columns=tuple(Column(name=c, type="bigint") for c in columns),
    )


def plan(
    fmt: Format,
    subtype: Subtype,
    *,
    stopped: bool = True,
    retention: Retention = Retention.IMMEDIATE,
    named: bool = True,
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
    users = state(SOURCE, ICEBERG, "uid", "amount")
    users = users if named else users.model_copy(update={"table": None})
    inventory = Inventory(tables=(users, state(FOLDER, fmt, column)))
    seen = Evidence(files=1, files_with_person=1, bytes=1, strong=frozenset({"user.uid"}))
    world = World(graph, inventory, {"/w/users": seen, "/w/folder": seen}, lambda _: False)
    from pii_tracer.config.estate_file import Request

    request = Request.model_validate(
        {"id": "R", "law": "GDPR", "received": NOW, "subject": {"type": "user", "key": "1234567890"}}
    )
    inputs = PlanInputs(
        made,
        [request],
        {"R": "subj"},
        [found],
        world,
        Digests("", "", "", "", ""),
        NOW,
        retention,
        override_reason="t",
        marks=MARKS,
    )
    return build_plan(inputs)


@pytest.mark.parametrize("fmt", [Format.PARQUET, Format.CSV, Format.ORC, Format.AVRO, Format.JSON])
def test_a_bare_folder_with_the_key_can_be_planned(fmt: Format) -> None:
    made = plan(fmt, Subtype.IDENTITY)
    assert made.applyable
    assert [s.parameters["format"] for s in made.steps if s.executor == "files"] == [fmt.value]


@pytest.mark.parametrize("fmt", [Format.PARQUET, Format.ORC])
def test_a_bare_folder_of_aggregates_is_rebuilt_where_its_files_carry_a_schema(fmt: Format) -> None:
    made = plan(fmt, Subtype.AGGREGATION)
    assert made.applyable
    assert [s.action for s in made.steps if s.executor == "files"] == [Action.FILES_REBUILD]


@pytest.mark.parametrize("fmt", [Format.CSV, Format.JSON, Format.AVRO])
def test_a_bare_folder_of_aggregates_is_a_gap(fmt: Format) -> None:
    made = plan(fmt, Subtype.AGGREGATION)
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
                marks=MARKS,
            )
        )


@pytest.mark.parametrize(
    ("sql", "rebuilt"),
    [
        ("INSERT OVERWRITE prod.out SELECT city, count(*) AS n FROM prod.users GROUP BY city;", True),
        (
            "INSERT OVERWRITE prod.out SELECT city, count(*) AS n FROM prod.users GROUP BY city;\n"
            "INSERT INTO prod.out SELECT city, 1 AS n FROM prod.merchants;",
            False,
        ),
        (
            "INSERT OVERWRITE prod.out SELECT city, count(*) AS n FROM prod.users GROUP BY city;\n"
            "UPDATE prod.out SET n = n + 1 WHERE city = 'Goa';",
            False,
        ),
    ],
)
def test_a_table_that_several_statements_write_is_not_rebuilt_by_one_of_them(sql: str, rebuilt: bool) -> None:
    """Running only the first again would lose the rows that the second one added, for everybody."""
    graph = graph_of(sql, {"prod.out": "city string, n bigint"})
    table = state(dataset("prod.out"), ICEBERG, "city", "n")
    assert (recorded(graph.jobs_into(table.dataset), table).sql is not None) is rebuilt


@pytest.mark.parametrize(("verb", "strategy"), [("OVERWRITE", Strategy.REBUILD), ("INTO", Strategy.BLOCKED)])
def test_rows_that_can_name_several_people_are_rebuilt_or_a_gap_and_never_deleted(
    verb: str, strategy: Strategy
) -> None:
    sql = f"INSERT {verb} prod.out SELECT city, max(user_id) AS top FROM prod.users GROUP BY city;"
    graph = graph_of(sql, {"prod.out": "city string, top bigint"})
    source, columns = dataset("prod.users"), ("user_id", "email", "phone", "order_id")
    texts = {name: [f"{name}-1234567890", f"{name}-2"] for name in columns}
    keys = resolve(PERSON, SourceRows(texts), [Wanted("R", "subj", "user_id-1234567890")])
    found = survey(PERSON, source, follow(graph, source, PERSON), keys)
    tables = (state(source, ICEBERG, *columns), state(dataset("prod.out"), ICEBERG, "city", "top"))
    seen = Evidence(files=1, files_with_person=1, bytes=1, strong=frozenset({"person.user_id"}))
    world = World(graph, Inventory(tables=tables), {t.location: seen for t in tables}, lambda _: False)
    made = recognise(found, world)
    copy = next(item.copy for item in made.items if item.copy.dataset == dataset("prod.out"))
    assert (copy.carries, copy.strategy, copy.match) == (Carries.KEY, strategy, None)
    assert [g.reason.split(",")[0] for g in made.gaps if g.dataset == copy.dataset] == (
        ["a row can name several people"] if strategy is Strategy.BLOCKED else []
    )


def test_an_iceberg_table_without_a_name_in_a_catalog_is_a_gap() -> None:
    """Spark can only write it by a name: better said at review than when the run has begun."""
    source = plan(Format.PARQUET, Subtype.IDENTITY)
    assert source.applyable
    nameless = plan(Format.PARQUET, Subtype.IDENTITY, named=False)
    assert not nameless.applyable
    assert [(g.kind, g.dataset) for g in nameless.gaps] == [("cannot_be_proved", SOURCE)]
    assert "names this Iceberg table" in nameless.gaps[0].reason


@pytest.mark.parametrize(
    ("kind", "refused"), [("variant", True), ("map<string,variant>", True), ("map<int,int>", False)]
)
def test_what_a_rebuild_cannot_compare_is_said_in_the_plan(kind: str, refused: bool) -> None:
    table = state(SOURCE, ICEBERG, "n")
    table = table.model_copy(update={"columns": (*table.columns, Column(name="held", type=kind))})
    assert ("held" in (no_rebuild(table) or "")) is refused
