"""Loops: a statement in one may see rows that a later statement of the same loop put into a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

Span = tuple[int, int]
"""From the first character of a loop to behind its last."""

_ENDS = frozenset({"LOOP", "WHILE", "REPEAT", "FOR"})
_OTHERS = {"LOOP": ("(", "JOIN"), "REPEAT": ("(",)}
"""What follows these words where they begin no loop: a function's arguments, or T-SQL's LOOP JOIN."""
_HEADS = frozenset({"WHILE", "FOR"})
"""What DO follows, or LOOP, which begins the loop as well."""
_BATCH = re.compile(r"^[ \t]*GO(?:[ \t]+(?P<times>\d+))?[ \t]*;?[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
"""What parts batches: https://learn.microsoft.com/sql/t-sql/language-elements/sql-server-utilities-statements-go."""


def loops(tokens: Sequence[Any], *, blocks: bool) -> list[Span]:
    """The outermost loops of a text. blocks: a loop is WHILE before one statement or block, as in T-SQL.

    Where a loop's end is not clear, it is the text's end.
    """
    words = [token.text.upper() for token in tokens]
    if "GOTO" in words:
        return [(0, tokens[-1].end + 1)]
    found = _of_blocks(words) if blocks else _with_ends(words)
    return [(tokens[first].start, tokens[last].end + 1) for first, last in found]


def _of_blocks(words: Sequence[str]) -> list[Span]:
    """T-SQL's loops, as numbers of words."""
    found: list[Span] = []
    first: int | None = None
    depth, opened = 0, False
    for number, (word, after) in enumerate(zip(words, [*words[1:], ""], strict=True)):
        if first is None:
            first, depth, opened = (number if word == "WHILE" else None), 0, False
            continue
        if word == "CASE" or (word == "BEGIN" and not after.startswith("TRAN")):
            depth, opened = depth + 1, opened or word == "BEGIN"
        elif word == "END" and depth > 0:
            depth -= 1
        ended = opened if word == "END" else word == ";"
        if ended and depth == 0 and after not in ("ELSE", "TRY"):
            found.append((first, number))
            first = None
    return found if first is None else [*found, (first, len(words) - 1)]


def _with_ends(words: Sequence[str]) -> list[Span]:
    """Loops that END LOOP and the like close, as numbers of words."""
    found: list[Span] = []
    first = head = None
    depth = 0
    for number, (before, word, after) in enumerate(zip(["", *words], words, [*words[1:], ""], strict=False)):
        if before == "END":
            if word in _ENDS:
                depth -= 1
                if depth <= 0:
                    found.append((0 if first is None else first, number))
                    first, depth = None, 0
        elif word in _HEADS:
            head = number
        elif word == ";":
            head = None
        elif (word == "DO" and head is not None) or (word in ("LOOP", "REPEAT") and after not in _OTHERS[word]):
            first = first if first is not None else number if head is None else head
            depth += 1
            head = None
    return found if first is None else [*found, (first, len(words) - 1)]


def within(span: Span, of: Sequence[Span]) -> Span | None:
    """The loop that a part of the text is in, or that begins in it."""
    return next((loop for loop in of if loop[0] < span[1] and span[0] < loop[1]), None)


def without_batches(sql: str) -> tuple[str, list[Span]]:
    """T-SQL's text with semicolons where batches end, and the batches that run several times."""
    repeated, first = [], 0
    for found in _BATCH.finditer(sql):
        if found["times"] is not None and int(found["times"]) > 1:
            repeated.append((first, found.start()))
        first = found.end()
    return _BATCH.sub(lambda found: ";".ljust(len(found[0])), sql), repeated
