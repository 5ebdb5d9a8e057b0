"""Whom a review follows: the estate's subjects, and kinds of persons guessed from the names of sources' columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pii_tracer.config.subjects import Identifier, Subject, SubjectTable
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.lineage.projects.project_lineage import SideLineage
from pii_tracer.model.column_paths import Spot, find_spot
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.errors import ConfigError
from planners.draft.column_guesses import category_of, key_strength, kind_of_person

_UNTYPED = "string"
UNKNOWN_KEY = "(unknown: give the columns of the source)"
"""The key of a source whose columns nobody tells: nothing carries it."""


@dataclass(frozen=True)
class Followed:
    """A subject with its datasets. further: of its further tables. spots: its names inside structs."""

    subject: Subject
    source: DatasetId
    further: Mapping[DatasetId, SubjectTable]
    spots: Mapping[ColumnId, Spot]
    guessed: bool = False


def declared(
    subjects: Iterable[Subject], sides: Sequence[SideLineage], upstream: LineageGraph | None
) -> list[Followed]:
    """The estate's subjects of which the repository reads or writes a table, or the harvested graph knows one."""
    found = []
    for subject in subjects:
        source = _dataset(subject.source, sides)
        if source is None:
            continue
        told = {_dataset(table.table, sides): table for table in subject.tables}
        further = {dataset: table for dataset, table in told.items() if dataset is not None}
        if not any(_met(dataset, sides, upstream) for dataset in (source, *further)):
            continue
        spots = {
            ColumnId(dataset=dataset, column=name): spot
            for dataset, names in [(source, subject.named), *((d, t.named) for d, t in further.items())]
            for name in names
            if (spot := _spot(name, dataset, sides)) is not None
        }
        found.append(Followed(subject, source, further, spots))
    return found


def _met(dataset: DatasetId, sides: Sequence[SideLineage], upstream: LineageGraph | None) -> bool:
    if upstream is not None and upstream.number(dataset) is not None:
        return True
    return any(side.graph.downstream(dataset) or side.written.get(dataset) for side in sides)


def guessed(
    sides: Sequence[SideLineage], known: Iterable[Followed] = (), upstream: LineageGraph | None = None
) -> list[Followed]:
    """One kind of person for each key that stands beside identifiers in a table that nothing here fills.

    known: subjects that are followed already. Their tables are left out, as are those of the harvested graph.
    """
    explained = {dataset for one in known for dataset in (one.source, *one.further)}
    columns = {
        dataset: names
        for dataset, names in _roots(sides).items()
        if dataset not in explained and (upstream is None or upstream.number(dataset) is None)
    }
    tagged = {_dataset(name, [side]): set(names) for side in sides for name, names in side.parts.tagged.items()}
    identifiers = {d: _identifiers(names, tagged.get(d, set())) for d, names in columns.items()}
    by_kind: dict[str, list[tuple[DatasetId, str]]] = defaultdict(list)
    for dataset, names in columns.items():
        key = _key(names, identifiers[dataset], whole=any(side.graph.declared(dataset) for side in sides))
        if key is not None:
            by_kind[kind_of_person(key, dataset.name)].append((dataset, key))
    found = []
    for kind, tables in sorted(by_kind.items()):
        ranked = sorted(tables, key=lambda t: (-len(identifiers[t[0]]), t[0]))
        source, key = ranked[0]
        if not identifiers[source]:
            continue  # only a number, and nothing that tells of a person
        others = {
            dataset: SubjectTable(table=dataset.name, key=name, identifiers=_of(identifiers[dataset], name))
            for dataset, name in ranked[1:]
        }
        subject = Subject(
            name=kind,
            source=source.name,
            key=key,
            identifiers=_of(identifiers[source], key),
            tables=tuple(others.values()),
        )
        found.append(Followed(subject, source, others, {}, guessed=True))
    return found


def personal_names(columns: Iterable[str]) -> tuple[str, ...]:
    """Columns whose names tell that they identify a person."""
    return tuple(name for name in columns if category_of(name, _UNTYPED) is not None)


def _roots(sides: Sequence[SideLineage]) -> dict[DatasetId, tuple[str, ...]]:
    """Columns of tables that no statement of either side fills from others."""
    found: dict[DatasetId, dict[str, None]] = {}
    filled = {d for side in sides for d in side.graph.datasets() if side.graph.sources_of(d)}
    for side in sides:
        for dataset in side.graph.datasets():
            names = side.graph.column_names(dataset)
            if names and dataset not in filled:
                found.setdefault(dataset, {}).update(dict.fromkeys(name for name in names if name != "*"))
    return {dataset: tuple(names) for dataset, names in sorted(found.items())}


def _identifiers(names: Iterable[str], tagged: set[str]) -> dict[str, str]:
    guesses = {name: guess.category for name in names if (guess := category_of(name, _UNTYPED)) is not None}
    return {**dict.fromkeys(sorted(tagged), "pii"), **guesses}


def _key(names: Sequence[str], identifiers: Mapping[str, str], *, whole: bool) -> str | None:
    """A column that names persons; else a bare id where identifiers stand beside it; else the first of these.

    whole: all columns are known. Otherwise a key can be among those that nothing mentions: no identifier stands for it.
    """
    strong = [name for name in names if key_strength(name, _UNTYPED) == 2 and name not in identifiers]
    if strong or not identifiers:
        return strong[0] if strong else None
    bare = [name for name in names if key_strength(name, _UNTYPED) == 1]
    return bare[0] if bare else min(identifiers) if whole else UNKNOWN_KEY


def _of(identifiers: Mapping[str, str], key: str) -> tuple[Identifier, ...]:
    return tuple(Identifier(column=name, category=kind) for name, kind in identifiers.items() if name != key)


def _dataset(name: str, sides: Sequence[SideLineage]) -> DatasetId | None:
    return next((found for side in sides if (found := side.names.of_table(name)) is not None), None)


def _spot(name: str, dataset: DatasetId, sides: Sequence[SideLineage]) -> Spot | None:
    for side in sides:
        try:
            return find_spot(name, side.graph.columns(dataset), dataset.name)
        except ConfigError:
            continue
    return None
