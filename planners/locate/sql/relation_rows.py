"""A relation inside a statement, as far as it says whose values stand in its rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from pii_tracer.model.datasets import ColumnId
from planners.locate.sql.column_references import Way

Origins = frozenset[str]
"""Columns of the subject's source whose values stand in a column."""

Values = frozenset[ColumnId]
"""Columns of tables out of whose rows values stand in a column."""

NONE: Origins = frozenset()
NO_VALUES: Values = frozenset()


@dataclass(frozen=True)
class PersonKeys:
    """What tells a person's rows. each: origins that do so by themselves. together: those of a key of several columns,
    which do so only all together."""

    each: Origins = NONE
    together: Origins = NONE

    def tell(self, origins: Collection[str]) -> bool:
        """Whether rows that are alike in these are one person's."""
        return not self.each.isdisjoint(origins) or (bool(self.together) and self.together.issubset(origins))

    def link(self, origins: Origins) -> bool:
        """Whether a join on these joins rows of one person: identifiers of hers do so, too."""
        return bool(origins - self.together) or (bool(self.together) and self.together <= origins)


EACH = PersonKeys()
"""Every identifier links rows by itself."""


@dataclass(frozen=True)
class Rows:
    """A relation inside a statement: whether its rows hold a person, and where. opaque: nothing is known of it.

    personal: whether it has values out of rows of persons, identifiers or not; values: whence those of a column are.
    names: its columns in lower case and in order; None where they are not known.
    """

    carrier: bool
    origins: Callable[[Way], Origins]
    opaque: bool = False
    personal: bool = False
    values: Callable[[Way], Values] = field(default=lambda way: NO_VALUES)
    names: tuple[str, ...] | None = None
