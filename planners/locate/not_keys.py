"""Columns that hold another system's numbers, by the owner's word: followed along lineage, and held against it.

The word says of one column that its numbers are no keys of the persons. What is copied from it, and from nowhere else,
holds none either. A word that lineage contradicts is not taken: it would hide what was found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pii_tracer.config.subjects import NotKeys
from pii_tracer.lake.inventory import TableState
from pii_tracer.lineage.graph.edges import Edge
from pii_tracer.lineage.graph.lineage_graph import LineageGraph
from pii_tracer.model.datasets import ColumnId, DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.locate.edge_effects import along, value_edges
from planners.locate.identifier_traces import ColumnCarriage
from planners.locate.sql.column_expressions import Fate, Place
from planners.locate.sql.spark_functions import is_plain
from planners.locate.subject_survey import Survey
from planners.step_drafts import slug

_WHOLE = ("tinyint", "smallint", "int", "bigint", "string", "decimal", "double", "float", "varchar", "char")
"""Types of columns of which a cell is one number, as Spark writes them."""


@dataclass(frozen=True)
class Word:
    """The owner's word on a column. origin: the declared column, which is this one or what all of it is copied from."""

    column: ColumnId
    told: NotKeys
    origin: ColumnId


def plain_key_sets(found: Survey) -> tuple[str, ...]:
    """The key sets that are the subject's key as it is: the only ones that such a word can be about."""
    return tuple(s.name for s in found.key_sets.values() if s.origin == found.subject.key and s.expression is None)


def contradicted(found: Survey, state: TableState | None, told: NotKeys) -> str | None:
    """Why a declared column cannot be taken for one of other numbers; None where nothing speaks against it."""
    if state is None:
        return "this table was not found, or its files are not plain rows"
    column = named(state, told.column)
    if column is None:
        return "the table has no such column"
    kind = next(c.type for c in state.columns if c.name == column).lower()
    if not kind.startswith(_WHOLE):
        return f"a column of the type {kind} is not a single number"
    carriage = found.carriages.get(state.dataset)
    if carriage is not None and held(carriage.columns, column):
        return "lineage shows that identifiers of the person go into it"
    return None


def named(state: TableState, column: str) -> str | None:
    """A column as the table spells it."""
    return next((c.name for c in state.columns if c.name.lower() == column.lower()), None)


def held(columns: Mapping[str, ColumnCarriage], column: str) -> bool:
    """Whether a column has identifiers of the persons."""
    return any(name.lower() == column.lower() and known for name, known in columns.items())


def spread(found: Survey, graph: LineageGraph, words: Mapping[ColumnId, NotKeys]) -> Iterator[Word]:
    """The words, each followed by the columns that are plain copies of what was told, and of nothing else."""
    known = {_folded(column): Word(column, told, column) for column, told in words.items()}
    yield from known.values()
    unclear = {dataset for gap in graph.gaps for dataset in (gap.dataset, gap.same_as)}
    below = {dataset for column in words for dataset in graph.downstream(column.dataset)}
    for dataset in graph.in_order(below):
        carriage = found.carriages.get(dataset)
        if dataset in unclear:
            continue
        for name in graph.column_names(dataset):
            column = ColumnId(dataset=dataset, column=name)
            if _folded(column) in known or (carriage is not None and held(carriage.columns, name)):
                continue
            edges = value_edges(graph.edges_into_column(column))
            sources = [known.get(_folded(edge.source)) for edge in edges if edge.source != column]
            origin = next(iter(sources), None)
            if origin is None or not all(sources) or not all(map(_is_copy, edges)) or _untold(graph, dataset, edges):
                continue
            known[_folded(column)] = word = Word(column, origin.told, origin.origin)
            yield word


def _folded(column: ColumnId) -> tuple[DatasetId, str]:
    return column.dataset, column.column.lower()


def _is_copy(edge: Edge) -> bool:
    """Whether a value arrives as it was, renamed or cast."""
    return all(_unchanged(place) for place in along(edge, ()))


def _unchanged(place: Place) -> bool:
    plain = place.fate is Fate.FOUND and not (place.access or place.group or place.windows)
    return plain and not any(place.instead) and is_plain(place.expression)


def _untold(graph: LineageGraph, dataset: DatasetId, edges: Collection[Edge]) -> bool:
    """Whether a job without a text writes the dataset and does not tell what it puts into the column."""
    telling = {evidence.job for edge in edges for evidence in edge.evidence}
    return any(not job.statement and job.job not in telling for job in graph.jobs_into(dataset))


def not_taken(found: Survey, told: NotKeys, dataset: DatasetId | None, why: str) -> Gap:
    """The gap of a word that is not taken, or that a named person has to stand for."""
    name = f"{told.table}.{told.column}"
    return Gap(
        id=f"gap-{GapKind.NOT_KEYS}-{slug(found.subject.name)}-{slug(name)}",
        dataset=dataset,
        kind=GapKind.NOT_KEYS,
        reason=f"the estate file says that the numbers in {name} are not keys of a {found.subject.name}, but {why}",
        evidence=f"`not_keys` of `{found.subject.name}` in the estate file, owner {told.owner}",
    )
