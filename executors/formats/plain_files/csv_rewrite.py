"""CSV files without a person's rows: the other records are kept byte for byte, and the codec of the file.

Where a hold keeps columns the rows stay: each field that is held as it stands, the others empty, which readers take for
NULL (Spark's `nullValue`, https://spark.apache.org/docs/latest/sql-data-sources-csv.html).

encoding: how the text is to be read, everywhere below. Bytes that it has no character for are carried along.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator

from executors.formats.plain_files.arrow_match import (
    BY_HAND,
    Keys,
    RowsError,
    present_terms,
    resolve,
    texts_match,
)
from executors.formats.plain_files.compression import codec_of, reading, writing
from executors.formats.plain_files.row_masking import places
from executors.formats.plain_files.stored_file import Stored
from pii_tracer.model.datasets import Match
from pii_tracer.model.plan import Mask

UTF8 = "utf-8"
_BUFFER = 1 << 20
"""In so many letters Spark looks for the end of the first line. Without one it takes all to end in `\\n`."""

_Record = tuple[str, bool, str]
"""The record's characters, whether it is a row (no header, no blank line), and what takes its place."""


def survey(
    path: Stored, match: Match, keys: Keys, mask: Mask | None = None, encoding: str = UTF8
) -> tuple[int, int, tuple[str, ...]]:
    """Rows before and those that stay as they are, and labels of match terms whose column the header does not have.

    Raises:
        RowsError: records of another width, or no column of the match exists.
    """
    before = after = 0
    for raw, row, new in _records(path, match, keys, mask, encoding):
        before += row
        after += row and new == raw
    with reading(path, codec_of(path)) as stream:
        first = next(_parsed(_text(stream, encoding), _escape(path, encoding)), None)
    return before, after, present_terms(_names(first[0]), match)[1] if first else ()


def write(
    path: Stored, target: Stored, match: Match, keys: Keys, mask: Mask | None = None, encoding: str = UTF8
) -> None:
    """Write header and the records that stay."""
    with writing(target, codec_of(path)) as stream:
        for _, _, new in _records(path, match, keys, mask, encoding):
            stream.write(new.encode(encoding, "surrogateescape"))


def compare(
    path: Stored, target: Stored, match: Match, keys: Keys, mask: Mask | None = None, encoding: str = UTF8
) -> None:
    """Read back: the same characters in the same order.

    Raises:
        RowsError: something differs.
    """
    with reading(target, codec_of(target)) as stream:
        for _, _, new in _records(path, match, keys, mask, encoding):
            data = new.encode(encoding, "surrogateescape")
            if stream.read(len(data)) != data:
                raise RowsError("the rewritten file does not contain all rows that must be kept", todo=BY_HAND)
        if stream.read(1):
            raise RowsError("the rewritten file has rows that the original did not have", todo=BY_HAND)


def _records(path: Stored, match: Match, keys: Keys, mask: Mask | None, encoding: str) -> Iterator[_Record]:
    escape = _escape(path, encoding)
    with reading(path, codec_of(path)) as stream:
        parsed = _parsed(_text(stream, encoding), escape)
        first = next(parsed, None)
        if first is None:  # nothing, compressed
            return
        header = _names(first[0])
        terms, _ = present_terms(header, match)
        positions = [(term, [resolve(header, name) or 0 for name in term.columns]) for term in terms]
        yield first[1], False, first[1]
        for cells, raw in parsed:
            if cells and len(cells) != len(header):
                raise RowsError("the number of fields of a CSV record differs from the header", todo=BY_HAND)
            mine = bool(cells) and any(texts_match([cells[p] for p in at], t, keys) for t, at in positions)
            new = raw
            if mine:
                _refuse_swallowed(raw, len(header))
                new = "" if mask is None else _blanked(raw, cells, places(header, mask), escape)
            yield raw, bool(cells), new


def _blanked(raw: str, cells: list[str], gone: list[int], escape: str | None) -> str:
    """The record with some fields empty and the others as they stand; read back, because a quote can mislead.

    Raises:
        RowsError: it would not be read as that.
    """
    body = raw.rstrip("\r\n")
    new = ",".join("" if n in gone else part for n, part in enumerate(_fields(body, escape))) + raw[len(body) :]
    wanted = ["" if n in gone else cell for n, cell in enumerate(cells)]
    if [found for found, _ in _parsed(io.StringIO(new, newline=""), escape)] != [wanted]:
        raise RowsError("a CSV record cannot be parsed reliably", todo=BY_HAND)
    return new


def _names(header: list[str]) -> list[str]:
    return [header[0].removeprefix("\ufeff"), *header[1:]] if header else header


def _text(stream: object, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="")  # type: ignore[arg-type]


def _escape(path: Stored, encoding: str) -> str | None:
    """RFC 4180 doubles a quote; Spark escapes it with a backslash."""
    try:
        with reading(path, codec_of(path)) as stream:
            for _ in _parsed(_text(stream, encoding), None):
                pass
    except csv.Error:
        return "\\"
    return None


def _parsed(text: Iterable[str], escape: str | None) -> Iterator[tuple[list[str], str]]:
    """Parsed records of a text's lines (with their ends), each with the very characters it was read from.

    Raises:
        RowsError: at the end, that records do not all end as the first line does: Spark takes them all to.
    """
    consumed, ends, far = list[str](), set[str](), False

    def lines() -> Iterator[str]:
        for line in text:
            consumed.append(line)
            yield line

    for cells in csv.reader(lines(), strict=True, escapechar=escape):
        if not ends:
            far = len(consumed[0].encode("utf-8", "replace")) > _BUFFER
            ends.add(_end(consumed[0]))
        ends.add(_end(consumed[-1]))
        raw = "".join(consumed)
        consumed.clear()
        yield (cells if escape is None else _as_spark(cells, raw)), raw
    if len(ends - {""}) > 1 or (far and not ends <= {"", "\n"}):
        raise RowsError("Spark would split the lines of the file differently", todo=BY_HAND)


def _end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


_FIELD = {
    None: re.compile(r'"(?:[^"]|"")*"|[^,]*'),
    "\\": re.compile(r'"(?:[^"\\]|""|\\.)*"|(?:[^,\\]|\\.)*', re.DOTALL),
}
"""One field as it stands, by the character that escapes a quote."""


def _fields(body: str, escape: str | None) -> list[str]:
    """The fields of a record as they stand, without its end."""
    parts, at = [], 0
    while field := _FIELD[escape].match(body, at):
        parts.append(field[0])
        at = field.end() + 1
        if at > len(body):
            break
    return parts


def _as_spark(cells: list[str], raw: str) -> list[str]:
    """Spark escapes inside quotes only (https://spark.apache.org/docs/3.5.6/sql-data-sources-csv.html, `escape`): in
    other cells a backslash is one of their characters, as in `CORP\\jdoe`.
    """
    parts = _fields(raw.rstrip("\r\n"), "\\")
    if len(parts) != len(cells):
        return cells
    return [cell if part.startswith('"') or "\\," in part else part for cell, part in zip(cells, parts, strict=True)]


def _refuse_swallowed(raw: str, width: int) -> None:
    """A quote that nobody closed joins the lines of others to a record; readers that read line by line see rows there.

    Raises:
        RowsError: the record goes on over a line that, read alone, has as many fields as a row.
    """
    for line in re.split(r"\r\n|\r|\n", raw)[1:]:
        if any(len(cells) == width for cells in csv.reader([line])):
            raise RowsError(
                "a CSV record of the person continues over several lines, which could be rows of other people (a "
                "quote may not be closed)",
                todo=BY_HAND,
            )
