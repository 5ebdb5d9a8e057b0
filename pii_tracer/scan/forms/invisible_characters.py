"""Signs that nobody sees inside a value: soft hyphens, joiners, marks of direction, selectors of variants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_CODES = (0xAD, 0x34F, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070))
_ALL = tuple(chr(code).encode() for code in (*_CODES, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFF9, 0xFFFA, 0xFFFB))
"""In UTF-8 (Default_Ignorable_Code_Point, https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt)."""

UNSEEN = b"(?:" + b"|".join(map(re.escape, _ALL)) + b")"


def _known() -> dict[int, tuple[int, npt.NDArray[np.bool_]]]:
    """By first byte: how many bytes a sign has, and which two stand behind the first; of short ones any second."""
    tables: dict[int, tuple[int, npt.NDArray[np.bool_]]] = {}
    for sign in _ALL:
        _, table = tables.setdefault(sign[0], (len(sign), np.zeros(1 << 16, np.bool_)))
        second = sign[1] << 8
        table[second | sign[2] if len(sign) > 2 else slice(second, second + 256)] = True
    return tables


_KNOWN = _known()


@dataclass(frozen=True)
class Bare:
    """A part of a text without them. origins: where each byte of it stands in the text."""

    data: bytes
    origins: npt.NDArray[np.int64]

    def is_parted(self, start: int, end: int) -> bool:
        """Whether such a sign stood between the first and the last of these bytes."""
        return int(self.origins[end - 1] - self.origins[start]) > end - 1 - start


def bare(text: bytes, around: int) -> Iterator[Bare]:
    """The parts of a text that hold all that lies within so many bytes of such a sign."""
    if text.isascii():
        return
    whole = np.frombuffer(text, np.uint8)
    places, sizes = _places(whole)
    if not len(places):
        return
    cuts = np.flatnonzero(np.diff(places) > 2 * around) + 1
    for first, last in zip((0, *cuts.tolist()), (*cuts.tolist(), len(places)), strict=True):
        low = max(0, int(places[first]) - around)
        kept = np.ones(min(len(whole), int(places[last - 1]) + around) - low, np.bool_)
        for at in range(3):
            kept[(places[first:last] - low + at)[sizes[first:last] > at]] = False
        origins = low + np.flatnonzero(kept)
        yield Bare(whole[origins].tobytes(), origins)


def stand_in(text: bytes) -> bool:
    """Whether such a sign stands in a text."""
    return not text.isascii() and len(_places(np.frombuffer(text, np.uint8))[0]) > 0


def _places(whole: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where they stand, in order, and how many bytes each has."""
    found, sizes = [], []
    for first, (size, table) in _KNOWN.items():
        places = np.flatnonzero(whole[: max(0, len(whole) - size + 1)] == first)
        behind = whole.take(places + 1).astype(np.intp) << 8 | whole.take(places + 2, mode="clip")
        places = places[table.take(behind)]
        found.append(places)
        sizes.append(np.full(len(places), size, np.int64))
    together = np.concatenate(found)
    order = np.argsort(together)
    return together[order], np.concatenate(sizes)[order]
