"""Which columns hold personal data: by lineage from the subjects' sources, and by the names that are declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pii_tracer.app.planning.plan_creation import take_lineage
from pii_tracer.app.planning.subject_sources import spots_of
from pii_tracer.app.settings import Settings
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.column_paths import Spots, spot_of
from pii_tracer.model.datasets import DatasetId
from planners.locate.edge_effects import declared_anonymisers
from planners.locate.key_location import follow


class PersonalColumns:
    """What lineage and the estate file know of personal data."""

    def __init__(self, graph: LineageGraph, by_dataset: Mapping[DatasetId, tuple[str, ...]], names: frozenset[str]):
        """names: declared column names, in lower case."""
        self._graph = graph
        self._by_dataset = by_dataset
        self._names = names

    def of_state(self, state: TableState, by_location: Mapping[str, TableState]) -> tuple[str, ...]:
        """Of a table that exists: its own by lineage, or its origin's where it is a copy of files; and by name."""
        found = self._by_dataset.get(state.dataset, ())
        for origin in (state.clone_of, state.same_files_as):
            if not found and origin is not None and origin in by_location:
                found = self._by_dataset.get(by_location[origin].dataset, ())
        return self._with_declared(found, (c.name for c in state.columns))

    def of_created(self, names: Iterable[str], columns: Sequence[str]) -> tuple[str, ...]:
        """Of a table that a statement creates, by any of its names."""
        datasets = {dataset for name in names if (dataset := self._graph.resolve(name))}
        found = (column for dataset in datasets for column in self._by_dataset.get(dataset, ()))
        return self._with_declared(found, columns)

    def _with_declared(self, found: Iterable[str], columns: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({*found, *(name for name in columns if name.lower() in self._names)}))


def personal_columns(settings: Settings, inventory: Inventory, more_sql: Sequence[Path] = ()) -> PersonalColumns:
    """Harvest lineage and follow every subject's identifying columns. more_sql: files to take into account as well.

    Raises:
        LineageError: a source of lineage is missing or cannot be read.
    """
    estate, base = settings.estate(), settings.base
    sql = (*estate.lineage.sql, *(str(path.resolve()) for path in more_sql))
    lineage = estate.lineage.model_copy(update={"sql": sql})
    told = estate.model_copy(update={"lineage": lineage})
    graph = take_lineage(settings, told, inventory, lambda _: None).graph
    paths = EstatePaths(estate, base)
    aliases = paths.aliases
    found: dict[DatasetId, set[str]] = {}
    names = {name.lower() for name in estate.retention.pii_columns}
    for subject in estate.subjects:
        spots = spots_of(subject, paths, {state.dataset: state for state in inventory.tables})
        for table, of_table in subject.by_table:
            # of a field in a struct its own name: the struct may be called otherwise elsewhere
            names |= {_leaf(spots, aliases.get(table), name).lower() for name in of_table.personal}
        source = aliases.get(subject.source) or graph.resolve(subject.source)
        if source is None:
            continue
        told_of = {(aliases.get(t.table) or graph.resolve(t.table)): t for t in subject.tables}
        further = {dataset: table for dataset, table in told_of.items() if dataset is not None}
        anonymisers = declared_anonymisers(estate, graph)
        for dataset, carriage in follow(graph, source, subject, anonymisers, None, further, spots).items():
            held = {name for name, column in carriage.columns.items() if column.traces or column.lost}
            found.setdefault(dataset, set()).update(held)
    return PersonalColumns(graph, {d: tuple(sorted(c)) for d, c in found.items() if c}, frozenset(names))


def _leaf(spots: Spots, dataset: DatasetId | None, name: str) -> str:
    return spot_of(spots, dataset, name).names[-1] if dataset is not None else name
