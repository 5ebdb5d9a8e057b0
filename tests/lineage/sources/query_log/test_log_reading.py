from __future__ import annotations

import gzip
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.config.lineage import LineageSources, QueryLog
from pii_tracer.lineage.harvest import Given, Harvested, harvest_all
from pii_tracer.lineage.sources.query_log.log_rows import normal, without_remarks
from pii_tracer.lineage.sources.query_log.shape_parsing import parse_here
from pii_tracer.lineage.sources.query_log.spark_parsing import parser_on
from pii_tracer.lineage.sources.table_candidates import Tables
from pii_tracer.lineage.sql.sql_lineage import Script
from pii_tracer.lineage.sql.text.table_names import Names
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import LineageError
from tests.lineage.conftest import ALIASES, COPY, PAYMENTS, SCHEMAS, dataset, event
from tests.sparksession import spark, spark_estate  # noqa: F401 (fixtures)

WRITE = "INSERT INTO prod.copy SELECT user_id, pan FROM lake.prod.payments"
LOG = QueryLog(path="log", sql="query_text", database="db", time="at", status="state")


def row(text: Any, at: Any = "2026-11-01T00:00:00Z", state: str = "FINISHED", db: str | None = None) -> dict[str, Any]:
    return {"query_text": text, "at": at, "state": state, "db": db, "user": "x"}


