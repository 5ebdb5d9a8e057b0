"""What somebody corrects in a drafted estate file, line by line."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher


def corrected(text: str, changes: Mapping[str, str]) -> tuple[str, int]:
    """The file with texts replaced, each of which it has; and how many of its lines that made."""
    made = text
    for before, after in changes.items():
        assert before in made, before
        made = made.replace(before, after)
    ways = SequenceMatcher(None, text.splitlines(), made.splitlines(), autojunk=False).get_opcodes()
    return made, sum(max(b - a, d - c) for way, a, b, c, d in ways if way != "equal")
