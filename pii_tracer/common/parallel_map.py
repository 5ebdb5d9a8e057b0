"""The same question about many things, several at once: answers wait for S3, or for decoders without Python's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

_PART = 200
"""So many answers wait at most, however many things there are."""


def several(ask: Callable[[A], B], things: Iterable[A], workers: int = 4) -> Iterator[B]:
    """The answers, in order. workers: so many are asked at once, each perhaps with an object's bytes in memory.

    One thing alone is asked about in this thread: most folders have one file, and a new thread costs more than that.
    """
    waiting = iter(things)
    part = list(islice(waiting, _PART))
    if len(part) < 2:
        yield from map(ask, part)
        return
    with ThreadPoolExecutor(workers) as pool:
        while part:
            yield from pool.map(ask, part)
            part = list(islice(waiting, _PART))
