"""What is known of objects that were read, so that others' values are searched for in a part of their bytes.

When an object is read whole, it is written down beside the shapes which bytes of its pages only a reader of the pages
looks at (`hollow`), and digests: one of all other bytes, its frame, and one of each chunk's hollow bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pii_tracer.scan.false_cell_hits import gaps
from pii_tracer.scan.shapes.chunk_skipping import Shape
from pii_tracer.scan.shapes.chunk_value_tables import Place, read, written
from pii_tracer.scan.shapes.file_shapes import FileShapes, ShapeKeeper

EDGE = 4096
"""So many bytes at both ends of a page count to the frame: a value may begin before the page or go on behind it."""
_HOLE = 1 << 19
"""Fewer bytes than these are read with those around them: each hole costs a request, and that takes as long."""
_WORTH = 8
"""Where less than so small a part of an object could be left unread, it is read whole."""

Hollow = Mapping[Place, Sequence[range]]


class Stored(Protocol):
    """One version of an object, and no other."""

    @property
    def told(self) -> str:
        """Where it lies, and what the store calls its bytes."""

    @property
    def size(self) -> int:
        """In bytes, as it was listed."""

    def part(self, first: int, at_most: int) -> bytes:
        """Bytes of it from an offset on.

        Raises:
            EstateError, OSError: refused, gone, another version, or not these bytes.
        """


@dataclass(frozen=True)
class Outline:
    """What is known of an object that was read. sha256, frame, digests: as hex; digests: of hollow bytes, by chunk.

    hollow: nothing where it is always read whole, since too few bytes could be left unread.
    """

    sha256: str
    frame: str
    hollow: Hollow
    digests: Mapping[Place, str]
    shapes: Mapping[Place, Shape]

    @classmethod
    def of(cls, data: memoryview, sha256: str, hollow: Hollow, shapes: Mapping[Place, Shape]) -> Outline:
        """Of all bytes of an object. hollow: as the decoder tells it."""
        inner = {place: _inner(hollow.get(place, ())) for place in shapes}
        inner = {place: ranges for place, ranges in inner.items() if ranges}
        if not is_worth(in_order(inner.values()), len(data)):
            inner = {}
        digests = {place: _digest(data, ranges) for place, ranges in inner.items()}
        return cls(sha256, _digest(data, gaps(in_order(inner.values()), range(len(data)))), inner, digests, shapes)

    def stands_in(self, data: memoryview, left: Collection[Place]) -> bool:
        """Whether all bytes but the hollow ones of some chunks are those of the object."""
        read_ones = {place: ranges for place, ranges in self.hollow.items() if place not in left}
        framed = _digest(data, gaps(in_order(self.hollow.values()), range(len(data)))) == self.frame
        return framed and all(_digest(data, ranges) == self.digests[place] for place, ranges in read_ones.items())

    def written(self) -> bytes:
        """As bytes."""
        chunks = [
            [*place, self.digests[place], [[r.start, r.stop] for r in ranges]] for place, ranges in self.hollow.items()
        ]
        head = json.dumps([self.sha256, self.frame, chunks]).encode()
        return b"".join((len(head).to_bytes(4, "little"), head, written(self.shapes)))

    @classmethod
    def read(cls, content: bytes) -> Outline:
        """What `written` made."""
        at = 4 + int.from_bytes(content[:4], "little")
        sha256, frame, chunks = json.loads(content[4:at])
        hollow = {(group, index): [range(*pair) for pair in pairs] for group, index, _, pairs in chunks}
        digests = {(group, index): digest for group, index, digest, _ in chunks}
        return cls(sha256, frame, hollow, digests, read(content[at:]))


class ObjectKeeper(Protocol):
    """Keeps what is known of objects, and counts how they are read."""

    def has_outline(self, told: str) -> bool:
        """Whether so much is known of a version that a part may be enough."""

    def outline_of(self, told: str, end: memoryview) -> Outline | None:
        """What is known of a version whose bytes end so; None where nothing is, or where it has to be decoded whole."""

    def read_again(self, told: str) -> Collection[Place]:
        """The chunks of a version that are read whatever their shape."""

    def keep_outline(self, told: str, end: memoryview, outline: Outline) -> None:
        """Write down what became known."""

    def count(self, shapes: FileShapes, told: str, unfetched: Collection[Place] = ()) -> None:
        """Take note of how an object was read. unfetched: chunks that were left out and not even read."""


class Keeper(ShapeKeeper, ObjectKeeper, Protocol):
    """Keeps what is known of files and of objects."""


def is_worth(holes: Iterable[range], size: int) -> bool:
    """Whether so much need not be read of an object that the others are read in parts."""
    return sum(map(len, holes)) * _WORTH >= size


def _inner(bodies: Iterable[range]) -> list[range]:
    """What of some pages need not be read, where it is worth a request."""
    inner = (range(body.start + EDGE, body.stop - EDGE) for body in bodies)
    return [hole for hole in inner if len(hole) >= _HOLE]


def in_order(ranges: Iterable[Iterable[range]]) -> list[range]:
    """All of them, by where they begin."""
    return sorted((one for many in ranges for one in many), key=lambda one: one.start)


def _digest(data: memoryview, ranges: Iterable[range]) -> str:
    digest = hashlib.sha256()
    for part in ranges:
        digest.update(data[part.start : part.stop])
    return digest.hexdigest()
