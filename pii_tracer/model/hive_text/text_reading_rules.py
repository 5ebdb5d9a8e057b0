"""By what rules the text at a place is read, in any store: what every search of planning and verification asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath

from pii_tracer.model.datasets import Frozen
from pii_tracer.model.hive_text.layout import FileText, TextTable, text_near
from pii_tracer.model.locations import below


class TextPlaces(Frozen):
    """The folders of tables. A folder is written as its location, without a slash at its end; one of this machine is
    its real path.

    tables: how the text in each is read; None of a table that is no text by columns. unknown: folders with files that
    catalogs name and of which nobody knows how they are read, and why.
    """

    tables: dict[str, TextTable | None] = {}
    unknown: dict[str, str] = {}

    @classmethod
    def of_table(cls, folder: str, text: TextTable | None) -> TextPlaces:
        """Those of one folder alone."""
        return cls(tables={folder.rstrip("/"): text}) if text else NO_TEXTS

    def around(self, folder: str) -> tuple[TextTable, PurePosixPath] | None:
        """The innermost table that a folder is, or lies below, if it is one of text; and the folder's path in it."""
        for place in _way_up(folder) if self.tables else ():
            if text := self.tables.get(place):
                return text, PurePosixPath(folder[len(place) + 1 :])
            if place in self.tables or place in self.unknown:
                return None
        return None

    def of(self, file: str) -> FileText | None:
        """How a file is searched, by its location: it may have been one of the table's before."""
        folder, _, name = file.rpartition("/")
        found = self.around(folder)
        return found and text_near(found[0], "", (found[1] / name).as_posix())

    def of_path(self, file: Path) -> FileText | None:
        """As `of`, of a file of this machine."""
        return self.of(f"{self._real(file.parent)}/{file.name}") if self.tables else None

    def near(self, folder: str) -> TextPlaces:
        """Those that say how files below a folder are read."""
        around = [*_way_up(folder)]
        inside = below(folder, self._table_places), below(folder, self._unknown_places)
        tables = {place: self.tables[place] for place in (*around, *inside[0]) if place in self.tables}
        unknown = {place: self.unknown[place] for place in (*around, *inside[1]) if place in self.unknown}
        return TextPlaces(tables=tables if any(tables.values()) else {}, unknown=unknown)

    def untold(self, folder: str) -> tuple[str, ...]:
        """Why files in a folder, or below it, cannot be searched by the rules by which they are read."""
        around = (place for place in _way_up(folder) if place in self.tables or place in self.unknown)
        told = {*below(folder, self._unknown_places), *({*islice(around, 1)} & self.unknown.keys())}
        return tuple(f"{place}: {self.unknown[place]}" for place in sorted(told))

    @cached_property
    def _table_places(self) -> Sequence[str]:
        return sorted(self.tables)

    @cached_property
    def _unknown_places(self) -> Sequence[str]:
        return sorted(self.unknown)

    def _real(self, folder: Path) -> str:
        """A folder with links followed. Files are asked for one folder after the other, twice in a row."""
        known, real = self._last[0]
        if known != folder:
            real = folder.resolve().as_posix().rstrip("/")
            self._last[0] = folder, real
        return real

    @cached_property
    def _last(self) -> list[tuple[Path | None, str]]:
        return [(None, "")]


NO_TEXTS = TextPlaces()


def _way_up(folder: str) -> Iterator[str]:
    """A folder and all that it lies in, the innermost first, up to its store."""
    while folder and not folder.endswith(":/"):
        yield folder.rstrip("/") if folder.endswith("/") else folder
        folder = folder.rpartition("/")[0]
