"""Counts in sentences: the noun, and its verb, in the singular or in the plural."""

from __future__ import annotations


def counted(value: int, one: str, many: str | None = None) -> str:
    """`1 step`, `2 steps`; with `one` as `file is` and `many` as `files are`, the verb agrees too."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"
