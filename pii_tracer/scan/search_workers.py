"""Who searches many files: threads of this machine, or others who do the same elsewhere."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Protocol, TypeVar

from pii_tracer.common.parallel_map import several
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.shapes.objects_read_before import Keeper
from pii_tracer.scan.value_forms import Patterns

T = TypeVar("T")
C = TypeVar("C", contravariant=True)

Stamp = tuple[int, str]
"""The size of a thing in bytes, and what else tells whether another machine sees the same thing."""

OfBytes = tuple[str, FileScan]
"""The identity of the bytes that were searched, and what they alone show."""


class Look(Protocol[C]):
    """How a file or a version of an object is read and searched. Can be pickled, and holds no value of a person."""

    @property
    def at_once(self) -> int:
        """So many threads read at once."""

    @property
    def only_here(self) -> bool:
        """Whether no other machine can search so."""

    @property
    def by_store(self) -> bool:
        """Whether a store says what a thing is the same as, so that its bytes need not be read for that."""

    def __call__(self, thing: C, patterns: Patterns) -> FileScan:
        """What stands in it. What cannot be read has no digest."""

    def stamp(self, thing: C) -> Stamp:
        """How it is known again."""

    def place(self, thing: C) -> str | None:
        """Where it stands, as far as that decides what is found in it; None where a search must not be remembered."""

    def identity(self, thing: C) -> str | None:
        """What is another as soon as the bytes are others: BLAKE3 (hex) of them as they are, or what the store says.

        None where nothing tells.
        """

    def of_bytes(self, thing: C, scan: FileScan) -> OfBytes | None:
        """What a search of the thing says of the bytes that it read; None where it could not read them."""

    def again(self, thing: C, known: FileScan, patterns: Patterns) -> FileScan | None:
        """What stands in it, by what an earlier search found in the same bytes; None where it has to be searched."""

    def keeping(self, keeper: Keeper) -> Look[C]:
        """The same look, which keeps shapes of columns, where it can."""


class KnownByStore(ABC):
    """The half of a `Look` at things of which their store says what they are the same as."""

    by_store: ClassVar = True

    @abstractmethod
    def identity(self, thing: Any) -> str | None:
        """As `Look.identity`."""

    @abstractmethod
    def place(self, thing: Any) -> str | None:
        """As `Look.place`."""

    def keeping(self, keeper: Keeper) -> Any:
        """As `Look.keeping`: here, of things that are always read whole."""
        return self

    def told(self, thing: Any) -> str | None:
        """Where a thing lies, and what its store calls its bytes; None where nothing is remembered of it."""
        return told_by(self.place(thing), self.identity(thing))

    def of_bytes(self, thing: Any, scan: FileScan) -> OfBytes | None:
        """As `Look.of_bytes`. `FileScan.of_bytes` is there where the answer with the bytes had this identity."""
        identity = self.identity(thing)
        return None if identity is None or scan.of_bytes is None else (identity, scan.of_bytes)


def told_by(place: str | None, identity: str | None) -> str | None:
    """Where something lies, and what its bytes are called there; None where nothing is remembered of it."""
    return None if place is None or identity is None else f"{place}\0{identity}"


def place_in_store(store: str, key: str, text: FileText | None = None) -> str:
    """Where an object's bytes lie, as far as that decides what is found in them. text: how they are read."""
    return json.dumps([store, key, text.model_dump_json() if text else None])


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
