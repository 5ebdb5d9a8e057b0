from __future__ import annotations

import json
from pathlib import Path

import pytest

from pii_tracer.errors import LineageError
from pii_tracer.lineage.edges import Edge, EdgeType, JobRef, Subtype
from pii_tracer.lineage.facts import collect
from pii_tracer.lineage.graph import LineageGraph
from pii_tracer.lineage.render import as_dot, as_json, as_mermaid, as_text, trace
from pii_tracer.lineage.store import FORMAT_VERSION, load, save
from pii_tracer.model import ColumnId, DatasetId

NASTY = 'x"]; evil `<b>\x1b[31m'


def ds(name: str) -> DatasetId:
    return DatasetId(namespace="file", name=name)


def edge(source: str, target: str, column: str = "k") -> Edge:
    return Edge(
        source=ColumnId(dataset=ds(source), column=column),
        target=ColumnId(dataset=ds(target), column=column),
        type=EdgeType.DIRECT,
        subtype=Subtype.IDENTITY,
    )


def graph_of(*pairs: tuple[str, str]) -> LineageGraph:
    return LineageGraph(collect([edge(a, b) for a, b in pairs], [], [], [], {}, {"db.a": ds("/a")}))


def test_stored_and_loaded_is_equal_and_stable(tmp_path: Path):
    graph = graph_of(("/a", "/b"), ("/b", "/c"))
    file = tmp_path / "deep" / "graph.json"
    save(graph, file)
    before = file.read_bytes()
    save(load(file), file)
    assert file.read_bytes() == before
    assert load(file).digest() == graph.digest()
    assert [p.name for p in file.parent.iterdir()] == ["graph.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: {**c, "format_version": FORMAT_VERSION + 1}, "knows up to"),
        (lambda c: {**c, "facts": {"edges": "no"}}, "broken"),
        (lambda c: {**c, "facts": {}}, "changed"),
        (lambda c: [c], "not a lineage graph"),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, change, message: str):
    file = tmp_path / "graph.json"
    save(graph_of(("/a", "/b")), file)
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(LineageError, match=message):
        load(file)


def test_missing_and_torn_files(tmp_path: Path):
    with pytest.raises(LineageError, match="no lineage graph"):
        load(tmp_path / "none.json")
    (tmp_path / "torn.json").write_text('{"format_ver')
    with pytest.raises(LineageError, match="cannot be read"):
        load(tmp_path / "torn.json")


def test_cycles_are_tolerated_and_order_follows_the_data():
    graph = graph_of(("/s", "/a"), ("/a", "/b"), ("/b", "/a"), ("/b", "/z"))
    order = graph.downstream(ds("/s"))
    assert set(order) == {ds("/a"), ds("/b"), ds("/z")}
    assert order[-1] == ds("/z")
    assert graph.upstream(ds("/a")) == (ds("/s"), ds("/b"))


def test_names_resolve_by_alias_end_and_path_and_never_by_chance():
    graph = graph_of(("/lake/prod/pay", "/x/pay"), ("/a", "/b"))
    assert graph.resolve("db.a") == graph.resolve("a") == graph.resolve("/a/") == ds("/a")
    assert graph.resolve("prod/pay") == ds("/lake/prod/pay")
    assert graph.resolve("pay") is None
    assert graph.resolve("nothing") is None


def test_equal_facts_in_any_order_give_one_digest():
    a, b = edge("/a", "/b"), edge("/b", "/c")
    job = JobRef(job="j", sql=None, inputs=(ds("/a"),), output=ds("/b"))
    one = LineageGraph(collect([a, b, a], [], [job], [], {}, {}))
    two = LineageGraph(collect([b, a], [], [job, job], [], {}, {}))
    assert one.digest() == two.digest()


def test_renderings_escape_names():
    graph = graph_of(("/a", NASTY), (NASTY, "/c"))
    links = trace(graph, ds("/a"), "down")
    assert [(k.source, k.target) for k in links] == [(ds("/a"), ds(NASTY)), (ds(NASTY), ds("/c"))]
    for text in (as_text(links, ds("/a"), "down"), as_mermaid(links, ds("/a")), as_dot(links, ds("/a"))):
        assert "\x1b" not in text
    assert '\\"]; evil' in as_dot(links, ds("/a"))
    assert "<b>" not in as_mermaid(links, ds("/a"))
    assert '"]; evil' not in as_mermaid(links, ds("/a"))
    assert json.loads(as_json(links, ds("/a"), "down"))["links"][0]["target"]["name"] == NASTY


def test_a_column_is_followed_up_and_down():
    facts = collect([edge("/a", "/b"), edge("/b", "/c"), edge("/a", "/b", "other")], [], [], [], {}, {})
    graph = LineageGraph(facts)
    down = trace(graph, ds("/a"), "down", "k")
    assert [(k.source.name, k.target.name, len(k.edges)) for k in down] == [("/a", "/b", 1), ("/b", "/c", 1)]
    up = trace(graph, ds("/c"), "up", "k")
    assert {k.source.name for k in up} == {"/a", "/b"}
    assert as_text(up, ds("/c"), "up").splitlines()[0] == "file:/c"
