"""Temporary tables of one name that several jobs make: each is a table of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pii_tracer.config.lineage import LineageSources, QueryLog
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from tests.lineage.conftest import ALIASES, COPY, PAYMENTS, SCHEMAS
from tests.lineage.harvesting import harvest

Estate = Callable[..., LineageGraph]


@pytest.mark.parametrize(
    ("made", "other"),
    [("tmp_x", "tmp_x"), ("`tmp x`", "`tmp x`"), ("tmp_x", "TMP_X"), ("`tmp_x`", "tmp_x"), ("scratch.tmp_x", "scratch.tmp_x"), ("`tmp.x`", "`tmp.x`")],
)  # fmt: skip
def test_temporary_tables_of_two_jobs_are_two_tables(estate: Estate, made: str, other: str) -> None:
    mine = f"CREATE TEMPORARY TABLE {made} AS SELECT user_id FROM lake.prod.payments; INSERT INTO prod.copy (uid) SELECT user_id FROM {made}"
    theirs = f"CREATE TEMPORARY TABLE {other} AS SELECT pan AS user_id FROM lake.prod.payments; INSERT INTO prod.copy (pan) SELECT user_id FROM {other}"
    graph = estate(sql={"a.sql": mine, "b.sql": theirs})
    assert _origins(graph) == {("uid", PAYMENTS, "user_id"), ("pan", PAYMENTS, "pan")}


_QUERY = "SELECT {0} AS v FROM lake.prod.payments"
_FILL = "INSERT INTO {1} SELECT {{0}} AS v FROM lake.prod.payments"


@pytest.mark.parametrize(
    ("dialect", "name", "made"),
    [
        ("teradata", "x", f"CREATE MULTISET VOLATILE TABLE x AS ({_QUERY}) WITH DATA ON COMMIT PRESERVE ROWS"),
        ("teradata", "x", f"CREATE VOLATILE SET TABLE x AS ({_QUERY}) WITH DATA"),
        ("db2", "SESSION.x", f"DECLARE GLOBAL TEMPORARY TABLE SESSION.x AS ({_QUERY}) WITH DATA"),
        ("db2", "SESSION.x", f"DECLARE GLOBAL TEMPORARY TABLE SESSION.x (v INT) NOT LOGGED; {_FILL.format('', 'SESSION.x')}"),
        ("oracle", "ora$ptt_x", f"CREATE PRIVATE TEMPORARY TABLE ora$ptt_x AS {_QUERY}"),
        ("postgres", "x", "SELECT {0} AS v INTO TEMP x FROM lake.prod.payments"),
        ("redshift", "x", "SELECT {0} AS v INTO TEMPORARY TABLE x FROM lake.prod.payments"),
        ("redshift", "#x", f"CREATE TABLE #x AS {_QUERY}"),
        ("tsql", "#x", f"CREATE TABLE #x (v INT); {_FILL.format('', '#x')}"),
        ("snowflake", "x", f"CREATE OR REPLACE LOCAL TEMPORARY TABLE x AS {_QUERY}"),
        ("ansi", "x", f"CREATE LOCAL TEMPORARY COLUMN TABLE x AS ({_QUERY})"),
        ("duckdb", "x", f"CREATE OR REPLACE TEMP TABLE x AS {_QUERY}"),
    ],
)  # fmt: skip
def test_every_engines_temporary_tables_are_the_sessions_own(
    tmp_path: Path, dialect: str, name: str, made: str
) -> None:
    (tmp_path / "jobs").mkdir()
    for column, target in (("user_id", "uid"), ("pan", "pan")):
        text = f"{made.format(column)}; INSERT INTO prod.copy ({target}) SELECT v FROM {name}"
        (tmp_path / "jobs" / f"{target}.sql").write_text(text)
    graph = harvest(LineageSources(sql=("jobs",), dialect=dialect), tmp_path, (), ALIASES, SCHEMAS)
    assert _origins(graph) == {("uid", PAYMENTS, "user_id"), ("pan", PAYMENTS, "pan")}


def _origins(graph: LineageGraph) -> set[tuple[str, object, str]]:
    return {
        (edge.target.column, before.source.dataset, before.source.column)
        for edge in graph.edges_into(COPY)
        for before in graph.edges_into_column(edge.source)
    }


_TWO_SESSIONS = (
    "CREATE TEMP TABLE x AS SELECT user_id AS v FROM lake.prod.payments",
    "INSERT INTO prod.copy (uid) SELECT v FROM x",
    "CREATE TEMP TABLE x AS SELECT user_id AS v FROM lake.prod.payments",
    "INSERT INTO x (v) SELECT pan FROM lake.prod.payments",
    "INSERT INTO prod.copy (pan) SELECT v FROM x",
)


_IN_BETWEEN = (
    "CREATE TEMP TABLE x AS SELECT pan AS v FROM lake.prod.payments",
    "CREATE TEMP TABLE x AS SELECT user_id AS v FROM lake.prod.payments",
    "INSERT INTO prod.copy (uid) SELECT v FROM x",
)


@pytest.mark.parametrize("time", ["at", None])
@pytest.mark.parametrize(
    ("rows", "gaps"),
    [(_TWO_SESSIONS[:3], []), (_TWO_SESSIONS, ["unresolved_name"]), (_IN_BETWEEN, ["unresolved_name"])],
)
def test_a_log_does_not_show_which_session_wrote_to_its_temporary_table(
    tmp_path: Path, rows: tuple[str, ...], gaps: list[str], time: str | None
) -> None:
    """Each text is there once: what another session put into its own `x` may never have gone on."""
    lines = [json.dumps({"sql": text, "at": f"2026-11-01T00:00:0{n}Z"}) for n, text in enumerate(rows)]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    log = QueryLog(path="log.jsonl", dialect="snowflake", time=time)
    graph = harvest(LineageSources(queries=(log,)), tmp_path, (), ALIASES, SCHEMAS)
    assert [gap.kind.value for gap in graph.gaps] == gaps


def test_a_log_without_times_does_not_show_whether_a_name_was_a_view_when_rows_came_in(tmp_path: Path) -> None:
    rows = (
        "CREATE VIEW lake.prod.v AS SELECT user_id, pan FROM lake.prod.payments",
        "INSERT INTO lake.prod.v (user_id) SELECT user_id FROM lake.prod.payments",
        "DROP VIEW lake.prod.v",
    )
    log = QueryLog(path="log.jsonl", dialect="snowflake")
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps({"sql": text}) for text in rows))
    graph = harvest(LineageSources(queries=(log,)), tmp_path, (), ALIASES, SCHEMAS)
    assert "unresolved_name" in [gap.kind.value for gap in graph.gaps]
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps({"sql": text}) for text in rows[:2]))
    graph = harvest(LineageSources(queries=(log,)), tmp_path, (), ALIASES, SCHEMAS)
    assert [gap.kind.value for gap in graph.gaps] == []
