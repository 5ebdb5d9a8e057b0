from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.config.estate_file import Relocation
from pii_tracer.config.lineage import LineageSources
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import LineageError
from tests.lineage.conftest import ALIASES, COPY, PAYMENTS, SCHEMAS, column_facet, dataset, event
from tests.lineage.harvesting import harvest, harvest_with_summary
from tests.unprivileged import open_folder, unprivileged

__all__ = ["open_folder"]

WRITE = "INSERT OVERWRITE prod.copy SELECT CAST(user_id AS STRING) AS uid, pan FROM lake.prod.payments"
FACET = column_facet(uid=(PAYMENTS, "user_id", "TRANSFORMATION"), pan=(PAYMENTS, "pan", "IDENTITY"))


def arrows(graph, target=COPY):
    return {(e.source.column, e.target.column, str(e.subtype)) for e in graph.edges_into(target)}


EXPECTED = {("user_id", "uid", "TRANSFORMATION"), ("pan", "pan", "IDENTITY")}


def test_events_alone(estate):
    graph = estate([event("1", "COMPLETE", [dataset(PAYMENTS)], [dataset(COPY, columnLineage=FACET)])])
    assert arrows(graph) == EXPECTED
    assert graph.gaps == ()


def test_sql_alone_has_expressions_and_the_job(estate):
    graph = estate(sql={"copy.sql": "-- nightly\n\n" + WRITE})
    assert arrows(graph) == EXPECTED
    expressions = {e.target.column: e.expression for e in graph.edges_into(COPY)}
    assert expressions["uid"] == "CAST(lake.prod.payments.user_id AS STRING)"
    (job,) = graph.jobs_into(COPY)
    assert (job.job, job.sql, job.where) == ("copy", WRITE, "jobs/copy.sql:3")


def test_both_sources_make_one_edge_with_both_evidences(estate):
    graph = estate(
        [event("1", "COMPLETE", [dataset(PAYMENTS)], [dataset(COPY, columnLineage=FACET)])], {"a.sql": WRITE}
    )
    assert arrows(graph) == EXPECTED
    for edge in graph.edges_into(COPY):
        assert {e.source for e in edge.evidence} == {"openlineage", "sql"}
        assert edge.expression
    assert graph.disagreements() == ()


def test_disagreement_is_kept(estate):
    wrong = column_facet(uid=(PAYMENTS, "user_id", "IDENTITY"))
    graph = estate(
        [event("1", "COMPLETE", [dataset(PAYMENTS)], [dataset(COPY, columnLineage=wrong)])], {"a.sql": WRITE}
    )
    assert {("user_id", "uid", "IDENTITY"), ("user_id", "uid", "TRANSFORMATION")} <= arrows(graph)
    assert len(graph.disagreements()) == 1


def test_an_event_without_outputs_is_a_gap_and_sql_mends_it(estate):
    silent = event("1", "COMPLETE", [dataset(PAYMENTS)], [])
    assert [g.kind for g in estate([silent]).gaps] == ["no_outputs"]
    assert estate([silent], {"a.sql": WRITE}).gaps == ()
    own = event("1", "COMPLETE", [dataset(PAYMENTS)], [], sql=WRITE)
    mended = estate([own])
    assert mended.gaps == ()
    assert arrows(mended) == EXPECTED


def test_sql_that_is_not_complete_mends_nothing(estate):
    silent = event("1", "COMPLETE", [dataset(PAYMENTS)], [])
    vague = "INSERT INTO prod.copy SELECT TRANSFORM(pan) USING 'x' AS (a, b) FROM lake.prod.payments"
    kinds = {g.kind for g in estate([silent], {"a.sql": vague}).gaps}
    assert kinds == {"no_outputs", "sql_opaque"}


def test_outputs_without_columns_are_a_gap(estate):
    graph = estate([event("1", "FAIL", [dataset(PAYMENTS)], [dataset(COPY)])])
    (gap,) = graph.gaps
    assert (gap.kind, gap.dataset) == ("no_columns", COPY)
    assert "may have written" in gap.reason
    assert graph.downstream(PAYMENTS) == (COPY,)


def test_one_event_of_the_run_tells_the_columns(estate):
    started = event("1", "START", [dataset(PAYMENTS)], [dataset(COPY)])
    done = event("1", "COMPLETE", [], [dataset(COPY, columnLineage=FACET)])
    assert estate([done, started]).gaps == ()


def test_a_torn_file_is_a_gap_and_what_was_read_stays(estate):
    good = event("1", "COMPLETE", [dataset(PAYMENTS)], [dataset(COPY, columnLineage=FACET)])
    graph = estate([good], raw=b'{"eventType": "COMP')
    assert arrows(graph) == EXPECTED
    assert [(g.kind, g.evidence) for g in graph.gaps] == [("unreadable_event", "events/e.ndjson:2")]


