"""Query logs: every executed statement, each text once. JSON lines (also gzip) or Parquet, read as a stream.

A statement of a log stands alone: temporary views and `USE` of its session are not in it. The column `database` says
where unqualified names were looked up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.config.lineage import QueryLog
from pii_tracer.lineage.sources.evidence import Proof, micros
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.log_lines import Gaps, files_of, objects_of
from pii_tracer.lineage.sources.openlineage.schema_history import Eras
from pii_tracer.lineage.sources.statement_facts import SPARK, Told
from pii_tracer.lineage.sources.statement_templates import skeleton, stands_for_all
from pii_tracer.lineage.sources.table_candidates import Columns, Tables
from pii_tracer.lineage.sql.sql_lineage import Script, known_dialect
from pii_tracer.lineage.sql.statement_effects import StatementLineage
from pii_tracer.lineage.sql.text.table_names import Names
from pii_tracer.model.errors import LineageError
from pii_tracer.model.gap_kinds import LineageGapKind

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz", ".parquet")
_ROWS = 10_000
_YEAR_9999 = 253_370_764_800_000_000
_KEPT_OR_SPACE = re.compile(r"""('[^']*'|"[^"]*"|`[^`]*`|--[^\n]*\n?|/\*.*?\*/)|\s+""", re.DOTALL)


@dataclass(frozen=True, order=True)
class Query:
    """A text that was run, as it is parsed. database: where unqualified names are looked up, or empty."""

    text: str
    dialect: str
    database: str


@dataclass
class Seen:
    """When and where a text was run; ok when one of the runs is known to have ended well."""

    first: tuple[int, str]
    last: tuple[int, str]
    runs: int
    ok: bool


Parser = Callable[[Sequence[Query], Tables], Iterator["list[StatementLineage] | str"]]
"""Statements of each query in order, or why a text could not be cut into statements."""


def parse_here(queries: Sequence[Query], tables: Tables) -> Iterator[list[StatementLineage] | str]:
    """Parse in this process."""
    return (parse_one(query, tables.of(query.text)) for query in queries)


def parse_one(query: Query, known: Mapping[str, Columns]) -> list[StatementLineage] | str:
    """Parse one text for itself."""
    catalog, _, schema = query.database.rpartition(".")
    try:
        return Script(Names(known, catalog or None, schema or None), query.dialect).run(query.text)
    except LineageError as error:
        return error.what


def read_queries(
    log: QueryLog,
    files: Sequence[tuple[Path, str]],
    default: str,
    known: Mapping[str, Columns],
    parser: Parser,
    eras: Eras,
    ledger: Ledger,
    say: Callable[[str], None],
) -> tuple[int, list[Told]]:
    """Rows read, and the statements of their distinct texts.

    Raises:
        LineageError: the log's dialect is not known.
    """
    dialect = known_dialect(log.dialect) if log.dialect else default
    seen: dict[Query, Seen] = {}
    rows = 0
    for file, shown in files:
        gaps = Gaps(shown, kind=LineageGapKind.UNREADABLE_QUERY)
        for number, row in _rows(file, log, gaps):
            rows += 1
            _note(row, number, log, dialect, seen, gaps)
            if rows % 100_000 == 0:
                say(f"{rows} rows of {log.path}, {len(seen)} texts")
        ledger.plain_gaps += gaps.all()
    say(f"parsing {len(seen)} texts of {rows} rows of {log.path}")
    told = [
        one
        for query, when, made in _parsed(seen, parser, Tables(known))
        for one in _told(query, when, made, f"query log {log.path}", eras, ledger)
    ]
    return rows, told


