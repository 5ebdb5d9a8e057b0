"""What is skipped for speed changes no answer: reach over arrays, statements without projections, one-to-one functions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.config.subjects import Subject
from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import (
    Edge,
    EdgeType,
    Evidence,
    JobRef,
    Subtype,
)
from pii_tracer.lineage.graph.graph_file import load
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, ColumnId, DatasetId
from planners.copies.derived_keys import derive
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.locate.edge_effects import value_edges
from planners.locate.key_location import follow
from planners.locate.reachable_columns import Reach
from planners.locate.sql.joins import Rows
from planners.locate.sql.query_skeletons import skeleton
from planners.locate.sql.spark_functions import compute
from planners.locate.sql.statement_rows import Statement
from tests.benchmarks import plan_estate

SETS = [DatasetId(namespace="file", name=f"/{n}") for n in "abcd"]
NAMES = ("k", "K", "x", "y")
SUBTYPES = (Subtype.IDENTITY, Subtype.TRANSFORMATION, Subtype.AGGREGATION)


@st.composite
def edges(draw: st.DrawFn) -> Edge:
    column = st.builds(ColumnId, dataset=st.sampled_from(SETS), column=st.sampled_from(NAMES))
    subtype = draw(st.sampled_from(SUBTYPES))
    told = draw(st.sampled_from(["sql", "openlineage"]))
    return Edge(
        source=draw(column),
        target=draw(column),
        type=EdgeType.DIRECT,
        subtype=subtype,
        expression=None if told == "openlineage" else "upper(k)",
        evidence=(Evidence(source=told, where="w", job=draw(st.sampled_from(["j", "i"]))),),
    )


def reachable(made: tuple[Edge, ...], start: set[tuple[DatasetId, str]], plain: bool) -> set[tuple[DatasetId, str]]:
    """By objects, one edge at a time, as nobody would for a large graph."""
    found = set(start)
    while True:
        more = {
            (e.target.dataset, e.target.column.lower())
            for d in SETS
            for e in value_edges([e for e in made if e.target.dataset == d])
            if (e.source.dataset, e.source.column.lower()) in found and not (plain and e.subtype is Subtype.AGGREGATION)
        }
        if more <= found:
            return found
        found |= more


@settings(deadline=None)
@given(st.lists(edges(), max_size=12))
def test_arrays_reach_what_edges_reach(drawn: list[Edge]) -> None:
    graph = LineageGraph(collect(columns={}, edges=drawn, memberships=[], jobs=[], gaps=[], aliases={}))
    made = graph.facts.edges
    reach = Reach(graph, SETS[0], [ColumnId(dataset=SETS[0], column="k")])
    touched = reachable(made, {(SETS[0], "k")}, plain=False)
    every = {(SETS[0], c.column.lower()) for e in made for c in (e.source, e.target) if c.dataset == SETS[0]}
    come, plain = reachable(made, every, plain=False), reachable(made, every, plain=True)
    for dataset in SETS:
        mine = value_edges(graph.edges_into(dataset))
        wanted = [e for e in mine if (e.source.dataset, e.source.column.lower()) in touched]
        assert list(reach.edges_into(dataset)) == wanted
        assert reach.sources_into(dataset) == {e.source.dataset for e in graph.edges_into(dataset)}
        names = {c for d, c in come if d == dataset}
        assert reach.comes(dataset) == (bool(names), any((dataset, c) not in plain for c in names))


PERSONS = {"users", "clients"}


def rows_of(name: str) -> Rows:
    return Rows(name in PERSONS, lambda column: frozenset({column}) if column in ("uid", "phone") else frozenset())


STATEMENTS = [
    "INSERT INTO t SELECT u.uid, u.phone FROM users u",
    "INSERT OVERWRITE TABLE t SELECT u.uid, d.x FROM users u LEFT JOIN dims d ON u.k = d.k",
    "INSERT INTO t SELECT DISTINCT u.uid, m.phone FROM users u JOIN users m ON u.boss = m.uid",
    "INSERT INTO t SELECT u.uid, c.phone FROM users u RIGHT JOIN clients c ON u.uid = c.uid",
    "INSERT INTO t SELECT u.uid, c.phone FROM users u FULL OUTER JOIN clients c ON u.town = c.town",
    "CREATE TABLE t AS SELECT extract(year FROM d) y, 'a from b' z, uid FROM users WHERE d > 'x' GROUP BY uid, d",
    "INSERT INTO t SELECT uid FROM users -- from nowhere\nJOIN dims USING (k)",
    "INSERT INTO t SELECT uid FROM users UNION ALL SELECT uid FROM clients",
    "INSERT INTO t WITH w AS (SELECT uid FROM users) SELECT a.uid, b.uid FROM w a JOIN w b ON a.k = b.k",
    "INSERT INTO t SELECT (SELECT max(phone) FROM clients c) p, uid FROM users",
    "INSERT INTO t SELECT uid FROM users LEFT SEMI JOIN clients ON users.k = clients.k",
    "INSERT INTO t SELECT uid, e FROM users LATERAL VIEW explode(emails) x AS e",
    "MERGE INTO t USING users u ON t.uid = u.uid WHEN NOT MATCHED THEN INSERT *",
    "UPDATE t SET phone = NULL WHERE uid = 1",
    "INSERT INTO t SELECT uid FROM users, clients",
    "this is no SQL at all (",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_says_the_same_without_its_projections(text: str) -> None:
    whole = Statement(text)
    whole.__dict__["_short"] = None  # read whole
    short = Statement(text)
    for question in ("known", "adds_rows", "grouping_levels", "unites", "outer", "preserved"):
        assert getattr(short, question) == getattr(whole, question), question
    assert short.apart(rows_of) == whole.apart(rows_of)
    assert short.apart(lambda name: None) == whole.apart(lambda name: None)


def test_projections_are_left_out_only_where_one_query_is_certain() -> None:
    assert skeleton(STATEMENTS[2]) == "SELECT DISTINCT 1 FROM users u JOIN users m ON u.boss = m.uid"
    taken = [text for text in STATEMENTS if skeleton(text) is not None]
    assert not [t for t in taken if "UNION" in t or "WITH" in t or "(SELECT" in t or "MERGE" in t or "UPDATE" in t]
    assert len(taken) >= 9


def test_two_statements_with_one_set_of_edges_are_two_contributions() -> None:
    """The second job's FULL JOIN loses nobody; the first job's does not excuse it."""
    users, clients, target = SETS[:3]

    def edge(source: DatasetId, column: str, job: str) -> Edge:
        return Edge(
            source=ColumnId(dataset=source, column=column),
            target=ColumnId(dataset=target, column=column),
            type=EdgeType.DIRECT,
            subtype=Subtype.IDENTITY,
            expression=column,
            evidence=(Evidence(source="sql", where="w", job=job),),
        )

    def job(name: str, sql: str) -> JobRef:
        return JobRef(job=name, sql=None, statement=sql, inputs=(users, clients), output=target, where="w")

    texts = {
        "one": "INSERT INTO c SELECT a.k, b.x FROM a JOIN b ON a.k = b.x",
        "two": "INSERT INTO c SELECT a.k, b.x FROM a FULL JOIN b ON a.k = b.x",
    }
    told = [edge(users, "k", name) for name in texts]
    graph = LineageGraph(
        collect(
            columns={},
            edges=[*told, *(edge(users, "x", name) for name in texts)],
            memberships=[],
            jobs=[job(name, sql) for name, sql in texts.items()],
            gaps=[],
            aliases={"a": users, "b": clients, "c": target},
        )
    )
    subject = Subject(name="s", source="a", key="k", identifiers=())
    carriage = follow(graph, users, subject)[target]
    assert carriage.carries is Carries.KEY


ROWS = SourceRows({"k": [str(9_000_000_000 + n) for n in range(6)], "mail": ["a@x", "A@x", "b@x", "c@x", " c@x", None]})
SUBJECT = Subject.model_validate(
    {"name": "s", "source": "t", "key": "k", "identifiers": [{"column": "mail", "category": "email"}]}
)
EXPRESSIONS = [
    "x", "lower(x)", "sha2(x, 256)", "sha2(lower(x), 256)", "sha2(lower(trim(x)), 512)", "md5(lower(x))",
    "CAST(sha2(CAST(trim(x) AS STRING), 224) AS STRING)", "upper(sha2(lower(x), 256))",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
@given(asked=st.sets(st.integers(0, 4), min_size=1))
@settings(deadline=None, max_examples=20)
def test_values_shared_below_a_hash_are_those_shared_above_it(expression: str, asked: set[int]) -> None:
    keys = resolve(SUBJECT, ROWS, [Wanted(f"R{n}", f"s{n}", str(9_000_000_000 + n)) for n in sorted(asked)])
    mine = {compute(expression, value) for _, value in keys.base["mail"]}
    others = {compute(expression, value) for value in keys.others["mail"]}
    assert derive(keys, "mail", expression).shared == len(mine & others)


def test_the_estate_of_the_benchmark_is_followed_as_it_was_made(tmp_path: Path) -> None:
    file = tmp_path / "estate.graph"
    plan_estate.write(file, 200)
    known = plan_estate.tables(200)
    subject = Subject.model_validate(
        {"name": "p", "source": "s", "key": "user_id", "identifiers": [{"column": "email", "category": "email"}]}
    )
    found = follow(load(file), known[0].dataset, subject)
    wanted = {"source": Carries.KEY, "copy": Carries.KEY, "hashed": Carries.COMPUTED_KEY, "sums": Carries.AGGREGATE}
    assert {t.dataset: found[t.dataset].carries for t in known if t.kind in wanted} == {
        t.dataset: wanted[t.kind] for t in known if t.kind in wanted
    }
    assert all(found[t.dataset].carries is Carries.NONE for t in known if t.kind == "other" and t.dataset in found)
