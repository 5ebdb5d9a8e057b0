"""The rows of a JSON file: an object in each line, or one document over any lines, an object or an array of objects.

Spark reads the second with `multiLine`, and of several documents the first alone:
https://spark.apache.org/docs/3.5.6/sql-data-sources-json.html. So a file of several that are not lines is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

MOST = 1 << 28
"""So many characters a document may have: it is held in memory. Lines are not."""

_BLANKS = " \t\r\n"
"""What JSON has between its parts. Spark reads a line with any other blank around its object as no object."""
_SPACE = re.compile(f"[{_BLANKS}]*")
_MARK = "\ufeff"
_TOUCHING = re.compile(r"[}\]][ \t\r]*[{\[]")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_BEGUN = re.compile(r'\{\s*"|\[\s*["{\[]')
_BEHIND = re.compile(r"[ \t\r]*(?:[\n{\[]|\Z)")


class LongDocumentError(ValueError):
    """A document is longer than `MOST`."""


def json_values(lines: Iterable[str], decoder: json.JSONDecoder) -> Iterator[Any]:
    """The values that should be rows. lines: of the file.

    Raises:
        ValueError: as `decoder`, or a document is followed by something, or is too long.
    """
    found = iter(lines)
    for line in found:
        text = shown(line)
        if not text:
            continue
        if begins_document(text):
            yield from (value for _, _, value in spans(_joined(chain((text, "\n"), found)), decoder))
            return
        yield decoder.decode(text)
        break
    for line in found:
        if text := line.strip(_BLANKS):
            yield decoder.decode(text)


def shown(line: str) -> str:
    """A first line without blanks and marks of UTF-8 in front, as files that were put together have them."""
    return line.lstrip(_BLANKS + _MARK).rstrip(_BLANKS)


def begins_document(text: str) -> bool:
    """Whether a first line that is not blank begins one document, and is no line of objects."""
    text = shown(text)
    if not text.startswith("{"):
        return text.startswith("[")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False


def _joined(lines: Iterable[str]) -> str:
    parts, length = [], 0
    for line in lines:
        length += len(line)
        if length > MOST:
            raise LongDocumentError
        parts.append(line)
    return "".join(parts)


def spans(text: str, decoder: json.JSONDecoder) -> Iterator[tuple[int, int, Any]]:
    """Where each object of a document begins and ends, and what it is. Raises as `json_values`."""
    at = _past_space(text, 0)
    if text[at : at + 1] != "[":
        value, end = decoder.raw_decode(text, at)
        yield at, end, value
    else:
        end = _past_space(text, at + 1)
        sign = text[end : end + 1]
        while sign != "]":
            value, after = decoder.raw_decode(text, end)
            yield end, after, value
            after = _past_space(text, after)
            sign = text[after : after + 1]
            if sign not in (",", "]"):
                raise ValueError("not one JSON document")
            end = _past_space(text, after + 1) if sign == "," else after
        end += 1
    if text[end:].strip(_BLANKS):
        raise ValueError("more than one JSON document")


def documents_of(text: str) -> tuple[list[str], bool]:
    """The documents of a text that is not one, and whether none of them is cut off: each on its line, or over any
    lines, one behind the other. What is no part of one stays a line.

    Where every line begins and ends as an object or an array does, no document goes on over the end of a line: behind a
    value inside of one there is a sign.
    """
    lines = text.split("\n")
    if all(map(_is_closed, lines)) and not _TOUCHING.search(text):
        return lines, True
    found, at, whole = [], _past_space(text, 0), True
    while at < len(text):
        end = _end_of_document(text, at) if whole else None
        if end is None:
            whole = whole and not _BEGUN.match(text, at)
            newline = text.find("\n", at)
            end = len(text) if newline < 0 else newline
        found.append(text[at:end])
        at = _past_space(text, end)
    return found, whole


def _is_closed(line: str) -> bool:
    shown = line.strip().lstrip(_MARK)
    return not shown or (shown[0] in "{[" and shown[-1] in "}]")


def _end_of_document(text: str, at: int) -> int | None:
    """Where a document ends that begins there; None where none does, or text follows it on its last line."""
    depth = 0
    for token in _TOKEN.finditer(text, at) if text[at] in "{[" else ():
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth <= 0:
            try:
                json.loads(text[at : token.end()])
            except (ValueError, RecursionError):
                return None
            return token.end() if _BEHIND.match(text, token.end()) else None
    return None


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
