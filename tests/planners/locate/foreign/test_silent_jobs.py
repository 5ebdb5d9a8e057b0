"""Jobs that write a table with keys, and of which no event tells what they write: other systems' numbers, for all one
knows. Their rows may be anybody's.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pii_tracer.lineage.sources.openlineage.event_parsing import Dataset, Draft
from pii_tracer.lineage.sources.openlineage.idle_jobs import note_idle, note_kept
from tests.planners.estates import dataset
from tests.planners.locate.foreign.pipelines import answered, harvested

KEYS = "INSERT INTO prod.out SELECT user_id AS id, w FROM prod.users;"
THROUGH = "CREATE TABLE prod.a (id BIGINT, w STRING); INSERT INTO prod.a SELECT user_id AS id, w FROM prod.users; INSERT INTO prod.out SELECT id, w FROM prod.a;"
OF_OTHERS = "INSERT INTO prod.out SELECT shop_id AS id, w FROM prod.shops;"
LOAD = "load"
PLAIN = [{"type": "DIRECT", "subtype": "IDENTITY"}]


def named(table: str, **facets: Any) -> dict[str, Any]:
    return {**dataset(table).model_dump(), "facets": facets}


def event(output: dict[str, Any], run: int = 1, state: str = "COMPLETE", **more: Any) -> dict[str, Any]:
    """A run of the job `load` that names an output."""
    return {
        "eventType": state,
        "eventTime": "2026-11-01T00:00:00Z",
        "producer": "https://example.com/scheduler",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": f"00000000-0000-0000-0000-00000000000{run}", "facets": more.pop("of_run", {})},
        "job": {"namespace": "n", "name": LOAD, "facets": more.pop("of_job", {})},
        "inputs": more.pop("inputs", []),
        "outputs": [output],
    }


def doubts(sql: str, *events: dict[str, Any]) -> tuple[str, ...]:
    graph = harvested(sql, events="\n".join(map(json.dumps, events)), out="id bigint, w string")
    return answered(graph).doubts


def test_a_job_without_inputs_may_write_numbers_of_others() -> None:
    assert doubts(KEYS, event(named("prod.out"))) == ("foreign_keys",)


@pytest.mark.parametrize("state", ["FAIL", "START"])
def test_so_may_one_that_did_not_end_well(state: str) -> None:
    assert doubts(KEYS, event(named("prod.out"), state=state)) == ("foreign_keys",)


def test_so_may_one_that_writes_a_table_on_the_way() -> None:
    assert doubts(THROUGH, event(named("prod.a"))) == ("foreign_keys",)


def test_a_table_that_is_filled_when_it_is_made_may_have_anything() -> None:
    created = named("prod.out", lifecycleStateChange={"lifecycleStateChange": "CREATE"})
    assert doubts(KEYS, event(created)) == ("foreign_keys",)


@pytest.mark.parametrize("change", ["DROP", "TRUNCATE", "ALTER"])
def test_no_rows_come_in_where_the_table_changes(change: str) -> None:
    assert doubts(KEYS, event(named("prod.out", lifecycleStateChange={"lifecycleStateChange": change}))) == ()


def test_rows_come_in_where_it_changes_if_another_event_of_the_run_says_so() -> None:
    dropped, created = (named("prod.out", lifecycleStateChange={"lifecycleStateChange": c}) for c in ("DROP", "CREATE"))
    assert doubts(KEYS, event(dropped, state="START"), event(created)) == ("foreign_keys",)
    assert doubts(KEYS, event(dropped, state="START"), event(named("prod.out"))) == ("foreign_keys",)
    emptied = named("prod.out", lifecycleStateChange={"lifecycleStateChange": "TRUNCATE"})
    assert doubts(KEYS, event({**emptied, "outputFacets": {"outputStatistics": {"rowCount": 9}}})) == ("foreign_keys",)


def test_no_rows_come_in_where_an_empty_table_is_made() -> None:
    created = named("prod.out", lifecycleStateChange={"lifecycleStateChange": "CREATE"})
    assert doubts(KEYS, event({**created, "outputFacets": {"outputStatistics": {"rowCount": 0}}})) == ()


@pytest.mark.parametrize(
    ("node", "name", "empty"),
    [
        ("create_table.prod_out", "/wh/prod.db/prod_out", True),
        ("execute_create_table_command", "/wh/prod.db/out", True),
        ("create_table.prod_out", "/lake/prod_out", False),
        ("create_table_as_select.prod_out", "/wh/prod.db/prod_out", False),
        ("create_table.create_table_as_select", "/wh/prod.db/prod_out", False),
    ],
)
def test_sparks_command_for_a_table_without_a_query_brings_no_rows(node: str, name: str, empty: bool) -> None:
    """The listener names the command behind the application. Files may lie where a table has a place (LOCATION)."""
    kind = {"facets": {"jobType": {"jobType": "SQL_JOB"}}, "name": f"nightly.{node}"}
    created = Dataset(("file", name), {"lifecycleStateChange": {"lifecycleStateChange": "CREATE"}})
    for producer, kept in (("https://example.com", False), ("https://x/integration/spark", empty)):
        draft = Draft("n:nightly")
        note_idle({"job": kind, "producer": producer}, draft)
        note_kept(created, draft)
        assert bool(draft.kept) is kept


@pytest.mark.parametrize(
    ("operator", "found"),
    [
        ("EmptyOperator", ()),
        ("airflow.operators.empty.EmptyOperator", ()),
        ("airflow.providers.standard.operators.empty.EmptyOperator", ()),
        ("BashOperator", ("foreign_keys",)),
        ("acme.EmptyOperator", ("foreign_keys",)),
    ],
)
def test_an_airflow_task_that_does_nothing_fills_no_outlet(operator: str, found: tuple[str, ...]) -> None:
    assert doubts(KEYS, event(named("prod.out"), of_run={"airflow": {"task": {"operator_class": operator}}})) == found


@pytest.mark.parametrize("column", ["id", "w"])
def test_columns_that_come_from_none_are_made_by_the_job(column: str) -> None:
    assert doubts(KEYS, event(named("prod.out", columnLineage={"fields": {column: {"inputFields": []}}}))) == (
        "foreign_keys",
    )


def test_a_text_that_is_followed_tells_what_was_written() -> None:
    texts = {"sql": {"query": "CREATE TABLE IF NOT EXISTS prod.out (id BIGINT, w STRING)"}}
    assert doubts(KEYS, event(named("prod.out"), of_job=texts)) == ()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT 1", False),
        ("CREATE TABLE prod.b AS SELECT shop_id, w FROM prod.shops", False),
        ("SET x = 1", False),
        ("TRUNCATE TABLE prod.b", False),
        ("INSERT INTO prod.out SELECT user_id, w FROM prod.users", True),
        ("TRUNCATE TABLE prod.out", True),
        ("OPTIMIZE prod.out", True),
        ("VACUUM prod.out RETAIN 9 HOURS", True),
        ("COMMENT ON TABLE prod.out IS 'x'", True),
        ("ANALYZE TABLE prod.out COMPUTE STATISTICS", True),
        ("OPTIMIZE dev.out", False),
        ("ANALYZE TABLE dev.out COMPUTE STATISTICS", False),
        ("OPTIMIZE prod.b ZORDER BY (out)", False),
        ("SET out = 1", False),
        ("USE out", False),
        ("SHOW TABLES LIKE 'out'", False),
        ("SET x=1 -- fill out", False),
        ("GRANT SELECT ON dev.out TO a", False),
        ("SELECT 1; DELETE FROM prod.out WHERE id = 1", True),
    ],
)
def test_a_text_explains_what_it_writes_and_nothing_else(query: str, told: bool) -> None:
    texts = {"sql": {"query": query}}
    assert doubts(KEYS, event(named("prod.out"), of_job=texts)) == (() if told else ("foreign_keys",))


@pytest.mark.parametrize(
    "query",
    [
        "TRUNCATE TABLE prod.out",
        "DELETE FROM prod.out WHERE id = 1",
        "OPTIMIZE prod.out",
        "CREATE TABLE IF NOT EXISTS prod.out (id BIGINT, w STRING)",
        "ALTER TABLE prod.out ADD COLUMN x INT",
    ],
)
def test_a_text_that_brings_no_rows_explains_none_that_came(query: str) -> None:
    output = {**named("prod.out"), "outputFacets": {"outputStatistics": {"rowCount": 9}}}
    assert doubts(KEYS, event(output, of_job={"sql": {"query": query}})) == ("foreign_keys",)


@pytest.mark.parametrize("query", ["SELECT 1 AS users", "SET users = 1"])
def test_a_word_in_a_text_explains_no_input(query: str) -> None:
    read = {**event(named("prod.out"), inputs=[named("prod.users")], of_job={"sql": {"query": query}}), "outputs": []}
    assert doubts(OF_OTHERS, read) == ("no_outputs",)


TAKEN = (
    "CREATE TABLE prod.out (id BIGINT, w STRING, dt STRING) USING parquet PARTITIONED BY (dt) LOCATION '/w/prod/out';"
    " INSERT INTO prod.out SELECT user_id, w, 'a' FROM prod.users; MSCK REPAIR TABLE prod.out"
)


@pytest.mark.parametrize(
    "facets",
    [{}, {"lifecycleStateChange": {"lifecycleStateChange": "TRUNCATE"}}],
    ids=["a run that says nothing of folders", "a run that empties it"],
)
def test_a_run_that_names_the_table_explains_no_rows_that_lie_in_its_folder(facets: dict[str, Any]) -> None:
    told = told_by_another()
    told["outputs"][0]["facets"] |= facets
    assert doubts(TAKEN, told) == ("foreign_keys",)


def test_a_run_that_names_the_partitions_folder_explains_its_rows() -> None:
    told = told_by_another()
    told["outputs"][0]["name"] += "/dt=b"
    assert doubts(TAKEN, told) == ()


def test_another_run_of_the_job_tells_its_columns() -> None:
    fields = {
        "id": {"inputFields": [{**dataset("prod.users").model_dump(), "field": "user_id", "transformations": PLAIN}]}
    }
    told = event(named("prod.out", columnLineage={"fields": fields}), 2, inputs=[named("prod.users")])
    assert doubts(KEYS, told, event(named("prod.out"))) == ()


def test_a_job_that_reads_what_it_writes_changes_rows_that_are_there() -> None:
    assert doubts(KEYS, event(named("prod.out"), inputs=[named("prod.out")])) == ()


def test_the_steps_of_a_job_tell_what_it_writes() -> None:
    step = event(named("prod.out"), 2, of_job={"sql": {"query": KEYS}}, inputs=[named("prod.users")])
    step["job"]["name"] = "load.step"
    step["run"]["facets"] = {"parent": {"run": {"runId": "1"}, "job": {"namespace": "n", "name": LOAD}}}
    assert doubts("", step, event(named("prod.out"))) == ()


def test_an_event_without_columns_of_a_job_with_other_inputs_is_a_gap_of_lineage() -> None:
    assert doubts(KEYS, event(named("prod.out"), inputs=[named("prod.shops")])) == ("no_columns",)


def told_by_another(text: str = "", **more: Any) -> dict[str, Any]:
    """A run of another job that tells the columns, or has a text."""
    fields = {
        "id": {"inputFields": [{**dataset("prod.users").model_dump(), "field": "user_id", "transformations": PLAIN}]},
        "w": {"inputFields": [{**dataset("prod.users").model_dump(), "field": "w", "transformations": PLAIN}]},
    }
    facets = {} if text else {"columnLineage": {"fields": fields}}
    of_job = {"sql": {"query": text}} if text else {}
    found = event(named("prod.out", **facets), 2, inputs=[named("prod.users")], of_job=of_job, **more)
    return {**found, "job": {**found["job"], "name": "other"}}


def test_what_another_job_says_explains_no_job_with_the_same_inputs() -> None:
    """It may put the manager's number there."""
    silent = event(named("prod.out"), inputs=[named("prod.users")])
    assert doubts("", told_by_another(), silent) == ("no_columns",)
    assert doubts("", told_by_another(KEYS), silent) == ("no_columns",)


