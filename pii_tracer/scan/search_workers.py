"""Who searches many files: threads of this machine, or others who do the same elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from pii_tracer.common.parallel_map import several
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.value_forms import Patterns

T = TypeVar("T")
C = TypeVar("C", contravariant=True)

Stamp = tuple[int, str]
"""The size of a thing in bytes, and what else tells whether another machine sees the same thing."""


class Look(Protocol[C]):
    """How a file or a version of an object is read and searched. Can be pickled, and holds no value of a person."""

    @property
    def at_once(self) -> int:
        """So many threads read at once."""

    def __call__(self, thing: C, patterns: Patterns) -> FileScan:
        """What stands in it. What cannot be read has no digest."""

    def stamp(self, thing: C) -> Stamp:
        """How it is known again."""

    def place(self, thing: C) -> str | None:
        """Where it stands, as far as that decides what is found in it; None where a search must not be remembered."""

    def digest(self, thing: C) -> str | None:
        """SHA-256 (hex) of its bytes as they are now; None where they cannot be read."""


class Searchers(Protocol):
    """Searches many things."""

    def search(self, look: Look[T], things: Iterable[T], patterns: Patterns) -> Iterator[tuple[T, FileScan]]:
        """Each thing with what stands in it, in order."""


class Threads:
    """Threads of this process."""

    def search(self, look: Look[T], things: Iterable[T], patterns: Patterns) -> Iterator[tuple[T, FileScan]]:
        """As `Searchers.search`."""
        return several(lambda thing: (thing, look(thing, patterns)), things, look.at_once)


THREADS = Threads()
