"""The cells of a line of a text file as they stand there, what they say, and the line put together again.

A parser of its own: the reading of planning and verification is `scan.rows.text_records` and `spark_lines`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from executors.formats.plain_files.arrow_match import BY_HAND, RowsError
from pii_tracer.model.hive_text.layout import FileText, Serde, TextLayout

_UNCLEAR = "a line of the file has a quote that readers understand differently"
_MARK = b"\xef\xbb\xbf"
_MOST = 1 << 24
"""So many bytes a record over several lines may have."""
_BUFFER = 1 << 20
"""In so many letters Spark looks for the end of the first line. Without one it takes all to end in `\\n`."""
_SHOWN = re.compile(rb"[^\x00-\x20]")


def is_nothing(line: bytes, layout: TextLayout) -> bool:
    """Whether Spark passes over a line: a blank one, or a comment.

    Raises:
        RowsError: a comment behind blanks, or a mark of UTF-8 that is not the file's: Spark drops one where a part of
            the file begins, or where it parses no line before.
    """
    if layout.multi_line:
        return not line.rstrip(b"\r\n") or bool(layout.comment and line.startswith(layout.comment.encode()))
    if layout.encoding == "utf-8" and line.startswith(_MARK):
        raise RowsError("a line inside the file begins with a byte order mark (BOM)", todo=BY_HAND)
    shown = _SHOWN.search(line)
    if shown is None:
        return True
    if layout.comment is None or not line.startswith(layout.comment.encode(), shown.start()):
        return False
    if shown.start():
        raise RowsError("the file has a comment that is not at the start of its line", todo=BY_HAND)
    return True


@dataclass(frozen=True)
class WrittenCells:
    """Takes lines of a file apart, and puts them together again."""

    text: FileText

    @cached_property
    def _delimiter(self) -> bytes:
        return self.text.layout.delimiter.encode()

    @cached_property
    def _cell(self) -> re.Pattern[bytes]:
        """One cell as it is written."""
        layout, delimiter = self.text.layout, re.escape(self._delimiter)
        if layout.serde is Serde.SPARK:
            return self._cell_of_spark
        if layout.serde is Serde.QUOTED:
            inner = rb'(?:[^"\\]|""|\\["\\]|\\(?!["\\]))*'
            return re.compile(
                rb'(?:"' + inner + rb'"|(?:[^"\\' + delimiter + rb']|\\(?!"))*)(?=' + delimiter + rb"|\Z)", re.DOTALL
            )
        if layout.escape:
            escape = re.escape(layout.escape.encode())
            plain = rb"[^" + delimiter + escape + rb"]"
            return re.compile(rb"(?:" + escape + rb".|" + plain + rb")*(?:" + escape + rb"\Z)?", re.DOTALL)
        return re.compile(rb"[^" + delimiter + rb"]*")

    @property
    def _cell_of_spark(self) -> re.Pattern[bytes]:
        layout, delimiter = self.text.layout, re.escape(self._delimiter)
        if layout.quote is None:
            return re.compile(rb"[^" + delimiter + rb"]*")
        quote = re.escape(layout.quote.encode())
        plain = rb"[^" + quote + delimiter + rb"][^" + delimiter + rb"]*|"
        quoted = quote + self._inner + quote
        return re.compile(rb"(?:" + quoted + rb"|" + plain + rb")(?=" + delimiter + rb"|\Z)", re.DOTALL)

    @property
    def _inner(self) -> bytes:
        """What stands between the quotes of a cell."""
        layout = self.text.layout
        quote, escape = re.escape((layout.quote or "").encode()), re.escape((layout.escape or "").encode())
        if layout.escape == layout.quote:
            return rb"(?:[^" + quote + rb"]|" + quote + quote + rb")*"
        either = rb"[" + quote + escape + rb"]"
        return rb"(?:[^" + quote + escape + rb"]|" + escape + either + rb"|" + escape + rb"(?!" + either + rb"))*"

    @cached_property
    def _rest(self) -> re.Pattern[bytes]:
        """A line that begins inside of quotes, up to the end of that cell."""
        quote, delimiter = re.escape((self.text.layout.quote or "").encode()), re.escape(self._delimiter)
        return re.compile(self._inner + quote + rb"(?=" + delimiter + rb"|\Z)", re.DOTALL)

    @cached_property
    def _open(self) -> re.Pattern[bytes]:
        """A line, from behind a quote on, in which no quote ends the cell."""
        return re.compile(self._inner + rb"\Z", re.DOTALL)

    def records(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines with their ends; those together that are one record.

        Raises:
            RowsError: ends of more than one kind, or quotes that cannot be read without doubt, or are never closed.
        """
        layout = self.text.layout
        if not layout.multi_line:
            yield from lines
            return
        front, begun, length, kinds = b"", list[bytes](), 0, set[bytes]()
        for number, line in enumerate(lines):
            kinds |= {line[len(line.rstrip(b"\r\n")) :]} - {b""}
            if len(kinds) > 1 or b"\r" in kinds:
                raise RowsError("the lines of the file have different line endings", todo=BY_HAND)
            if number == 0 and kinds == {b"\r\n"} and len(line) > _BUFFER:
                raise RowsError("the first line is too long, so Spark cannot detect the line ending", todo=BY_HAND)
            if number == 0 and line.startswith(_MARK):
                front, line = _MARK, line[len(_MARK) :]
            if begun or not is_nothing(line, layout):
                goes_on = self._goes_on(line.rstrip(b"\r\n"), inside=bool(begun))
                length += len(line)
                if goes_on and length < _MOST:
                    begun.append(line)
                    continue
            yield b"".join((front, *begun, line))
            front, length = b"", 0
            begun.clear()
        if begun:
            raise RowsError(_UNCLEAR, todo=BY_HAND)

    def _goes_on(self, body: bytes, *, inside: bool) -> bool:
        """Whether a record goes on behind a line. inside: the line begins in quotes."""
        quote = (self.text.layout.quote or "").encode()
        if not quote or quote not in body:
            return inside
        at = 0
        while at <= len(body):
            found = self._rest.match(body) if inside else self._cell.match(body, at)
            if found is None:
                start = 0 if inside else at + 1
                if (inside or body.startswith(quote, at)) and self._open.match(body, start):
                    return True
                raise RowsError(_UNCLEAR, todo=BY_HAND)
            inside, at = False, found.end() + 1
        return False

    def written(self, body: bytes) -> list[bytes]:
        """The cells as they are written, up to the last column.

        Raises:
            RowsError: quotes that cannot be read without doubt.
        """
        width, layout = len(self.text.columns), self.text.layout
        cells: list[bytes] = []
        if layout.serde is Serde.QUOTED and not body:
            return cells
        at = 0
        while at <= len(body):
            if layout.rest_in_last and len(cells) == width - 1:
                cells.append(body[at:])
                break
            found = self._cell.match(body, at)
            if found is None:
                raise RowsError(_UNCLEAR, todo=BY_HAND)
            cells.append(found[0])
            at = found.end() + 1
        return cells[:width]

    def value(self, written: list[bytes], position: int) -> str | None:
        """What a cell says; None of one that is not there, or is NULL.

        Raises:
            RowsError: of a number or a short text, a form that readers take differently.
        """
        if position >= len(written):
            return None
        raw, layout, column = written[position], self.text.layout, self.text.columns[position]
        if layout.serde is Serde.SPARK:
            found = self._as_spark(raw)
            if found is None:
                return None
            value = found.decode(layout.encoding, "surrogateescape")
        elif layout.serde is Serde.QUOTED:
            value = _unquoted(raw.decode("utf-8", "surrogateescape"))
        elif layout.null is not None and raw == layout.null.encode():
            return None
        else:
            value = self._plain(raw).decode(layout.encoding, "surrogateescape")
        if column.whole:
            return _whole(value, column.whole)
        if column.most is not None and len(value) > column.most:
            raise RowsError(f"`{column.name}` contains a text that is longer than its column allows", todo=BY_HAND)
        return value

    def _as_spark(self, raw: bytes) -> bytes | None:
        layout = self.text.layout
        quote, escape = (layout.quote or "").encode(), (layout.escape or "").encode()
        if not raw:
            return None
        if quote and raw.startswith(quote):
            signs = re.escape(quote) + re.escape(escape)
            inner = raw[1:-1].replace(b"\r\n", b"\n") if layout.multi_line else raw[1:-1]  # as Spark reads it
            raw = re.sub(re.escape(escape) + rb"([" + signs + rb"])", lambda found: found[1], inner)
            raw = raw or layout.empty.encode()
        return None if raw == (layout.null or "").encode() else raw

    def _plain(self, raw: bytes) -> bytes:
        if not self.text.layout.escape:
            return raw
        escape = re.escape(self.text.layout.escape.encode())
        meant = {b"n": b"\n", b"r": b"\r"}
        return re.sub(escape + rb"(.)", lambda found: meant.get(found[1], found[1]), raw, flags=re.DOTALL)

    def blanked(self, written: list[bytes], gone: frozenset[int]) -> bytes:
        """The row with NULL for what goes; read back.

        Raises:
            RowsError: it would not be read as that.
        """
        layout = self.text.layout
        nothing = b"" if layout.serde is Serde.SPARK else (layout.null or "").encode()
        new = [nothing if at in gone else raw for at, raw in enumerate(written)]
        line = self._delimiter.join(new)
        if layout.serde is Serde.SPARK and is_nothing(line, layout) and layout.quote and layout.empty == layout.null:
            new[min(gone)] = layout.quote.encode() * 2  # NULL, too
            line = self._delimiter.join(new)
        if layout.serde is Serde.SPARK and is_nothing(line, layout):
            raise RowsError(
                "a row with NULL in some columns would become a blank line, which readers skip", todo=BY_HAND
            )
        if self.written(line) != new and any(new):
            raise RowsError("a row cannot be written with NULL in some columns", todo=BY_HAND)
        return line


def _unquoted(raw: str) -> str:
    """A cell as OpenCSVSerde reads it. One backslash that escapes nothing is dropped."""
    if raw.startswith('"'):
        return re.sub(r'""|\\(["\\])|\\', lambda found: '"' if found[0] == '""' else found[1] or "", raw[1:-1])
    body = raw.lstrip("\\")  # what a cell begins with escapes nothing
    return re.sub(r"\\(\\?)", lambda found: found[1], body)


def _whole(value: str, bits: int) -> str | None:
    found = re.fullmatch(r"([+-]?)0*([0-9]{1,19})", value)
    if found and -(1 << bits - 1) <= (number := int(found[1] + found[2])) < 1 << bits - 1:
        return str(number)
    if re.search(r"\d", value):
        raise RowsError("readers disagree about the digits in a column of whole numbers", todo=BY_HAND)
    return None
