"""Long numbers with other signs between their digits than the source has: `+91-98450-12345`, `(919) 845-012345`,
`7,340,219,981`.

All but digits is left out of the data, which costs little; only where one of the numbers stands in what remains is it
looked at what lies between its digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from ahocorasick_rs import BytesAhoCorasick

LEAST = 10
"""Fewer digits are many things' numbers, and stand in rows of small ones."""

_MOST = 256
"""Of more numbers it is not asked which hold others."""
_FEW = 16
"""Numbers that are looked for faster one by one, where none is there."""

_OTHERS = bytes(byte for byte in range(256) if not 48 <= byte <= 57)
_SIGN = rb"[ ().+/-]|\xc2\xa0|\xe2\x80[\x80-\x95\xaf]|\xe2\x88\x92|\xe2\x81[\xa0\x9f]|\xe3\x80\x80|\xef\xbc\x8d"
_GROUPED = re.compile(rb"\d+(?:(?:" + _SIGN + rb"){1,3}\d+)+")
_THOUSANDS = re.compile(rb"\d{1,3}(?:([,_']|\xe2\x80\x99)\d{2,3})*\1\d{3}")


_PARTED = re.compile(rb"\d+(?:(?:" + _SIGN + rb"|[,_']|\xe2\x80\x99){1,3}\d+)+")


def stand_in(data: bytes) -> bool:
    """Whether a number with so many digits may stand in pieces in a text."""
    return any(len(found[0].translate(None, _OTHERS)) >= LEAST for found in _PARTED.finditer(data))


class Endings:
    """Some values, as what a text may end with."""

    def __init__(self, values: set[bytes]) -> None:
        self._values = values
        self._sizes = sorted({len(value) for value in values})

    def end(self, text: bytes, start: int, stop: int) -> bool:
        """Whether this part of a text ends with one of them."""
        return any(text[stop - size : stop] in self._values for size in self._sizes if size <= stop - start)


class SpacedNumbers:
    """Finds numbers, told by their digits alone."""

    def __init__(self, numbers: list[str]) -> None:
        self._numbers = [number.encode() for number in numbers]
        # where none of these is, none of the others is, which have one of them within
        few = self._numbers if len(numbers) <= _MOST else []
        self._within = [n for n in few if not any(o != n and o in n for o in few)]
        self._search = BytesAhoCorasick(self._numbers) if numbers else None

    def matches(self, data: bytes, *, joined: bool = False) -> Iterator[tuple[int, int, int]]:
        """Which number, where it starts and ends. Those that stand in one piece are left to others.

        joined: what touches it may be another cell.
        """
        if self._search is None:
            return
        digits = data.translate(None, _OTHERS)
        if 0 < len(self._within) <= _FEW and not any(number in digits for number in self._within):
            return
        found = self._search.find_matches_as_indexes(digits, overlapping=True)
        if not found:
            return
        whole = np.frombuffer(data, np.uint8)
        places = np.flatnonzero((whole >= 48) & (whole <= 57))
        for number, first, end in found:
            start, stop = int(places[first]), int(places[end - 1]) + 1
            if stop - start > end - first and _is_one(data, start, stop, joined=joined):
                yield number, start, stop


def _is_one(data: bytes, start: int, stop: int, *, joined: bool) -> bool:
    """Whether signs part the digits as a number's are, and no other digit touches them but zeros in front."""
    text = data[start:stop]
    if text.replace(b".", b"", 1).isdigit():  # a fraction
        return False
    if not (_GROUPED.fullmatch(text) or _THOUSANDS.fullmatch(text)):
        return False
    return joined or not (
        data[stop : stop + 1].isdigit() or data[max(0, start - 40) : start].rstrip(b"0")[-1:].isdigit()
    )
