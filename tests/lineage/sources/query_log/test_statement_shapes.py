"""Texts of one shape have one lineage: harvested by shape, a log gives what it gives text by text."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.config.lineage import LineageSources, QueryLog
from pii_tracer.lineage.harvest import Given, harvest_all
from pii_tracer.lineage.sources.query_log import query_log_parsing
from pii_tracer.lineage.sources.query_log.shape_parsing import Query, parse_one
from pii_tracer.lineage.sources.query_log.statement_shapes import Shaped, filled, hidden, markers, shape_of
from pii_tracer.model.datasets import Column, ColumnId, DatasetId
from tests.lineage.cases import CASES
from tests.lineage.test_accounting import STATEMENTS

ONE = re.compile(r"(?P<text>'[^'\\]*')|(?<![\w.$@`/])\d+(?:\.\d+)?(?![\w.$@`])")
LOOKS = ["SELECT id, mail FROM s", "s", "s3://b/x", "a''b", "else", "t AS x", "x -- y", "mail", "/p/q", "$.a", "{a}", ";",
         "it(s)", "Mira Okafor", "mira@shop.example", "2026-11-01", "10.0.0.1", "a:b, c=d", "%x%", "ünï", "jdbc", ""]  # fmt: skip
WHERE = [
    "SELECT * FROM s WHERE mail = 'x' AND id IN (1, 2, 3) LIMIT 10",
    "INSERT INTO t SELECT id, mail FROM s WHERE mail LIKE 'a%' AND id BETWEEN 1 AND 5 OR id = -3",
    "INSERT INTO t SELECT id, CASE WHEN mail = 'x' THEN mail END FROM s WHERE id > 7",
    "INSERT INTO t (id, mail) VALUES (1, 'a'), (2, 'b'), (3, NULL)",
    "INSERT INTO t VALUES (1, lower('a'))",
    "UPDATE t SET mail = 'x' WHERE id = 1",
    "UPDATE t SET mail = concat(mail, 'x') WHERE id = 1",
    "UPDATE t SET mail = 'x' || mail WHERE id = 0x1F",
    "DELETE FROM t WHERE mail IN ('a', 'b') AND id <> 4",
    "MERGE INTO t USING s ON t.id = s.id AND s.mail <> 'x' WHEN MATCHED AND s.id > 3 THEN UPDATE SET mail = 'y'"
    " WHEN NOT MATCHED THEN INSERT (id, mail) VALUES (s.id, 'z')",
    "CREATE TABLE t2 AS SELECT max(id) m, mail FROM s GROUP BY 2 HAVING count(*) > 5",
    "INSERT INTO t SELECT id, mail FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY mail) rn FROM s) WHERE rn = 1",
    "INSERT INTO t SELECT s.id, v.c FROM s JOIN (VALUES (1, 'p'), (2, 'q')) AS v(b, c) ON s.id = v.b AND v.c = 'q'",
    "INSERT INTO t SELECT id, concat(mail, v.c) FROM s CROSS JOIN (VALUES ('p'), ('q')) AS v(c)",
    "INSERT INTO t SELECT * FROM (SELECT id, mail FROM s) PIVOT (max(mail) FOR id IN (1 AS a, 2 AS b))",
    "INSERT INTO t SELECT id, doc['mail'] FROM s WHERE doc['x'] = 'y'",
    "INSERT INTO t SELECT id, sha2(mail, 256) FROM s WHERE date_trunc('day', mail) >= DATE '2026-11-01'",
    "INSERT INTO t PARTITION (ds = '2026-11-01') SELECT mail FROM s WHERE ds >= '2026-10-01'",
    "COPY INTO t FROM '/in/2026-11-01' FILEFORMAT = CSV",
    "CREATE TABLE t2 USING delta LOCATION '/x' AS SELECT * FROM s WHERE id = 5",
    "CREATE TABLE t2 USING csv OPTIONS (path = '/x', sep = ',') AS SELECT * FROM s",
    "CREATE TABLE t2 USING jdbc OPTIONS (dbtable = 'a') ",
    "INSERT INTO t SELECT IDENTIFIER('mail'), mail FROM s WHERE IDENTIFIER('mail') = 'x'",
    "CALL system.snapshot('s', 't9')",
    "CALL system.add_files(table => 't', source_table => 's')",
    "SET x = 'y'",
    "CREATE TABLE a1 AS SELECT * FROM s WHERE mail = 'x'; INSERT INTO t SELECT * FROM a1 WHERE mail = 'q'",
    "SELEC 'x' FROM s WHERE id = 3",
]
SCHEMAS = {name: ["id", "mail"] for name in ("s", "t", "u", "log")}


def corpus() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for one in STATEMENTS:
        found[one["dialect"]].append(one["sql"])
    for case in CASES:
        found[case.dialect].append(case.sql)
    for dialect in ("spark", "snowflake", "bigquery", "postgres", "tsql"):
        found[dialect] += WHERE
    return found


def varied(text: str, chance: random.Random) -> str:
    """The text with other literals, and lists behind IN of other lengths."""

    def other(found: re.Match[str]) -> str:
        if chance.random() < 0.3:
            return found[0]
        if found["text"] is None:
            return str(chance.choice((0, 1, 2, 3, 77, 1.5)))
        if chance.random() < 0.5:
            return f"'{chance.choice(LOOKS)}'"
        return "'" + "".join(chance.choices("abcXYZ 0123456789_-.@", k=chance.randrange(12))) + "'"

    text = ONE.sub(other, text)
    return re.sub(r"(IN \()([^(),]+)", lambda m: m[1] + ", ".join([m[2]] * chance.randrange(1, 4)), text)


def facts(folder: Path, dialect: str, texts: list[str]) -> set[Any]:
    rows = [{"sql": text, "at": n, "state": "OK" if n % 3 else "FAILED"} for n, text in enumerate(texts, 1)]
    (folder / "log").write_text("".join(json.dumps(r) + "\n" for r in rows))
    given_ = Given(
        folder,
        aliases={name: DatasetId(namespace="file", name=f"/l/{name}") for name in SCHEMAS},
        schemas={name: [Column(name=c, type="string") for c in columns] for name, columns in SCHEMAS.items()},
    )
    log = QueryLog(path="log", time="at", dialect=dialect, status="state")
    found = harvest_all(LineageSources(queries=(log,)), given_).graph
    every: set[Any] = {
        ("edge", of_text(e.source), of_text(e.target), e.subtype, e.masking, e.expression) for e in found.facts.edges
    }
    every |= {("member", of_text(m.source), of_text(m.target), m.subtype) for m in found.facts.memberships}
    every |= {("job", tuple(map(of_text, j.inputs)), of_text(j.output)) for j in found.facts.jobs}
    return every | {
        ("gap", of_text(g.dataset), g.kind, re.sub(r"^may have run .*?: ", "", g.reason)) for g in found.gaps
    }


def of_text(named: Any) -> Any:
    """A temporary table's name without the text that made it: of many texts of one shape nobody knows which it is."""
    if isinstance(named, ColumnId):
        return named.model_copy(update={"dataset": of_text(named.dataset)})
    if isinstance(named, DatasetId) and named.namespace in ("view", "unresolved"):
        return DatasetId(namespace="view", name=named.name.partition(" (")[0])
    return named


