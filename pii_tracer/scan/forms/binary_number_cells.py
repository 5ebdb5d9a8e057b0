"""A whole cell of bytes that is nothing but a number, as programs keep keys: HBase's `Bytes.toBytes`, Kafka's
`LongSerializer` and `DoubleSerializer`, Phoenix (first bit turned), `BigInteger.toByteArray`.

Nothing inside a longer cell is read so: any few bytes are some number.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pii_tracer.common.plurals import counted
from pii_tracer.model.number_keys import EXACT

LEAST, MOST = 2, 8
"""Bytes of such a cell."""

_SURE = 4
"""In fewer bytes letters of a code (`DE`, `EUR`) are no number, and numbers below `_SMALL` are none of a person."""
_SMALL = 10_000

_FLOATS = {4: (">f", "float"), 8: (">d", "double")}
_ORDERS: tuple[Literal["big", "little"], ...] = ("big", "little")


def words(number: int, size: int) -> Iterator[int]:
    """As which whole numbers without sign so many bytes are read, first byte first, when they hold a number."""
    bits = 8 * size
    if not -(1 << bits - 1) <= number < 1 << bits or (size < _SURE and abs(number) < _SMALL):
        return
    yield number % (1 << bits)
    if size in _FLOATS:
        if -(1 << bits - 1) <= number < 1 << bits - 1:
            yield number % (1 << bits) ^ 1 << bits - 1
        pack, kind = _FLOATS[size]
        if abs(number) <= EXACT[kind]:
            yield int.from_bytes(struct.pack(pack, number), "big")


class PackedNumbers:
    """Finds cells that are one of some whole numbers. Holds values: never printed, never stored."""

    def __init__(self, numbers: Collection[int]) -> None:
        self._numbers = tuple(numbers)
        self._of_size = lru_cache(MOST)(self._sorted)

    def __repr__(self) -> str:
        return f"PackedNumbers({counted(len(self._numbers), 'number')})"

    def in_cell(self, cell: bytes) -> tuple[int, ...]:
        """The numbers that a whole cell may be."""
        size = len(cell)
        if not LEAST <= size <= MOST or (size < _SURE and cell.isascii() and cell.decode().isprintable()):
            return ()
        known, numbers = self._of_size(size)
        found = []
        for order in _ORDERS:
            word = np.uint64(int.from_bytes(cell, order))
            low, high = np.searchsorted(known, word, "left"), np.searchsorted(known, word, "right")
            found += [self._numbers[n] for n in numbers[low:high]]
        return tuple(dict.fromkeys(found))

    def places(self, data: npt.NDArray[np.uint8], borders: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Indexes of the cells that may be one of them, in order. borders: where cells begin, and the last ends."""
        sizes = np.diff(borders)
        found = [np.empty(0, np.int64)]
        for size in range(LEAST, MOST + 1):
            cells = np.flatnonzero(sizes == size)
            known = self._of_size(size)[0] if len(cells) else ()
            if len(known):
                rows = np.zeros((len(cells), MOST), np.uint8)
                rows[:, :size] = data[borders[cells][:, None] + np.arange(size)]
                little = rows.view("<u8").ravel()
                big = little.byteswap() >> np.uint64(64 - 8 * size)
                found.append(cells[np.isin(little, known) | np.isin(big, known)])
        return np.sort(np.concatenate(found))

    def _sorted(self, size: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[Any]]:
        """The words of cells of one size, sorted, and beside each the index of its number."""
        pairs = [(word, n) for n, number in enumerate(self._numbers) for word in words(number, size)]
        pairs.sort()
        return np.array([word for word, _ in pairs], np.uint64), np.array([n for _, n in pairs], np.int64)
