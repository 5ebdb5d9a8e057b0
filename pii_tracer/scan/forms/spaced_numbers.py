"""Long numbers with other signs between their digits than the source has: `+91-98450-12345`, `(919) 845-012345`,
`7,340,219,981`, and `91%2098450%2012345`, where these signs are escaped.

All but digits is left out of the data, which costs little; only where one of the numbers stands in what remains is it
looked at what lies between its digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt
from ahocorasick_rs import BytesAhoCorasick

from pii_tracer.scan.forms.escape_views import View, made_alike, printable, reach, undone
from pii_tracer.scan.forms.weak_boundaries import is_behind_escape

Marks = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

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
_ESCAPED = re.compile(rb"\d+(?:(?:" + _SIGN + rb"|[,_'\0]|\xe2\x80\x99){1,12}\d+)+")
"""The same where escapes stand: of several layers, or of letters of two bytes, more is between two digits."""
_SIGNS = (b"%", b"\\", b"&", b"=")
"""How every escape begins."""
_ENTITY = re.compile(rb"&(?:amp;)*#?\w{1,30};")
_LAYERS = 4
_BESIDE = 24
"""Bytes around a number that show whether other digits touch it."""


def _is_in(signs: bytes) -> Marks:
    table = np.zeros(256, np.bool_)
    table[list(signs)] = True
    return table


_HEX, _UPPER_HEX = _is_in(b"0123456789abcdefABCDEF"), _is_in(b"0123456789ABCDEF")
_OCTAL, _QUARTER = _is_in(b"01234567"), _is_in(b"0123")
_LEADS = _is_in(b"".join(_SIGNS))


def stand_in(data: bytes) -> bool:
    """Whether a number with so many digits may stand in pieces in a text."""
    whole = np.frombuffer(data, np.uint8)
    readings = (np.where(_LEADS[whole], 45, whole)[~within].astype(np.uint8).tobytes() for within in _escapes(data))
    escaped = (number for reading in readings for number in _ESCAPED.finditer(reading))
    found = chain(_PARTED.finditer(data), escaped)
    return any(len(number[0].translate(None, _OTHERS)) >= LEAST for number in found)


def _escapes(data: bytes) -> Iterator[Marks]:
    """Where a text stands that only writes a sign down, but for its first byte: as most writers do, and, where `=` may
    begin an escape (quoted-printable), with these. Nothing where there is no escape.
    """
    if not any(sign in data for sign in _SIGNS):
        return
    whole = np.frombuffer(data, np.uint8)
    padded = np.concatenate((whole, np.zeros(12, np.uint8)))
    within = np.zeros(len(padded), np.bool_)

    def are(places: Places, table: Marks, first: int, count: int) -> Places:
        return places[np.logical_and.reduce([table[padded[places + first + n]] for n in range(count)])]

    def mark(places: Places, first: int, count: int) -> None:
        for n in range(count):
            within[places + first + n] = True

    if b"%" in data:
        places, first = np.flatnonzero(whole == 37), 1
        places = places[: np.searchsorted(places, len(whole) - 2)]
        for _ in range(_LAYERS):
            places = are(places, _HEX, first, 2)
            mark(places, first, 2)
            places = places[(padded[places + first] == 50) & (padded[places + first + 1] == 53)]  # of a percent sign
            first += 2
    if b"\\" in data:
        places = np.flatnonzero(whole == 92)
        for sign, digits in ((b"u", 4), (b"x", 2)):
            some = are(places[padded[places + 1] == sign[0]], _HEX, 2, digits)
            mark(some, 1, digits + 1)
        mark(are(are(places, _QUARTER, 1, 1), _OCTAL, 2, 2), 1, 3)
    for entity in _ENTITY.finditer(data) if b"&" in data else ():
        within[entity.start() + 1 : entity.end()] = True
    yield within[: len(whole)]
    if b"=" in data:
        mark(are(np.flatnonzero(whole == 61), _UPPER_HEX, 1, 2), 1, 2)
        yield within[: len(whole)]


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
        self._around = max(map(reach, self._numbers), default=0)

    def views(self, data: bytes) -> Iterator[tuple[int, View]]:
        """The parts of a text in which a number stands with escapes between its digits, folded and with all escapes
        undone: where each begins, and how it looks.
        """
        if self._search is None:
            return
        whole = np.frombuffer(data, np.uint8)
        for within in _escapes(data):
            places = np.flatnonzero((whole >= 48) & (whole <= 57) & ~within)
            for _, first, end in self._found(whole[places].tobytes()):
                start, stop = int(places[first]), int(places[end - 1]) + 1
                escaped = within[start:stop].any() or (whole[start:stop] == 92).any()
                if escaped and stop - start <= self._around:
                    low = max(0, start - _BESIDE)
                    window = data[low : stop + _BESIDE].lower()
                    plain = View(window, list(range(len(window) + 1)))
                    for view in (plain, printable(plain)) if b"=" in window else (plain,):
                        yield low, made_alike(undone(view, _LAYERS))

    def _found(self, digits: bytes) -> list[tuple[int, int, int]]:
        """Which numbers stand in a row of digits, where each starts and ends."""
        few = 0 < len(self._within) <= _FEW
        if self._search is None or (few and not any(number in digits for number in self._within)):
            return []
        return list(self._search.find_matches_as_indexes(digits, overlapping=True))

    def matches(self, data: bytes, *, joined: bool = False) -> Iterator[tuple[int, int, int]]:
        """Which number, where it starts and ends. Those that stand in one piece are left to others.

        joined: what touches it may be another cell.
        """
        found = self._found(data.translate(None, _OTHERS)) if self._search is not None else []
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
    if joined:
        return True
    before = data[max(0, start - 40) : start]
    touched = before.rstrip(b"0")[-1:].isdigit() and not is_behind_escape(before, len(before))
    return not (touched or data[stop : stop + 1].isdigit())