def test_a_partitions_folder_fills_its_column() -> None:
    output = named("prod.out")
    text = json.dumps(event({**output, "name": f"{output['name']}/id=7"}, inputs=[named("prod.users")]))
    jobs = harvested("", events=text, out="id bigint, w string").jobs_into(dataset("prod.out"))
    assert {column for job in jobs for column, _ in job.filled} == {"id"}


def test_a_step_and_what_it_is_a_step_of_explain_each_other() -> None:
    parent = {"parent": {"run": {"runId": "1"}, "job": {"namespace": "n", "name": LOAD}}}
    silent = event(named("prod.out"), inputs=[named("prod.users")])
    assert doubts("", told_by_another(of_run=parent), silent) == ()
    of_other = {"parent": {"run": {"runId": "2"}, "job": {"namespace": "n", "name": "other"}}}
    assert doubts("", told_by_another(), event(named("prod.out"), inputs=[named("prod.users")], of_run=of_other)) == ()


def test_statements_of_files_explain_any_job() -> None:
    assert doubts(KEYS, event(named("prod.out"), inputs=[named("prod.users")])) == ()


def test_and_the_keys_of_what_is_made_of_that_table_are_doubtful_too() -> None:
    """The gap of a table on the way is not shown where nothing of the persons is in it any more."""
    assert doubts(THROUGH, event(named("prod.a"), inputs=[named("prod.shops")])) == ("no_columns", "foreign_keys")


