"""Columns of a place as the plan knows them, and the columns of its own in which a table format repeats them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pii_tracer.model.datasets import Format, Match
from pii_tracer.scan.decode.table_traces import Folder, table_traces
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.rows.composite_keys import RowKeys


def key_columns(match: Match | None, root: Folder | None = None, kind: Format | None = None) -> KeyColumns:
    """The columns in which rows are deleted by `column = key`; terms inside of structs or JSON are none.

    root: the table's folder, where it has one. kind: of a place whose files are read row by row, where a key has
    several columns.
    """
    columns: dict[str, frozenset[str]] = {}
    for term in match.terms if match else ():
        if not (term.access or term.beside):
            columns[term.column] = columns.get(term.column, frozenset()) | {term.key_set}
    for own, fields in _made_of(columns, root).items():
        columns[own] = frozenset.intersection(*(columns[field] for field in fields))
    return KeyColumns(columns, RowKeys.of(match, kind) if kind else None)


def row_columns(match: Match | None, kind: Format) -> KeyColumns:
    """No columns of which a cell is compared as a whole; rows are compared with keys of several columns."""
    return KeyColumns(rows=RowKeys.of(match, kind))


def with_columns_made(columns: Iterable[str], root: Folder | None) -> frozenset[str]:
    """Columns, and the format's own columns where all they are made of is among them."""
    given = frozenset(columns)
    return given | _made_of(given, root).keys()


def makes_columns(name: Format) -> bool:
    """Whether tables of a format have columns that are made of others."""
    return any(traces.makes_columns for traces in table_traces() if traces.format == name)


def _made_of(columns: Collection[str], root: Folder | None) -> dict[str, Sequence[str]]:
    """A format's own columns that are made of some, with those that each is made of."""
    if root is None or not columns:
        return {}
    made = (item for traces in table_traces() for item in traces.columns_made(root).items())
    return {column: fields for column, fields in made if all(name in columns for name in fields)}
