"""The benchmark measures walks over the same graph, and its estate is one that the store accepts."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.lineage.graph.graph_file import load
from tests.benchmarks.graph_engines import networkx, store, value_edges
from tests.benchmarks.synthetic import write


def test_a_small_estate_is_whole_and_the_engines_agree(tmp_path: Path):
    file = tmp_path / "lineage.graph"
    write(file, 8_000, 24_000)
    graph = load(file)
    assert len(graph.datasets()) == 200
    assert len(graph.facts.edges) == 24_000
    size, sources, targets = value_edges(file)
    assert size == 8_000
    assert len(sources) == len(targets) > 15_000
    assert store(file)[1]() == networkx(file)[1]() > 500
