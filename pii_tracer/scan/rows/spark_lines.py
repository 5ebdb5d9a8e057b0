"""Lines of CSV as Spark's reader takes them, each a record or part of one (`multiLine`), and their cells.

https://github.com/apache/spark/blob/v3.5.6/sql/catalyst/src/main/scala/org/apache/spark/sql/catalyst/csv/CSVExprUtils.scala
(which lines are none) and univocity-parsers 2.9.1, `CsvParser`. A quote counts at the beginning of a cell alone, and an
escape inside quotes alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pii_tracer.model.hive_text.layout import Serde, TextLayout

_BLANKS = bytes(range(33))
"""What Java's `trim` takes away."""
_MARK = "\ufeff".encode()
_BUFFER = 1 << 20
"""In so many letters at the beginning of a file univocity looks for the end of a line, to know which kind ends all."""


class UnclearLineError(ValueError):
    """A line, or a cell, of which readers differ. Its message never quotes it."""


class OpenQuoteError(UnclearLineError):
    """A quote that is not closed on its line."""

    def __init__(self) -> None:
        super().__init__("a quote that is not closed on its line")


def records_of(lines: Iterable[bytes], layout: TextLayout) -> Iterator[bytes]:
    """The lines, with their ends; those together that are one record. An open one at the end is given as it is.

    Raises:
        UnclearLineError: as `spark_cells`, and for ends of lines of more than one kind, or of one that Spark does not
            see: it goes by the first.
    """
    if not layout.multi_line:
        yield from lines
        return
    parts: list[bytes] = []
    ends: set[bytes] = set()
    for number, line in enumerate(lines):
        body = line.rstrip(b"\r\n")
        if number == 0 and len(line) > _BUFFER and line.endswith(b"\r\n"):
            raise UnclearLineError("a first line that is too long, so Spark cannot detect the line ending")
        ends |= {line[len(body) :]} - {b""}
        if len(ends) > 1 or b"\r" in ends:
            raise UnclearLineError("different line endings")
        if not parts and passed_over(body, layout):
            yield line
            continue
        parts.append(line)
        if not _goes_on(line.decode("latin-1"), layout, inside=len(parts) > 1):
            yield b"".join(parts)
            parts.clear()
    if parts:
        yield b"".join(parts)


def _goes_on(line: str, layout: TextLayout, *, inside: bool) -> bool:
    """Whether a record goes on behind a line. inside: the line begins in quotes."""
    body = line.rstrip("\r\n")
    if layout.quote is None or layout.quote not in body:
        return inside
    try:
        at = _behind_quotes(body, 0, layout) + 1 if inside else 0
        if at <= len(body):
            _written(body[at:], layout)
    except OpenQuoteError:
        return True
    return False


def passed_over(line: bytes, layout: TextLayout) -> bool:
    """Whether a line is neither row nor header. line: without its end."""
    if layout.serde is not Serde.SPARK:
        return False
    body = line if layout.multi_line else line.strip(_BLANKS)
    return not body or (layout.comment is not None and line.startswith(layout.comment.encode()))


def refuse_odd_front(line: bytes, layout: TextLayout) -> None:
    """Raise `UnclearLineError` for a comment behind blanks, which is a comment before a header alone, and for a mark.

    line: without the mark of its file. Of every other mark Spark drops the one before the first line that it parses,
    and each part of a split file has a first line.
    """
    if layout.serde is not Serde.SPARK or layout.multi_line:
        return
    if layout.encoding == "utf-8" and line.startswith(_MARK):
        raise UnclearLineError("a line inside the file that begins with a byte order mark (BOM)")
    comment = (layout.comment or "").encode()
    if comment and line.strip(_BLANKS).startswith(comment) and not line.startswith(comment):
        raise UnclearLineError("a comment that is not at the start of its line")


def spark_cells(line: str, layout: TextLayout) -> list[str | None]:
    """The cells of a line; None of those that are NULL.

    Raises:
        UnclearLineError: a quote that is not closed on its line, or that is followed by something else than the end of
            its cell.
    """
    return [_value(raw, layout) for raw in _written(line, layout)]


def header_names(line: str, layout: TextLayout) -> list[str]:
    """The names of a header. Raises as `spark_cells`."""
    return [_unquoted(raw, layout) if _is_quoted(raw, layout) else raw for raw in _written(line, layout)]


def _written(line: str, layout: TextLayout) -> list[str]:
    """The cells as they are written."""
    if layout.quote is None or layout.quote not in line:
        return line.split(layout.delimiter)
    cells, at = [], 0
    while at <= len(line):
        start = at
        if line[at : at + 1] == layout.quote:
            at = _behind_quotes(line, at + 1, layout)
        else:
            end = line.find(layout.delimiter, at)
            at = len(line) if end < 0 else end
        cells.append(line[start:at])
        at += 1
    return cells


def _behind_quotes(line: str, at: int, layout: TextLayout) -> int:
    """Where a cell in quotes ends. at: behind the first quote."""
    while at < len(line):
        sign, after = line[at], line[at + 1 : at + 2]
        if sign == layout.escape and after and after in f"{layout.quote}{layout.escape}":
            at += 2
        elif sign == layout.quote:
            if after not in ("", layout.delimiter):
                raise UnclearLineError("a quote that is not at the end of its cell")
            return at + 1
        else:
            at += 1
    raise OpenQuoteError


def _is_quoted(raw: str, layout: TextLayout) -> bool:
    return layout.quote is not None and raw.startswith(layout.quote)


def _unquoted(raw: str, layout: TextLayout) -> str:
    inner, escape = raw[1:-1], layout.escape
    if layout.multi_line:  # univocity's `normalizeLineEndingsWithinQuotes`
        inner = inner.replace("\r\n", "\n")
    if escape is None or escape not in inner:
        return inner
    signs = re.escape(f"{layout.quote}{escape}")
    return re.sub(f"{re.escape(escape)}([{signs}])", lambda found: found[1], inner)


def _value(raw: str, layout: TextLayout) -> str | None:
    if not raw:
        return None
    value = raw
    if _is_quoted(raw, layout):
        value = _unquoted(raw, layout) or layout.empty
    return None if value == layout.null else value


def without_escapes(data: bytes, layout: TextLayout) -> bytes:
    """A text in which every cell stands as it is read."""
    if layout.quote is None or layout.escape is None:
        return data
    signs = re.escape(f"{layout.quote}{layout.escape}".encode())
    return re.sub(re.escape(layout.escape.encode()) + b"([" + signs + b"])", lambda found: found[1], data)
