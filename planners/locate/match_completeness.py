"""Which columns find every row that a statement brought persons into, and which rows have no such column.

Every statement counts, and what changed the rows since; rows without a key stay so in whatever is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from pii_tracer.model.datasets import Access, DatasetId
from planners.locate.identifier_traces import ColumnCarriage, Contribution, Trace
from planners.locate.identifier_walk import Walk
from planners.locate.sql.column_references import steps_of
from planners.locate.sql.spark_functions import compute
from planners.locate.sql.statement_rows import Statement
from planners.locate.sql.whole_numbers import NotComputable
from planners.locate.unkeyed_rows import Unkeyed

Covers = Callable[[str, tuple[Access, ...]], bool]


def without_key(walk: Walk) -> dict[DatasetId, Unkeyed]:
    """What is known of rows without a key, by dataset, upstream first: what is made of such rows has none either."""
    thin: dict[DatasetId, frozenset[str]] = {}
    while True:
        before = dict(thin)
        found = {walk.source: Unkeyed(walk, walk.source, thin)}
        for dataset in walk.order:
            found[dataset] = Unkeyed(walk, dataset, thin)
            lacking = _lacking(walk, dataset, found[dataset]) if dataset not in walk.told else None
            thin |= {dataset: lacking} if lacking else {}
        if thin == before or not walk.circular:
            return found


def _lacking(walk: Walk, dataset: DatasetId, rows: Unkeyed) -> frozenset[str]:
    """Columns (in lower case) that have an identifier, and not in every row of a person."""
    told = [name for name, column in walk.columns[dataset].items() if column.traces and all_usable(column)]
    parts, changes = parted(walk, dataset) if told else ([], [])
    if told and parts and rows.others([*parts, *changes]):
        return frozenset(name.lower() for name in told)
    of_part = [covering(walk, dataset, part, changes, rows) for part in parts]
    return frozenset(
        name.lower()
        for name in told
        if any(name not in p.columns or not covers(name, ()) for p, covers in zip(parts, of_part, strict=True))
    )


def parted(walk: Walk, dataset: DatasetId) -> tuple[list[Contribution], list[Contribution]]:
    """What brings persons into a dataset: with rows of theirs, and by changing rows which are there."""
    told = [p for p in walk.contributions(dataset) if p.brings_persons]
    parts = [p for p in told if _adds_rows(walk, p, dataset)]
    return parts, [p for p in told if p not in parts]


def _adds_rows(walk: Walk, part: Contribution, dataset: DatasetId) -> bool:
    """A statement that only changes rows which are there brings nobody new."""
    if all(e.source.dataset == dataset for e in part.edges) and all(
        e.source.dataset == dataset for e in walk.all_edges(dataset, part.tellers)
    ):
        return False
    return part.statement is None or not part.statement.known or part.statement.adds_rows


def covering(
    walk: Walk, dataset: DatasetId, part: Contribution, changes: Sequence[Contribution], rows: Unkeyed
) -> Covers:
    """Of a column's name and a way into it: whether it finds all rows that the contribution brought, and since then
    nothing hid it.
    """
    since = hidden_since(changes, rows)
    givers = _givers(walk, dataset, part)
    return lambda name, access: name.lower() not in since and _covers(walk, dataset, part, (name, access), givers, rows)


def hidden_since(changes: Sequence[Contribution], rows: Unkeyed) -> set[str]:
    """Columns (in lower case) in which statements that changed rows may have put something else, by a condition too."""
    told = ((name.lower(), column) for part in changes for name, column in part.columns.items())
    hidden = {n for n, c in told if not all_usable(c) or any(trace.partial for trace in c.traces)}
    return hidden | rows.overwritten


def _covers(
    walk: Walk,
    dataset: DatasetId,
    part: Contribution,
    place: tuple[str, tuple[Access, ...]],
    givers: Mapping[str, set[DatasetId]],
    rows: Unkeyed,
) -> bool:
    """Whether the place has the identifier in every row that the contribution brings a person in."""
    name, access = place
    if not _usable_in(part.columns[name], part.statement) or any(t.partial for t in part.columns[name].traces):
        return False
    into = givers.get(name.lower(), set())
    all_give = all(carriers <= into for carriers in givers.values())
    statement = part.statement
    if statement is None or not statement.known:
        if rows.lacks(part, name, into, access):
            return False
        return not rows.united(part, name) and (all_give or not rows.looks_united(part))
    if statement.pivots and rows.united(part, name):
        return False
    if rows.lacks(part, name, into, access) or (statement.unites and not all_give):
        return False
    if not all_give and statement.outer:
        return False
    return all_give or not statement.preserved or bool(into & {walk.named(table) for table in statement.preserved})


def _givers(walk: Walk, dataset: DatasetId, part: Contribution) -> dict[str, set[DatasetId]]:
    """By column: the other datasets from which identifiers come into it."""
    found: dict[str, set[DatasetId]] = {}
    for edge in part.edges:
        came = walk.column(edge.source.dataset, edge.source.column)
        if edge.source.dataset != dataset and came is not None and (came.traces or came.lost):
            found.setdefault(edge.target.column.lower(), set()).add(edge.source.dataset)
    return found


def all_usable(column: ColumnCarriage) -> bool:
    """Whether every identifier that goes into the column can be found in it."""
    return not {t.origin for t in column.traces} & column.lost and all(usable(t) for t in column.traces)


def _usable_in(column: ColumnCarriage, statement: Statement | None) -> bool:
    """Whether what can be found in the column is in every row of a statement.

    Of a struct, or of packed JSON, one field says nothing against another: beside `id` there may be a list of e-mail
    addresses. Not where branches may fill them by turns, or the statement is not known.
    """
    if all_usable(column):
        return True
    found = {t.access for t in column.traces if usable(t)}
    if statement is None or not statement.known or statement.unites or {t.origin for t in column.traces} & column.lost:
        return False
    others = [t.access for t in column.traces if not usable(t)]
    return bool(found) and all(_apart(one, other) for one in found for other in others)


def _apart(one: tuple[Access, ...], other: tuple[Access, ...]) -> bool:
    """Neither is the other, nor inside it."""
    return any(a != b for a, b in zip(steps_of(one), steps_of(other), strict=False))


def usable(trace: Trace) -> bool:
    return _computable(trace.expression)


@lru_cache(maxsize=100_000)
def _computable(expression: str) -> bool:
    """True when the expression can be evaluated for some value; tried with digits, which every cast accepts. A large
    number may have no certain multiple.
    """
    for digits in ("1234567890", "7"):
        try:
            compute(expression, digits)
        except NotComputable:
            continue
        return True
    return False
