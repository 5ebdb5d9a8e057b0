"""Lines of text files as Hive reads them, or Spark, and their cells.

Lines end as Hadoop's `LineRecordReader` has it: at `\\n`, `\\r` or both together. Cells of `LazySimpleSerDe`:
https://github.com/apache/hive/blob/rel/release-2.3.9/serde/src/java/org/apache/hadoop/hive/serde2/lazy/ (`LazyStruct`,
`LazyUtils`, `LazyLong`). Cells of `OpenCSVSerde`: opencsv 2.3, `CSVParser`, one line at a time. Spark's CSV:
`spark_lines`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import IO

from pii_tracer.model.hive_text.layout import FileText, Serde, TextColumn, TextLayout
from pii_tracer.scan.rows.spark_lines import (
    UnclearLineError,
    header_names,
    passed_over,
    records_of,
    refuse_odd_front,
    spark_cells,
)

__all__ = ["UnclearLineError"]

_PIECE = 1 << 20
_MARK = b"\xef\xbb\xbf"
_QUOTE, _BACKSLASH = '"', "\\"
_AS_IS = "surrogateescape"
_ODD_QUOTE = "a quote that is neither at the start nor at the end of a cell"
_NUMBER = re.compile(r"([+-]?)0*([0-9]{1,19})\Z")
"""A whole number of 64 bits or fewer, with any zeros in front."""
_DIGIT = re.compile(r"\d")
"""Of any script: Java reads each as a number."""


def lines_of(stream: IO[bytes]) -> Iterator[bytes]:
    """Every line with its end. A mark of UTF-8 before the first line is part of it."""
    carried = b""
    while piece := stream.read(_PIECE):
        data = carried + piece
        # a return at the end of a piece may be half of an end of a line
        lines = data.splitlines(keepends=True)
        carried = lines.pop() if not data.endswith(b"\n") else b""
        yield from lines
    yield from carried.splitlines(keepends=True)


def row_lines(stream: IO[bytes], layout: TextLayout) -> Iterator[bytes]:
    """The lines that are rows, without their ends."""
    held: deque[bytes] = deque()
    headers = layout.header_lines
    for line in _told_lines(stream, layout):
        if headers:
            headers -= 1
            continue
        held.append(line)
        if len(held) > layout.footer_lines:
            yield held.popleft()


def _told_lines(stream: IO[bytes], layout: TextLayout) -> Iterator[bytes]:
    """The lines, or records of several, that a reader does not pass over, without their ends and a mark of UTF-8."""
    for line in records_of(_without_mark(lines_of(stream), layout), layout):
        body = line.rstrip(b"\r\n")
        refuse_odd_front(body, layout)
        if not passed_over(body, layout):
            yield body


def _without_mark(lines: Iterator[bytes], layout: TextLayout) -> Iterator[bytes]:
    """Raises `UnclearLineError` for a mark in another encoding: only where rows are lines Spark passes over it."""
    for number, line in enumerate(lines):
        if number == 0 and line.startswith(_MARK):
            if layout.multi_line and layout.encoding != "utf-8":
                raise UnclearLineError("a byte order mark (BOM) of UTF-8, but a different encoding")
            line = line[len(_MARK) :]
            if not line:  # the mark alone is no line
                continue
        yield line


def rows_among(lines: Sequence[bytes], layout: TextLayout, *, first: bool, last: bool) -> frozenset[int]:
    """Which of the lines of a text, or of a block of it, are rows. first, last: whether it begins and ends the file."""
    told = [n for n, line in enumerate(lines) if not passed_over(line.rstrip(b"\r\n"), layout)]
    return frozenset(told[layout.header_lines if first else 0 : len(told) - (layout.footer_lines if last else 0)])


def rows_of(stream: IO[bytes], text: FileText, wanted: Sequence[str] | None = None) -> Iterator[tuple[str | None, ...]]:
    """The rows of a file, with all columns or those wanted. Bytes that are no text of the encoding are spelled out.

    Raises:
        UnclearLineError: a line that cannot be read without doubt.
    """
    names = [column.name for column in text.columns]
    places = [(at, text.columns[at]) for at in (range(len(names)) if wanted is None else map(names.index, wanted))]
    for line in row_lines(stream, text.layout):
        cells = cells_of(line, text)
        yield tuple(value_of(cells[at], column) for at, column in places)


def cells_of(line: bytes, text: FileText) -> list[str | None]:
    """The cells of a row as texts, one for each column: what comes behind them is not read."""
    width = len(text.columns)
    cells = all_cells(line, text)[:width]
    return [*cells, *[None] * (width - len(cells))]


def all_cells(line: bytes, text: FileText) -> list[str | None]:
    """All cells of a row, also those behind the last column. Raises as `rows_of`."""
    layout = text.layout
    if layout.serde is Serde.SPARK:
        return spark_cells(line.decode(layout.encoding, "backslashreplace"), layout)
    if layout.serde is Serde.QUOTED:
        return [_spelled(cell) or None for cell in quoted_cells(line.decode("utf-8", _AS_IS), layout)]
    null = None if layout.null is None else layout.null.encode()
    return [
        None if raw == null else unescaped(raw, layout.escape).decode(layout.encoding, "backslashreplace")
        for raw in delimited_cells(line, layout, len(text.columns))
    ]


def _spelled(cell: str) -> str:
    return cell.encode("utf-8", _AS_IS).decode("utf-8", "backslashreplace")


def delimited_cells(line: bytes, layout: TextLayout, width: int) -> list[bytes]:
    """The cells of a line as they are written. width: of the table, whose last column may have the rest of the line."""
    delimiter = layout.delimiter.encode()
    escape = layout.escape.encode() if layout.escape else b""
    if not escape or escape not in line:
        return line.split(delimiter, width - 1 if layout.rest_in_last else -1)
    cells: list[bytes] = []
    start = at = 0
    while at <= len(line):
        if at == len(line) or line[at : at + 1] == delimiter:
            if layout.rest_in_last and len(cells) == width - 1:
                at = len(line)
            cells.append(line[start:at])
            start = at = at + 1
        elif line[at : at + 1] == escape and at + 1 < len(line):
            at += 2
        else:
            at += 1
    return cells


def unescaped(raw: bytes, escape: str | None) -> bytes:
    """A cell without its escapes. A letter n or r behind one means the end of a line (`LazyUtils`)."""
    if escape is None or escape.encode() not in raw:
        return raw
    sign, out, at = escape.encode(), bytearray(), 0
    while at < len(raw):
        one = raw[at : at + 1]
        if one == sign and at + 1 < len(raw):
            at += 1
            one = raw[at : at + 1]
            one = {b"n": b"\n", b"r": b"\r"}.get(one, one)
        out += one
        at += 1
    return bytes(out)


def quoted_cells(line: str, layout: TextLayout) -> list[str]:
    """The cells of a line of OpenCSVSerde; none of an empty line.

    Raises:
        UnclearLineError: a quote that is not closed on its line, or that is neither at a cell's start nor at its end.
    """
    if not line:
        return []
    cells: list[str] = []
    cell, quoted, inside, at = "", False, False, 0
    while at < len(line):
        sign, after = line[at], line[at + 1 : at + 2]
        if sign == _BACKSLASH and not quoted and after == _QUOTE:
            raise UnclearLineError(_ODD_QUOTE)
        if sign == _BACKSLASH:  # one that escapes nothing is dropped; outside of quotes, a cell's first never does
            if (quoted or inside) and after and after in _QUOTE + _BACKSLASH:
                cell += after
                at += 1
        elif sign == _QUOTE and quoted and after == _QUOTE:
            cell += after
            at += 1
        elif sign == _QUOTE:
            edge = after in ("", layout.delimiter) if quoted else at == 0 or line[at - 1] == layout.delimiter
            if not edge:
                raise UnclearLineError(_ODD_QUOTE)
            quoted = not quoted
        elif sign == layout.delimiter and not quoted:
            cells.append(cell)
            cell, inside = "", False
        else:
            cell += sign
            inside = True
        at += 1
    if quoted:
        raise UnclearLineError("a quote that is not closed on its line")
    return [*cells, cell]


def value_of(cell: str | None, column: TextColumn) -> str | None:
    """A cell as its column has it: a whole number without its sign or zeros in front, a text as it is.

    Raises:
        UnclearLineError: of a number, digits in a form that readers take differently; a text longer than its column.
    """
    if cell is None:
        return None
    if column.whole:
        found, most = _NUMBER.match(cell), 2 ** (column.whole - 1)
        if found and -most <= (number := int(found[1] + found[2])) < most:
            return str(number)
        if _DIGIT.search(cell):
            raise UnclearLineError("a column of whole numbers has digits in an unusual form, or too many digits")
        return None
    if column.most is not None and len(cell) > column.most:
        raise UnclearLineError("a text is longer than its column")
    return cell


def checked(stream: IO[bytes], text: FileText) -> None:
    """Read a whole file. Raises as `rows_of`."""
    layout = text.layout
    if layout.serde is Serde.SPARK:
        lines = _told_lines(stream, layout)
        if layout.header_lines and (header := next(lines, None)) is not None:
            _refuse_other_names(header_names(header.decode(layout.encoding, "backslashreplace"), layout), text)
        for line in lines:
            all_cells(line, text)
        return
    for line in row_lines(stream, layout):
        if layout.serde is Serde.QUOTED:
            quoted_cells(line.decode("utf-8", _AS_IS), layout)


def _refuse_other_names(names: Sequence[str], text: FileText) -> None:
    """A header that names other columns is a table whose columns were told wrongly, or no header at all."""
    mine = [column.name.lower() for column in text.columns]
    if [name.lower() for name in names] != mine[: len(names)]:
        raise UnclearLineError("a header whose names or order differ from the declared columns")
