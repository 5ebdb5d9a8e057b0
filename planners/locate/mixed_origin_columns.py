"""Columns by which rows are deleted and that are filled from elsewhere, too: a value there may be somebody else's.

Two sources count from one each, and a UNION puts both numbers into one column; a supplier has a person's phone. Lineage
connects the person with the one and says nothing about the other: nobody can tell whose row a value there names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from pii_tracer.lake.inventory import TableState
from pii_tracer.lineage.graph.edges import Edge
from pii_tracer.model.datasets import Access, ColumnId, DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.locate.edge_effects import along, value_edges
from planners.locate.key_location import Carriage
from planners.locate.sql.column_expressions import Fate
from planners.locate.subject_survey import Survey, World, title
from planners.step_drafts import slug, whole_list

_LONG = 20
_UNIQUE = re.compile(r"[^@\s]+@[^@\s]+\Z")
"""An e-mail address, and what is as long as a digest or a UUID, names the same one wherever it stands."""


def foreign_keys(found: Survey, world: World, state: TableState, carriage: Carriage) -> list[Gap]:
    """A gap for each column by which rows are deleted and into which keys go that lineage does not connect."""
    told = {found.source, *(world.graph.resolve(table.table) for table in found.subject.tables)}
    if state.dataset in told:
        return []
    ways: dict[str, set[tuple[Access, ...]]] = {}
    for name, trace in carriage.terms:
        if _may_repeat(found, trace.origin):
            for column, one in ((name, trace), *trace.beside):
                ways.setdefault(column, set()).add(one.access)
    gaps = []
    for column in sorted(ways):
        unknown = {edge.source for edge in _unknown(found, world, state.dataset, column, ways[column])}
        # what the subject's own key was made of counts from where the key does
        unknown -= _above(found, world) if unknown else set()
        others = sorted(_shown(world, source) for source in unknown)
        others += [
            f"something that the job {job} does not report" for job in _silent(found, world, state.dataset, column)
        ]
        if others:
            gaps.append(
                Gap(
                    id=f"gap-foreign_keys-{slug(title(state))}-{slug(column)}",
                    dataset=state.dataset,
                    kind=GapKind.FOREIGN_KEYS,
                    seen=whole_list(column, others),
                    reason=f"{column} identifies the rows to delete, but is also filled from {', '.join(others[:3])}."
                    " Lineage does not connect that with the person. Equal values may belong to another person, whose"
                    " row would be deleted. If that table contains the same persons, name it under the subject's"
                    " `tables`, or waive this. Otherwise let the job write which of the two a row is of",
                    evidence=carriage.reason,
                )
            )
    return gaps


def _may_repeat(found: Survey, origin: str) -> bool:
    values = [value for _, value in found.keys.base.get(origin, ())]
    return any(map(may_name_another, values))


def may_name_another(value: str) -> bool:
    """Whether somebody else may have the same value in another system."""
    return len(value) < _LONG and not _UNIQUE.match(value)


def _unknown(
    found: Survey, world: World, dataset: DatasetId, column: str, ways: Collection[tuple[Access, ...]]
) -> Iterator[Edge]:
    """The edges by which something else comes where the keys stand: in the column, or at their field of it."""
    here = found.carriages.get(dataset)
    joined = here.joined_keys if here is not None else frozenset()
    for edge in value_edges(world.graph.edges_into_column(ColumnId(dataset=dataset, column=column))):
        if (edge.source, column.lower()) in joined:
            continue
        known = found.carriages.get(edge.source.dataset)
        held = {name.lower() for name in known.columns} if known is not None else set()
        goes_in = any(place.fate is not Fate.COUNTED and place.access in ways for place in along(edge, ()))
        if edge.source.dataset != dataset and edge.source.column.lower() not in held and goes_in:
            yield edge


def _silent(found: Survey, world: World, dataset: DatasetId, column: str) -> list[str]:
    """Jobs without a text whose runs tell of other columns of a table, out of tables of nobody, and not of this one."""
    jobs = world.graph.jobs_into(dataset)
    spoken = {job.job for job in jobs if job.statement}
    if jobs and all(job.job in spoken for job in jobs):
        return []
    filled: dict[str, set[str]] = defaultdict(set)
    of_persons: set[str] = set()
    for edge in value_edges(world.graph.edges_into(dataset)):
        for job in {evidence.job for evidence in edge.evidence if evidence.job} - spoken:
            filled[job].add(edge.target.column.lower())
            if edge.source.dataset == dataset or edge.source.dataset in found.carriages:
                of_persons.add(job)
    return sorted(job for job, told in filled.items() if job not in of_persons and column.lower() not in told)


def _above(found: Survey, world: World) -> set[ColumnId]:
    """The columns from which the source's key, record keys and identifiers come."""
    names = (*found.subject.key_parts, *found.subject.row_keys, *(i.column for i in found.subject.identifiers))
    keys = [ColumnId(dataset=found.source, column=name) for name in names]
    return {column for key in keys for column in world.graph.columns_upstream(key)}


def _shown(world: World, column: ColumnId) -> str:
    return f"{world.title_of(column.dataset)}.{column.column}"
