"""What column chunks hold, written down as tables of their words or numbers. What is not clear has no shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pii_tracer.model.number_keys import EXACT
from pii_tracer.scan.decode.arrow import day_texts, is_never_searched
from pii_tracer.scan.forms import (
    escaped_letters,
    escaped_punctuation,
    invisible_characters,
    line_wraps,
    spaced_numbers,
    text_bytes_decoding,
    values_in_pieces,
)
from pii_tracer.scan.shapes.chunk_skipping import FIRST, LAST, WITHIN, Kind, Shape, border, number_hashes
from pii_tracer.scan.shapes.word_tables import (
    LONG,
    SHORT,
    SPARSE,
    SPARSER,
    mark,
    mark_digits,
    mark_words,
    new_marks,
    packed,
)

Numbers = npt.NDArray[np.int64]
Place = tuple[int, int]
"""A column chunk of a file: the numbers of its row group and of its column."""

_LEAST_TABLE = 13
"""Bits, so that the table of a chunk that is well packed is not full of its words."""


class TextShape:
    """The shape of a chunk of text, as it is unpacked piece by piece."""

    def __init__(self, stored: int) -> None:
        """stored: bytes of the chunk in its file; the tables have up to a quarter of them."""
        bits = max(_LEAST_TABLE, (stored - 1).bit_length())
        self._short, self._long = (new_marks(min(width.most, bits)) for width in (SHORT, LONG))
        self._digits = new_marks(min(LONG.most, bits))
        self._ends = new_marks(min(SHORT.most, bits))
        self._parted = self._escaped = self._grouped = False

    def add(self, piece: bytes | memoryview) -> None:
        """Note what stands in a piece of which no text goes on in another."""
        mark_words(self._short, piece, SHORT)
        mark_words(self._long, piece, LONG)
        mark_digits(self._digits, piece)
        whole = bytes(piece)
        self._parted = (
            self._parted
            or invisible_characters.stand_in(whole)
            or escaped_letters.stand_in(whole)
            or escaped_punctuation.unseen_stand_in(whole)
            or values_in_pieces.stand_in(whole)
            or line_wraps.stand_in(whole)
            or text_bytes_decoding.stand_in(whole)
        )
        self._escaped = self._escaped or escaped_punctuation.stand_in(whole)
        self._grouped = self._grouped or spaced_numbers.stand_in(whole)
        before, left, right, behind = line_wraps.signs_at_ends(piece)
        if len(left):
            mark(self._ends, border(WITHIN, before, left, right, behind))
            mark(self._ends, border(FIRST, left, right, behind))
            mark(self._ends, border(LAST, before, left, right))

    def shape(self) -> Shape:
        """The shape of what was noted."""
        # a short pattern has few words, of which none should be there by chance
        short, digits, ends = (packed(marks, SPARSER) for marks in (self._short, self._digits, self._ends))
        tables = (short, packed(self._long, SPARSE), digits, ends)
        return Shape(Kind.TEXT, tables, parted=self._parted, escaped=self._escaped, grouped=self._grouped)


class ColumnShape(Protocol):
    """The shape of a chunk that is no text, as it is read batch by batch."""

    def add(self, array: Any) -> None:
        """Note what stands in a batch."""

    def shape(self) -> Shape | None:
        """The shape of what was noted; None where not all of it could be."""


class _Numbers:
    def __init__(self, stored: int) -> None:
        self._marks = new_marks(min(LONG.most, max(_LEAST_TABLE, (stored - 1).bit_length())))
        self._low, self._high, self._clear = 0, -1, True

    def add(self, array: Any) -> None:
        found = whole_numbers(array)
        if found is None:
            self._clear = False
        elif len(found):
            low, high = int(found.min()), int(found.max())
            empty = self._high < self._low
            self._low, self._high = (low, high) if empty else (min(self._low, low), max(self._high, high))
            mark(self._marks, number_hashes(found))

    def shape(self) -> Shape | None:
        return Shape(Kind.NUMBERS, (packed(self._marks, SPARSE),), self._low, self._high) if self._clear else None


class _Dates:
    """Days are searched as texts."""

    def __init__(self, stored: int) -> None:
        self._text = TextShape(stored)

    def add(self, array: Any) -> None:
        self._text.add("\0".join(text or "" for text in day_texts(array)).encode())

    def shape(self) -> Shape | None:
        return self._text.shape()


class _Nothing:
    def add(self, array: Any) -> None:
        pass

    def shape(self) -> Shape | None:
        return Shape(Kind.NOTHING)


def column_shape(kind: pa.DataType, stored: int) -> ColumnShape | None:
    """What notes a column's shape; None for types that have none. stored: as of `TextShape`."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _Numbers(stored)
    if pa.types.is_date(kind):
        return _Dates(stored)
    return _Nothing() if is_never_searched(kind) else None


def whole_numbers(array: Any) -> Numbers | None:
    """The whole numbers in an Arrow array as which a key may be kept, each once or more; None where that is not clear.

    Floats beyond those that are exact stand for no key (`pii_tracer.scan.decode.arrow`).
    """
    kind, array = array.type, array.drop_null()
    if pa.types.is_integer(kind):
        if kind.bit_width == 64 and not pa.types.is_signed_integer(kind) and (pc.max(array).as_py() or 0) >= 2**63:
            return None
        return np.asarray(array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
    if pa.types.is_floating(kind):
        values = array.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        # what is no number and what has no end is not less than the border
        exact = values[np.abs(values) <= EXACT["double"]]
        return np.asarray(exact[exact == np.floor(exact)].astype(np.int64))
    if not pa.types.is_decimal128(kind) or not 0 <= kind.scale <= 18:
        return None
    _, data = array.buffers()
    if not len(array):
        return np.empty(0, np.int64)
    halves = np.frombuffer(data, np.int64, 2 * len(array), 16 * array.offset).reshape(-1, 2)
    unscaled, above = halves[:, 0], halves[:, 1]
    if not np.array_equal(unscaled >> 63, above):
        return None
    unit = np.int64(10**kind.scale)
    return np.asarray(unscaled[unscaled % unit == 0] // unit)


def written(shapes: Mapping[Place, Shape]) -> bytes:
    """The shapes of a file as bytes."""
    heads = [
        [*place, s.kind, s.low, s.high, s.parted, s.escaped, s.grouped, [len(t) for t in s.tables]]
        for place, s in sorted(shapes.items())
    ]
    head = json.dumps(heads).encode()
    return b"".join((len(head).to_bytes(4, "little"), head, *(t for _, s in sorted(shapes.items()) for t in s.tables)))


def read(content: bytes) -> dict[Place, Shape]:
    """What `written` made.

    Raises:
        ValueError: it is something else.
    """
    at = 4 + int.from_bytes(content[:4], "little")
    found: dict[Place, Shape] = {}
    for group, index, kind, low, high, parted, escaped, grouped, sizes in json.loads(content[4:at]):
        tables = []
        for size in sizes:
            tables.append(content[at : at + size])
            at += size
        found[group, index] = Shape(Kind(kind), tuple(tables), low, high, parted, escaped, grouped)
    if at != len(content):
        raise ValueError("the shapes are truncated")
    return found