def check(folder: Path, dialect: str, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    by_shape = facts(folder, dialect, texts)
    monkeypatch.setattr(query_log_parsing, "shape_of", lambda text: Shaped(text, ()))
    by_text = facts(folder, dialect, texts)
    monkeypatch.undo()
    assert by_shape - by_text == set()
    assert by_text - by_shape == set()


@pytest.mark.parametrize("dialect", sorted(corpus()))
def test_the_graph_is_that_of_every_text_by_itself(dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    chance = random.Random(dialect)
    texts = [one for text in corpus()[dialect] for one in (text, varied(text, chance), varied(text, chance))]
    check(tmp_path, dialect, texts, monkeypatch)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM s WHERE a = 'x' AND b > 3", "SELECT a FROM s WHERE a = 'Mira O' AND b > 4"),
        ("SELECT a FROM s WHERE a IN (1, 2)", "SELECT a FROM s WHERE a IN (5)"),
        ("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (1, 'b'), (2, 'c'), (3, NULL)"),
        ("INSERT INTO t VALUES (1, now(), 'a')", "INSERT INTO t VALUES (9, now(), 'b')"),
        (
            "SELECT a FROM s WHERE d > date('2026-11-01') LIMIT 5",
            "SELECT a FROM s WHERE d > date('2026-11-02') LIMIT 9",
        ),
    ],
)
def test_literals_that_are_only_compared_make_no_shape(one: str, other: str):
    assert shape_of(one).marked == shape_of(other).marked


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM s GROUP BY 1", "SELECT a FROM s GROUP BY 2"),
        ("SELECT substr(a, 1, 3) FROM s", "SELECT substr(a, 1, 4) FROM s"),
        ("SELECT a FROM s WHERE a = 'it''s'", "SELECT a FROM s WHERE a = 'so''s'"),
        ("SELECT a FROM s WHERE a = 'SELECT b FROM t'", "SELECT a FROM s WHERE a = 'x'"),
        ("SELECT a FROM s WHERE a = 'x\\'' AND b = 'y'", "SELECT a FROM s WHERE a = 'z\\'' AND b = 'y'"),
        ("SELECT a FROM s WHERE a->'x' = 1", "SELECT a FROM s WHERE a->'y' = 1"),
        ("SELECT a FROM t1", "SELECT a FROM t2"),
        ('SELECT a FROM s WHERE a = "x"', 'SELECT a FROM s WHERE a = "y"'),
    ],
)
def test_other_literals_stay_in_the_text(one: str, other: str):
    assert shape_of(one).marked != shape_of(other).marked


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("INSERT INTO t SELECT id, mail FROM s WHERE id = 'x'", ()),
        ("INSERT INTO t SELECT id, CASE WHEN id = 'x' THEN mail END FROM s", (0,)),
        ("CREATE TABLE t2 USING csv OPTIONS (sep = 'x') AS SELECT * FROM s WHERE id = 5", (0,)),
        ("INSERT INTO t SELECT * FROM read_csv('/x', delim = 'x')", (0,)),
        ("SET a = 'x'", (0,)),
        ("UPDATE t SET mail = 'x' WHERE id = 4", ()),
        ("UPDATE t SET mail = 'x' || mail, id = 5 WHERE id = 4", (0,)),
        ("SELEC a FROM s WHERE a = 'x'", (0,)),
        ("INSERT INTO t SELECT id, mail FROM s WHERE f(id = 'x')", (0,)),
    ],
)
def test_what_a_lineage_may_depend_on(text: str, used: tuple[int, ...]):
    known = {name: [(c, "string") for c in columns] for name, columns in SCHEMAS.items()}
    found = parse_one(Query(shape_of(text).marked, "spark", ""), known)
    assert set(used) <= set(found.used)
    assert bool(found.used) is bool(used)


