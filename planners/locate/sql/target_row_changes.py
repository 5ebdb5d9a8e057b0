"""What a statement does to the rows of its table: which rows it brings, and in which columns it changes those there.

A statement can bring rows in several ways: a MERGE by each of its INSERTs, Hive's `FROM … INSERT … INSERT …` by each
of its own. One way that gives no identifier is enough for rows that nobody finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.sql.clone_call_alter import emptied
from pii_tracer.lineage.sql.writes import several
from planners.locate.sql.branch_identifiers import (
    UNKNOWN,
    Relation,
    Tables,
    named_in,
    of_columns,
    rows_of,
    table_name,
)


@dataclass(frozen=True)
class Target:
    """The table that is written. names: its columns in their order, none where no schema is known. is_called: whether
    a name in a statement means it.
    """

    names: tuple[str, ...]
    is_called: Callable[[str], bool]


def brought(tree: exp.Expression | None, tables: Tables, target: Target) -> tuple[Relation, ...]:
    """The rows that a statement brings into a table, each way by itself, under the names of the table's columns.

    tables: what a table holds, by its name in the statement.
    """
    if isinstance(tree, exp.Merge):
        return tuple(_merged(tree, tables, target))
    if isinstance(tree, exp.Insert | exp.MultitableInserts):
        return tuple(_inserted(insert, tables, target) for insert in inserts_into(tree, target))
    if isinstance(tree, exp.Query):
        return (rows_of(tree, {}, tables),)
    return (made_by(tree, tables),)


def inserts_into(tree: exp.Insert | exp.MultitableInserts, target: Target) -> Sequence[exp.Insert]:
    """The INSERTs of a statement that write a table; all of them where none is known to."""
    inserts = [tree] if isinstance(tree, exp.Insert) else several(tree)
    return [insert for insert in inserts if len(inserts) > 1 and target.is_called(_name(insert))] or inserts


def made_by(tree: exp.Expression | None, tables: Tables) -> Relation:
    """The rows of a table or view that a CREATE (or CACHE) makes of a query."""
    body = tree.args.get("expression") if isinstance(tree, exp.Create | exp.Cache) else None
    if tree is None or not isinstance(body, exp.Query):
        return UNKNOWN
    rows = rows_of(cast(exp.Expression, body), named_in(tree.args.get("with_"), {}, tables), tables)
    return rows.called(listed(tree.this))


def _name(insert: exp.Insert) -> str:
    place = insert.this.this if isinstance(insert.this, exp.Schema) else insert.this
    return table_name(place) if isinstance(place, exp.Table) else ""


def listed(place: exp.Expression | None) -> list[str]:
    """The columns that are named behind a table."""
    return [c.name for c in place.expressions] if isinstance(place, exp.Schema) else []


def _inserted(tree: exp.Insert, tables: Tables, target: Target) -> Relation:
    body = tree.args.get("expression")
    if not isinstance(body, exp.Query):
        return UNKNOWN
    rows = rows_of(cast(exp.Expression, body), named_in(tree.args.get("with_"), {}, tables), tables)
    return rows.called(filled(tree, target))


def filled(insert: exp.Insert, target: Target) -> Sequence[str]:
    """The columns that the query of an INSERT fills, in its order; none where they are called as in the query."""
    return [] if insert.args.get("by_name") else listed(insert.this) or _unfixed(insert.this, target)


def _unfixed(place: exp.Expression, target: Target) -> Sequence[str]:
    """The columns that a query fills by its order; those of a dynamic PARTITION come last, fixed ones not at all."""
    clause = place.args.get("partition")
    items = clause.expressions if clause is not None else ()
    dynamic = [item.name for item in items if not isinstance(item, exp.EQ)]
    fixed = {name.lower() for name in (*dynamic, *(item.this.name for item in items if isinstance(item, exp.EQ)))}
    return [*(n for n in target.names if n.lower() not in fixed), *dynamic] if target.names else ()


def _clauses(tree: exp.Merge, kind: type[exp.Expression]) -> Iterator[exp.Expression]:
    """What the WHENs of a MERGE do, of one kind."""
    for when in tree.find_all(exp.When):
        then = when.args.get("then")
        if isinstance(then, kind):
            yield then


def _merged(tree: exp.Merge, tables: Tables, target: Target) -> Iterator[Relation]:
    """The rows that a MERGE inserts, for each of its INSERTs."""
    source = tree.args["using"]
    rows = rows_of(source, named_in(tree.args.get("with_"), {}, tables), tables)
    for shown in inserted_values(tree, target):
        if shown:
            yield of_columns(shown, {source.alias_or_name.lower(): rows}, frozenset(), aggregated=False)
        else:
            yield rows


def inserted_values(tree: exp.Merge, target: Target) -> Iterator[list[tuple[str, exp.Expression]]]:
    """Of each INSERT of a MERGE the columns with what goes in; nothing for `INSERT *`, which takes rows as they are."""
    for insert in _clauses(tree, exp.Insert):
        values, told = insert.args.get("expression"), insert.args.get("this")
        columns = [c.name for c in told.expressions] if isinstance(told, exp.Tuple) else target.names
        given = values.expressions if isinstance(values, exp.Tuple) else []
        if isinstance(values, exp.Expression) and not given:  # `INSERT ROW` has a truth value here
            given = [values.unnest()]
        yield list(zip(columns, given, strict=True)) if len(columns) == len(given) > 0 else []


def overwritten(tree: exp.Expression | None, tables: Tables) -> frozenset[str]:
    """Columns (in lower case) in which it puts something else than an identifier into rows which are there already.

    What is dropped, or gets another name, is nothing at all, should a column of this name come later.
    tables: as of `brought`.
    """
    found: set[str] = set(emptied(tree)) if isinstance(tree, exp.Alter) else set()
    for shown, sources, optional in _changes(tree, tables):
        made = of_columns(shown, sources, optional, aggregated=False)
        found |= {name.lower() for name, _ in shown if not made.gives((name.lower(),))}
    return frozenset(found)


_Change = tuple[list[tuple[str, exp.Expression]], dict[str, Relation], frozenset[str]]
"""Columns with what they become, the relations that this comes from, and those that may be empty."""


def _changes(tree: exp.Expression | None, tables: Tables) -> Iterator[_Change]:
    """What UPDATE does, by itself and in a MERGE."""
    if isinstance(tree, exp.Update):
        ctes = named_in(tree.args.get("with_"), {}, tables)
        items = list(tree.find_all(exp.Table, exp.Subquery))
        within = [item for item in items if not item.find_ancestor(exp.Query, exp.EQ, exp.Where)]
        outer = any(join.args.get("side") for join in tree.find_all(exp.Join))
        sources = {item.alias_or_name.lower(): rows_of(item, ctes, tables) for item in within}
        yield _assigned(tree), sources, frozenset(sources if outer else ())
    elif isinstance(tree, exp.Merge):
        source = tree.args["using"]
        rows = rows_of(source, named_in(tree.args.get("with_"), {}, tables), tables)
        sources = {tree.this.alias_or_name.lower(): tables(table_name(tree.this)), source.alias_or_name.lower(): rows}
        for update in _clauses(tree, exp.Update):
            star = any(isinstance(e, exp.Star) for e in update.expressions)
            columns = {name: exp.column(name, table=source.alias_or_name) for name in rows.names or ()}
            yield list(columns.items()) if star else _assigned(update), sources, frozenset()


def _assigned(update: exp.Expression) -> list[tuple[str, exp.Expression]]:
    """`SET column = value` in pairs."""
    pairs = [item for item in update.expressions if isinstance(item, exp.EQ) and isinstance(item.this, exp.Column)]
    return [(item.this.name, item.expression) for item in pairs]
