"""Writings of many values at once that write each sign for itself: escapes, hex, lists of numbers, code pages.

What a writing makes of a sign is asked of the function that writes single values, once for each sign of ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from pii_tracer.scan.forms import fully_escaped_values, transcriptions
from pii_tracer.scan.many_values.pattern_windows import SPANS, Bytes, Places, Ragged
from pii_tracer.scan.value_encodings import html_escaped, json_escaped, url_escaped

ASCII = 128
_LOWER = np.frombuffer(bytes(range(256)).lower(), np.uint8)
_TOGETHER = 1 << 22
"""Bytes of patterns that are made together."""
_SPARSE, _WIDE = 16, 32


@dataclass(frozen=True)
class SignMap:
    """What becomes of each sign of ASCII. codes: its bytes; sizes: how many; trimmed: bytes left out at the end."""

    codes: Bytes
    sizes: Places
    trimmed: int

    @property
    def changes(self) -> npt.NDArray[np.bool_]:
        """Which signs are written otherwise than as they are, in any case."""
        return np.asarray((self.sizes != 1) | (_LOWER[self.codes[:, 0]] != _LOWER[:ASCII]))

    @property
    def window(self) -> int:
        """Bytes of its windows, where its patterns are as long: more where it writes a letter in several bytes."""
        return _SPARSE if self.sizes[ord("a")] <= 4 else _WIDE


def _map(codes: list[bytes], trimmed: int = 0) -> SignMap:
    sizes = np.array([len(code) for code in codes], np.int64)
    table = np.zeros((ASCII, int(sizes.max())), np.uint8)
    for sign, code in enumerate(codes):
        table[sign, : len(code)] = np.frombuffer(code, np.uint8)
    return SignMap(table, sizes, trimmed)


def _maps_of(ways: Callable[[str], tuple[str, ...]]) -> Iterator[SignMap]:
    for codes in zip(*(ways(chr(sign)) for sign in range(ASCII)), strict=True):
        yield _map([code.encode() for code in codes])


@cache
def partly() -> tuple[SignMap, ...]:
    """Writings of values as they are: some signs change, or all do."""
    found = [*_maps_of(url_escaped), *_maps_of(json_escaped), *_maps_of(html_escaped)]
    found += _maps_of(fully_escaped_values.of_some_signs)
    found.append(_map([chr(n).encode("utf-16-le") for n in range(ASCII)], 1))
    found.append(_map([chr(n).encode("utf-32-le") for n in range(ASCII)], 3))
    found.append(_map([chr(n).encode("utf-7").replace(b"@", b"+AEA-") for n in range(ASCII)]))
    found += (_map([chr(n).encode(order).hex().encode() for n in range(ASCII)]) for order in ("utf-16-le", "utf-16-be"))
    return _different(found)


@cache
def in_two_cases() -> tuple[SignMap, ...]:
    """Writings of values as they are and in lower case."""
    found = list(_maps_of(fully_escaped_values.of_each_sign))
    for joint in fully_escaped_values.JOINTS:
        found.append(_map([f"{n:02x}{joint}".encode() for n in range(ASCII)], len(joint)))
    found += (_map([f"{n}{joint}".encode() for n in range(ASCII)], len(joint)) for joint in transcriptions.JOINTS)
    found.append(_map([f"0x{n:02x}, ".encode() for n in range(ASCII)], 2))
    found.append(_map([bytes([(n + 42) % 256]) for n in range(ASCII)]))
    return _different(found)


@cache
def in_three_cases() -> tuple[SignMap, ...]:
    """Writings of values as they are, in lower and in upper case."""
    found = [_map([fully_escaped_values.wide(chr(n)).encode() for n in range(ASCII)])]
    found.append(_map([f"{n:02x}".encode() for n in range(ASCII)]))
    found += (_map([chr(n).encode(page) for n in range(ASCII)]) for page in transcriptions.MAINFRAME)
    return _different(found)


def _different(maps: list[SignMap]) -> tuple[SignMap, ...]:
    """Without those that do the same, or nothing."""
    found: dict[tuple[bytes, bytes, int], SignMap] = {}
    for one in maps:
        if one.changes.any():
            found.setdefault((one.codes.tobytes(), one.sizes.tobytes(), one.trimmed), one)
    return tuple(found.values())


@dataclass(frozen=True)
class Written:
    """What a writing makes of some values, as far as windows of it can lie. rows: of which values; inside: where the
    first sign stands that it changes; longest: bytes of the longest writing as a whole.
    """

    patterns: Ragged
    rows: Places
    inside: Places
    longest: int


def written(values: Bytes, one: SignMap) -> Iterator[Written]:
    """A writing of values of the same length; without those that it leaves as they are.

    values: their signs, a row each.
    """
    rows, length = values.shape
    step = max(1, _TOGETHER // (length * one.codes.shape[1]))
    for start in range(0, rows, step):
        some = values[start : start + step]
        changed = one.changes[some]
        touched = np.flatnonzero(changed.any(axis=1))
        if not len(touched):
            continue
        some, first = some[touched], changed[touched].argmax(axis=1)
        sizes = one.sizes[some]
        longest = int(sizes.sum(axis=1).max()) - one.trimmed
        # a window holds the first sign that changes: no sign is needed that lies farther away than a window reaches
        reach = 1 + -(-one.window // int(sizes.min()))
        low, high = max(0, int(first.min()) - reach), int(first.max()) + reach + 1
        patterns = _patterns(some[:, low:high], sizes[:, low:high], one)
        yield Written(patterns, touched + start, first - low, longest)


def _patterns(some: Bytes, sizes: Places, one: SignMap) -> Ragged:
    """The bytes of rows of signs, without those that are left out at the end."""
    codes, width = one.codes[some], one.codes.shape[1]
    data = codes.ravel() if int(sizes.min()) == width else codes[np.arange(width) < sizes[:, :, None]]
    totals = sizes.sum(axis=1)
    padded = np.concatenate([data, np.zeros(SPANS[-1], np.uint8)])
    return Ragged(padded, np.cumsum(totals) - totals, totals - one.trimmed)
