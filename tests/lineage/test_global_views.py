"""`global_temp.v` is a view of a Spark application: told where its definition is, and otherwise a gap that says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pii_tracer.config.lineage import LineageSources, QueryLog
from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.model.datasets import DatasetId
from tests.lineage.conftest import ALIASES, COPY, PAYMENTS, SCHEMAS, dataset, event

MAKES = "CREATE OR REPLACE GLOBAL TEMPORARY VIEW V AS SELECT user_id, pan FROM lake.prod.payments"
READS = "INSERT OVERWRITE prod.copy SELECT * FROM global_temp.v"
SHARED = DatasetId(namespace=VIEW, name="global_temp.v")
UNKNOWN = DatasetId(namespace="unresolved", name="global_temp.v")
BOTH = {("user_id", "uid"), ("pan", "pan")}


def arrows(graph, target=COPY):
    return {(e.source.column, e.target.column) for e in graph.edges_into(target)}


def test_a_session_that_makes_and_reads_it_is_seen_through(estate):
    graph = estate(sql={"a.sql": f"{MAKES}; {READS}"})
    assert (graph.gaps, graph.upstream(COPY), arrows(graph)) == ((), (PAYMENTS,), BOTH)
    (job,) = graph.jobs_into(COPY)
    assert job.sql is None  # it needs the session's view
    assert [name for name, _ in job.views] == ["global_temp.v"]


def test_another_text_that_reads_it_is_told(estate):
    named = "INSERT OVERWRITE prod.copy SELECT user_id, pan FROM GLOBAL_TEMP.v"
    for texts in ({"a.sql": MAKES, "b.sql": READS}, {"z.sql": MAKES, "b.sql": named}):
        graph = estate(sql=texts)
        assert (graph.gaps, graph.upstream(COPY), arrows(graph)) == ((), (PAYMENTS, SHARED), BOTH)
        assert arrows(graph, SHARED) == {("user_id", "user_id"), ("pan", "pan")}
        assert [j.sql for d in (COPY, SHARED) for j in graph.jobs_into(d)] == [None, None]


def test_events_and_query_logs_tell_it_as_well(estate, tmp_path: Path):
    named = "INSERT OVERWRITE prod.copy SELECT user_id, pan FROM global_temp.v"
    one = event("1", "COMPLETE", [dataset(PAYMENTS)], [], sql=MAKES)
    two = event("2", "COMPLETE", [], [dataset(COPY)], sql=named)
    assert arrows(estate([one, two])) == BOTH
    rows = [{"q": text, "db": "lake.prod"} for text in (named, MAKES)]
    (tmp_path / "log").write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = LineageSources(queries=(QueryLog(path="log", sql="q", database="db"),))
    graph = harvest_all(log, Given(tmp_path, aliases=ALIASES, schemas=SCHEMAS)).graph
    assert (graph.gaps, arrows(graph)) == ((), BOTH)


def test_one_that_nothing_makes_is_a_gap_that_says_so(estate):
    local = MAKES.replace("GLOBAL ", "")
    for texts in ({"a.sql": READS}, {"a.sql": f"{local}; {READS}"}):
        gap = next(g for g in estate(sql=texts).gaps if g.kind == "unresolved_name")
        assert gap.dataset == UNKNOWN
        assert "global temporary view" in gap.reason
        assert "CREATE GLOBAL TEMPORARY VIEW" in gap.closes
        assert "catalog" not in gap.closes


def test_one_that_is_made_in_several_ways_is_taken_for_none(estate):
    """Else rows that another application took from another table would be deleted by this one's key."""
    other = MAKES.replace("lake.prod.payments", "ext.suppliers")
    graph = estate(sql={"a.sql": MAKES, "b.sql": other, "c.sql": READS.replace("*", "user_id, pan")})
    (gap,) = [g for g in graph.gaps if g.dataset == UNKNOWN]
    assert gap.kind == "unresolved_name"
    assert "several statements create" in gap.reason
    assert graph.downstream(PAYMENTS) == ()
    same = estate(sql={"a.sql": MAKES, "b.sql": f"-- again\n{MAKES.lower()}", "c.sql": READS})
    assert (same.gaps, arrows(same)) == ((), BOTH)


def test_the_text_that_makes_it_reads_its_own(estate):
    other = MAKES.replace("lake.prod.payments", "ext.suppliers")
    graph = estate(sql={"a.sql": f"{MAKES}; {READS}", "b.sql": other})
    assert (graph.gaps, graph.upstream(COPY), arrows(graph)) == ((), (PAYMENTS,), BOTH)


@pytest.mark.parametrize("name", ["v", "lake.global_temp.v", "default.v"])
def test_no_other_name_means_it(estate, name: str):
    texts = {"a.sql": f"{MAKES}; INSERT INTO prod.copy SELECT user_id, pan FROM {name}", "b.sql": READS}
    graph = estate(sql=texts)
    assert [(g.kind, g.dataset) for g in graph.gaps] == [
        ("unresolved_name", DatasetId(namespace="unresolved", name=name))
    ]


def test_a_table_of_its_name_is_not_hidden(estate):
    """`copy` without a database is the known table, whatever a global view is called."""
    named = MAKES.replace("VIEW V", "VIEW copy")
    read = READS.replace("global_temp.v", "global_temp.copy")
    back = "INSERT INTO lake.prod.payments (pan) SELECT pan FROM copy"
    graph = estate(sql={"a.sql": named, "b.sql": f"{read}; {back}"})
    assert graph.gaps == ()
    assert {e.source.dataset for e in graph.edges_into(PAYMENTS)} == {COPY}


def test_what_is_not_certain_about_it_is_told_of_it(estate):
    vague = "CREATE GLOBAL TEMP VIEW v AS SELECT TRANSFORM(pan) USING 'x' AS (user_id, pan) FROM lake.prod.payments"
    graph = estate(sql={"a.sql": vague, "b.sql": READS})
    assert {(g.kind, g.dataset) for g in graph.gaps} == {("sql_opaque", SHARED)}
    assert graph.downstream(PAYMENTS) == (SHARED, COPY)
