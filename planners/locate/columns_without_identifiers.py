"""Columns of a copy in which lineage shows no identifier of the persons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from pii_tracer.model.column_paths import leaves
from pii_tracer.model.datasets import Access, Column, FieldAccess
from planners.locate.identifier_traces import ColumnCarriage
from planners.locate.key_location import Carriage, field_name
from planners.locate.sql.column_references import leads_to


def other_key_columns(carriage: Carriage, columns: Iterable[Column]) -> tuple[str, ...]:
    """Columns that lineage shows to hold no identifier of the source: a same number there means something else.

    Of a struct that holds identifiers in known fields, its other fields.
    """
    known = {name: column for name, column in carriage.columns.items() if column}
    others = {column.name for column in columns}.difference(known)
    nested = {name for name, column in known.items() if _in_fields(column)}
    for column in columns if nested else ():
        if column.name in nested:
            ways = leaves(column.name, column.type)
            traces = known[column.name].traces
            others |= {".".join(w) for w in ways if not any(_meets(w[1:], t.access) for t in traces)}
    # a name with a dot of its own reads like a member of another column
    held = {field_name(n, t.access) for n, c in carriage.columns.items() for t in c.traces} | set(carriage.columns)
    return tuple(sorted(others.difference(*(_upto(name) for name in held))))


def _upto(name: str) -> Iterator[str]:
    """`a`, `a.b`, `a.b.c` of `a.b.c`."""
    return accumulate(name.split("."), "{}.{}".format)


def _in_fields(column: ColumnCarriage) -> bool:
    """Whether identifiers stand in fields of a struct alone, and in which ones is known."""
    inside = all(t.access and isinstance(t.access[0], FieldAccess) for t in column.traces)
    return bool(column.traces) and inside and not column.lost and not column.ended


def _meets(fields: Sequence[str], access: tuple[Access, ...]) -> bool:
    """Whether fields lead to an access, or past it."""
    return leads_to(fields[: len(access)], access)