def _parsed(
    seen: Mapping[Query, Seen], parser: Parser, tables: Tables
) -> Iterator[tuple[Query, Seen, list[StatementLineage] | str]]:
    """Every text parsed, or one for all that differ in dates and run ids only, where that makes no difference."""
    groups: dict[Query, list[Query]] = defaultdict(list)
    for query in sorted(seen, key=lambda q: (seen[q].first, q)):
        groups[replace(query, text=skeleton(query.text))].append(query)
    latest = [max(group, key=lambda q: (seen[q].ok, seen[q].last, q)) for group in groups.values()]
    apart: list[Query] = []
    for query, group, made in zip(latest, groups.values(), parser(latest, tables), strict=True):
        if len(group) == 1 or (not isinstance(made, str) and stands_for_all(query.text, made)):
            yield query, _together([seen[q] for q in group]), made
        else:
            apart += group
    for query, made in zip(apart, parser(apart, tables), strict=True):
        yield query, seen[query], made


def _together(all_: Sequence[Seen]) -> Seen:
    return Seen(
        min(s.first for s in all_), max(s.last for s in all_), sum(s.runs for s in all_), any(s.ok for s in all_)
    )  # fmt: skip


def log_files(place: Path) -> list[Path]:
    """The files of a log."""
    return [f for f in files_of(place) if not place.is_dir() or f.name.lower().endswith(_SUFFIXES)]


def _told(
    query: Query, seen: Seen, made: list[StatementLineage] | str, job: str, eras: Eras, ledger: Ledger
) -> Iterator[Told]:
    proof = Proof("sql", job if seen.ok else f"{job}, failed", seen.first, seen.last, seen.runs)
    if isinstance(made, str):
        ledger.gap(None, LineageGapKind.UNREADABLE_SQL, made, proof, "correct the dialect of the log")
        return

    def again(known: Mapping[str, Columns]) -> list[StatementLineage]:
        then = parse_one(query, known)
        return [] if isinstance(then, str) else then

    now, old = eras.resolved(query.text, sorted({seen.first[0], seen.last[0]}), made, again)
    spark = query.dialect in SPARK
    yield from (Told(one, proof, failed=not seen.ok, rebuild=spark) for one in now)
    yield from (Told(one, proof, failed=not seen.ok, rebuild=False) for one in old)


def _rows(file: Path, log: QueryLog, gaps: Gaps) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Number (from 1) and content of each row."""
    if file.name.lower().endswith(".parquet"):
        yield from _parquet(file, log, gaps)
    else:
        yield from objects_of(file, gaps)


def _parquet(file: Path, log: QueryLog, gaps: Gaps) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = [c for c in (log.sql, log.database, log.time, log.status) if c]
    number = 0
    try:
        with pq.ParquetFile(file) as parquet:
            there = [c for c in wanted if c in parquet.schema_arrow.names]
            for batch in parquet.iter_batches(_ROWS, columns=there):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (OSError, pa.ArrowException) as error:
        gaps.add(number + 1, f"the file breaks off ({type(error).__name__})")


def _note(
    row: Mapping[str, Any], number: int, log: QueryLog, dialect: str, seen: dict[Query, Seen], gaps: Gaps
) -> None:
    missing = [c for c in (log.sql, log.database, log.time, log.status) if c and c not in row]
    if missing:
        gaps.add(number, f"the row has no `{missing[0]}`", "correct the columns in the estate file")
    text = row.get(log.sql)
    if not isinstance(text, str) or not text.strip():
        if log.sql not in missing:
            gaps.add(number, "the row holds no SQL text", "correct the log, or leave the row out")
        return
    at = _time(row.get(log.time)) if log.time else 0
    database = row.get(log.database) if log.database else ""
    query = Query(normal(text), dialect, database if isinstance(database, str) else "")
    ok = not log.status or str(row.get(log.status)).upper() in {s.upper() for s in log.succeeded}
    mark = (at or 0, f"{gaps.shown}:{number}")
    known = seen.get(query)
    if known is None:
        seen[query] = Seen(mark, mark, 1, ok)
    else:
        known.first, known.last = min(known.first, mark), max(known.last, mark)
        known.runs, known.ok = known.runs + 1, known.ok or ok


def _time(value: Any) -> int | None:
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
    return text if "\\" in text else _KEPT_OR_SPACE.sub(lambda m: m.group(1) or " ", text)
