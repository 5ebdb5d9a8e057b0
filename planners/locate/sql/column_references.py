"""Columns and fields of structs as statements name them: `u.payer.id` is a field here, a column of a table there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

from sqlglot import exp

from pii_tracer.model.datasets import Access, ElementAccess, FieldAccess, JsonAccess

Way = tuple[str, ...]
"""A column, and the fields on the way into its structs."""


def names_of(node: exp.Column) -> list[str]:
    """The names that a column is written with, in lower case: those of its table, and of fields the parser takes so."""
    return [part.name.lower() for part in node.parts]


def way_of(node: exp.Expression) -> Way | None:
    """The names of a column or of a field in its structs, in lower case, those of the table first; None for others."""
    if isinstance(node, exp.Column):
        return tuple(names_of(node))
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        before = way_of(node.this)
        return (*before, node.expression.name.lower()) if before is not None else None
    return None


def uncast(node: exp.Expression) -> exp.Expression:
    """What casts and brackets are put around."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node


def leads_to(fields: Sequence[str], access: tuple[Access, ...]) -> bool:
    """Whether fields of a column lead to what stands at an access of it, or to a struct that it stands in."""
    return beyond(fields, access) is not None


def beyond(fields: Sequence[str], access: tuple[Access, ...]) -> tuple[Access, ...] | None:
    """What is left to go of an access behind some fields; None where they do not lead there.

    A field of a list of structs is the list of that field in Spark: its elements are still to be gone to.
    """
    elements, rest = list[Access](), list(access)
    for name in fields:
        while rest and isinstance(rest[0], ElementAccess) and rest[0].name == "element":
            elements.append(rest.pop(0))
        step = rest.pop(0) if rest else None
        if not isinstance(step, FieldAccess) or step.name.lower() != name.lower():
            return None
    return (*elements, *rest)


def steps_of(access: tuple[Access, ...]) -> Way:
    """The names on the way through structs, lists and packed JSON, one after the other, in lower case."""
    steps = (step.path if isinstance(step, JsonAccess) else (step.name,) for step in access)
    return tuple(name.lower() for names in steps for name in names)


def split(way: Way, names: Collection[str]) -> tuple[str | None, Way]:
    """The relation that a column is qualified with, and the way from the column on. None: it is not qualified.

    As Spark resolves names: what can be a relation's name is one (Catalyst's `AttributeSeq.resolve`, package.scala of
    org.apache.spark.sql.catalyst.expressions).
    """
    place = next((n for n, part in enumerate(way[:-1]) if part in names), None)
    return (None, way) if place is None else (way[place], way[place + 1 :])


def projected(item: exp.Expression, select: exp.Select) -> list[exp.Expression]:
    """The projections that an entry of GROUP BY can mean by its number, or by its name."""
    shown = select.expressions
    if isinstance(item, exp.Literal) and item.is_int:
        number = int(item.name)
        return [uncast(shown[number - 1].unalias())] if 0 < number <= len(shown) else []
    return [uncast(p.this) for p in shown if isinstance(p, exp.Alias) and way_of(item) == (p.alias.lower(),)]


def value_given(entry: exp.Expression) -> exp.Expression:
    """What an assignment gives."""
    return cast(exp.Expression, entry.expression) if isinstance(entry, exp.EQ) else entry