def harvested(folder: Path, log: QueryLog = LOG, parser: Any = parse_here) -> Harvested:
    given = Given(folder, aliases=ALIASES, schemas=SCHEMAS, parser=parser)
    return harvest_all(LineageSources(queries=(log,)), given)


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Harvest these rows as JSON lines."""

    def make(*rows: dict[str, Any], log: QueryLog = LOG) -> Harvested:
        (tmp_path / "log").mkdir(exist_ok=True)
        (tmp_path / "log" / "q.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        return harvested(tmp_path, log)

    return make


def arrows(found: Harvested) -> set[tuple[str, str]]:
    return {(e.source.column, e.target.column) for e in found.graph.edges_into(COPY)}


def test_json_lines_gzip_and_parquet_say_the_same(tmp_path: Path):
    rows = [row(WRITE), row("SELECT 1"), row(WRITE, "2026-11-03T00:00:00Z")]
    text = "".join(json.dumps(r) + "\n" for r in rows).encode()
    moments = [{**r, "at": datetime.fromisoformat(r["at"].replace("Z", "+00:00"))} for r in rows]
    table = pa.Table.from_pylist(moments)
    digests = set()
    for name, write in {
        "json": lambda f: (f / "q.x").with_suffix(".jsonl").write_bytes(text),
        "gzip": lambda f: (f / "q.jsonl").write_bytes(gzip.compress(text)),
        "parquet": lambda f: pq.write_table(table, f / "q.parquet", row_group_size=1),
    }.items():
        folder = tmp_path / name / "log"
        folder.mkdir(parents=True)
        write(folder)
        for file in folder.iterdir():
            file.rename(folder / ("q.parquet" if name == "parquet" else "q.jsonl"))
        found = harvested(tmp_path / name)
        assert arrows(found) == {("user_id", "uid"), ("pan", "pan")}
        (evidence,) = found.graph.edges_into(COPY)[0].evidence
        assert (evidence.runs, evidence.at) == (2, "2026-11-03T00:00:00Z")
        assert evidence.where.endswith(":1")
        assert (evidence.last or "").endswith(":3")
        digests.add(tuple(sorted(map(str, arrows(found)))))
        assert found.summary.sources[0].read == 3
    assert len(digests) == 1


def test_a_text_is_parsed_once(read, monkeypatch: pytest.MonkeyPatch):
    parsed = []
    run = Script.run
    monkeypatch.setattr(Script, "run", lambda self, text: parsed.append(text) or run(self, text))
    found = read(row(WRITE), row(WRITE.replace(" ", "\n  ") + " ;"), row(WRITE), row("SELECT 1"))
    assert sorted(parsed) == [WRITE, "SELECT 1"]
    assert found.graph.edges_into(COPY)[0].evidence[0].runs == 3


def test_a_statement_that_failed_may_have_written(read):
    failed = read(row(WRITE, state="FAILED"))
    assert arrows(failed) == {("user_id", "uid"), ("pan", "pan")}
    assert {e.evidence[0].job for e in failed.graph.edges_into(COPY)} == {"query log log, failed"}
    assert [j.sql for j in failed.graph.jobs_into(COPY)] == [None]
    (gap,) = read(row("INSERT INTO prod.copy SELECT * FROM nowhere.at_all", state="")).graph.gaps[:1]
    assert "may have run (it failed)" in gap.reason or gap.kind == "unresolved_name"
    again = read(row(WRITE, state="FAILED"), row(WRITE))
    assert [j.sql for j in again.graph.jobs_into(COPY)] == [WRITE]


def test_what_cannot_be_read_is_a_gap_with_file_and_row(read):
    found = read(row(WRITE), row("FROBNICATE THE TABLE"), row(None), row(5), {"query_text": WRITE}, row("SELECT 'x"))
    kinds = sorted((g.kind, g.evidence) for g in found.graph.gaps)
    assert kinds == [
        ("sql_opaque", "log/q.jsonl:2"),
        ("sql_opaque", "log/q.jsonl:6"),
        ("unreadable_query", "log/q.jsonl:3"),
        ("unreadable_query", "log/q.jsonl:4"),
        ("unreadable_query", "log/q.jsonl:5"),
    ]
    assert arrows(found)


def test_the_database_of_a_row_explains_its_names(tmp_path: Path):
    other = DatasetId(namespace="file", name="/lakehouse/lake/dev/payments")
    text = "INSERT INTO prod.copy SELECT user_id, pan FROM payments"
    given = Given(
        tmp_path,
        aliases=ALIASES | {"lake.dev.payments": other},
        schemas=SCHEMAS | {"lake.dev.payments": SCHEMAS["lake.prod.payments"]},
    )
    read_from = {}
    for database in ("lake.prod", "lake.dev", None):
        (tmp_path / "log").write_text(json.dumps(row(text, db=database)))
        found = harvest_all(LineageSources(queries=(LOG,)), given)
        read_from[database] = {e.source.dataset for e in found.graph.edges_into(COPY)}
    unknown = DatasetId(namespace="unresolved", name="payments")
    assert read_from == {"lake.prod": {PAYMENTS}, "lake.dev": {other}, None: {unknown}}


def test_a_logged_copy_from_before_a_column_was_dropped_still_has_it(tmp_path: Path):
    old = {"fields": [{"name": c, "type": "string"} for c in ("user_id", "pan", "phone")]}
    told = event("1", "COMPLETE", [dataset(PAYMENTS, schema=old)], [dataset(PAYMENTS)])
    (tmp_path / "e.json").write_text(json.dumps(told))
    (tmp_path / "log").write_text(json.dumps(row("CREATE TABLE delta.`/copy` AS SELECT * FROM lake.prod.payments")))
    copy = DatasetId(namespace="file", name="/copy")
    given = Given(tmp_path, aliases=ALIASES, schemas=SCHEMAS)
    columns = []
    for events in ((), ("e.json",)):
        found = harvest_all(LineageSources(queries=(LOG,), events=events), given)
        columns.append({e.target.column for e in found.graph.edges_into(copy)})
    assert columns == [{"user_id", "pan"}, {"user_id", "pan", "phone"}]


def test_a_torn_parquet_file_is_a_gap(tmp_path: Path):
    (tmp_path / "log").mkdir()
    pq.write_table(pa.table({"query_text": [WRITE]}), tmp_path / "log" / "a.parquet")
    whole = (tmp_path / "log" / "a.parquet").read_bytes()
    (tmp_path / "log" / "b.parquet").write_bytes(whole[: len(whole) // 2])
    found = harvested(tmp_path, QueryLog(path="log", sql="query_text"))
    assert [(g.kind, g.evidence) for g in found.graph.gaps] == [("unreadable_query", "log/b.parquet:1")]
    assert arrows(found)


@pytest.mark.parametrize("at", [None, True, "yesterday", 1e300, -5, float("inf"), [1]])
def test_a_time_that_is_none_does_no_harm(tmp_path: Path, at: Any):
    (tmp_path / "log").write_text(json.dumps(row(WRITE, at)).replace("Infinity", "1e999"))
    assert arrows(harvested(tmp_path)) or at == float("inf")


def test_seconds_and_milliseconds(read):
    moment = datetime(2026, 11, 1, tzinfo=timezone.utc).timestamp()
    for at in (moment, int(moment), int(moment * 1000)):
        assert read(row(WRITE, at)).graph.edges_into(COPY)[0].evidence[0].at == "2026-11-01T00:00:00Z"


def test_an_unknown_dialect_is_an_error(read):
    with pytest.raises(LineageError, match="klingon"):
        read(row(WRITE), log=LOG.model_copy(update={"dialect": "klingon"}))


def test_sql_of_another_engine_is_not_given_to_spark(read):
    found = read(row("INSERT OVERWRITE prod.copy SELECT user_id, pan FROM lake.prod.payments"),
                 log=LOG.model_copy(update={"dialect": "hive"}))  # fmt: skip
    assert arrows(found)
    assert [j.sql for j in found.graph.jobs_into(COPY)] == [None]


@given(st.text("ab'\"`-/*\\ \n\t;x", max_size=40))
def test_normal_changes_white_space_outside_of_quotes_only(text: str):
    made = normal(text)
    assert normal(made) == made
    assert [c for c in made if not c.isspace()] == [c for c in text.strip().rstrip("; \t\r\n") if not c.isspace()]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("SELECT 'a  b'", "SELECT 'a b'"),
        ("SELECT a -- x\n, b FROM t", "SELECT a -- x , b FROM t"),
        ("SELECT 'it\\'s  x'", "SELECT 'it\\'s x'"),
        ('SELECT "a  b"', 'SELECT "a b"'),
    ],
)
def test_texts_that_differ_stay_apart(one: str, two: str):
    assert normal(one) != normal(two)


def test_the_tables_a_statement_is_given_are_all_it_can_mean():
    known = {
        "lake.prod.payments": [("a", "int")], "prod.my-table": [("b", "int")], "delta.`/lake/raw.events/`": [("c", "int")],
        "x.größe": [("d", "int")], "other.thing": [("e", "int")], "a.+": [("f", "int")],
    }  # fmt: skip
    text = "SELECT * FROM PAYMENTS JOIN `my-table` JOIN delta.`/lake/raw.events` JOIN x.GRÖSSE JOIN größe--x\n"
    few, all_ = Tables(known).of(text), Names(known)
    assert set(known) - set(few) == {"other.thing"}
    for name in ("payments", "prod.my-table", "x.größe", "a.+"):
        assert Names(few).columns(name) == all_.columns(name)


@pytest.mark.spark
def test_spark_gives_the_same_graph(tmp_path: Path, spark: Any):  # noqa: F811
    texts = [WRITE, "FROBNICATE", "SELECT 'x", "CREATE TABLE prod.new AS SELECT pan, count(*) AS n FROM lake.prod.payments "
             "WHERE user_id > 5 GROUP BY pan", "INSERT INTO prod.copy SELECT * FROM nowhere.x"]  # fmt: skip
    rows = [row(f"{t} -- {n}" if n else t, state="FAILED" if n % 3 else "OK") for n in range(150) for t in texts]
    (tmp_path / "log").write_text("".join(json.dumps(r) + "\n" for r in rows))
    here, there = harvested(tmp_path), harvested(tmp_path, parser=parser_on(spark))
    assert there.graph.digest() == here.graph.digest()
    assert there.summary == here.summary
    assert here.summary.statements > 500
    assert here.graph.downstream(PAYMENTS)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("/* app='x', user=5 */ SELECT 1 /* traceparent='00-ab' */", "SELECT 1"),
        ("SELECT /*+ BROADCAST(a) */ 1", "SELECT /*+ BROADCAST(a) */ 1"),
        ("/*! SET x = 1 */", "/*! SET x = 1 */"),
        ("/* nothing else */", "/* nothing else */"),
        ("SELECT 1; /* x */", "SELECT 1"),
    ],
)
def test_comments_around_a_statement_go(text: str, bare: str):
    assert without_remarks(normal(text)) == bare


def test_rows_that_were_added_since_are_left_for_the_next_harvest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Texts of a shape are looked at again; the log may have grown in the meantime."""
    texts = [
        f"INSERT INTO prod.copy SELECT user_id, CASE WHEN pan = '{n}' THEN pan END FROM lake.prod.payments"
        for n in "abc"
    ]
    log = tmp_path / "log"
    log.write_text("".join(json.dumps(row(t)) + "\n" for t in texts[:2]))

    def grows(queries: Any, tables: Any) -> Any:
        if len(log.read_text().splitlines()) == 2:
            log.write_text(log.read_text() + json.dumps(row(texts[2])) + "\n")
        return parse_here(queries, tables)

    found = harvested(tmp_path, parser=grows)
    assert {e.expression for e in found.graph.edges_into(COPY) if e.expression and "CASE" in e.expression} == {
        f"CASE WHEN lake.prod.payments.pan = '{n}' THEN lake.prod.payments.pan END" for n in "ab"
    }
    assert found.summary.sources[0].read == 2
