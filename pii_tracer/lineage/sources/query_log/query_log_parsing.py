"""Query logs: every executed statement, each shape of them parsed once.

A statement of a log stands alone: temporary views and `USE` of its session are not in it. The column `database` says
where unqualified names were looked up.

The log is read as a stream, and again where texts of one shape turn out to differ in what their lineage depends on.
What stays in memory grows with the shapes, not with the rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pii_tracer.common.plurals import counted
from pii_tracer.config.lineage import QueryLog
from pii_tracer.lineage.graph.edges import LineageGap
from pii_tracer.lineage.sources.evidence_merging import Proof
from pii_tracer.lineage.sources.fact_ledger import Ledger
from pii_tracer.lineage.sources.log_lines import Gaps
from pii_tracer.lineage.sources.openlineage.schema_history import Eras
from pii_tracer.lineage.sources.query_log.log_rows import LogRows, Row
from pii_tracer.lineage.sources.query_log.shape_parsing import Parser, Query, Reading, parse_one
from pii_tracer.lineage.sources.query_log.statement_shapes import dates, filled, hidden, markers, shape_of
from pii_tracer.lineage.sources.statement_facts import SPARK, Told
from pii_tracer.lineage.sources.table_candidates import Columns, Tables
from pii_tracer.lineage.sql.known_dialects import known_dialect
from pii_tracer.lineage.sql.statement_effects import Effect, StatementLineage
from pii_tracer.model.gap_kinds import LineageGapKind

_RUN_AGAIN = frozenset({Effect.REPLACE, Effect.VIEW, Effect.CLONE})
"""Effects of statements that Spark can be given again: which literals the last one had decides what it makes."""
_RECORDED = _RUN_AGAIN | {Effect.APPEND}
"""Effects of statements whose texts are recorded to be run again, as far as they read anything."""
_TOLD_AFTER = 100_000
_PARSED_AFTER = 10_000

_Key = tuple[Query, tuple[str, ...]]
"""A text with markers, and the values that texts of it are told apart by although they have one lineage."""


@dataclass
class _Group:
    """When and where texts of one key were run; ok when one of the runs is known to have ended well.

    latest: the last run, one that ended well before any other, with what stood at the markers. alike: whether the same
    stood there in all runs.
    """

    first: tuple[int, str]
    last: tuple[int, str]
    runs: int
    ok: bool
    latest: tuple[bool, tuple[int, str], tuple[str, ...]]
    alike: bool = True

    def add(self, row: Row, values: tuple[str, ...]) -> None:
        self.alike = self.alike and values == self.latest[2]
        self.first, self.last = min(self.first, row.mark), max(self.last, row.mark)
        self.runs, self.ok = self.runs + 1, self.ok or row.ok
        self.latest = max(self.latest, (row.ok, row.mark, values))


@dataclass
class _Shapes:
    """Texts by shape, and how those of one shape are told apart.

    fills: of a text with markers, those whose literals its lineage depends on. apart: those that tell texts of one
    lineage apart. rows: the number of each row's shape, so that rows of settled shapes are passed over when the log is
    read again.
    """

    dialect: str
    fills: dict[Query, frozenset[int]] = field(default_factory=dict)
    apart: dict[Query, tuple[int, ...]] = field(default_factory=dict)
    readings: dict[Query, Reading] = field(default_factory=dict)
    rows: array[int] = field(default_factory=lambda: array("L"))
    _numbers: dict[Query, int] = field(default_factory=dict)
    _partly: set[Query] = field(default_factory=set)

    def first_key(self, row: Row) -> tuple[_Key, tuple[str, ...]]:
        """Where a row belongs before anything is parsed, and what stands at its markers."""
        shaped = shape_of(row.text)
        query = Query(shaped.marked, self.dialect, row.database)
        self.rows.append(self._numbers.setdefault(query, len(self._numbers)))
        return (query, ()), shaped.values

    def open_rows(self) -> set[int]:
        """Numbers of the shapes whose texts are told apart."""
        return {number for query, number in self._numbers.items() if query in self.fills or query in self.apart}

    def key(self, row: Row) -> tuple[_Key, tuple[str, ...]]:
        """Where a row belongs, as far as its shape is known yet."""
        shaped = shape_of(row.text)
        return self.told_apart(Query(shaped.marked, self.dialect, row.database), shaped.values), shaped.values

    def told_apart(self, query: Query, values: tuple[str, ...]) -> _Key:
        """A text by what its lineage is known to depend on. values: what stands at its markers."""
        while query in self.fills:
            query = replace(query, text=filled(query.text, values, self.fills[query]))
            self._partly.add(query)
        return query, tuple(values[n] for n in self.apart.get(query, ()))

    def learn(self, query: Query, reading: Reading) -> bool:
        """Whether the texts of a shape have to be looked at again, now that it was parsed."""
        if reading.used:
            # a second time, after others were filled in: the text is read as it is
            more = markers(query.text) if query in self._partly else reading.used
            self.fills[query] = frozenset(more)
            return True
        self.readings[query] = reading
        again = query.dialect in SPARK and any(one.effect in _RUN_AGAIN for one in reading.statements)
        kept = tuple(sorted(markers(query.text) - dates(query.text))) if again else ()
        if kept:
            self.apart[query] = kept
        return bool(kept)


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
    shapes = _Shapes(known_dialect(log.dialect) if log.dialect else default)
    tables = Tables(known)
    found: dict[_Key, _Group] = {}
    new: dict[_Key, _Group] = {}
    rows = 0
    for row, rows in _rows(log, files, ledger.plain_gaps):
        if row is not None:
            _note(new, row, *shapes.first_key(row))
        if rows % _TOLD_AFTER == 0:
            say(f"{counted(rows, 'row')}, {counted(len(new), 'shape')}")
    while new:
        say(f"parsing {counted(len(new), 'shape')} of {counted(rows, 'row')}")
        again = _parsed(new, parser, tables, shapes, say)
        found |= {key: group for key, group in new.items() if key[0] not in again}
        several = {key: group for key, group in new.items() if key[0] in again}
        if all(group.alike for group in several.values()):
            new = {shapes.told_apart(key[0], group.latest[2]): group for key, group in several.items()}
        else:
            say(f"reading it again: literals of {counted(len(again), 'shape matters', 'shapes matter')}")
            new = _told_apart(log, files, shapes, found)
    told: list[Told] = []
    for key, group in sorted(found.items(), key=lambda item: (item[1].first, item[0])):
        told += _told(key[0], group, shapes.readings[key[0]], f"query log {log.path}", eras, ledger)
    return rows, told


def _rows(log: QueryLog, files: Sequence[tuple[Path, str]], gaps: list[LineageGap]) -> Iterator[tuple[Row | None, int]]:
    """Each row with a text, and None at the end of a file, with the number of rows so far. gaps: takes the others."""
    before = 0
    for file, shown in files:
        unread = Gaps(shown, kind=LineageGapKind.UNREADABLE_QUERY)
        stream = LogRows(file, log, unread)
        for row in stream:
            yield row, before + stream.read
        before += stream.read
        gaps += unread.all()
        yield None, before


def _note(groups: dict[_Key, _Group], row: Row, key: _Key, values: tuple[str, ...]) -> None:
    group = groups.get(key)
    if group is None:
        groups[key] = _Group(row.mark, row.mark, 1, row.ok, (row.ok, row.mark, values))
    else:
        group.add(row, values)


def _told_apart(
    log: QueryLog, files: Sequence[tuple[Path, str]], shapes: _Shapes, found: Mapping[_Key, _Group]
) -> dict[_Key, _Group]:
    """Groups of the rows whose shapes are not settled, from a log that is read again. What was added to it is left."""
    new: dict[_Key, _Group] = {}
    open_rows = shapes.open_rows()
    with_text = (row for row, _ in _rows(log, files, []) if row is not None)
    for row, number in zip(with_text, shapes.rows, strict=False):
        if number in open_rows:
            key, values = shapes.key(row)
            if key not in found:
                _note(new, row, key, values)
    return new


def _parsed(
    new: Mapping[_Key, _Group], parser: Parser, tables: Tables, shapes: _Shapes, say: Callable[[str], None]
) -> set[Query]:
    """Parse what was not; those whose texts have to be looked at again."""
    first = {key[0]: group.first for key, group in sorted(new.items(), key=lambda i: (i[1].first, i[0]), reverse=True)}
    queries = sorted((q for q in first if q not in shapes.readings), key=lambda q: (first[q], q))
    again: set[Query] = set()
    for number, (query, reading) in enumerate(zip(queries, parser(queries, tables), strict=True), 1):
        if shapes.learn(query, reading):
            again.add(query)
        if number % _PARSED_AFTER == 0:
            say(f"{number} of {counted(len(queries), 'shape')} parsed")
    return again


def _told(query: Query, group: _Group, reading: Reading, job: str, eras: Eras, ledger: Ledger) -> Iterator[Told]:
    proof = Proof("sql", job if group.ok else f"{job}, failed", group.first, group.last, group.runs)
    if reading.error:
        ledger.gap(None, LineageGapKind.UNREADABLE_SQL, reading.error, proof, "correct the dialect of the log")
        return

    def again(known: Mapping[str, Columns]) -> tuple[StatementLineage, ...]:
        return parse_one(query, known).statements

    moments = sorted({group.first[0], group.last[0]})
    now, old = eras.resolved(query.text, moments, reading.statements, again)
    spark = query.dialect in SPARK
    for one in now:
        rebuild = spark and group.ok and one.effect in _RECORDED and bool(one.inputs)
        yield Told(_with_literals(one, group, rebuild), proof, failed=not group.ok, rebuild=rebuild)
    for one in old:
        yield Told(_with_literals(one, group, False), proof, failed=not group.ok, rebuild=False)


def _with_literals(made: StatementLineage, group: _Group, rebuild: bool) -> StatementLineage:
    """The statement with the latest text's literals, if it may be run again; otherwise without any."""

    def text(marked: str) -> str:
        return filled(marked, group.latest[2]) if rebuild else hidden(marked)

    return replace(made, sql=text(made.sql), views=tuple((name, text(sql)) for name, sql in made.views))
