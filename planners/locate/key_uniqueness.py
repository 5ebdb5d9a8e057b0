"""Whether the rows of a source that have one key look like one person's, by what they say of the person.

Where numbers are counted anew by each tenant, there is a person 7 in every tenant, and a request for key 7 would take
them all. What comes out of here holds no value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

Cells = frozenset[tuple[str, str]]
"""What a row says of its person: columns of identifiers, and the values in them."""

Texts = Sequence[str | None]


@dataclass(frozen=True)
class SameKey:
    """The current rows that have one key.

    groups: how many they are, where rows with a value in common count once. persons: as how many persons they look at
    least; columns: by which of the identifiers, sorted. other_texts: how many other keys of
    the source are texts of the same number (`4711.0` beside `4711`): their rows are found, too.
    """

    rows: int
    groups: int
    persons: int
    columns: tuple[str, ...]
    other_texts: int = 0


def same_key(keys: Texts, identifiers: Mapping[str, Texts], wanted: Collection[str]) -> dict[str, SameKey]:
    """By wanted key, its rows, where it has several. identifiers: by column, row by row as `keys`.

    Rows with an identifier's value in common are one person's, also by way of other rows: whoever changed the phone
    and later the e-mail has one of the two in common with the rows between. A value that other keys have, too (a
    switchboard, `unknown`) connects rows in its own column alone. Groups of rows that differ in a column are different
    persons; an empty cell tells nothing.
    """
    mine: dict[str, list[Cells]] = {key: [] for key in wanted}
    for key, cells in _rows(keys, identifiers, mine):
        mine[key].append(cells)
    several = {key: rows for key, rows in mine.items() if len(rows) > 1}
    shared = _shared(several, _rows(keys, identifiers)) if several else frozenset()
    return {key: _judged(rows, shared) for key, rows in several.items()}


def _rows(
    keys: Texts, identifiers: Mapping[str, Texts], wanted: Collection[str] | None = None
) -> Iterator[tuple[str, Cells]]:
    """Rows with a key, or with a wanted one. `Rao@x.example` may be the same mailbox as `rao@x.example`, and a column
    of a fixed length pads with blanks. A row without a key may be anybody's, also the person's.
    """
    names = tuple(identifiers)
    for key, *values in zip(keys, *identifiers.values(), strict=True):
        if key and (wanted is None or key in wanted):
            told = ((name, value.strip().casefold()) for name, value in zip(names, values, strict=True) if value)
            yield key, frozenset(cell for cell in told if cell[1])


def _shared(several: Mapping[str, Sequence[Cells]], rows: Iterator[tuple[str, Cells]]) -> Cells:
    """What rows of these keys say, and those of another key, too."""
    owner = {cell: key for key, mine in several.items() for cells in mine for cell in cells}
    return frozenset(cell for key, cells in rows for cell in cells if owner.get(cell, key) != key)


def _judged(rows: Sequence[Cells], shared: Cells) -> SameKey:
    persons = {}
    for column in sorted({name for cells in rows for name, _ in cells}):
        groups = _groups(rows, frozenset(cell for cell in shared if cell[0] != column))
        says = {group for group, cells in zip(groups, rows, strict=True) if any(name == column for name, _ in cells)}
        persons[column] = len(says)
    return SameKey(
        rows=len(rows),
        groups=len(set(_groups(rows, shared))),
        persons=max(persons.values(), default=1),
        columns=tuple(column for column, number in persons.items() if number > 1),
    )


def _groups(rows: Sequence[Cells], mute: Cells) -> list[int]:
    """The group of each row: rows with a cell in common that is not mute are in one (union-find)."""
    parent = list(range(len(rows)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    first: dict[tuple[str, str], int] = {}
    for number, cells in enumerate(rows):
        for cell in cells - mute:
            parent[root(number)] = root(first.setdefault(cell, number))
    return [root(number) for number in range(len(rows))]
