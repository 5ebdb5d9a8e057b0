"""Rows of `system.access.table_lineage` and `column_lineage`, those that say the same as one.

https://docs.databricks.com/admin/system-tables/lineage. A row names a source, a target, or both, each by the full name
of a table, by a path, or by both. It does not say how a column came to be from another one. Who ran it (`created_by`)
is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pii_tracer.lineage.sources.log_lines import Gaps
from pii_tracer.lineage.sources.query_log.log_rows import moment

TABLES, COLUMNS = "table_lineage", "column_lineage"
ENTITY = ("entity_type", "entity_id")
ENDS = tuple(f"{end}_{part}" for end in ("source", "target") for part in ("table_full_name", "path", "type"))
OF_COLUMNS = ("source_column_name", "target_column_name")
TIME = "event_time"
_TEXTS = (str, int, type(None))
_OF_TABLE_ROWS = (*ENTITY, *ENDS)
_OF_COLUMN_ROWS = (*_OF_TABLE_ROWS, *OF_COLUMNS)


class End(NamedTuple):
    """What a row names as its source or target. name: in full, or empty. path: where it lies, or empty. kind: TABLE,
    VIEW, PATH …
    """

    name: str
    path: str
    kind: str


class Flow(NamedTuple):
    """What a row says. entity: type and id of what ran, empty where none is told. columns: source and target, of rows
    about columns alone; the target is empty where a column was only read.
    """

    entity: tuple[str, str]
    source: End | None
    target: End | None
    columns: tuple[str, str] | None = None


class Seen(NamedTuple):
    """When it was said (microseconds, 0 for unknown), and by how many rows."""

    first: int
    last: int
    rows: int

    def joined(self, other: Seen) -> Seen:
        """Both."""
        known = [at for at in (self.first, other.first) if at]
        return Seen(min(known, default=0), max(self.last, other.last), self.rows + other.rows)


@dataclass
class Flows:
    """All flows of one source."""

    seen: dict[Flow, Seen] = field(default_factory=dict)

    def of(self, table: str) -> Flows:
        """Those of one of the two system tables."""
        return Flows(
            {flow: seen for flow, seen in self.seen.items() if (flow.columns is not None) == (table == COLUMNS)}
        )

    @property
    def since(self) -> int:
        """The time of the oldest row, 0 where none tells a time."""
        return min((one.first for one in self.seen.values() if one.first), default=0)

    @property
    def until(self) -> int:
        """The time of the newest row, 0 where none tells a time."""
        return max((one.last for one in self.seen.values()), default=0)

    @property
    def rows(self) -> int:
        """How many rows they stand for."""
        return sum(one.rows for one in self.seen.values())

    def add(self, flow: Flow, seen: Seen) -> None:
        """One more row, or several."""
        known = self.seen.get(flow)
        self.seen[flow] = seen if known is None else known.joined(seen)

    def take(self, row: Mapping[str, Any], number: int, gaps: Gaps, *, of_columns: bool) -> None:
        """A row as a file has it; a value that is not there is NULL. What says nothing is a gap, and so is a value that
        is neither a text nor a whole number: it could be another one's name."""
        keys = _OF_COLUMN_ROWS if of_columns else _OF_TABLE_ROWS
        odd = [key for key in keys if not isinstance(row.get(key), _TEXTS) or isinstance(row.get(key), bool)]
        if odd:
            gaps.add(number, f"the row has no text in {', '.join(odd)}", "export these columns as text")
            return
        told = tuple(_text(row, key) for key in keys)
        if not any((*told[2:4], *told[5:7])):
            gaps.add(number, "the row names neither a source nor a target", "export every column of the table")
            return
        if of_columns and not any(told[8:]):
            gaps.add(number, "the row names no column", f"export {COLUMNS} with all its columns")
            return
        at = moment(row.get(TIME))
        if not at:
            gaps.add(number, "the row has no time", f"export the column {TIME}")
        self.add(flow_of(told), Seen(at or 0, at or 0, 1))


def flow_of(told: Sequence[str]) -> Flow:
    """What a row says whose columns are `ENTITY`, `ENDS`, and of rows about columns `OF_COLUMNS`; NULL is empty."""
    told = [_printable(text) for text in told]
    source, target = (_end(told[at : at + len(End._fields)]) for at in (2, 5))
    return Flow((told[0], told[1]), source, target, (told[8], told[9]) if told[8:] else None)


def _end(parts: Sequence[str]) -> End | None:
    name, path, kind = parts
    return End(name, path, kind) if name or path else None


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return "" if value is None else str(value).strip()


def _printable(text: str) -> str:
    """Without characters that change what a terminal shows; such a name is no table's."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
