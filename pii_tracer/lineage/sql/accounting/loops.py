"""Loops: a statement in one may see rows that a later statement of the text put into a table."""

from __future__ import annotations

from collections.abc import Sequence

_BEGINS = frozenset({"WHILE", "GOTO", "LOOP", "REPEAT"})
_OTHERS = {"LOOP": ("(", "JOIN"), "REPEAT": ("(",)}
"""What follows these words where they begin no loop: a function's arguments, or T-SQL's LOOP JOIN."""


def loops(words: Sequence[str]) -> bool:
    """Whether a text, given as its words in upper case, has a loop. Loops with FOR end with END FOR or have LOOP."""
    around = zip(["", *words], words, [*words[1:], ""], strict=False)
    return any(
        (word in _BEGINS and after not in _OTHERS.get(word, ())) or (before == "END" and word == "FOR")
        for before, word, after in around
    )
