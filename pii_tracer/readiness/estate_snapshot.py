"""What one reading keeps of an estate, so that the next one can say what changed. It holds names and settings only."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pii_tracer.common.str_enum import StrEnum

FOR_EVER = 1e9
"""Days of a setting that keeps old data without an end."""


class Coverage(StrEnum):
    """How much of a table lineage explains.

    source: persons come in there, by the estate file's word. full: values lead into every column. partial: into some of
    them, or the table only feeds others. none: lineage does not know the table.
    """

    SOURCE = "source"
    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


class Setting(msgspec.Struct, frozen=True):
    """One setting that can keep old bytes. days: how long it keeps them; None where its value is no time."""

    value: str
    days: float | None = None


UNKNOWN = Setting("unknown")
"""Of a setting that could not be asked for."""


class TableFacts(msgspec.Struct, frozen=True):
    """One table. columns: name and type. keys: columns into which lineage leads values of the subjects.

    explained: columns with a value edge into them. jobs: names of jobs that write it. written: its current content.
    """

    name: str
    location: str
    owner: str
    coverage: Coverage
    columns: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ()
    explained: int = 0
    jobs: tuple[str, ...] = ()
    written: str = ""
    settings: dict[str, Setting] = {}


class PlaceFacts(msgspec.Struct, frozen=True):
    """A bucket, prefix, topic or repository. versioned: whether it keeps replaced objects; None where nobody knows."""

    name: str
    owner: str
    versioned: bool | None = False
    settings: dict[str, Setting] = {}


class EstateState(msgspec.Struct, frozen=True):
    """Everything that the next reading compares with. at: ISO 8601. first_seen: by finding id, ISO 8601."""

    number: int
    at: str
    tables: tuple[TableFacts, ...]
    places: tuple[PlaceFacts, ...] = ()
    first_seen: dict[str, str] = {}

    def by_location(self) -> Mapping[str, TableFacts]:
        """Tables by where they lie."""
        return {table.location: table for table in self.tables}
