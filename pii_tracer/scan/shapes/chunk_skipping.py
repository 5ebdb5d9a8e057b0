"""Whether some persons' values fit in what is known of a column chunk.

A form of a value is asked for as the patterns that the search for it uses, whatever the form is called. So a new form
is asked for without being named here. What is not asked of a table fits: very short patterns, tiny numbers, very many
patterns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.scan.shapes.word_tables import LONG, SHORT, Hashes, Marks, PatternDigits, PatternWords, fold, held

_MOST_PATTERN_BYTES = 1 << 20
"""Patterns of more bytes, those of dozens of persons, are not asked for: they fit everywhere."""
WITHIN, FIRST, LAST = (np.uint64(kind << 32) for kind in range(3))
"""What four or three bytes at an end of a line are compared with: the inside of a pattern, its beginning, its end."""


class Kind(StrEnum):
    """What a shape tells of its chunk. NOTHING: it holds nothing in which a value is looked for, as instants."""

    NOTHING = "nothing"
    TEXT = "text"
    NUMBERS = "numbers"


@dataclass(frozen=True)
class Shape:
    """What a column chunk can hold.

    tables: of a text its words of four and of eight bytes, its runs of digits, and what stands around ends of lines; of
    numbers the whole ones. low, high: the least and the greatest whole number. parted: whether signs that are not seen,
    or letters written as escapes, stand in a text, so that no word of a value needs to stand in one piece; escaped:
    whether escapes of signs may, so that its words need to stand there, and what is between them does not; grouped:
    whether long numbers in pieces do.
    """

    kind: Kind
    tables: tuple[bytes, ...] = ()
    low: int = 0
    high: int = -1
    parted: bool = False
    escaped: bool = False
    grouped: bool = False


_Words = tuple[PatternWords, PatternWords, PatternDigits]


class Sought:
    """Persons' values, as shapes are asked for them. Holds values: never printed, never stored."""

    def __init__(
        self,
        patterns: Iterable[bytes],
        lined: Iterable[bytes],
        ints: Collection[int],
        runs: Iterable[tuple[bytes, ...]],
        *,
        everywhere: bool,
        spaced: bool,
    ) -> None:
        """patterns: all that text is searched for. lined: those that are looked for over ends of lines. ints: numbers.
        runs: as of `SignEscapes`.
        everywhere: whether they fit in every text, as they are not all told, or are numbers that no pattern stands for.
        spaced: whether there are some that are found in pieces.
        """
        self.patterns, self._lined, self._ints = tuple(patterns), tuple(lined), tuple(ints)
        self._runs = tuple(runs)
        self._everywhere, self._spaced = everywhere, spaced

    def fits(self, shape: Shape) -> bool:
        """Whether one of the values may stand in a chunk of this shape."""
        if shape.kind is Kind.NOTHING:
            return False
        return self._among(shape) if shape.kind is Kind.NUMBERS else self._in_text(shape)

    def _among(self, shape: Shape) -> bool:
        inside = [number for number in self._ints if shape.low <= number <= shape.high]
        return bool(held(shape.tables[0], number_hashes(np.array(inside, np.int64))).any()) if inside else False

    def _in_text(self, shape: Shape) -> bool:
        if self._fits_everywhere or shape.parted or (shape.grouped and self._spaced):
            return True
        if held(shape.tables[-1], self._around_ends).any():
            return True
        if shape.escaped and self._all_runs_stand(shape):
            return True
        return bool(_may_stand(self._words, shape).any())

    def _all_runs_stand(self, shape: Shape) -> bool:
        """Whether all runs of one of the values may stand in a text."""
        every = sorted({run for runs in self._runs for run in runs})
        there = dict(zip(every, _may_stand(_words_of(every), shape).tolist(), strict=True)) if every else {}
        return any(all(there[run] for run in runs) for runs in self._runs)

    @cached_property
    def _fits_everywhere(self) -> bool:
        sizes = list(map(len, self.patterns))
        return self._everywhere or min(sizes, default=0) < SHORT.covered or sum(sizes) > _MOST_PATTERN_BYTES

    @cached_property
    def _words(self) -> _Words:
        return _words_of(fold(self.patterns))

    @cached_property
    def _around_ends(self) -> Hashes:
        """As `line_wraps.Borders` knows the patterns."""
        found = [np.empty(0, np.uint64)]
        for pattern in fold(p for p in self._lined if len(p) > 3):
            whole = np.frombuffer(pattern, np.uint8)
            found.append(border(WITHIN, whole[:-3], whole[1:-2], whole[2:-1], whole[3:]))
            found.append(border(FIRST, *whole[:3].reshape(3, 1)))
            found.append(border(LAST, *whole[-3:].reshape(3, 1)))
        return np.unique(np.concatenate(found))


def _words_of(folded: Sequence[bytes]) -> _Words:
    return PatternWords(folded, SHORT), PatternWords(folded, LONG), PatternDigits(folded)


def _may_stand(words: _Words, shape: Shape) -> Marks:
    """Whether each pattern may stand in a text, by the words of it alone."""
    short, long, digits = words
    possible = short.may_stand(shape.tables[0]) & long.may_stand(shape.tables[1])
    return np.asarray(possible & digits.may_stand(shape.tables[2]), np.bool_)


def number_hashes(numbers: npt.NDArray[np.int64]) -> Hashes:
    """Of whole numbers."""
    return np.asarray(numbers.astype(np.uint64) * LONG.mixer)


def border(kind: np.uint64, *signs: npt.NDArray[np.uint8]) -> Hashes:
    """Of what stands at ends of lines, or of what would in a pattern that an end parts."""
    words = np.zeros(len(signs[0]), np.uint64)
    for sign in signs:
        words = words << np.uint64(8) | sign
    return np.asarray((words | kind) * LONG.mixer)
