"""The readings of the estate: the newest, the trend, and how much lineage explains of each table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pii_tracer.app.estate_readiness import trend_file
from pii_tracer.app.state_views.untrusted_files import Broken, Remembered, key_of
from pii_tracer.model.errors import EstateError
from pii_tracer.readiness.estate_snapshot import TableFacts
from pii_tracer.readiness.readiness_reading import TrendPoint


@dataclass(frozen=True)
class ReadinessTrend:
    """Readings, the oldest first, and the tables of the newest. Findings are in no state: only their numbers are."""

    points: tuple[TrendPoint, ...]
    tables: tuple[TableFacts, ...]

    @property
    def last(self) -> TrendPoint | None:
        """The newest reading; None where none was taken."""
        return self.points[-1] if self.points else None

    def search(self, words: str) -> Sequence[TableFacts]:
        """Tables whose name or owner contains the text, whatever its case; those that lineage explains least first."""
        order = {"none": 0, "partial": 1, "full": 2, "source": 3}
        text = words.strip().lower()
        found = [t for t in self.tables if text in t.name.lower() or text in t.owner.lower()]
        return sorted(found, key=lambda t: (order[t.coverage.value], t.name))


class ReadingsFolder:
    """The folder of the readings, read again when a reading was added."""

    def __init__(self, state: Path) -> None:
        self._folder = state / trend_file.FOLDER
        self._kept: Remembered[ReadinessTrend] = Remembered(1)

    def read(self) -> ReadinessTrend | Broken:
        """The trend; empty before the first reading."""
        trend = self._folder / trend_file.TREND
        try:
            return self._kept.get(trend, self._read) if trend.exists() else self._read()
        except (EstateError, OSError) as error:
            what = error.what if isinstance(error, EstateError) else "the trend cannot be read"
            todo = error.todo if isinstance(error, EstateError) else None
            return Broken(key_of(trend_file.TREND), str(trend), what, todo or "look at the folder's rights")

    def _read(self) -> ReadinessTrend:
        try:
            found = trend_file.read(self._folder)
        except EstateError:  # a reading that ends just now replaces both files, one after the other
            found = trend_file.read(self._folder)
        return ReadinessTrend(found.points, found.last.tables if found.last else ())
