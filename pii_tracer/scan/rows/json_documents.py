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

_SPACE = re.compile(r"[ \t\r\n]*")
_MARK = "\ufeff"


class LongDocumentError(ValueError):
    """A document is longer than `MOST`."""


def json_values(lines: Iterable[str], decoder: json.JSONDecoder) -> Iterator[Any]:
    """The values that should be rows. lines: of the file.

    Raises:
        ValueError: as `decoder`, or a document is followed by something, or is too long.
    """
    found = iter(lines)
    for line in found:
        text = line.strip().lstrip(_MARK)
        if not text:
            continue
        if begins_document(text):
            yield from (value for _, _, value in spans(_joined(chain((text, "\n"), found)), decoder))
            return
        yield decoder.decode(text)
        break
    for line in found:
        if text := line.strip():
            yield decoder.decode(text)


def begins_document(text: str) -> bool:
    """Whether a first line that is not blank begins one document, and is no line of objects."""
    text = text.strip().lstrip(_MARK)
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
    if text[end:].strip():
        raise ValueError("more than one JSON document")


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
