"""The graph answers from arrays what its facts say; walks agree with networkx; names mean what people mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.lineage.graph.canonical_facts import Facts, collect
from pii_tracer.lineage.graph.edges import (
    Edge,
    EdgeType,
    Evidence,
    JobRef,
    Membership,
    Subtype,
)
from pii_tracer.lineage.graph.graph_file import load, save
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Column, ColumnId, DatasetId
from tests.lineage.conftest import column_facet, dataset, event
from tests.lineage.graphs import NASTY, col, ds, edge, facts, graph_of

EVERY_DATASET = [ds(n) for n in ("/a", "/b", "/ü", "/b.c", NASTY, "/not there")] + [
    DatasetId(namespace="s3://b", name="a")
]
EVERY_COLUMN = [ColumnId(dataset=d, column=c) for d in EVERY_DATASET for c in ("k", "K", "é", "*", "a b", "z", "no")]
SAID = ["db.a", "DB.A", "a", "/a/", "b", "c", "file:/ü", "x.db.a", "", "b.c"]


def answers(graph: LineageGraph) -> dict[str, Any]:
    """The answer of every public method, to everything one can ask of these small graphs."""
    per_dataset: list[Callable[[DatasetId], object]] = [
        graph.columns, graph.edges_into, graph.memberships_into, graph.jobs_into, graph.downstream, graph.upstream,
        graph.sources_of, graph.targets_of, graph.aliases_of, graph.number,
        graph.column_names, graph.declared,
    ]  # fmt: skip
    per_column: list[Callable[[ColumnId], object]] = [
        graph.edges_into_column, graph.columns_downstream, graph.columns_upstream, graph.columns_beside,
    ]  # fmt: skip
    found: dict[str, Any] = {m.__name__: [m(d) for d in EVERY_DATASET] for m in per_dataset}
    found |= {m.__name__: [m(c) for c in EVERY_COLUMN] for m in per_column}
    found |= {
        "identities": graph.identities.aliases,
        "influenced": [graph.columns_downstream(c, influence=True) for c in EVERY_COLUMN],
        "influencing": [graph.columns_upstream(c, influence=True) for c in EVERY_COLUMN],
        "candidates": [graph.candidates(n) for n in SAID],
        "resolve": [graph.resolve(n) for n in SAID],
        "datasets": graph.datasets(),
        "in_order": graph.in_order(EVERY_DATASET),
        "dataset_numbered": [graph.dataset_numbered(n) for d in EVERY_DATASET if (n := graph.number(d)) is not None],
        "edges_numbered": graph.edges_numbered(range(len(graph.columnar.edge_source))),
        "aliases": graph.aliases(),
        "facts": graph.facts,
        "gaps": graph.gaps,
        "digest": graph.digest(),
        "disagreements": graph.disagreements(),
        "dataset_graph": drawn(graph.dataset_graph()),
        "column_graph": drawn(graph.column_graph()),
        "neighbourhood": [drawn(graph.neighbourhood(d, hops)) for d in EVERY_DATASET for hops in (0, 1, 2)],
    }
    return found


def drawn(graph: Any) -> tuple[set[Any], list[Any]]:
    edges = [(str(a), str(b), str(data.get("edge"))) for a, b, data in graph.edges(data=True)]
    return set(graph.nodes), sorted(edges)


@settings(max_examples=100, deadline=None)
@given(facts())
def test_a_stored_graph_answers_as_the_harvested_one(tmp_path_factory: pytest.TempPathFactory, made: Facts):
    file = tmp_path_factory.mktemp("graph") / "lineage.graph"
    save(LineageGraph(made), file)
    harvested, stored = answers(LineageGraph(made)), answers(load(file))
    assert stored == harvested
    public = {name for name in dir(LineageGraph) if not name.startswith("_")} - {"of"}
    assert public <= set(harvested), "a public method that nobody compares"


@settings(max_examples=100, deadline=None)
@given(facts())
def test_answers_are_what_the_facts_say(made: Facts):
    graph = LineageGraph(made)
    between = nx.DiGraph()
    between.add_nodes_from(d for d, _ in made.schemas)
    for e in made.edges:
        between.add_edge(e.source.dataset, e.target.dataset)
    for m in made.memberships:
        between.add_edge(m.source.dataset, m.target)
    for j in made.jobs:
        between.add_node(j.output)
        between.add_edges_from((i, j.output) for i in j.inputs)
    assert set(graph.datasets()) == set(between)
    assert graph.aliases() == dict(made.names)
    for d in EVERY_DATASET:
        assert graph.edges_into(d) == tuple(e for e in made.edges if e.target.dataset == d)
        assert graph.memberships_into(d) == tuple(m for m in made.memberships if m.target == d)
        assert sorted(map(repr, graph.jobs_into(d))) == sorted(repr(j) for j in made.jobs if j.output == d)
        assert [j.at or "" for j in graph.jobs_into(d)] == sorted(j.at or "" for j in graph.jobs_into(d))
        known = d in between
        assert set(graph.downstream(d)) == (nx.descendants(between, d) if known else set())
        assert set(graph.upstream(d)) == (nx.ancestors(between, d) if known else set())
        assert set(graph.sources_of(d)) == (set(between.predecessors(d)) - {d} if known else set())
        assert set(graph.targets_of(d)) == (set(between.successors(d)) - {d} if known else set())
        assert graph.aliases_of(d) == tuple(alias for alias, meant in made.names if meant == d)
        assert graph.column_names(d) == tuple(c.name for c in graph.columns(d))
        assert graph.columns(d)[: len(dict(made.schemas).get(d, ()))] == dict(made.schemas).get(d, ())
    for c in EVERY_COLUMN:
        assert graph.edges_into_column(c) == tuple(e for e in made.edges if e.target == c)
        values = [(e.source, e.target) for e in made.edges if e.type is EdgeType.DIRECT]
        up, down = graph.columns_beside(c)
        assert (set(up) - {c}, set(down) - {c}) == (
            {s for s, t in values if t == c} - {c},
            {t for s, t in values if s == c} - {c},
        )
    assert graph.gaps == made.gaps
    pairs = {(a, b) for a in made.edges for b in made.edges if disagree(a, b)}
    assert set(graph.disagreements()) == pairs


def disagree(a: Edge, b: Edge) -> bool:
    both = (a.source, a.target, a.type) == (b.source, b.target, b.type) and a.type is EdgeType.DIRECT
    one_each = all(e.source == "openlineage" for e in a.evidence) and all(e.source == "sql" for e in b.evidence)
    return both and one_each and (a.subtype, a.masking) != (b.subtype, b.masking)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.booleans()), max_size=40))
def test_walks_between_columns_are_networkx_descendants(pairs: list[tuple[int, int, bool]]):
    """Random graphs with cycles and loops: values along DIRECT edges, influence along all of them."""
    kinds = {True: (EdgeType.DIRECT, Subtype.IDENTITY), False: (EdgeType.INDIRECT, Subtype.CONDITIONAL)}
    nodes = {n: col(f"/d{n % 5}", f"c{n}") for n in range(13)}
    edges = [
        Edge(source=nodes[a], target=nodes[b], type=kinds[values][0], subtype=kinds[values][1])
        for a, b, values in pairs
    ]
    graph = LineageGraph(collect(edges, [], [], [], {ds(f"/d{n}"): () for n in range(5)}, {}))
    for only_values in (True, False):
        reference = nx.DiGraph()
        reference.add_nodes_from(nodes.values())
        reference.add_edges_from((nodes[a], nodes[b]) for a, b, values in pairs if values or not only_values)
        for node in nodes.values():
            down = graph.columns_downstream(node, influence=not only_values)
            up = graph.columns_upstream(node, influence=not only_values)
            assert set(down) == nx.descendants(reference, node)
            assert set(up) == nx.ancestors(reference, node)
            assert list(down) == sorted(down)


@settings(max_examples=60, deadline=None)
@given(facts())
def test_influence_is_what_networkx_finds_through_the_rows_of_datasets(made: Facts):
    graph = LineageGraph(made)
    reference = nx.DiGraph()
    reference.add_edges_from((e.source, e.target) for e in made.edges)
    reference.add_edges_from((m.source, m.target) for m in made.memberships)
    columns = {e.source for e in made.edges} | {e.target for e in made.edges} | {m.source for m in made.memberships}
    columns |= {ColumnId(dataset=d, column=c.name) for d, given in made.schemas for c in given}
    reference.add_edges_from((c.dataset, c) for c in columns)
    for c in columns:
        down = {n for n in nx.descendants(reference, c) if isinstance(n, ColumnId)}
        up = {n for n in nx.ancestors(reference, c) if isinstance(n, ColumnId)}
        assert set(graph.columns_downstream(c, influence=True)) == down
        assert set(graph.columns_upstream(c, influence=True)) == up


def test_who_is_only_filtered_on_carries_no_value():
    graph = LineageGraph(
        collect(
            [edge("/a", "/b", "k")],
            [Membership(source=col("/a", "email"), target=ds("/b"), subtype=Subtype.FILTER)],
            [], [], {}, {},
        )
    )  # fmt: skip
    assert graph.columns_downstream(col("/a", "email")) == ()
    assert graph.columns_downstream(col("/a", "email"), influence=True) == (col("/b", "k"),)
    assert graph.columns_upstream(col("/b", "k"), influence=True) == (col("/a", "email"), col("/a", "k"))


def test_cycles_are_tolerated_and_order_follows_the_data():
    graph = graph_of(("/s", "/a"), ("/a", "/b"), ("/b", "/a"), ("/b", "/z"))
    assert graph.downstream(ds("/s")) == (ds("/a"), ds("/b"), ds("/z"))
    assert graph.upstream(ds("/a")) == (ds("/s"), ds("/b"))
    assert graph.datasets() == (ds("/s"), ds("/a"), ds("/b"), ds("/z"))


def test_a_dataset_that_only_a_job_links_is_downstream():
    job = JobRef(job="j", sql=None, inputs=(ds("/a"),), output=ds("/b"))
    graph = LineageGraph(collect([], [], [job], [], {}, {}))
    assert graph.downstream(ds("/a")) == (ds("/b"),)


def test_the_neighbourhood_is_for_networkx():
    graph = graph_of(("/a", "/b"), ("/b", "/c"), ("/c", "/d"))
    near = graph.neighbourhood(ds("/b"))
    assert set(near) == {col("/a", "k"), col("/b", "k"), col("/c", "k")}
    assert [data["edge"].target for _, _, data in near.edges(data=True)] == [col("/b", "k"), col("/c", "k")]
    assert nx.shortest_path(graph.column_graph(), col("/a", "k"), col("/d", "k"))[1] == col("/b", "k")
    assert list(nx.topological_sort(graph.dataset_graph())) == [ds("/a"), ds("/b"), ds("/c"), ds("/d")]


def test_names_resolve_by_alias_end_and_path_and_never_by_chance():
    graph = graph_of(("/lake/prod/pay", "/x/pay"), ("/a", "/b"))
    assert graph.resolve("db.a") == graph.resolve("a") == graph.resolve("/a/") == ds("/a")
    assert graph.resolve("prod/pay") == graph.resolve("Lake/prod/PAY") == ds("/lake/prod/pay")
    assert graph.resolve("`lake`.prod.pay") is None, "a path that only reads like a name is a guess"
    assert graph.candidates("`lake`.prod.pay") == (ds("/lake/prod/pay"),)
    assert graph.resolve("pay") is None
    assert graph.candidates("pay") == (ds("/lake/prod/pay"), ds("/x/pay"))
    assert graph.candidates("nothing") == graph.candidates("") == ()


def test_two_tables_of_one_name_in_two_catalogs_stay_two():
    one, two = ds("/lake1/prod.db/t"), ds("/lake2/prod.db/t")
    aliases = {"lake1.prod.t": one, "lake2.prod.t": two}
    graph = LineageGraph(collect([edge(one.name, "/x"), edge(two.name, "/y")], [], [], [], {}, aliases))
    assert graph.resolve("prod.t") is None
    assert graph.candidates("prod.t") == (one, two)
    assert graph.resolve("lake2.prod.t") == two
    assert graph.downstream(one) == (ds("/x"),)
    unnamed = LineageGraph(collect([edge(one.name, "/x"), edge(two.name, "/y")], [], [], [], {}, {}))
    assert unnamed.candidates("prod.t") == (one, two), "paths are read like names where nothing else has the name"


def test_a_table_renamed_and_dropped_keeps_its_lineage(estate: Callable[..., LineageGraph], tmp_path: Path):
    """Its files can live on (hazard M1): what went into the old name is upstream of the new one, a drop forgets none."""
    old, new = ds("/lakehouse/delta/old"), ds("/lakehouse/delta/new")
    source = ds("/lakehouse/lake/prod/payments")
    rename = {"lifecycleStateChange": "RENAME", "previousIdentifier": {"namespace": old.namespace, "name": old.name}}
    facet = column_facet(pan=(source, "pan", "IDENTITY"))
    graph = estate(
        [
            event("1", "COMPLETE", [dataset(source)], [dataset(old, columnLineage=facet, schema={"fields": [{"name": "pan", "type": "string"}]})]),
            event("2", "COMPLETE", [], [dataset(new, lifecycleStateChange=rename)]),
            event("3", "COMPLETE", [], [dataset(new, lifecycleStateChange={"lifecycleStateChange": "DROP"})]),
        ]
    )  # fmt: skip
    file = tmp_path / "lineage.graph"
    save(graph, file)
    assert set(load(file).downstream(source)) == {old, new}, "the two names are one table: they stand in a circle"
    assert load(file).columns_downstream(ColumnId(dataset=source, column="pan")) == (
        ColumnId(dataset=new, column="pan"),
        ColumnId(dataset=old, column="pan"),
    )


def test_columns_that_only_lineage_mentions_follow_the_declared_ones():
    facts = collect(
        [edge("/a", "/b", "Extra"), edge("/a", "/b", "K"), edge("/a", "/b", "*")],
        [Membership(source=col("/a", "flag"), target=ds("/b"), subtype=Subtype.FILTER)],
        [],
        [],
        {ds("/b"): (Column(name="z", type="int"), Column(name="k", type="string"))},
        {},
    )
    graph = LineageGraph(facts)
    assert [c.name for c in graph.columns(ds("/b"))] == ["z", "k", "Extra"]
    assert [c.name for c in graph.columns(ds("/a"))] == ["Extra", "K", "flag"]
    assert graph.columns(ds("/none")) == ()


def test_events_and_sql_that_disagree_are_paired_and_both_stay():
    event, sql = (Evidence(source="openlineage", where="e:1"),), (Evidence(source="sql", where="j:1"),)
    plain, hashed = {"subtype": Subtype.IDENTITY}, {"subtype": Subtype.TRANSFORMATION, "masking": True}
    edges = [
        edge("/a", "/b", evidence=event, **plain),
        edge("/a", "/b", evidence=sql, **hashed),
        edge("/a", "/c", evidence=event, **plain),
        edge("/a", "/c", evidence=sql, **plain),
        edge("/a", "/d", evidence=event, **plain),
        edge("/a", "/d", evidence=event, **hashed),
        edge("/c", "/d", evidence=event, **hashed),
        edge("/c", "/d", evidence=sql, **hashed, expression="sha2(c.k, 256)"),
    ]
    graph = LineageGraph(collect(edges, [], [], [], {}, {}))
    assert graph.disagreements() == ((edges[0], edges[1]),)
    assert len(graph.edges_into(ds("/b"))) == 2


def test_a_column_is_one_column_in_whatever_case_it_is_written():
    """Engines write names as they like; Spark's know no case (spark.sql.caseSensitive is false by default)."""
    schemas = {ds("/a"): (Column(name="user_id", type="bigint"),), ds("/c"): (Column(name="UID", type="bigint"),)}
    edges = [
        edge("/a", "/b", "USER_ID", into="Uid"),
        edge("/b", "/c", "uid"),
        edge("/b", "/d", "UID", into="x"),
    ]
    member = Membership(source=col("/a", "User_Id"), target=ds("/b"), subtype=Subtype.FILTER)
    graph = LineageGraph(collect(edges, [member], [], [], schemas, {}))
    assert graph.columns_downstream(col("/a", "user_id")) == (col("/b", "UID"), col("/c", "UID"), col("/d", "x"))
    assert [m.source for m in graph.memberships_into(ds("/b"))] == [col("/a", "user_id")]


def test_columns_that_differ_by_case_alone_stay_two_where_a_schema_has_both():
    schemas = {ds("/a"): (Column(name="k", type="int"), Column(name="K", type="int"))}
    graph = LineageGraph(collect([edge("/a", "/b", "k"), edge("/a", "/c", "K")], [], [], [], schemas, {}))
    assert graph.columns_downstream(col("/a", "k")) == (col("/b", "k"),)
    assert graph.columns_downstream(col("/a", "K")) == (col("/c", "K"),)


def test_an_order_puts_upstream_first_and_strangers_before_all():
    graph = graph_of(("b", "c"), ("a", "b"))
    assert [d.name for d in graph.in_order([ds("c"), ds("a"), ds("z"), ds("b")])] == ["z", "a", "b", "c"]