Told = tuple[str, str, str]
"""A table, its column and the subtype of what of it goes into a column."""
THE_KEY: Told = ("prod.users", "user_id", "IDENTITY")


def of_columns(*joined: str, table: str = "prod.out", **columns: list[Told]) -> dict[str, Any]:
    """A run that tells the columns of a table, with a join of the columns `w` of tables."""

    def field(name: str, column: str, kind: str, subtype: str) -> dict[str, Any]:
        transformations = [{"type": kind, "subtype": subtype}]
        return {**dataset(name).model_dump(), "field": column, "transformations": transformations}

    fields = {
        column: {"inputFields": [field(name, source, "DIRECT", subtype) for name, source, subtype in told]}
        for column, told in columns.items()
    }
    lineage = {"fields": fields, "dataset": [field(name, "w", "INDIRECT", "JOIN") for name in joined]}
    read = sorted({name for told in columns.values() for name, _, _ in told} - {table})
    return event(named(table, columnLineage=lineage), inputs=[named(name) for name in read])


UNITED: dict[str, list[Told]] = {
    "unchanged": [("prod.users", "w", "IDENTITY"), ("prod.shops", "w", "IDENTITY")],
    "the other one changed": [("prod.users", "w", "IDENTITY"), ("prod.shops", "w", "TRANSFORMATION")],
    "the keys' one changed": [("prod.users", "w", "TRANSFORMATION"), ("prod.shops", "w", "IDENTITY")],
    "both changed": [("prod.users", "w", "TRANSFORMATION"), ("prod.shops", "w", "TRANSFORMATION")],
    "one summed": [("prod.users", "w", "TRANSFORMATION"), ("prod.shops", "shop_id", "AGGREGATION")],
}


