"""The one place where reading a table may fail: what fails is a gap of that table, and whoever reads goes on.

Discovery, and planning where it reads rows, files and descriptions of tables, go through here. One broken file, an odd
one, or a library's fault that nobody foresaw does not stop the plan: it blocks it, by a gap that names the place, what
is wrong and a way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from pii_tracer.common.native_panics import panics_as_errors
from pii_tracer.lake.inventory import InventoryGap, TableState
from pii_tracer.lake.read_result import gap
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError, PiiTracerError, ScanError
from pii_tracer.model.gap_kinds import GapKind

Answer = TypeVar("Answer")
Otherwise = TypeVar("Otherwise")


@dataclass
class Readings:
    """Reads tables, and remembers what could not be read: each place and reason once, with all that is not known so."""

    _noted: dict[tuple[DatasetId | None, str, str], dict[str, None]] = field(default_factory=dict)

    @property
    def gaps(self) -> list[InventoryGap]:
        """What could not be read so far."""
        return [
            gap(dataset, GapKind.UNREADABLE, ". ".join((reason, *without)), where)
            for (dataset, where, reason), without in self._noted.items()
        ]

    def of(
        self,
        dataset: DatasetId | None,
        where: str,
        read: Callable[[], Answer],
        otherwise: Otherwise,
        without: str = "",
    ) -> Answer | Otherwise:
        """What a reading of a table gives; where it fails, a gap and `otherwise`.

        where: the table's location, unless the error names a file. without: what is not known then, a whole sentence.
        Errors in what people wrote (the estate file, a request) are raised as they are.
        """
        try:
            with panics_as_errors():
                return read()
        except Exception as error:
            self._note(dataset, where, error, without)
            return otherwise

    def table(
        self, state: TableState, read: Callable[[], Answer], otherwise: Otherwise, without: str = ""
    ) -> Answer | Otherwise:
        """As `of`, for a table that discovery has found."""
        return self.of(state.dataset, state.location, read, otherwise, without)

    def each(self, state: TableState, items: Iterator[Answer], without: str = "") -> Iterator[Answer]:
        """The items of a reading that goes on while it is used, up to the one that fails."""
        while found := self.table(state, lambda: tuple(islice(items, 1)), (), without):
            yield found[0]

    def _note(self, dataset: DatasetId | None, where: str, error: Exception, without: str) -> None:
        place = where
        if isinstance(error, (EstateError, ScanError)):
            reason, place = told(error), error.where or where
        elif isinstance(error, PiiTracerError):
            raise error
        else:  # its text may quote rows
            reason = f"a read failed with an unexpected {type(error).__name__}; check the files and the metadata"
        self._noted.setdefault((dataset, place, reason), {}).update({without: None} if without else {})


def told(error: PiiTracerError) -> str:
    """What happened and the way out, in one sentence."""
    return "; ".join(filter(None, (error.what, error.todo)))
