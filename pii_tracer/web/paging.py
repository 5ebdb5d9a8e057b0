"""One part of a long list, with a word on how much more there is. What blocks is never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Part(Generic[T]):
    """always: shown on each part. items: those of this part. number: counts from 1. total: all that were found."""

    always: tuple[T, ...]
    items: tuple[T, ...]
    number: int
    parts: int
    total: int
    first: int
    asked: str

    @property
    def last(self) -> int:
        """The place of the last item that is not always shown."""
        return self.first + len(self.items) - 1

    @property
    def shown(self) -> tuple[T, ...]:
        """Everything of this part, what is always shown first."""
        return (*self.always, *self.items)


def part(always: Sequence[T], others: Sequence[T], number: int, size: int, asked: str = "") -> Part[T]:
    """A part of `others`, `size` at most; a number beyond the end gives the last part. asked: the words of a search."""
    parts = max(1, -(-len(others) // size))
    number = min(max(1, number), parts)
    start = (number - 1) * size
    items = tuple(others[start : start + size])
    return Part(tuple(always), items, number, parts, len(always) + len(others), start + 1, asked)
