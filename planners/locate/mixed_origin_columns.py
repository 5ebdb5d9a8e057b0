"""Columns by which rows are deleted and that are filled from elsewhere, too: a value there may be somebody else's.

Two sources count from one each, and a UNION puts both numbers into one column; a supplier has a person's phone. Lineage
connects the person with the one and says nothing about the other: nobody can tell whose row a value there names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import Access, ColumnId, DatasetId
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.locate.edge_effects import along, value_edges
from planners.locate.key_location import Carriage
from planners.locate.sql.column_expressions import Fate
from planners.locate.subject_survey import Survey, World, title
from planners.step_drafts import slug, whole_list

Way = tuple[Access, ...]
"""A way into a column."""


def foreign_keys(found: Survey, world: World, state: TableState, carriage: Carriage) -> list[Gap]:
    """A gap for each column by which rows are deleted and into which keys go that lineage does not connect."""
    told = {found.source, *(world.graph.resolve(table.table) for table in found.subject.tables)}
    if state.dataset in told:
        return []
    ways: dict[str, set[Way]] = {}
    for name, trace in carriage.terms:
        if found.coincide[trace.origin, trace.expression]:
            for column, one in ((name, trace), *trace.beside):
                ways.setdefault(column, set()).add(one.access)
    gaps = []
    ends = frozenset(dataset for dataset in told if dataset is not None)
    for column in sorted(ways):
        unknown = set(_unknown(found, world, state.dataset, column, ways[column], ends))
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


def _unknown(
    found: Survey,
    world: World,
    dataset: DatasetId,
    column: str,
    ways: Collection[Way],
    ends: Collection[DatasetId],
) -> Iterator[ColumnId]:
    """The columns out of which something else comes where the keys stand: in the column, or at their field of it.

    Also through tables and views on the way, which may have no rows of their own to ask this about. ends: tables of
    which the estate file says that their values are the persons'.
    """
    waiting: list[tuple[DatasetId, str, frozenset[Way]]] = [(dataset, column, frozenset(ways))]
    done = set(waiting)
    while waiting:
        at, name, places = waiting.pop()
        here = found.carriages.get(at)
        joined = here.joined_keys if here is not None else frozenset()
        for edge in value_edges(world.graph.edges_into_column(ColumnId(dataset=at, column=name))):
            if (edge.source, name.lower()) in joined or edge.source.dataset == at:
                continue
            held = _held(found, edge.source)
            if held is None:
                goes_in = any(p.fate is not Fate.COUNTED and p.access in places for p in along(edge, ()))
                yield from [edge.source] if goes_in else []
                continue
            into = frozenset(way for way in held if any(p.access in places for p in along(edge, way)))
            step = (edge.source.dataset, edge.source.column, into)
            if into and edge.source.dataset not in ends and step not in done:
                done.add(step)
                waiting.append(step)


def _held(found: Survey, column: ColumnId) -> frozenset[Way] | None:
    """Where in a column the persons are; None where nothing of them is known to be in it."""
    known = found.carriages.get(column.dataset)
    for name, carried in known.columns.items() if known is not None else ():
        if name.lower() == column.column.lower():
            return frozenset(trace.access for trace in carried.traces)
    return None


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