@pytest.mark.parametrize("told", UNITED.values(), ids=UNITED)
def test_a_branch_of_a_union_may_count_what_it_does_not_tell(told: list[Told]) -> None:
    assert doubts("SELECT 1;", of_columns(id=[THE_KEY], w=told)) == ("foreign_keys",)


def test_so_may_one_that_fills_a_table_on_the_way() -> None:
    sql = "INSERT INTO prod.out SELECT id, w FROM prod.a;"
    united = of_columns(table="prod.a", id=[THE_KEY], w=UNITED["the other one changed"])
    assert doubts(f"CREATE TABLE prod.a (id BIGINT, w STRING); {sql}", united) == ("foreign_keys",)


def test_an_expression_of_a_join_that_is_told_is_no_union() -> None:
    both = UNITED["both changed"]
    assert doubts("SELECT 1;", of_columns("prod.users", "prod.shops", id=[THE_KEY], w=both)) == ()
    for joined in (["prod.users"], ["prod.shops", "prod.visits"]):
        assert doubts("SELECT 1;", of_columns(*joined, id=[THE_KEY], w=both)) == ("foreign_keys",)


def test_a_branch_that_is_unchanged_is_one_also_beside_a_join() -> None:
    """The listener tells the columns of the expression: of a join, and of the branch that is united with it."""
    told = of_columns("prod.users", "prod.shops", id=[THE_KEY], w=UNITED["the other one changed"])
    assert doubts("SELECT 1;", told) == ("foreign_keys",)


@pytest.mark.parametrize(
    "told",
    [
        [("prod.users", "w", "TRANSFORMATION"), ("prod.users", "city", "TRANSFORMATION")],
        [("prod.users", "w", "IDENTITY"), ("prod.out", "w", "IDENTITY")],
        [("prod.shops", "w", "TRANSFORMATION")],
    ],
)
def test_what_comes_of_one_table_is_no_union(told: list[Told]) -> None:
    assert doubts("SELECT 1;", of_columns(id=[THE_KEY], w=told)) == ()


def lineage_of(table: str, source: str, column: str) -> dict[str, Any]:
    """A columnLineage facet: the table's columns, made of another one's."""
    fields = {
        to: {"inputFields": [{**dataset(source).model_dump(), "field": name, "transformations": PLAIN}]}
        for to, name in (("id", column), ("w", "w"))
    }
    return named(table, columnLineage={"fields": fields})


def test_what_a_dataset_says_of_itself_explains_no_job() -> None:
    """Once a job put shops there, too: the description tells that they go in, and not into which columns this job."""
    described = {
        "eventTime": "2026-11-01T00:00:00Z",
        "producer": "https://example.com/catalog",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
        "dataset": lineage_of("prod.out", "prod.shops", "name"),
    }
    job = event(named("prod.out"), inputs=[named("prod.shops")])
    assert "no_columns" in doubts(KEYS, described, job)
    assert "no_columns" not in doubts(KEYS, event(lineage_of("prod.out", "prod.shops", "name")), job)


def test_a_run_that_names_no_output_is_not_explained_by_what_another_job_did() -> None:
    read = event(named("prod.a"), run=2, inputs=[named("prod.visits")]) | {"outputs": []}
    told = {"sql": {"query": "CREATE TABLE prod.a AS SELECT user_id AS id, w FROM prod.visits"}}
    other = event(named("prod.a"), inputs=[named("prod.visits")], of_job=told)
    other["job"]["name"] = "other"
    assert doubts(KEYS, read, other) == ("no_outputs",)
    other["job"]["name"] = LOAD
    assert doubts(KEYS, read, other) == ()
