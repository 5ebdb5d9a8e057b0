"""JSON without a person's rows: the other lines, or the other objects of one document, are kept byte for byte, and the
codec of the file.

Where a hold keeps columns the persons' lines stay: `null` takes the place of every other value, and all else, the
writing of numbers included, stays as it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from executors.formats.plain_files.arrow_match import BY_HAND, Keys, RowsError, missing_terms
from executors.formats.plain_files.compression import codec_of, reading, writing
from executors.formats.plain_files.json_text.json_document import Document, document_in, members_once, read_text, shown
from executors.formats.plain_files.row_masking import places
from executors.formats.plain_files.row_match import has_column, is_persons
from executors.formats.plain_files.stored_file import Stored
from pii_tracer.model.datasets import Match
from pii_tracer.model.plan import Mask

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def survey(path: Stored, match: Match, keys: Keys, mask: Mask | None = None) -> tuple[int, int, tuple[str, ...]]:
    """Rows before and those that stay as they are, and labels of match terms whose column no row has.

    Raises:
        RowsError: the file is neither JSON lines nor one document of objects, or no row has a column of the match, so
            that nothing can be said about any.
    """
    before = after = 0
    columns: set[str] = set()
    for written, row in _rows(path):
        if row is not None:
            before += 1
            columns |= has_column(list(row), match)
            after += _kept(written, row, match, keys, mask) == written
    return before, after, missing_terms(match, columns) if before else ()


def write(path: Stored, target: Stored, match: Match, keys: Keys, mask: Mask | None = None) -> None:
    """Write the lines, or the objects of a document, that stay."""
    document = _document(path)
    with writing(target, codec_of(path)) as stream:
        if document is not None:
            stream.write(document.kept(partial(_kept, match=match, keys=keys, mask=mask)))
            return
        for line, row in _lines(path):
            stream.write(_kept(line, row, match, keys, mask))


def compare(path: Stored, target: Stored, match: Match, keys: Keys, mask: Mask | None = None) -> None:
    """Read back: the same lines, or objects, in the same order.

    Raises:
        RowsError: something differs.
    """
    written = _rows(target)
    for line, row in _rows(path):
        kept = _kept(line, row, match, keys, mask)
        if kept and next(written, (None, None))[0] != kept:
            raise RowsError("the rewritten file does not contain all rows that must be kept", todo=BY_HAND)
    if next(written, None) is not None:
        raise RowsError("the rewritten file has rows that the original did not have", todo=BY_HAND)


def _kept(line: bytes, row: dict[str, Any] | None, match: Match, keys: Keys, mask: Mask | None) -> bytes:
    """What takes the place of a line: itself, nothing, or what is held of it."""
    if row is None or not is_persons(row, match, keys):
        return line
    return b"" if mask is None else _blanked(line, row, mask)


def _blanked(line: bytes, row: dict[str, Any], mask: Mask) -> bytes:
    """The line with `null` for what goes, read back.

    Raises:
        RowsError: a member that the plan does not name, or the new line would be read otherwise.
    """
    names = list(row)
    gone = {names[position] for position in places(names, mask)}
    text, done, new = line.decode("utf-8"), 0, ""
    for name, start, end in _members(text):
        if name in gone:
            new, done = new + text[done:start] + "null", end
    new += text[done:]
    wanted = {name: None if name in gone else value for name, value in row.items()}
    # NaN is not equal to itself: compare what prints alike
    if repr(_parsed(new)) != repr(wanted):
        raise RowsError("a line cannot be parsed reliably", todo=BY_HAND)
    return new.encode("utf-8")


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    """Each member of the object: name, and where its value begins and ends. The line has been parsed before."""
    at = _past_space(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        start = _past_space(text, _past_space(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        yield name, start, end
        at = _past_space(text, end)
        at = _past_space(text, at + 1) if text[at] == "," else at


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _rows(path: Stored) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Every row as it stands, a line with its end, with its object; None for a blank line."""
    document = _document(path)
    if document is None:
        yield from _lines(path)
        return
    yield from ((document.text[start:end].encode("utf-8"), row) for start, end, row in document.spans)


def _document(path: Stored) -> Document | None:
    with reading(path, codec_of(path)) as stream:
        return document_in(stream)


def _lines(path: Stored) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    with reading(path, codec_of(path)) as stream:
        for line in stream:
            text = shown(read_text(line))
            if not text:
                yield line, None
                continue
            row = _parsed(text)
            if not isinstance(row, dict):
                raise RowsError("the file is not in JSON lines (one object on each line)", todo=BY_HAND)
            yield line, row


def _parsed(text: str) -> Any:
    try:
        return json.loads(text.lstrip("\ufeff"), parse_float=Decimal, object_pairs_hook=members_once)
    except (ValueError, RecursionError):
        return None
