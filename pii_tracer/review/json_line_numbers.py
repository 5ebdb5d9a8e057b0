"""On which line of a JSON file does a value stand? For findings that point into the plan file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from pii_tracer.review.policy_rules import Place

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(strict=True)


def lines_of(raw: bytes, places: Iterable[Place]) -> dict[Place, int]:
    """Line (from 1) of each place's value; what is not there has the line of the nearest part around it.

    raw: valid JSON in UTF-8, as `load_plan` has checked it. Only the parts on the way are taken apart.
    """
    text, wanted = raw.decode("utf-8"), set(places)
    found: dict[Place, int] = {(): 0}
    _walk(text, _skip(text, 0), (), _tree(wanted), found)
    offsets = {place: found[_nearest(place, found)] for place in wanted}
    lines, at, line = dict[int, int](), 0, 1
    for offset in sorted(set(offsets.values())):
        line += text.count("\n", at, offset)
        lines[offset], at = line, offset
    return {place: lines[offset] for place, offset in offsets.items()}


Tree = dict[str | int, Any]
"""The wanted places, by their parts."""


def _tree(places: Iterable[Place]) -> Tree:
    root: Tree = {}
    for place in places:
        here = root
        for part in place:
            here = here.setdefault(part, {})
    return root


def _nearest(place: Place, found: dict[Place, int]) -> Place:
    while place not in found:
        place = place[:-1]
    return place


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _walk(text: str, at: int, here: Place, wanted: Tree, found: dict[Place, int]) -> int:
    """Go through the value at an offset, note where the wanted parts begin, and return its end."""
    if not wanted or text[at] not in "{[":
        end: int = _DECODER.raw_decode(text, at)[1]
        return end
    is_object, closing = text[at] == "{", "}" if text[at] == "{" else "]"
    at, index = _skip(text, at + 1), 0
    while text[at] != closing:
        start, key = at, index
        if is_object:
            key, at = _key(text, at)
        child = (*here, key)
        if key in wanted:
            found[child] = start
        at = _skip(text, _walk(text, at, child, wanted.get(key, {}), found))
        at, index = _skip(text, at + 1) if text[at] == "," else at, index + 1
    return at + 1


def _key(text: str, at: int) -> tuple[Any, int]:
    key, at = scanstring(text, at + 1, True)
    return key, _skip(text, _skip(text, at) + 1)