@given(st.text("ab1'\"`-/*= \n,()xIN", max_size=40).map(lambda t: f"SELECT {t} WHERE a = 'x' AND b IN (1, 2)"))
def test_a_shape_with_its_values_is_the_text(text: str):
    shaped = shape_of(text)
    assert filled(shaped.marked, shaped.values) == text
    assert markers(shaped.marked) == set(range(len(shaped.values)))


@pytest.mark.parametrize("dialect", ["postgres", "spark"])
def test_literals_that_are_taken_out_do_not_come_into_the_graph(tmp_path: Path, dialect: str):
    texts = [
        "UPDATE t SET mail = 'mira@shop.example' WHERE id = 88413",
        "INSERT INTO t (id, mail) VALUES (88413, 'mira@shop.example'), (88414, 'zoe@shop.example')",
        "DELETE FROM t WHERE mail IN ('mira@shop.example')",
        "MERGE INTO t USING s ON t.id = s.id AND s.mail <> 'mira@shop.example' WHEN MATCHED THEN UPDATE SET mail = s.mail",
    ]
    rows = "".join(json.dumps({"sql": text}) + "\n" for text in texts)
    (tmp_path / "log").write_text(rows)
    log = QueryLog(path="log", dialect=dialect)
    graph = harvest_all(LineageSources(queries=(log,)), Given(tmp_path)).graph
    kept = repr(graph.facts)
    assert graph.facts.jobs
    assert "mira" not in kept
    assert "88413" not in kept
    assert hidden(shape_of(texts[0]).marked) == "UPDATE t SET mail = '…' WHERE id = 0"
