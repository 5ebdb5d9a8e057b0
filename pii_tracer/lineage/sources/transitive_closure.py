"""What is reached from a thing by any number of steps."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

Thing = TypeVar("Thing", bound=Hashable)


def reached(start: Thing, ways: Mapping[Thing, set[Thing]]) -> set[Thing]:
    """All that a step from the start, or from what is reached, leads to: the start itself only on a way round."""
    found: set[Thing] = set()
    waiting = [start]
    while waiting:
        fresh = ways.get(waiting.pop(), set()) - found
        found |= fresh
        waiting += fresh
    return found
