"""Which columns of a table a place in a file can mean, where the scan saw a value of the persons."""

from __future__ import annotations

from collections.abc import Iterator

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.rows_of_files import fields_in_files, names_in_files
from pii_tracer.model.datasets import Match
from planners.copies.scan_evidence import Place

_SHOWN = frozenset({True})


class PlaceColumns:
    """The columns of one table, by what its files call them."""

    def __init__(self, state: TableState, match: Match, paths: EstatePaths) -> None:
        self._names = names_in_files(state, paths)
        self._fields = fields_in_files(state, paths)
        self._all = frozenset(column.name for column in state.columns)
        self._folders = self._all & set(state.partition_columns)
        self._whole = {t.label().lower() for t in match.terms if t.beside}
        # what a format writes beside the columns is made of them
        self._made = format_of(state.format).added_columns

    def shown(self, place: Place) -> frozenset[bool]:
        """Whether readers show a place among rows: not in a field that the table dropped, under any name. Both, where
        a field of now has the same label, or where the schemas do not say."""
        if place.of_path or place.column is None or (self._made and place.column.startswith(self._made)):
            return _SHOWN
        label = place.column.lower()
        if self._names and not any(top in self._names for top in tops_of(label)):
            return frozenset({False})
        known = next((top for top in tops_of(label) if top in self._fields), None)
        if known is None:
            return _SHOWN
        inside = known != label and any(other.startswith(f"{known}.") for other in self._fields)
        return _SHOWN | {False} if inside else self._fields[known]

    def names_now(self, place: Place) -> Iterator[str]:
        """What readers call the column of a place, and the fields in it, in lower case."""
        label = (place.column or "").lower()
        for top in tops_of(label):
            yield from (name.lower() + label[len(top) :] for name in self._names.get(top, ()))

    def meant(self, place: Place) -> frozenset[str]:
        """The columns to look at for a place, those of keys too: a key may be written there as no match compares it."""
        if place.of_path:
            return self._folders
        if place.column is None:
            return self._all
        if self._made and place.column.startswith(self._made):
            return frozenset()
        label = place.column.lower()
        if label in self._whole:
            return frozenset()
        for top in tops_of(label):
            if columns := self._names.get(top):
                return columns & self._all
        return self._all


def tops_of(label: str) -> Iterator[str]:
    """What the top-level column of a label may be called: a name may hold dots itself."""
    parts = label.split(".")
    for length in range(len(parts), 0, -1):
        yield ".".join(parts[:length])
