"""Columns that a table computes from its other columns by itself, whatever statement writes those."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.sql.queries import Query
from pii_tracer.lineage.sql.relations import Field, Relation
from pii_tracer.lineage.sql.scopes import Scope, Source
from pii_tracer.lineage.sql.statements.filled_columns import reads_columns

Computed = tuple[tuple[str, exp.Expression], ...]
"""Columns with the expressions that they are made by."""


def computed_by(defs: Iterable[exp.ColumnDef]) -> Computed:
    """GENERATED ALWAYS AS, computed and MATERIALIZED columns, and defaults made of other columns."""
    found = []
    for column in defs:
        for constraint in column.args.get("constraints") or ():
            kind = constraint.args.get("kind")
            if isinstance(kind, exp.ComputedColumnConstraint) or (
                isinstance(kind, exp.DefaultColumnConstraint) and reads_columns(kind)
            ):
                found.append((column.name, cast(exp.Expression, kind.this)))
            elif isinstance(kind, exp.GeneratedAsIdentityColumnConstraint) and kind.expression is not None:
                found.append((column.name, cast(exp.Expression, kind.expression)))  # without STORED or VIRTUAL
    return tuple(found)


def with_computed(query: Query, target: str, fields: Sequence[Field]) -> list[Field]:
    """What a write puts into a table, and what the table makes of it."""
    rules = query.names.computed(target)
    if not rules:
        return list(fields)
    written = {f.name.lower() for f in fields}
    there = query.lookup(target)
    row = Relation([*fields, *(f for f in there.fields if f.name.lower() not in written)], there.rest, there.base)
    return [*fields, *fields_of(query, rules, row, written)]


def fields_of(query: Query, rules: Computed, row: Relation, written: Iterable[str] | None = None) -> list[Field]:
    """The columns computed from a row. written: the row's columns that are new; others change nothing."""
    result = []
    for name, expression in rules:
        read = {c.name.lower() for c in expression.find_all(exp.Column)}
        if (written is None or read & set(written)) and name.lower() not in set(written or ()):
            scope = Scope(query.findings, [Source((), row)])
            result.append(query.field(expression, scope, {}).named(name))
    return result
