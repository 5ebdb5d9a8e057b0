"""Rows of a query log: JSON lines (also gzip) or Parquet, read as a stream, each with its text in one spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.config.lineage import QueryLog
from pii_tracer.lineage.sources.evidence_merging import micros
from pii_tracer.lineage.sources.log_lines import Gaps, files_of, objects_of

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz", ".parquet")
_ROWS = 10_000
_YEAR_9999 = 253_370_764_800_000_000
_KEPT_OR_SPACE = re.compile(r"""('[^']*'|"[^"]*"|`[^`]*`|--[^\n]*\n?|/\*.*?\*/)|\s+""", re.DOTALL)
_OTHER_SPACE = re.compile(r"[^\S ]|  ")
_REMARK = r"/\*(?![+!])(?:(?!\*/).)*\*/"
_REMARKS_AROUND = re.compile(rf"^(?:\s*{_REMARK})+|(?:\s*{_REMARK})+\s*$", re.DOTALL)
"""Comments before and after a statement, in which clients write who sent it. Hints (`/*+`, `/*!`) are none."""


@dataclass(frozen=True)
class Row:
    """A statement that was run. database: where unqualified names are looked up, or empty. mark: time (microseconds,
    0 for unknown) and place. ok: whether it is known to have ended well.
    """

    text: str
    database: str
    mark: tuple[int, str]
    ok: bool


def log_files(place: Path) -> list[Path]:
    """The files of a log."""
    return [f for f in files_of(place) if not place.is_dir() or f.name.lower().endswith(_SUFFIXES)]


class LogRows:
    """The rows of one file. read: how many it has, those without a text included."""

    def __init__(self, file: Path, log: QueryLog, gaps: Gaps) -> None:
        self._file, self._log, self._gaps = file, log, gaps
        self._succeeded = {s.upper() for s in log.succeeded}
        self._wanted = [c for c in (log.sql, log.database, log.time, log.status) if c]
        self.read = 0

    def __iter__(self) -> Iterator[Row]:
        parquet = self._file.name.lower().endswith(".parquet")
        for number, row in self._parquet() if parquet else objects_of(self._file, self._gaps):
            self.read += 1
            if (one := self._row(row, number)) is not None:
                yield one

    def _parquet(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Number (from 1) and content of each row."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        number = 0
        try:
            with pq.ParquetFile(self._file) as parquet:
                there = [c for c in self._wanted if c in parquet.schema_arrow.names]
                for batch in parquet.iter_batches(_ROWS, columns=there):
                    for row in batch.to_pylist():
                        number += 1
                        yield number, row
        except (OSError, pa.ArrowException) as error:
            self._gaps.add(number + 1, f"the file ends too early ({type(error).__name__})")

    def _row(self, row: Mapping[str, Any], number: int) -> Row | None:
        log = self._log
        missing = next((c for c in self._wanted if c not in row), None)
        if missing:
            self._gaps.add(number, f"the row has no `{missing}`", "correct the columns in the estate file")
        text = row.get(log.sql)
        if not isinstance(text, str) or not text.strip():
            if log.sql in row:
                self._gaps.add(number, "the row contains no SQL text", "correct the log, or leave the row out")
            return None
        at = moment(row.get(log.time)) if log.time else 0
        database = row.get(log.database) if log.database else ""
        ok = not log.status or str(row.get(log.status)).upper() in self._succeeded
        mark = (at or 0, f"{self._gaps.shown}:{number}")
        return Row(without_remarks(normal(text)), database if isinstance(database, str) else "", mark, ok)


def moment(value: Any) -> int | None:
    """Microseconds of a text, a number of (milli)seconds since 1970, or a moment as Parquet has it."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        at = value * (1_000 if abs(value) >= 1e11 else 1_000_000)
        return int(at) if 0 <= at < _YEAR_9999 else None
    if isinstance(value, datetime):
        value = value.isoformat()
    return micros(value) if isinstance(value, str) else None


def normal(text: str) -> str:
    """One spelling for texts that differ in white space only, outside of quotes and comments.

    A backslash can hide the end of a quoted text in some dialects and not in others: such texts stay as they are.
    """
    text = text.strip().rstrip("; \t\r\n")
    if "\\" in text or not _OTHER_SPACE.search(text):
        return text
    return _KEPT_OR_SPACE.sub(lambda m: m.group(1) or " ", text)


def without_remarks(text: str) -> str:
    """The text without the comments before and after it; a text of comments alone stays."""
    if not text.startswith("/*") and not text.endswith("*/"):
        return text
    return _REMARKS_AROUND.sub("", text).strip().rstrip("; \t\r\n") or text
