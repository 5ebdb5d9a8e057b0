"""What lineage tells of tables that a draft found: their names, what they are made of, and where they were before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pii_tracer.lineage.dataset_names import VIEW
from pii_tracer.lineage.graph.edges import JobRef
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import ColumnId, DatasetId
from planners.draft.column_guesses import SHARE, may_tell_of_person

_SESSION_CATALOG = "spark_catalog."
_FEWEST = 2
"""Places of the lineage that have to be found here before a draft says that they were moved."""
_MOST_NAMESAKES = 20
"""Folders with one name, above which the name says nothing of where they were."""


@dataclass(frozen=True)
class TableLineage:
    """The lineage of tables that have a name. datasets: what lineage calls them, by name."""

    graph: LineageGraph
    datasets: Mapping[str, DatasetId]

    def made_of(self, table: str) -> frozenset[str]:
        """The tables that something of a table comes from."""
        dataset = self.datasets.get(table)
        return self._names(self.graph.upstream(dataset)) if dataset is not None else frozenset()

    def reached(self, table: str, columns: Iterable[str]) -> frozenset[tuple[str, str]]:
        """The tables, and their columns in lower case, that values of some columns of a table go into."""
        dataset = self.datasets.get(table)
        if dataset is None:
            return frozenset()
        named = self._named
        return frozenset(
            (name, there.column.lower())
            for column in columns
            for there in self.graph.columns_downstream(ColumnId(dataset=dataset, column=column))
            for name in named.get(there.dataset, ())
        )

    def _names(self, datasets: Iterable[DatasetId]) -> frozenset[str]:
        named = self._named
        return frozenset(name for dataset in datasets for name in named.get(dataset, ()))

    @property
    def _named(self) -> dict[DatasetId, list[str]]:
        found = defaultdict[DatasetId, list[str]](list)
        for name, dataset in self.datasets.items():
            found[dataset].append(name)
        return found


def called_by_jobs(
    graph: LineageGraph, places: Mapping[str, DatasetId], drafted: Collection[str] = ()
) -> dict[str, str]:
    """`schema.table` of tables, by their place, where jobs call them by one such name.

    drafted: names that the draft itself gave, which say nothing. A name that may tell of a person is none.
    """
    found = {}
    for place, dataset in places.items():
        names = {name.removeprefix(_SESSION_CATALOG) for name in graph.aliases_of(dataset)}
        names = {name for name in names if name.count(".") == 1 and name not in drafted}
        if len(names) == 1 and not may_tell_of_person(*names):
            found[place] = names.pop()
    return found


def catalogs_called(unknown: Iterable[str], tables: Mapping[str, Collection[str]]) -> dict[str, str]:
    """What jobs call catalogs, by the name here: names of tables that nothing explains end as theirs do.

    unknown: such names (`prod.sales.orders`). tables: by catalog, the names of its tables without the catalog's. A
    catalog of which tables end as those of two others keeps its name.
    """
    called = defaultdict[str, set[str]](set)
    ends = {catalog: {name.lower() for name in names} for catalog, names in tables.items()}
    for name in set(unknown):
        first, _, rest = name.partition(".")
        for catalog, known in ends.items():
            if first not in tables and "." in rest and rest.lower() in known:
                called[catalog].add(first)
    told = {catalog: min(names) for catalog, names in called.items() if len(names) == 1}
    several = Counter(first for names in called.values() for first in names)
    return {catalog: name for catalog, name in told.items() if several[name] == 1}


def moved(named: Iterable[str], here: Iterable[str]) -> tuple[str, str] | None:
    """From which folder to which one the data was moved after its lineage was recorded; None where nothing says it.

    named: paths in the lineage with nothing there; here: folders of tables. The ends of both have to agree, for all
    but a few of the paths in that folder, and for no other folder as often.
    """
    by_name = defaultdict[str, list[PurePosixPath]](list)
    for place in map(PurePosixPath, here):
        by_name[place.name].append(place)
    lost = [PurePosixPath(path) for path in set(named)]
    counts = Counter[tuple[PurePosixPath, PurePosixPath]]()
    for path in lost:
        there = by_name[path.name]
        counts.update({_fronts(path, place) for place in there} if len(there) <= _MOST_NAMESAKES else ())
    best = counts.most_common(2)
    if not best or (len(best) > 1 and best[0][1] == best[1][1]):
        return None
    (start, end), count = best[0]
    inside = sum(path.is_relative_to(start) for path in lost)
    return (str(start), str(end)) if count >= max(_FEWEST, SHARE * inside) else None


def _fronts(one: PurePosixPath, other: PurePosixPath) -> tuple[PurePosixPath, PurePosixPath]:
    """What is left of two paths without the longest end that they have in common; at least a folder below the top."""
    while one.name == other.name and one.parent.name and other.parent.name:
        one, other = one.parent, other.parent
    return one, other


def writers_of(jobs: Collection[JobRef]) -> list[str]:
    """The jobs that write data. An event's job of which every statement is in the files is the job of these files."""
    of_files = {_words(job.statement) for job in jobs if job.at is None and job.statement}
    said = defaultdict[str, dict[DatasetId, set[str]]](dict)
    by_file = set()
    for job in jobs:
        if job.output.namespace == VIEW:
            continue
        # events tell what a run wrote beside what its statement did
        said[job.job].setdefault(job.output, set()).update({_words(job.statement)} if job.statement else ())
        if job.at is None:
            by_file.add(job.job)
    return sorted(
        job
        for job, outputs in said.items()
        if job in by_file or not all(texts and texts <= of_files for texts in outputs.values())
    )


def _words(statement: str) -> str:
    return " ".join(statement.split()).rstrip("; ")
