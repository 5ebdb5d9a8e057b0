"""Columns of a place as the plan knows them, and the columns of its own in which Hudi repeats them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from pii_tracer.model.identities import Match
from pii_tracer.scan.key_boundaries import KeyColumns

_HUDI_KEYS = {
    "_hoodie_record_key": "hoodie.table.recordkey.fields",
    "_hoodie_partition_path": "hoodie.table.partition.fields",
}


class Folder(Protocol):
    """A table's folder, wherever it lies."""

    def __truediv__(self, name: str, /) -> Folder: ...

    def read_text(self, encoding: str) -> str: ...


def key_columns(match: Match | None, root: Folder | None = None) -> KeyColumns:
    """The columns in which rows are deleted by `column = key`; terms inside of structs or JSON are none.

    root: the table's folder, where it has one.
    """
    columns: dict[str, frozenset[str]] = {}
    for term in match.terms if match else ():
        if not term.access:
            columns[term.column] = columns.get(term.column, frozenset()) | {term.key_set}
    for own, fields in _made_of(columns, root).items():
        columns[own] = frozenset.intersection(*(columns[field] for field in fields))
    return KeyColumns(columns)


def with_hudi_keys(columns: Iterable[str], root: Folder | None) -> frozenset[str]:
    """Columns, and Hudi's own key columns where all they are made of is among them."""
    given = frozenset(columns)
    return given | _made_of(given, root).keys()


def _made_of(columns: Collection[str], root: Folder | None) -> dict[str, list[str]]:
    """Hudi's own columns that are made of some, with those that each is made of."""
    properties = _hudi_properties(root) if root is not None and columns else {}
    found = {}
    for column, key in _HUDI_KEYS.items():
        fields = [name.strip() for name in properties.get(key, "").split(",") if name.strip()]
        if fields and all(name in columns for name in fields):
            found[column] = fields
    return found


def _hudi_properties(root: Folder) -> Mapping[str, str]:
    try:
        text = (root / ".hoodie" / "hoodie.properties").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, value in pairs}
