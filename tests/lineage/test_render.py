"""Traces as text, JSON, Mermaid and DOT: complete, escaped, and readable at any size."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from pii_tracer.lineage.graph.canonical_facts import Facts, collect
from pii_tracer.lineage.graph.edges import (
    EdgeType,
    Evidence,
    JobRef,
    LineageGap,
    Membership,
    Subtype,
)
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.graph.trace import trace
from reports.lineage.trace_formats import (
    WIDTH,
    as_dot,
    as_json,
    as_mermaid,
    as_text,
    gaps_as_text,
)
from tests.lineage.graphs import NASTY, col, ds, edge, facts, graph_of

EVENT = (Evidence(source="openlineage", where="e.ndjson:1"),)
SQL = (Evidence(source="sql", where="j.sql:1"),)


def graph(*edges: Any, members: Any = (), jobs: Any = (), gaps: Any = ()) -> LineageGraph:
    return LineageGraph(collect(edges, members, jobs, gaps, {}, {}))


def test_renderings_escape_names():
    made = trace(graph_of(("/a", NASTY), (NASTY, "/c")), ds("/a"), "down")
    assert [(k.source, k.target) for k in made.links] == [(ds("/a"), ds(NASTY)), (ds(NASTY), ds("/c"))]
    for text in (as_text(made), as_mermaid(made), as_dot(made)):
        assert "\x1b" not in text
    assert '\\"]; evil' in as_dot(made)
    assert "<b>" not in as_mermaid(made)
    assert '"]; evil' not in as_mermaid(made)
    assert json.loads(as_json(made))["links"][0]["target"]["name"] == NASTY


def test_a_column_is_followed_up_and_down():
    made = graph(edge("/a", "/b"), edge("/b", "/c"), edge("/a", "/b", "other"))
    down = trace(made, ds("/a"), "down", "k")
    assert [(k.source.name, k.target.name, len(k.edges)) for k in down.links] == [("/a", "/b", 1), ("/b", "/c", 1)]
    up = trace(made, ds("/c"), "up", "k")
    assert {k.source.name for k in up.links} == {"/a", "/b"}
    assert as_text(up).splitlines()[0] == "file:/c.k"


def test_a_column_that_only_filters_is_followed_on_request_alone():
    made = graph(
        edge("/a", "/b"), members=[Membership(source=col("/a", "email"), target=ds("/b"), subtype=Subtype.FILTER)]
    )
    assert trace(made, ds("/a"), "down", "email").links == ()
    (link,) = trace(made, ds("/a"), "down", "email", influence=True).links
    assert [m.subtype for m in link.memberships] == [Subtype.FILTER]
    assert "rows by: email (FILTER)" in as_text(trace(made, ds("/a"), "down", "email", influence=True))
    assert "knows nothing made from it" in as_text(trace(made, ds("/a"), "down", "email"))


@settings(max_examples=80, deadline=None)
@given(facts())
def test_json_has_every_edge_of_the_way(made: Facts):
    whole = LineageGraph(made)
    for start in whole.datasets():
        told = json.loads(as_json(trace(whole, start, "down")))
        way = {start, *whole.downstream(start)}
        links = told["links"]
        edges = [e for e in made.edges if e.source.dataset in way and e.target.dataset in way]
        assert sum(len(link["edges"]) for link in links) == len(edges)
        members = [m for m in made.memberships if m.source.dataset in way and m.target in way]
        assert sum(len(link["memberships"]) for link in links) == len(members)
        assert len(told["gaps"]) == sum(g.dataset in way for g in made.gaps)
        for text in (as_text, as_mermaid, as_dot):
            assert "\x1b" not in text(trace(whole, start, "up"))


def test_gaps_and_disagreements_of_the_way_are_told():
    gaps = [
        LineageGap(dataset=ds("/b"), kind="no_columns", reason="nobody says", evidence="e:1", closes="add the SQL"),
        LineageGap(dataset=None, kind="no_outputs", reason="it may go anywhere", evidence="e:2"),
        LineageGap(dataset=ds("/x"), kind="no_columns", reason="far away", evidence="e:3"),
    ]
    a = edge("/a", "/b", evidence=EVENT)
    b = edge("/a", "/b", subtype=Subtype.TRANSFORMATION, evidence=SQL)
    made = trace(graph(a, b, edge("/x", "/y"), gaps=gaps), ds("/a"), "down")
    text = as_text(made)
    assert "events and SQL disagree on 1:" in text
    assert "file:/a.k -> file:/b.k: IDENTITY by events, TRANSFORMATION by SQL" in text
    assert "gaps on the way: 1" in text
    assert "to close it: add the SQL" in text
    assert "gaps that may lead anywhere: 1" in text
    assert "far away" not in text
    told = json.loads(as_json(made))
    assert told["disagreements"][0]["events"]["subtype"] == "IDENTITY"
    assert [g["evidence"] for g in told["gaps"] + told["gaps_elsewhere"]] == ["e:1", "e:2"]
    listed = gaps_as_text(gaps).splitlines()
    assert [line for line in listed if not line.startswith(" ")] == [
        "file:/b",
        "file:/x",
        "may lead anywhere",
        "3 gaps in 3 places",
    ]
    assert gaps_as_text([]) == "no gaps"


def test_what_is_shown_again_is_named_again_and_cycles_end():
    made = trace(graph_of(("/a", "/b"), ("/b", "/a"), ("/b", "/c"), ("/a", "/c")), ds("/a"), "down")
    text = as_text(made)
    assert text.count("file:/a (see above)") == 1
    assert text.count("file:/c (see above)") == 1
    itself = as_text(trace(graph(edge("/a", "/a")), ds("/a"), "down"))
    assert "file:/a (itself)" in itself


def test_a_table_of_a_hundred_columns_keeps_to_the_width():
    wide = [edge("/a", "/b", f"column_{n:03d}") for n in range(100)]
    long = "concat(" + ", ".join(f"a.column_{n:03d}" for n in range(60)) + ")"
    made = graph(
        *wide,
        edge("/a", "/b", "x", into="y", subtype=Subtype.TRANSFORMATION, masking=True, expression=long),
        edge("/b", "/c", "column_001"),
        members=[Membership(source=col("/a", f"column_{n:03d}"), target=ds("/b"), subtype=Subtype.GROUP_BY) for n in range(40)],
    )  # fmt: skip
    lines = as_text(trace(made, ds("/a"), "down")).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) < 40
    text = " ".join(" ".join(lines).replace("│", " ").split())
    assert all(f"column_{n:03d}" in text for n in range(100))
    assert "x -> y (TRANSFORMATION, masked) concat(a.column_000" in text


def test_a_long_chain_is_continued_and_a_large_graph_says_what_is_left_out():
    chain = graph_of(*((f"/d{n:04d}", f"/d{n + 1:04d}") for n in range(1500)))
    lines = as_text(trace(chain, ds("/d0000"), "down")).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert "… and 500 further links: use `--format json` to list all of them" in lines
    assert sum(line.endswith("(continued)") for line in lines) == sum(
        line.endswith("(continued below)") for line in lines
    )
    mermaid = as_mermaid(trace(chain, ds("/d0000"), "down"))
    assert "%% left out: 1,000 further links" in mermaid
    assert mermaid.count("-->") == 500
    assert as_dot(trace(chain, ds("/d0000"), "down")).count(" -> ") == 1500


def test_a_link_without_columns_names_its_job():
    job = JobRef(job="nightly", sql=None, inputs=(ds("/a"),), output=ds("/b"), where="e.ndjson:7")
    text = as_text(trace(graph(jobs=[job]), ds("/a"), "down"))
    assert "columns not known; job: nightly (e.ndjson:7)" in text


@pytest.mark.parametrize("direction", ["up", "down"])
def test_conditions_are_no_values(direction: Any):
    made = graph(edge("/a", "/b", type=EdgeType.INDIRECT, subtype=Subtype.CONDITIONAL))
    start = ds("/a") if direction == "down" else ds("/b")
    assert trace(made, start, direction, "k").links == ()
    assert "decides: k -> k (CONDITIONAL)" in as_text(trace(made, start, direction))
    both = graph(edge("/a", "/b"), edge("/a", "/b", type=EdgeType.INDIRECT, subtype=Subtype.CONDITIONAL))
    (link,) = trace(both, start, direction, "k").links
    assert [e.type for e in link.edges] == [EdgeType.DIRECT]
    assert "rows only" in as_dot(trace(made, start, direction))


@pytest.mark.parametrize("direction", ["up", "down"])
def test_of_a_large_estate_the_nearest_is_read_and_the_rest_counted(direction: Any):
    start = ds("/d00") if direction == "down" else ds("/d40")
    far = LineageGap(dataset=ds("/d20"), kind="no_columns", reason="why", evidence="e:1")
    chain = graph(*(edge(f"/d{n:02d}", f"/d{n + 1:02d}") for n in range(40)), gaps=[far])
    for column in (None, "k"):
        made = trace(chain, start, direction, column, most=5)
        near = [ds(f"/d{n:02d}") for n in (range(6) if direction == "down" else range(40, 34, -1))]
        assert set(made.datasets) == set(near)
        assert made.left_out == 35
        assert made.gaps == (far,), "a gap is told, however far away"
        assert "… and 35 datasets further away" in as_text(made)
        assert "%% left out: 35 datasets further away" in as_mermaid(made)
        assert trace(chain, start, direction, column).left_out == 0
