"""Text files of a table without a person's rows: the other lines are kept byte for byte, and the file's codec.

Where a hold keeps columns the rows stay: each cell that is held as it stands, and the text for NULL in place of the
others (an empty cell where the reader has none). Cells behind the last column, which nobody reads, go.

A parser of its own: the reading of planning and verification is `scan.rows.text_records`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import IO

from executors.formats.plain_files.arrow_match import BY_HAND, Keys, RowsError, present_terms, resolve, texts_match
from executors.formats.plain_files.compression import PLAIN, codec_of, reading, writing
from executors.formats.plain_files.hive_text.written_cells import WrittenCells, is_nothing
from executors.formats.plain_files.row_masking import places
from executors.formats.plain_files.stored_file import Stored
from pii_tracer.model.datasets import Match
from pii_tracer.model.hive_text.layout import HEAD, FileText, Serde, TextLayout, codec_by_name
from pii_tracer.model.plan import Mask

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_PIECE = 1 << 20
_MARK = b"\xef\xbb\xbf"

_Line = tuple[bytes, bool, bytes]
"""A line as it stands, whether it is a row (no header, no footer), and what takes its place."""


def survey(
    path: Stored, match: Match, keys: Keys, mask: Mask | None = None, *, text: FileText, name: str
) -> tuple[int, int, tuple[str, ...]]:
    """Rows before and those that stay as they are, and labels of match terms whose column the table does not have.

    text: how the file is read. name: the file's own, by whose ending its codec is known.

    Raises:
        RowsError: a line that readers understand differently, or no column of the match exists.
    """
    before = after = 0
    for raw, row, new in _lines(path, match, keys, mask, text, name):
        before += row
        after += row and new == raw
    return before, after, present_terms([column.name for column in text.columns], match)[1]


def write(
    path: Stored, target: Stored, match: Match, keys: Keys, mask: Mask | None = None, *, text: FileText, name: str
) -> None:
    """Write the lines that stay."""
    with writing(target, _codec(path, name)) as stream:
        for _, _, new in _lines(path, match, keys, mask, text, name):
            stream.write(new)


def compare(
    path: Stored, target: Stored, match: Match, keys: Keys, mask: Mask | None = None, *, text: FileText, name: str
) -> None:
    """Read back: the same bytes in the same order.

    Raises:
        RowsError: something differs.
    """
    with reading(target, _codec(path, name)) as stream:
        for _, _, new in _lines(path, match, keys, mask, text, name):
            if stream.read(len(new)) != new:
                raise RowsError("the rewritten file does not contain all rows that must be kept", todo=BY_HAND)
        if stream.read(1):
            raise RowsError("the rewritten file has rows that the original did not have", todo=BY_HAND)


def _codec(path: Stored, name: str) -> str:
    """The codec of a file, where its name and its content agree: Hive goes by the name alone."""
    with path.open("rb") as stream:
        head = stream.read(HEAD)
    try:
        named = codec_by_name(name, head) or PLAIN
    except ValueError as error:
        raise RowsError(str(error), todo=BY_HAND) from None
    named = {"bz2": "bzip2"}.get(named, named)
    if named != PLAIN and codec_of(path) != named:
        raise RowsError("the file's content does not match its name", todo=BY_HAND)
    return named


def _lines(path: Stored, match: Match, keys: Keys, mask: Mask | None, text: FileText, name: str) -> Iterator[_Line]:
    names = [column.name for column in text.columns]
    terms, _ = present_terms(names, match)
    positions = [(term, [resolve(names, column) or 0 for column in term.columns]) for term in terms]
    gone = None if mask is None else frozenset(places(names, mask))
    cells, before, marked, held = WrittenCells(text), b"", False, False
    with reading(path, _codec(path, name)) as stream:
        for number, (raw, row) in enumerate(_numbered(cells.records(_split(stream)), text.layout)):
            new = raw
            if row:
                body, end = _without_end(raw)
                written = cells.written(body)
                if any(texts_match([cells.value(written, p) for p in at], t, keys) for t, at in positions):
                    new = b"" if gone is None else cells.blanked(written, gone) + end
            marked = marked or (number == 0 and raw.startswith(_MARK))
            if raw == _MARK and marked and number == 0 and text.layout.multi_line:
                held = True  # alone in a file, Spark would read it as a row
                continue
            if held and new:
                yield _MARK, False, _MARK
                held = False
            if new and not before and new.startswith(_MARK) and not marked:
                raise RowsError(
                    "the rewritten file would begin with a byte order mark (BOM), which readers drop", todo=BY_HAND
                )
            if before.endswith(b"\r") and new.startswith(b"\n"):
                raise RowsError("a reader would take the ends of two lines for one", todo=BY_HAND)
            before = new or before
            yield raw, row, new


def _numbered(lines: Iterable[bytes], layout: TextLayout) -> Iterator[tuple[bytes, bool]]:
    """Every line, and whether it is a row. A mark of UTF-8 stays, with the first line or without it."""
    waiting: deque[bytes] = deque()
    headers = layout.header_lines
    for number, line in enumerate(lines):
        if number == 0 and line.startswith(_MARK):
            if layout.multi_line and layout.encoding != "utf-8":
                raise RowsError("the file has a byte order mark (BOM) of UTF-8, but a different encoding", todo=BY_HAND)
            yield _MARK, False
            line = line[len(_MARK) :]
            if not line:  # the mark alone is no line
                continue
        if layout.serde is Serde.SPARK and is_nothing(line, layout):
            yield line, False
            continue
        if headers:
            headers -= 1
            yield line, False
            continue
        waiting.append(line)
        if len(waiting) > layout.footer_lines:
            yield waiting.popleft(), True
    yield from ((line, False) for line in waiting)


def _split(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while piece := stream.read(_PIECE):
        data, at = rest + piece, 0
        for found in _LINE.finditer(data):
            # a return at the end of a piece may be half of an end
            if found[0].endswith(b"\n") or (found[0].endswith(b"\r") and found.end() < len(data)):
                yield found[0]
                at = found.end()
        rest = data[at:]
    if rest:
        yield rest


def _without_end(line: bytes) -> tuple[bytes, bytes]:
    body = line.rstrip(b"\r\n")
    return body, line[len(body) :]
