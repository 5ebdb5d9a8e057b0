"""The stored graph has no statements and fewer literals than the harvested one, and says of every table the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lineage.graph.graph_file import load, save
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from planners.locate.key_location import follow
from sample_lineage.build import HERE, sample_estate
from tests.lineage.harvesting import harvest

ESTATE = sample_estate()


@pytest.fixture(scope="module")
def harvested(tmp_path_factory: pytest.TempPathFactory) -> LineageGraph:
    sources = LineageSources(events=(str(HERE / "events"),), sql=(str(HERE / "jobs"),))
    return harvest(sources, tmp_path_factory.mktemp("sample"), ESTATE.relocations)


def test_the_answers_are_the_same(harvested: LineageGraph, tmp_path: Path) -> None:
    save(harvested, tmp_path / "lineage.graph")
    stored = load(tmp_path / "lineage.graph")
    answers = 0
    for subject in ESTATE.subjects:
        (source,) = harvested.candidates(subject.source)
        found, again = follow(harvested, source, subject), follow(stored, source, subject)
        assert list(found) == list(again)
        assert {d: c.carries for d, c in found.items()} == {d: c.carries for d, c in again.items()}
        assert {d: c.key_names for d, c in found.items()} == {d: c.key_names for d, c in again.items()}
        answers += len(found)
    assert answers > 10
    assert stored.digest() != harvested.digest()
