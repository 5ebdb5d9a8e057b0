"""Where is the key? How every dataset downstream of a subject carries the person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pii_tracer.app.planning.subject_sources import dataset_of, further_tables, spots_of
from pii_tracer.app.settings import Settings
from pii_tracer.model.column_paths import Spot, spot_of
from pii_tracer.model.datasets import Carries, DatasetId
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    from pii_tracer.lake.dataset_paths import EstatePaths
    from pii_tracer.lake.inventory import TableState
    from pii_tracer.lineage.graph.lineage_graph import LineageGraph
    from pii_tracer.model.key_location import SubjectWhereabouts
    from planners.locate.key_location import Carriage
    from planners.locate.sql.group_sizes import Groups


MOST_ROWS = 2_000_000
"""A source with more rows is not read to measure groups."""


def look(settings: Settings, say: Callable[[str], None]) -> list[SubjectWhereabouts]:
    """The answer for every subject of the estate.

    Raises:
        EstateError: a subject's source is not in the estate.
        LineageError: the lineage cannot be read.
    """
    from pii_tracer.app.planning.plan_creation import take_inventory, take_lineage
    from pii_tracer.lake.dataset_paths import EstatePaths
    from planners.locate.edge_effects import declared_anonymisers
    from planners.locate.key_location import follow
    from planners.locate.key_location_answers import whereabouts
    from planners.locate.subject_survey import title
    from planners.locate.tag_propagation import column_tags

    estate, base = settings.estate(), settings.base
    inventory = take_inventory(estate, base, say, stored=False)
    say("harvesting lineage")
    harvested = take_lineage(settings, estate, inventory, say)
    graph = harvested.graph
    paths = EstatePaths(estate, base)
    states = {state.dataset: state for state in inventory.tables}
    anonymisers = declared_anonymisers(estate, graph)
    result = []
    for subject in estate.subjects:
        source = dataset_of(subject, subject.source, paths, inventory)
        further = further_tables(subject, paths, inventory)
        say(f"following {subject.name} from {subject.source}")
        spots = spots_of(subject, paths, states)
        carriages = follow(graph, source, subject, anonymisers, column_tags(harvested.notes.tags), further, spots)
        sizes = (
            _sizes(graph, carriages, states[source], [spot_of(spots, source, n) for n in subject.key_parts], paths)
            if source in states
            else {}
        )

        def named(dataset: DatasetId) -> str:
            return title(states[dataset]) if dataset in states else dataset.name

        result.append(whereabouts(subject, carriages, named, sizes))
    return result


def _sizes(
    graph: LineageGraph,
    carriages: Mapping[DatasetId, Carriage],
    source: TableState,
    key: Sequence[Spot],
    paths: EstatePaths,
) -> dict[DatasetId, Groups]:
    """How small the groups of aggregates are, where the source can be read for it without Spark."""
    from pii_tracer.lake.rows.current_rows import read_spots
    from planners.locate.sql.group_sizes import dimensions, measure

    if source.rows is None or source.rows > MOST_ROWS:
        return {}
    result = {}
    for dataset, carriage in carriages.items():
        by = dimensions(graph, dataset, source.dataset) if carriage.carries is Carries.AGGREGATE else None
        if by is None:
            continue
        try:
            parts = {f"key {n}": spot for n, spot in enumerate(key)}
            rows = read_spots(source, parts | {d.column: Spot(d.column) for d in by}, paths)
        except EstateError:
            continue  # a feature that this reader does not know: the answer says "not measured"
        rows[""] = list(zip(*(rows.pop(name) for name in parts), strict=True)) if len(key) > 1 else rows.pop("key 0")
        result[dataset] = measure(rows, by, "")
    return result
