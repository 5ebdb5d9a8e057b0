"""Columns that hold another system's numbers, by the owner's word."""

from __future__ import annotations

from collections.abc import Iterable

from pii_tracer.model.datasets import DatasetId, Frozen


class NotKeys(Frozen):
    """A column that holds another system's numbers: one that equals a person's key there is not the person.

    labels: what files call the column. key_sets: those that it holds none of. owner, reason: whose word that is, and
    what the numbers are. copied_from: the declared column (`table.column`), where lineage shows that all in this one is
    copied from it; None where this is the declared one.
    """

    table: str
    column: str
    dataset: DatasetId
    location: str
    labels: tuple[str, ...]
    key_sets: tuple[str, ...]
    owner: str
    reason: str
    copied_from: str | None = None

    @property
    def name(self) -> str:
        """`table.column`."""
        return f"{self.table}.{self.column}"

    @property
    def told(self) -> str:
        """What people read of it."""
        copied = f", copied from {self.copied_from}" if self.copied_from else ""
        return f"{self.name}{copied}: its numbers are not keys of the person, says {self.owner}: {self.reason}"


NoKeys = dict[str, frozenset[str]]
"""By label of a column, the key sets that it holds none of."""


def no_keys_of(columns: Iterable[NotKeys]) -> NoKeys:
    """What columns of one table hold none of."""
    found: NoKeys = {}
    for item in columns:
        for label in item.labels:
            found[label] = found.get(label, frozenset()).union(item.key_sets)
    return found


def no_keys_at(columns: Iterable[NotKeys], *places: DatasetId | str) -> NoKeys:
    """The same of those columns whose table is one of some datasets or locations."""
    return no_keys_of(item for item in columns if item.dataset in places or item.location in places)
