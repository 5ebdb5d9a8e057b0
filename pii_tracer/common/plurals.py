"""Counts in sentences: the noun, and its verb, in the singular or in the plural; and lists that are cut."""

from __future__ import annotations

from collections.abc import Sequence


def counted(value: int, one: str, many: str | None = None) -> str:
    """`1 step`, `2 steps`; with `one` as `file is` and `many` as `files are`, the verb agrees too."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """The first so many names with commas between, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
