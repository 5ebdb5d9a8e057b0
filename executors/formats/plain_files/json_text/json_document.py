"""A JSON file that is one document over any lines, an object or an array of objects, and what stays of it.

Every object that stays keeps its bytes, and so does all that is around the objects but for the comma beside one that
goes. A parser of its own: the reading of planning and verification is `scan.rows.json_documents`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any

from executors.formats.plain_files.arrow_match import BY_HAND, RowsError

MOST = 1 << 28
"""So many bytes a document may have: it is held in memory."""

_SPACE = re.compile(r"[ \t\r\n]*")
_BLANKS = " \t\r\n"
_MARK = "\ufeff"
_FRONT = re.compile(rf"[{_BLANKS}{_MARK}]*")
"""What planning passes over before a document, as marks that were put together with files."""
_BROKEN = "the file is neither JSON lines nor one JSON document of objects"

Row = dict[str, Any]
Keep = Callable[[bytes, Row], bytes]
"""What takes the place of an object, by its bytes: nothing where it goes."""


def members_once(pairs: list[tuple[str, Any]]) -> Row:
    """An object as a dictionary.

    Raises:
        RowsError: it has a member twice.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RowsError("a JSON object has the same member twice, and readers use different ones", todo=BY_HAND)
    return found


_DECODER = json.JSONDecoder(parse_float=Decimal, object_pairs_hook=members_once)


@dataclass(frozen=True)
class Document:
    """spans: of each object, where it begins and ends, and its members. array: whether they stand in one."""

    text: str
    spans: tuple[tuple[int, int, Row], ...]
    array: bool

    def kept(self, keep: Keep) -> bytes:
        """The document with what stays. An object that was the whole of it leaves an empty array."""
        if not self.array:
            start, end, row = self.spans[0]
            return self._around(start, end, keep(self.text[start:end].encode(), row) or b"[]")
        if not self.spans:
            return self.text.encode()
        parts = [self.text[: self.spans[0][0]].encode()]
        for at, (start, end, row) in enumerate(self.spans):
            if new := keep(self.text[start:end].encode(), row):
                if len(parts) > 1:
                    parts.append(self.text[self.spans[at - 1][1] : start].encode())
                parts.append(new)
        return b"".join((*parts, self.text[self.spans[-1][1] :].encode()))

    def _around(self, start: int, end: int, new: bytes) -> bytes:
        return self.text[:start].encode() + new + self.text[end:].encode()


def read_text(data: bytes) -> str:
    """Bytes of a file as text, with any mark of UTF-8.

    Raises:
        RowsError: they are no UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise RowsError("the JSON file is not encoded in UTF-8", todo=BY_HAND) from None


def shown(line: str) -> str:
    """A line without blanks of JSON around and marks in front: Spark takes no other blank for one."""
    return line.lstrip(_BLANKS + _MARK).rstrip(_BLANKS)


def document_in(stream: IO[bytes]) -> Document | None:
    """The document of a file; None of one of lines, or of none.

    Raises:
        RowsError: it is not of objects alone, is followed by something, is too long, or is no UTF-8.
    """
    head = b""
    for line in stream:
        head += line
        if text := shown(read_text(line)):
            if not _begins(text):
                return None
            rest = stream.read(MOST + 1 - len(head))
            if len(head) + len(rest) > MOST:
                raise RowsError("the file is one JSON document that is too large for the memory", todo=BY_HAND)
            return _parsed(read_text(head + rest))
    return None


def _begins(line: str) -> bool:
    if line.startswith("["):
        return True
    try:
        _DECODER.decode(line)
    except (ValueError, RecursionError):
        return line.startswith("{")
    return False


def _parsed(text: str) -> Document:
    try:
        document, end = _read(text)
    except (ValueError, RecursionError):
        raise RowsError(_BROKEN, todo=BY_HAND) from None
    if text[end:].strip(_BLANKS) or not all(isinstance(row, dict) for _, _, row in document.spans):
        raise RowsError(_BROKEN, todo=BY_HAND)
    return document


def _read(text: str) -> tuple[Document, int]:
    found = _FRONT.match(text)
    at = found.end() if found else 0
    if text[at] != "[":
        row, end = _DECODER.raw_decode(text, at)
        return Document(text, ((at, end, row),), False), end
    spans: list[tuple[int, int, Row]] = []
    at = _past_space(text, at + 1)
    while text[at : at + 1] != "]":
        row, end = _DECODER.raw_decode(text, at)
        spans.append((at, end, row))
        at = _past_space(text, end)
        if text[at : at + 1] == ",":
            at = _past_space(text, at + 1)
            if text[at : at + 1] == "]":
                raise ValueError
        elif text[at : at + 1] != "]":
            raise ValueError
    return Document(text, tuple(spans), True), at + 1


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
