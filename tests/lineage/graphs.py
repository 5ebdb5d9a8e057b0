"""Small graphs for tests, and random ones with cycles, ties, silence and odd names."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pii_tracer.lineage.graph.canonical_facts import Facts, collect
from pii_tracer.lineage.graph.edges import (
    NOT_STORED,
    Edge,
    EdgeType,
    Evidence,
    JobRef,
    LineageGap,
    Membership,
    Subtype,
)
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Column, ColumnId, DatasetId

NASTY = 'x"]; evil `<b>\x1b[31m'


def ds(name: str) -> DatasetId:
    return DatasetId(namespace="file", name=name)


def col(dataset: str, column: str) -> ColumnId:
    return ColumnId(dataset=ds(dataset), column=column)


def edge(source: str, target: str, column: str = "k", **more: Any) -> Edge:
    """From a column of one dataset to the column of the same name of another."""
    into = more.pop("into", column)
    known = {"type": EdgeType.DIRECT, "subtype": Subtype.IDENTITY} | more
    return Edge(source=col(source, column), target=col(target, into), **known)


def graph_of(*pairs: tuple[str, str]) -> LineageGraph:
    return LineageGraph(collect([edge(a, b) for a, b in pairs], [], [], [], {}, {"db.a": ds("/a")}))


_DIRECT = [Subtype.IDENTITY, Subtype.TRANSFORMATION, Subtype.AGGREGATION]
DATASETS = st.sampled_from(
    [ds(n) for n in ("/a", "/b", "/ü", "/b.c", NASTY)] + [DatasetId(namespace="s3://b", name="a")]
)
NAMES = st.sampled_from(["k", "K", "é", "*", "a b", "z"])
# often the same few, so that edges fall together
COLUMNS = st.sampled_from([col("/a", "k"), col("/b", "k")]) | st.builds(ColumnId, dataset=DATASETS, column=NAMES)
EVIDENCE = st.lists(
    st.builds(
        Evidence,
        source=st.sampled_from(["openlineage", "sql"]),
        where=st.sampled_from(["e.ndjson:1", "j.sql:2"]),
        job=st.sampled_from([None, "j"]),
        at=st.sampled_from([None, "2026-11-01T00:00:00Z"]),
    ),
    max_size=2,
).map(tuple)
EDGES = st.builds(
    Edge,
    source=COLUMNS,
    target=COLUMNS,
    type=st.just(EdgeType.DIRECT),
    subtype=st.sampled_from(_DIRECT),
    masking=st.booleans(),
    expression=st.sampled_from([None, "", "a.k", "sha2(a.k, 256)"]),
    evidence=EVIDENCE,
) | st.builds(
    Edge,
    source=COLUMNS,
    target=COLUMNS,
    type=st.just(EdgeType.INDIRECT),
    subtype=st.sampled_from([Subtype.CONDITIONAL, Subtype.WINDOW]),
    evidence=EVIDENCE,
)
MEMBERS = st.builds(
    Membership,
    source=COLUMNS,
    target=DATASETS,
    subtype=st.sampled_from([Subtype.FILTER, Subtype.JOIN]),
    evidence=EVIDENCE,
)
JOBS = st.builds(
    JobRef,
    job=st.sampled_from(["j", "k"]),
    sql=st.sampled_from([None, NOT_STORED]),
    inputs=st.lists(DATASETS, max_size=2).map(tuple),
    output=DATASETS,
    at=st.sampled_from([None, "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"]),
    where=st.sampled_from(["", "j.sql:2"]),
)
GAPS = st.builds(
    LineageGap,
    dataset=st.none() | DATASETS,
    kind=st.sampled_from(["no_columns", "sql_partial"]),
    reason=st.just("why"),
    evidence=st.just("j.sql:2"),
    closes=st.sampled_from(["", "say it"]),
)
SCHEMAS = st.dictionaries(
    DATASETS, st.lists(st.builds(Column, name=NAMES, type=st.sampled_from(["", "bigint"])), max_size=3).map(tuple)
)


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    """Anything that a harvest could bring."""
    return collect(
        draw(st.lists(EDGES, max_size=12)),
        draw(st.lists(MEMBERS, max_size=4)),
        draw(st.lists(JOBS, max_size=4)),
        draw(st.lists(GAPS, max_size=3)),
        draw(SCHEMAS),
        draw(st.dictionaries(st.sampled_from(["db.a", "x.db.a", "y.db.a"]), DATASETS)),
    )
