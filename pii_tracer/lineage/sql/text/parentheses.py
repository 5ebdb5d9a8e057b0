"""Where parentheses close, in a text whose quoted parts are set aside."""

from __future__ import annotations


def end_of(text: str, start: int, *, piped: bool = False) -> int:
    """Where the parenthesis around a place closes, or the text ends. piped: or the next pipe begins."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] == ")" and depth == 0:
            return at
        if piped and depth == 0 and (text.startswith("|>", at) or text[at] == ";"):
            return at
        depth += (text[at] == "(") - (text[at] == ")")
    return len(text)
