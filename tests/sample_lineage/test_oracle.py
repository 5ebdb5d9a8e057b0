"""The lineage's claims against the jobs themselves: run with and without one person, and look at what differs.

Nothing may differ that lineage did not predict; not everything may be predicted; and where the answer is a key, the
rows it finds are exactly those that the world without the person does not have.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import read_columns
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import Carries, DatasetId
from planners.copies.classification import match_of
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.locate.key_location import Carriage, follow
from planners.locate.subject_survey import survey, title
from sample_lineage.build import HERE, sample_estate
from sample_lineage.people import PERSON
from tests.lineage.harvesting import harvest
from tests.planners.copies.slow_rows import count_rows
from tests.sample_lineage.twin_worlds import JOBS

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

ESTATE = sample_estate()
SUBJECT = ESTATE.subjects[0]
ROOT = Path(__file__).parents[2]

Rows = Counter[str]


@dataclass(frozen=True)
class Worlds:
    """Every table of both worlds by name: its rows as text, and its state in the world with the person."""

    base: Path
    states: Mapping[str, TableState]
    with_person: Mapping[str, Rows]
    without: Mapping[str, Rows]
    graph: LineageGraph
    source: DatasetId
    carriages: Mapping[DatasetId, Carriage]

    def differing(self) -> set[str]:
        return {name for name in self.states if self.with_person[name] != self.without.get(name)}


def rows(state: TableState, paths: EstatePaths) -> Iterator[dict[str, Any]]:
    yield from read_columns(state, [c.name for c in state.columns], paths).to_pylist()


def contents(base: Path) -> tuple[dict[str, TableState], dict[str, Rows]]:
    paths = EstatePaths(ESTATE, base)
    states = {title(s): s for s in discover(ESTATE, base).tables}
    return states, {name: Counter(repr(sorted(r.items())) for r in rows(s, paths)) for name, s in states.items()}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    folder = tmp_path_factory.mktemp("worlds")
    bases = [folder / "with", folder / "without"]
    command = [sys.executable, "-m", "tests.sample_lineage.twin_worlds", *map(str, bases)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (states, present), (_, absent) = contents(bases[0]), contents(bases[1])
    paths = EstatePaths(ESTATE, bases[0])
    graph = harvest(
        LineageSources(events=(str(HERE / "events"),), sql=(str(HERE / "jobs"), str(JOBS))),
        bases[0],
        ESTATE.relocations,
        paths.aliases,
        {s.table: s.columns for s in states.values() if s.table},
    )
    source = paths.aliases[SUBJECT.source]
    return Worlds(bases[0], states, present, absent, graph, source, follow(graph, source, SUBJECT))


def test_the_two_worlds_have_the_same_tables_and_differ(worlds: Worlds) -> None:
    assert set(worlds.with_person) == set(worlds.without)
    assert len(worlds.differing()) >= 15


def test_nothing_differs_that_lineage_did_not_predict(worlds: Worlds) -> None:
    predicted = {worlds.source, *worlds.graph.downstream(worlds.source)}
    places = {s.location for s in worlds.states.values() if s.dataset in predicted}
    unpredicted = {
        name
        for name in worlds.differing()
        # a folder copied by hand has no lineage: discovery knows it by its files
        if worlds.states[name].dataset not in predicted and worlds.states[name].same_files_as not in places
    }
    assert unpredicted == set()


def test_what_the_person_does_not_reach_is_not_predicted(worlds: Worlds) -> None:
    predicted = set(worlds.graph.downstream(worlds.source))
    free = {name for name, s in worlds.states.items() if s.dataset not in predicted | {worlds.source}}
    untouched = {"lake.prod.merchants", "lake.analytics.shops", "prod.vendor_contacts", "shop_list"}
    assert untouched <= free
    assert untouched.isdisjoint(worlds.differing())


def test_every_prediction_comes_true(worlds: Worlds) -> None:
    """The person of this world is in every table that lineage leads to: nothing is predicted out of caution alone."""
    predicted = {name for name, s in worlds.states.items() if worlds.carriages.get(s.dataset)}
    assert predicted <= worlds.differing()


def test_the_key_finds_exactly_the_rows_that_the_other_world_lacks(worlds: Worlds) -> None:
    paths = EstatePaths(ESTATE, worlds.base)
    columns = [SUBJECT.key, *(i.column for i in SUBJECT.identifiers), *SUBJECT.record_keys]
    source = worlds.states[SUBJECT.source]
    table = read_columns(source, columns, paths)
    texts = {c: [None if v is None else str(v) for v in table.column(c).to_pylist()] for c in columns}
    keys = resolve(SUBJECT, SourceRows(texts), [Wanted("R", "subj", str(PERSON))])
    found = survey(SUBJECT, worlds.source, worlds.carriages, keys)
    by_location = {s.location: s for s in worlds.states.values()}
    compared = 0
    for name, state in worlds.states.items():
        match = match_of(found, state, by_location)
        if match is None:
            continue
        mine: Rows = Counter()
        for row in rows(state, paths):
            if count_rows([row], match, found.key_sets):
                mine[repr(sorted(row.items()))] += 1
        assert mine, name
        assert worlds.with_person[name] - mine == worlds.without[name], name
        compared += 1
    assert compared >= 15


def test_the_aggregate_differs_and_has_no_key(worlds: Worlds) -> None:
    state = worlds.states["lake.analytics.city_daily_volume"]
    assert worlds.carriages[state.dataset].carries is Carries.AGGREGATE
    assert "lake.analytics.city_daily_volume" in worlds.differing()