def test_a_torn_gzip_is_a_gap(tmp_path: Path):
    good = event("1", "COMPLETE", [dataset(PAYMENTS)], [dataset(COPY, columnLineage=FACET)])
    lines = "".join(json.dumps({**good, "noise": random.Random(n).random()}) + "\n" for n in range(3000))
    whole = gzip.compress(lines.encode())
    (tmp_path / "e.ndjson.gz").write_bytes(whole[: len(whole) // 2])
    graph = harvest(LineageSources(events=("e.ndjson.gz",)), tmp_path, (), ALIASES, SCHEMAS)
    assert arrows(graph) == EXPECTED
    assert [g.kind for g in graph.gaps] == ["unreadable_event"]


def test_a_file_of_sql_that_is_no_text_is_a_gap_and_the_others_are_read(tmp_path: Path):
    (tmp_path / "a.sql").write_bytes("INSERT INTO prod.copy SELECT pan AS p\xe4n".encode("latin-1"))
    (tmp_path / "b.sql").write_text(WRITE)
    graph = harvest(LineageSources(sql=("a.sql", "b.sql")), tmp_path, (), ALIASES, SCHEMAS)
    assert [(g.kind, g.evidence) for g in graph.gaps] == [("unreadable_sql", "a.sql")]
    assert arrows(graph) == EXPECTED


def test_unknown_names_and_unreadable_statements_are_gaps(estate):
    graph = estate(sql={"a.sql": "CREATE TABLE fresh AS SELECT pan FROM lake.prod.payments; FROBNICATE THE TABLE;"})
    fresh = DatasetId(namespace="unresolved", name="fresh")
    assert {(g.kind, g.dataset) for g in graph.gaps} == {("unresolved_name", fresh), ("sql_opaque", None)}
    assert graph.downstream(PAYMENTS) == (fresh,)


def test_a_partition_from_elsewhere_brings_that_folder_in(estate):
    graph = estate(sql={"a.sql": "ALTER TABLE prod.copy ADD PARTITION (ds = 'x') LOCATION '/lakehouse/other'"})
    assert graph.upstream(COPY) == (DatasetId(namespace="file", name="/lakehouse/other"),)


def test_a_table_of_another_catalog_is_another_table(estate):
    graph = estate(sql={"a.sql": "CREATE TABLE backup.prod.payments AS SELECT * FROM lake.prod.payments"})
    backup = DatasetId(namespace="unresolved", name="backup.prod.payments")
    assert graph.downstream(PAYMENTS) == (backup,)
    assert len(graph.edges_into(backup)) == 2


def test_location_explains_a_name_in_every_file(estate):
    graph = estate(
        sql={
            "b.sql": "CREATE TABLE fresh (p string) USING delta LOCATION 'file:///lakehouse//delta/fresh/'",
            "a.sql": "INSERT INTO fresh (p) SELECT pan FROM prod.payments",
        }
    )
    fresh = DatasetId(namespace="file", name="/lakehouse/delta/fresh")
    assert graph.gaps == ()
    assert arrows(graph, fresh) == {("pan", "p", "IDENTITY")}


def test_paths_of_all_spellings_are_one_dataset(estate):
    graph = estate(
        sql={
            "a.sql": "INSERT OVERWRITE DIRECTORY 'file:/lakehouse/out/' USING parquet "
            "SELECT pan FROM lake.prod.payments;"
            "CREATE TABLE delta.`/lakehouse/last` AS SELECT pan FROM parquet.`/lakehouse/out`"
        }
    )
    out = DatasetId(namespace="file", name="/lakehouse/out")
    last = DatasetId(namespace="file", name="/lakehouse/last")
    assert graph.downstream(PAYMENTS) == (out, last)
    assert graph.upstream(last) == (PAYMENTS, out)


def test_symlinks_and_relocations(tmp_path: Path):
    here = DatasetId(namespace="file", name=f"{tmp_path.resolve()}/lake/prod/payments")
    links = {"identifiers": [{"namespace": "hive", "name": "prod.payments", "type": "TABLE"}]}
    (tmp_path / "e.json").write_text(json.dumps(event("1", "COMPLETE", [dataset(here, symlinks=links)], [])))
    (tmp_path / "a.sql").write_text("INSERT OVERWRITE DIRECTORY '/lakehouse/x' USING csv SELECT pan FROM prod.payments")
    moved = Relocation.model_validate({"from": "/lakehouse", "to": "."})
    graph = harvest(LineageSources(events=("e.json",), sql=("a.sql",)), tmp_path, [moved])
    assert graph.resolve("prod.payments") == PAYMENTS
    assert graph.downstream(PAYMENTS) == (DatasetId(namespace="file", name="/lakehouse/x"),)
    assert graph.gaps == ()


def test_rename_carries_the_data_along(estate):
    change = {"lifecycleStateChange": "RENAME", "previousIdentifier": PAYMENTS.model_dump()}
    new = DatasetId(namespace="file", name="/lakehouse/lake/prod/payments_old")
    graph = estate([event("1", "COMPLETE", [], [dataset(new, lifecycleStateChange=change)])])
    assert arrows(graph, new) == {("user_id", "user_id", "IDENTITY"), ("pan", "pan", "IDENTITY")}


def test_a_statement_over_temporary_views_is_not_given_for_a_rebuild(estate):
    view = "CREATE TEMP VIEW v AS SELECT user_id, pan FROM lake.prod.payments"
    sql = f"{view}; {WRITE.replace('lake.prod.payments', 'v')}"
    graph = estate(sql={"a.sql": sql})
    assert arrows(graph) == EXPECTED
    assert [j.sql for j in graph.jobs_into(COPY)] == [None]


def test_files_with_other_endings_are_counted_and_none_is_passed_over(tmp_path: Path):
    for name in ("a.SQL", "b.hql", "sub/c.sql", "d.py", ".hidden.sql"):
        (tmp_path / "jobs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "jobs" / name).write_text(WRITE)
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "notes.txt").write_text("x")
    sources = LineageSources(events=("events",), sql=("jobs",))
    _, summary = harvest_with_summary(sources, tmp_path, (), ALIASES, SCHEMAS)
    left = "files with unknown endings, which were not read"
    assert {(s.source, s.read, s.unit) for s in summary.sources} == {
        ("events", 0, "events"), ("jobs", 3, "statements"), ("events", 1, left), ("jobs", 1, left),
    }  # fmt: skip


def test_missing_source_is_an_error(tmp_path: Path):
    with pytest.raises(LineageError, match="does not exist"):
        harvest(LineageSources(events=("nowhere",)), tmp_path)


@pytest.mark.parametrize("kind", ["events", "sql"])
def test_a_folder_of_a_source_that_may_not_be_listed_is_an_error(open_folder: Path, kind: str):
    (shut := open_folder / "told" / "2026" / "11").mkdir(parents=True)
    (shut / "a.sql").write_text(WRITE)
    shut.chmod(0)
    try:
        with unprivileged(), pytest.raises(LineageError, match="cannot be listed: Permission denied") as refused:
            harvest(LineageSources(**{kind: ("told",)}), open_folder)
    finally:
        shut.chmod(0o755)
    assert refused.value.where == str(shut)


def test_summary_counts(tmp_path: Path):
    (tmp_path / "a.sql").write_text(f"{WRITE}; INSERT INTO prod.copy SELECT * FROM nowhere; FROBNICATE x;")
    _, summary = harvest_with_summary(LineageSources(sql=("a.sql",)), tmp_path, (), ALIASES, SCHEMAS)
    assert (summary.statements, summary.resolved, summary.opaque) == (3, 1, 2)


EVENTS = [
    event("1", "START", [dataset(PAYMENTS)], [dataset(COPY)]),
    event("1", "COMPLETE", [dataset(PAYMENTS)], [dataset(COPY, columnLineage=FACET)], sql=WRITE),
    event("2", "COMPLETE", [dataset(COPY)], []),
    event("3", "FAIL", [dataset(COPY)], [dataset(PAYMENTS)]),
    event("4", "OTHER", [], [dataset(COPY, schema={"fields": [{"name": "uid", "type": "long"}]})]),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(st.permutations(EVENTS), st.lists(st.sampled_from(EVENTS), max_size=5))
def test_order_and_repetition_change_nothing(estate, order, again):
    assert estate([*order, *again]).digest() == estate(EVENTS).digest()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["job", "run", "runId", "inputs", "outputs", "facets", "name", "columnLineage", "fields",
                         "inputFields", "symlinks", "identifiers", "schema", "sql", "query", "namespace", "dataset",
                         "transformations", "lifecycleStateChange", "previousIdentifier"]),
        inner, max_size=5),
    max_leaves=25,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(st.lists(_JSON, max_size=4), st.binary(max_size=60))
def test_garbage_never_stops_the_harvest(estate, events, raw):
    graph = estate(events, raw=raw)
    assert graph.digest() == estate(events, raw=raw).digest()


@pytest.mark.parametrize("columns", [SCHEMAS, {}], ids=["the schema of today", "no schema"])
def test_a_renamed_column_goes_over_to_its_new_name(tmp_path: Path, columns) -> None:
    """The catalog shows the table as it is after the rename; what was written before has the former name."""
    (tmp_path / "a.sql").write_text(
        "INSERT INTO prod.copy (person, pan) SELECT user_id, pan FROM lake.prod.payments;\n"
        "ALTER TABLE prod.copy RENAME COLUMN person TO uid"
    )
    graph = harvest(LineageSources(sql=("a.sql",)), tmp_path, (), ALIASES, columns)
    assert ("person", "uid", "IDENTITY") in arrows(graph)
    assert ("user_id", "person", "IDENTITY") in arrows(graph)
