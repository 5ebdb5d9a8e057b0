"""Rows over several groups: ROLLUP, CUBE and GROUPING SETS put NULL into what a grouping set leaves out.

`GROUP BY GROUPING SETS ((cust, region), (region))` gives each person's totals under her key, and those of a region with
no key, with her share in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import cast

from sqlglot import exp

from planners.locate.sql.column_references import (
    Way,
    projected,
    split,
    uncast,
    way_of,
)

_SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)
_WITH = ("rollup", "cube", "grouping_sets")
"""Arguments of a GROUP BY of which `WITH ROLLUP` and the like are made: then its entries only name what is grouped."""


def has_subtotals(group: exp.Expression | None) -> bool:
    """Whether a GROUP BY makes rows over several of its groups."""
    return group is not None and (
        any(group.args.get(kind) for kind in _WITH) or any(isinstance(entry, _SEVERAL) for entry in group.expressions)
    )


def as_in_subtotals(
    shown: Iterable[tuple[str, exp.Expression]], select: exp.Select, aliases: Collection[str]
) -> list[tuple[str, exp.Expression]]:
    """The columns of a query with NULL for what some of its grouping sets leave out. aliases: of its relations."""
    entries = [e for entry in _in_every_set(select.args["group"]) for e in (entry, *projected(entry, select))]
    kept = [uncast(entry) for entry in entries]
    ways = [split(way, aliases) for entry in kept if (way := way_of(entry)) is not None]
    return [(name, _without(value, kept, ways, aliases)) for name, value in shown]


def _in_every_set(group: exp.Expression) -> list[exp.Expression]:
    """What every row is grouped by."""
    if not any(group.args.get(kind) for kind in _WITH):
        return [part for entry in group.expressions for part in _of_entry(entry)]
    return [part for sets in group.args.get("grouping_sets") or () for part in _of_entry(sets)]


def _of_entry(entry: exp.Expression) -> list[exp.Expression]:
    """What all grouping sets of one entry have."""
    if isinstance(entry, exp.Rollup | exp.Cube):
        return []  # one of their sets is the empty one
    if isinstance(entry, exp.GroupingSets):
        first, *others = [_of_entry(one) for one in entry.expressions] or [[]]
        return [part for part in first if all(part in other for other in others)]
    if isinstance(entry, exp.Tuple):
        return [part for one in entry.expressions for part in _of_entry(one)]
    return _of_entry(cast(exp.Expression, entry.this)) if isinstance(entry, exp.Paren) else [entry]


def _without(
    value: exp.Expression,
    kept: Collection[exp.Expression],
    ways: Collection[tuple[str | None, Way]],
    aliases: Collection[str],
) -> exp.Expression:
    made = value.copy()
    for node in list(_left_out(made, kept, ways, aliases)):
        if node is made:
            return exp.Null()
        node.replace(exp.Null())
    return made


def _left_out(
    node: exp.Expression,
    kept: Collection[exp.Expression],
    ways: Collection[tuple[str | None, Way]],
    aliases: Collection[str],
) -> Iterator[exp.Expression]:
    """Columns and fields that are NULL in some rows. What is aggregated is read before that, a window's rows after."""
    way = way_of(node)
    if way is not None:
        if not any(_same(split(way, aliases), other) for other in ways):
            yield node
    elif node not in kept and not _aggregates(node) and not isinstance(node, exp.Subquery):
        for child in node.iter_expressions():
            yield from _left_out(child, kept, ways, aliases)


def _aggregates(node: exp.Expression) -> bool:
    call = node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node
    told = isinstance(call, exp.AggFunc) and not isinstance(call, exp.Grouping | exp.GroupingId)
    return told and not isinstance(node.parent, exp.Window)


def _same(one: tuple[str | None, Way], grouped: tuple[str | None, Way]) -> bool:
    """Whether a column is what is grouped by, or a field of it."""
    (table, way), (of, by) = one, grouped
    return way[: len(by)] == by and (table == of or None in (table, of))


def grouped_by(select: exp.Select) -> list[exp.Expression]:
    """What every row of a query is grouped by; nothing where it has rows over several groups (ROLLUP, CUBE, …)."""
    group = select.args.get("group")
    if group is None or any(group.args.get(more) for more in ("rollup", "cube", "grouping_sets")):
        return []
    if group.args.get("all"):
        return [projection.unalias() for projection in select.expressions]
    return [entry for item in group.expressions for entry in (item, *projected(item, select))]
