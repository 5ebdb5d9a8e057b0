"""By what rules the text at a place is read, in any store: what every search of planning and verification asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pii_tracer.model.datasets import Frozen
from pii_tracer.model.hive_text.layout import FileText, TextTable, text_near


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
        return self.of((file.parent.resolve() / file.name).as_posix()) if self.tables else None

    def near(self, folder: str) -> TextPlaces:
        """Those that say how files below a folder are read."""
        above, front = {*_way_up(folder)}, f"{folder.rstrip('/')}/"
        tables = {place: t for place, t in self.tables.items() if place in above or place.startswith(front)}
        unknown = {place: why for place, why in self.unknown.items() if place in above or place.startswith(front)}
        return TextPlaces(tables=tables if any(tables.values()) else {}, unknown=unknown)

    def untold(self, folder: str) -> tuple[str, ...]:
        """Why files in a folder, or below it, cannot be searched by the rules by which they are read."""
        near = self.near(folder)
        known = next((place for place in _way_up(folder) if place in self.tables or place in near.unknown), "")
        inner = (place for place in near.unknown if place == known or place.startswith(f"{folder.rstrip('/')}/"))
        return tuple(f"{place}: {near.unknown[place]}" for place in sorted(inner))


NO_TEXTS = TextPlaces()


def _way_up(folder: str) -> Iterator[str]:
    """A folder and all that it lies in, the innermost first, up to its store."""
    while folder and not folder.endswith(":/"):
        yield folder.rstrip("/") if folder.endswith("/") else folder
        folder = folder.rpartition("/")[0]
