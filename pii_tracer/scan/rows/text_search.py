"""Searches text whose columns a catalog names, cell by cell, so that hits have the names of columns."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import partial

from pii_tracer.model.hive_text.layout import BEYOND_COLUMNS, SKIPPED_LINE, FileText, Serde, TextColumn
from pii_tracer.scan.cells_left_out import beyond
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import Form
from pii_tracer.scan.rows.spark_lines import records_of, without_escapes
from pii_tracer.scan.rows.text_records import UnclearLineError, all_cells, lines_of, rows_among, unescaped, value_of

_QUOTE = '"'
_MARK = "\ufeff".encode()
_DIGITS = re.compile(r"[0-9]+")
READ_AS = "text by columns"


def search_columns(
    content: str, text: FileText, collector: Collector, *, first: bool = True, last: bool = True
) -> None:
    """Search a text, or a block of lines of one. What no cell shows is searched as it stands.

    first, last: whether it is the beginning or the end of the file, in which lines may be no rows. No column is known
    there, and where a line has more cells than the table has columns.
    """
    data = content.encode("utf-8", "surrogateescape")
    collector.written(data, "data")
    found = collector.terms(data)
    plain = _without_escapes(data, text)
    if plain != data:
        found |= collector.terms(plain)
    if not found and not collector.patterns.has_tiny and not _has_odd_numbers(data, text):
        return
    inner = Collector(collector.patterns)
    readable = text.model_copy(update={"layout": text.layout.model_copy(update={"encoding": "utf-8"})})
    regular = grouped = True
    lines = list(lines_of(io.BytesIO(data)))
    try:
        lines = list(records_of(lines, text.layout))
    except UnclearLineError:
        grouped = False
    rows = rows_among(lines, text.layout, first=first, last=last)
    for number, line in enumerate(lines):
        body = line.rstrip(b"\r\n")
        if not text.layout.multi_line:  # Spark drops it where a part of the file begins, and then a quote counts
            body = body.removeprefix(_MARK)
        if number not in rows:
            inner.string(body.decode("utf-8", "surrogateescape"), SKIPPED_LINE, None, known=False)
        try:
            cells = all_cells(body, readable)
        except UnclearLineError:
            regular = False
            continue
        known = grouped and number in rows and len(cells) <= len(text.columns)
        regular = regular and len(cells) <= len(text.columns)
        for at, cell in enumerate(cells):
            column = text.columns[at] if known else None
            where = "data" if at < len(text.columns) else BEYOND_COLUMNS
            where = where if number in rows else SKIPPED_LINE
            for written in _spellings(cell, column):
                inner.string(written, where, column.name if column else None, known=known)
    collector.merge(inner)
    if any(name not in inner.seen for name, _ in found):
        whole = partial(inner.quoted, ends=f"{text.layout.quote or _QUOTE}\r\n{text.layout.delimiter}".encode())
        found = beyond(collector.terms(data, whole=whole), inner.left.shown_in(""))
    for (name, form), count in found.items():
        # the last cell of a row and the first of the next are no text that goes on
        if name not in inner.seen and not (regular and form is Form.WRAPPED):
            collector.add(name, form, "text", None, count)


def _has_odd_numbers(data: bytes, text: FileText) -> bool:
    """Whether a cell may be a whole number with a sign or zeros in front, or escapes."""
    if not any(column.whole for column in text.columns):
        return False
    begins = rb"(?:\A|[\r\n" + re.escape(f"{text.layout.delimiter}{text.layout.quote or ''}".encode()) + rb"])"
    return re.search(begins + rb"(?:[+\\]|-?[0\\])[0-9+\\-]", data) is not None


def _spellings(cell: str | None, column: TextColumn | None) -> Iterator[str]:
    """A cell as it is written, without a mark of UTF-8 in front, and as its column has it."""
    if cell is None:
        return
    yield cell
    if cell.startswith("\ufeff"):
        cell = cell.lstrip("\ufeff")
        yield cell
    if column is None or not column.whole:
        return
    try:
        value = value_of(cell, column)
    except UnclearLineError:  # of an older file, with other signs between its cells
        yield from (number.lstrip("0") for number in _DIGITS.findall(cell))
        return
    if value not in (None, cell):
        yield value


def _without_escapes(data: bytes, text: FileText) -> bytes:
    if text.layout.serde is Serde.SPARK:
        return without_escapes(data, text.layout)
    if text.layout.serde is Serde.QUOTED:
        return data.replace(b'""', b'"').replace(b"\\", b"")
    return unescaped(data, text.layout.escape)
