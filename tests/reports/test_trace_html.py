"""The page of a trace: escaped, self-contained, readable when large, nothing left out silently."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.lineage.graph.canonical_facts import collect
from pii_tracer.lineage.graph.edges import (
    Evidence,
    JobRef,
    LineageGap,
    Membership,
    Subtype,
)
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.graph.trace import Trace, trace
from reports.lineage import trace_html
from reports.lineage.layered_drawing import NODE_WIDTH
from reports.lineage.trace_html import render_trace_html
from reports.lineage.trace_picture import picture
from tests.lineage.graphs import NASTY, col, ds, edge

EVENT = (Evidence(source="openlineage", where="e.ndjson:1", at="2026-11-01T00:00:00Z"),)
SQL = (Evidence(source="sql", where="j.sql:1", job="<i>nightly</i>", last="run <u>9</u>", runs=1200),)


def chain_of(pairs: list[tuple[int, int]]) -> Trace:
    graph = LineageGraph(collect([edge(f"/d{a}", f"/d{b}") for a, b in pairs], [], [], [], {}, {}))
    return trace(graph, ds("/d0"), "down")


class Tags(HTMLParser):
    """Every opened element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in {"meta", "br", "path", "rect"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in {"path", "rect"}:
            assert self.open.pop() == tag


def test_the_page_tells_edges_evidence_disagreements_and_gaps():
    facts = collect(
        [
            edge("/a", NASTY, evidence=EVENT),
            edge("/a", NASTY, subtype=Subtype.TRANSFORMATION, masking=True, expression="sha2(a.k, 256) < '<x>'", evidence=SQL),
        ],
        [Membership(source=col("/a", "email"), target=ds(NASTY), subtype=Subtype.FILTER, evidence=SQL)],
        [JobRef(job="j", sql=None, inputs=(ds("/a"),), output=ds("/bare"), where="e.ndjson:9")],
        [
            LineageGap(dataset=ds("/bare"), kind="no_columns", reason="nobody <says>", evidence="e:1", closes="give the SQL"),
            LineageGap(dataset=None, kind="no_outputs", reason="anywhere", evidence="e:2"),
        ],
        {},
        {"lake.prod.a": ds("/a"), "prod.a": ds("/a")},
    )  # fmt: skip
    graph = LineageGraph(facts)
    made = trace(graph, ds("/a"), "down")
    page = render_trace_html(made, {d: graph.aliases_of(d) for d in made.datasets})
    Tags().feed(page)
    assert "<h1>lake.prod.a</h1>" in page
    assert not re.search(r"<script|<link|<img|https?://|url\(|<i>|<x>|\x1b", page)
    for text in (
        "sha2(a.k, 256) &lt; &#39;&lt;x&gt;&#39;",
        "nobody &lt;says&gt;",
        "to close it: give the SQL",
        "anywhere",
    ):
        assert text in page
    for text in ("Events and SQL disagree", "identity", "transformation, masked", "j.sql:1", "e.ndjson:1"):
        assert text in page
    assert "which rows there are" in page
    assert "1,200 runs, last <code>run &lt;u&gt;9&lt;/u&gt;</code>" in page
    assert "The columns are not known. Written by j" in page
    assert "The way is not known completely" in page


def test_a_large_trace_is_cut_in_the_picture_and_says_so():
    wide = chain_of([(0, n) for n in range(1, 201)])
    drawn = picture(wide, {d: d.name for d in wide.datasets})
    assert len(drawn.nodes) == 9
    assert drawn.hidden == 200 - 7
    assert any(node.name == f"{drawn.hidden} datasets" for node in drawn.nodes)
    page = render_trace_html(wide, {})
    assert "193 datasets are drawn together" in page
    assert page.count("<summary>") == 200
    long = chain_of([(n, n + 1) for n in range(200)])
    drawn = picture(long, {d: d.name for d in long.datasets})
    assert len(drawn.nodes) == 6
    assert sum(node.name == "196 datasets" for node in drawn.nodes) == 1
    assert "4 to 199 steps away" in {node.facts for node in drawn.nodes}
    small = chain_of([(0, n) for n in range(1, 15)])
    assert picture(small, {d: d.name for d in small.datasets}).hidden == 0


def test_a_dataset_with_gaps_is_drawn_by_itself():
    pairs = [edge("/s", f"/d{n:03d}") for n in range(200)]
    gap = LineageGap(dataset=ds("/d150"), kind="no_columns", reason="why", evidence="e:1")
    made = trace(LineageGraph(collect(pairs, [], [], [gap], {}, {})), ds("/s"), "down")
    drawn = picture(made, {d: d.name for d in made.datasets})
    assert [node.name for node in drawn.nodes if node.tone == "gap"] == ["/d150"]


def test_the_page_lists_no_more_than_it_can_and_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(trace_html, "MOST_ROWS", 3)
    page = render_trace_html(chain_of([(n, n + 1) for n in range(5)]), {})
    assert page.count("Left out here: the page would be too long.") == 2
    assert "2 links above without the edges: the page lists 3" in page


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=150))
def test_nodes_never_overlap_and_every_dataset_is_drawn_or_counted(pairs: list[tuple[int, int]]):
    made = chain_of([(0, 1), *pairs])
    drawn = picture(made, {d: d.name for d in made.datasets})
    alone = [node for node in drawn.nodes if node.tone != "many"]
    assert len(alone) + drawn.hidden == len(made.datasets)
    for index, a in enumerate(drawn.nodes):
        assert 0 <= a.x <= drawn.width - NODE_WIDTH
        assert 0 <= a.y <= drawn.height - 42
        for b in drawn.nodes[index + 1 :]:
            assert abs(a.x - b.x) >= NODE_WIDTH or abs(a.y - b.y) >= 42


def test_a_page_of_the_nearest_part_says_so() -> None:
    graph = LineageGraph(collect([edge(f"/d{n:02d}", f"/d{n + 1:02d}") for n in range(40)], [], [], [], {}, {}))
    page = render_trace_html(trace(graph, ds("/d00"), "down", most=5), {})
    assert "35 datasets further away" in page
    assert "The nearest part of a long way" in page
    assert "<dd>40<small>35 left out</small></dd>" in page
    assert "further away" not in render_trace_html(trace(graph, ds("/d00"), "down"), {})
