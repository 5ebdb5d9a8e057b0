"""Text with its line breaks taken out: values, and base64 of them, go on in the next line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

_INDENT = 16
"""Characters of indent or of marks (`>`) that are passed over at the beginning of a line."""
_LONG = 12
"""Letters and digits of a value that the lines of a list do not make up by chance."""
_PIECE = 3
"""Digits parted by a break are one number only where so many stand on each side: short numbers begin many lines."""
_MARK = re.compile(rb"[>=\\ \t]")
_FULL = 59
"""So many characters before the last one of a line, and programs that wrap lines break it."""
_VALUE_LENGTH = 320
_ADDRESS = re.compile(rb"[^\s@]+@[^\s@]+\.[^\s@.]+")
_NUMBER = re.compile(rb"[+-]?[.,]?\d[\d.,]*|[-+./]?\d{1,4}(?:[-./]\d{1,4}){1,2}")
_SIGNED = re.compile(rb"[\d\W]*\d[\d\W]*")
"""A number or a date of its own; digits with signs alone."""
_FOLD = np.uint8(32)
_FOLDING = re.compile(rb"\bBEGIN:V[A-Z]|(?:^|\")dn::? ", re.MULTILINE | re.IGNORECASE)
"""In vCard (RFC 6350, 3.2), iCalendar (RFC 5545, 3.1) and LDIF (RFC 2849) a break and one blank behind it part nothing:
long lines are folded at any character."""
_SOFT = re.compile(rb"=[0-9A-Fa-f]{2}[^\r\n]?=\r?\n|=\r?\n(?=[^\r\n]?=[0-9A-Fa-f]{2})")
_ESCAPE = re.compile(
    rb"(?:=[0-9A-Fa-f]{2}|%(?:25)*(?:u[0-9A-Fa-f]{2})?[0-9A-Fa-f]{2}"
    rb"|\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|[nrtfv]))\Z"
)
"""The end of an escape, whose letters are no text: those that `escape_views` undoes."""
_ESCAPE_LENGTH = 12
_AT_FOLD = re.compile(rb"\r?\n[ \t]")
_LEAST_BITS, _MOST_BITS = 18, 24
_SPARSE = 256
"""Of so many places of the table at most one is taken, where there is room."""
_TOGETHER = 4096
"""Patterns that are made known at once: more take more memory, and less no less time."""
_CROWDED = 16
"""Where more than one break in so many may part a value, everything is looked at."""

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Joined:
    """data: the text in one line; origins: where each byte of it stands in the text, source."""

    data: bytes
    origins: Places
    source: bytes

    def begins_line(self, at: int) -> bool:
        """Whether an end of a line was taken out before this byte, or the text begins or ends there."""
        return not 0 < at < len(self.origins) or bool(self.origins[at] - self.origins[at - 1] > 1)

    def breaks_in(self, start: int, end: int) -> Places:
        """Where what stands between two places goes on after an end of a line."""
        return np.asarray(start + 1 + np.flatnonzero(np.diff(self.origins[start:end]) > 1), np.int64)

    def is_wrapped(self, at: int) -> bool:
        """Whether the break before this byte is one that a program made: it left a mark, or the line is full."""
        last, first = int(self.origins[at - 1]), int(self.origins[at])
        gap = self.source[last + 1 : first]
        return _MARK.search(gap) is not None or (last >= _FULL and self.source.rfind(b"\n", last - _FULL, last) < 0)

    def line_from(self, at: int) -> bytes:
        """What stands in the text from this byte to the end of its line, but no more than an address has."""
        first = int(self.origins[at])
        return self.source[first : first + _VALUE_LENGTH].partition(b"\n")[0].rstrip()


class Borders:
    """Tells where an end of a line may part one of some patterns, in any case. Never misses one.

    What stands around an end is compared with what stands in the patterns: two bytes on each side, or one where the
    pattern begins or ends there.
    """

    def __init__(self, patterns: Iterable[bytes]) -> None:
        long = [pattern for pattern in patterns if len(pattern) > 3]
        self._reach = max(map(len, long), default=0)
        self._bits = min(_MOST_BITS, max(_LEAST_BITS, (_SPARSE * sum(map(len, long))).bit_length()))
        self._known = np.zeros(1 << self._bits, np.bool_)
        self._touching = np.zeros(1 << 16, np.bool_)
        for first in range(0, len(long), _TOGETHER):
            self._know(long[first : first + _TOGETHER])

    def _know(self, patterns: list[bytes]) -> None:
        whole = np.frombuffer(b"".join(patterns), np.uint8) | _FOLD
        sizes = np.array([len(pattern) for pattern in patterns])
        ends = np.cumsum(sizes)
        starts = ends - sizes
        inside = np.ones(len(whole), np.bool_)  # where four bytes of one pattern begin
        for back in range(1, 4):
            inside[ends - back] = False
        four = np.flatnonzero(inside)
        self._known[self._within(*(whole[four + n] for n in range(4)))] = True
        for n in range(3):
            self._touching[_two(whole[four + n], whole[four + n + 1])] = True
        self._known[self._first(*(whole[starts + n] for n in range(3)))] = True
        self._known[self._last(*(whole[ends - n] for n in (3, 2, 1)))] = True

    def windows(self, text: bytes | memoryview) -> Iterator[tuple[int, int]]:
        """Parts of a text that hold all that may go on in the next line."""
        if len(text) < 3 or not self._reach or (isinstance(text, bytes) and b"\n" not in text):
            return
        whole = np.frombuffer(text, np.uint8)
        breaks = _breaks(whole)
        count = len(breaks)
        known = np.union1d(self._parting(whole, breaks), _soft(text))
        if _CROWDED * len(known) > count > _CROWDED:
            yield 0, len(whole)
            return
        around = 2 * self._reach + _INDENT
        low = high = 0
        for place in known.tolist():
            if high and place - around > high:
                yield low, high
                high = 0
            low = low if high else max(0, place - around)
            high = min(len(whole), place + around)
        if high:
            yield low, high

    def _parting(self, whole: Bytes, breaks: Places) -> Places:
        """The ends of lines that may part a pattern."""
        ends, starts = _ends(whole, breaks), _starts(whole, breaks)
        last, first = whole.take(ends), whole.take(starts, mode="clip")
        # lengths of binary formats look like breaks
        few = np.flatnonzero(self._touching.take(_two(last | _FOLD, first | _FOLD)) & (last >= 32) & (first >= 32))
        before, left, right, behind = _beside(whole, ends[few], starts[few])
        known = self._known[self._within(before, left, right, behind)]
        known |= self._known[self._first(left, right, behind)] | self._known[self._last(before, left, right)]
        return np.asarray(breaks[few][known], np.int64)

    def _within(self, *four: Bytes) -> Words:
        return self._mixed(np.uint32(0), *four)

    def _first(self, *three: Bytes) -> Words:
        return self._mixed(np.uint32(1), *three)

    def _last(self, *three: Bytes) -> Words:
        return self._mixed(np.uint32(2), *three)

    def _mixed(self, kind: np.uint32, *signs: Bytes) -> Words:
        words = np.full(len(signs[0]), kind, np.uint32)
        for sign in signs:
            words = words << np.uint32(8) | sign
        return np.asarray((words * np.uint32(0x9E3779B1)) >> np.uint32(32 - self._bits), np.uint32)


def signs_at_ends(text: bytes | memoryview) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    """What stands around each end of a line in a text, folded: two bytes before it and two behind.

    `Borders` looks only where four of these, or the last three or first three, are those of a pattern.
    """
    whole = np.frombuffer(text, np.uint8)
    breaks = _breaks(whole) if len(whole) >= 3 else np.empty(0, np.int64)
    ends, starts = _ends(whole, breaks), _starts(whole, breaks)
    few = np.flatnonzero((whole.take(ends) >= 32) & (whole.take(starts, mode="clip") >= 32))
    return _beside(whole, ends[few], starts[few])


def _soft(text: bytes | memoryview) -> Places:
    """Ends of lines beside an escape of quoted-printable, which says nothing of what a pattern has there."""
    return np.array([found.end() - 1 for found in _SOFT.finditer(text)], np.int64)


def stand_in(text: bytes | memoryview) -> bool:
    """Whether a text has an end of a line beside an escape, so that nothing is known of what it may part."""
    return _SOFT.search(text) is not None


def _breaks(whole: Bytes) -> Places:
    """Ends of lines within a text; lengths of binary formats look like them, too."""
    breaks = np.flatnonzero(whole[1:-1] == 10) + 1
    return np.asarray(breaks[whole.take(breaks + 1) >= 9], np.int64)


def _beside(whole: Bytes, ends: Places, starts: Places) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    before, behind = whole.take(np.maximum(ends - 1, 0)), whole.take(starts + 1, mode="clip")
    return before | _FOLD, whole.take(ends) | _FOLD, whole.take(starts, mode="clip") | _FOLD, behind | _FOLD


def _two(first: Bytes, second: Bytes) -> npt.NDArray[np.intp]:
    return first.astype(np.intp) << 8 | second


def joined(text: bytes) -> Joined:
    """The text without its breaks, with what breaks add to them: soft ones of quoted-printable, a backslash, indents,
    marks of replies.
    """
    whole = np.frombuffer(text, np.uint8)
    breaks = np.flatnonzero(whole == 10)
    lasts, starts = _ends(whole, breaks), _starts(whole, breaks)
    gaps = np.zeros(len(whole) + 1, np.int32)
    np.add.at(gaps, lasts + 1, 1)
    np.add.at(gaps, starts, -1)
    np.cumsum(gaps, out=gaps)
    origins = np.flatnonzero(gaps[:-1] <= 0)
    return Joined(whole[origins].tobytes(), origins, text)


def _ends(whole: Bytes, breaks: Places) -> Places:
    """The last byte of each line."""
    ends = breaks - 1
    ends = ends - (whole.take(ends) == 13)
    soft = whole.take(ends)
    return np.asarray(np.maximum(ends - ((soft == 61) | (soft == 92)), 0), np.int64)


def _starts(whole: Bytes, breaks: Places) -> Places:
    """The first byte of each line that follows, behind what indents it; of an empty last line, the end of the text."""
    starts = breaks + 1
    for _ in range(_INDENT):
        signs = whole.take(starts, mode="clip")
        passed = ((signs == 32) | (signs == 9) | (signs == 62)) & (starts < len(whole))
        if not passed.any():
            break
        starts = starts + passed
    return np.asarray(starts, np.int64)


def spread(size: int) -> int:
    """How many bytes so many may take with breaks and indents in them: ten of theirs, or more, to each line."""
    return size + (size // 10 + 1) * (_INDENT + 3)


def is_one(text: Joined, start: int, end: int, parts: Places) -> bool:
    """Whether a value that was found across breaks surely is one word: nothing of a word touches it, and no short
    number of the next line makes it up.

    Another line touches only a value that lines of a list may make up: a word of letters, or a short one of letters and
    digits (`ann` above `marie`). start, end: of the value in the joined text; parts: where it goes on after a break.
    """
    line = text.data
    unlike = not _may_be_listed(line[start:end])
    escaped = _ESCAPE.search(line[max(0, start - _ESCAPE_LENGTH) : start]) is not None
    if start and _of_word(line[start - 1]) and not (escaped or (unlike and text.begins_line(start))):
        return False
    if end < len(line) and _of_word(line[end]) and not (unlike and text.begins_line(end)):
        return False
    signed = _SIGNED.fullmatch(line, start, end) is not None
    for at in parts.tolist():
        numbers = 48 <= line[at - 1] <= 57 and 48 <= line[at] <= 57
        if numbers and min(at - start, end - at) < _PIECE:
            return False
        if signed and min(_digits(line[start:at]), _digits(line[at:end])) < _PIECE:
            return False
    ends = [*parts.tolist()[1:], end]
    return not any(
        _stands_for_itself(text, start, at, stop, end)
        for at, stop in zip(parts.tolist(), ends, strict=True)
        if not text.is_wrapped(at)
    )


def _stands_for_itself(text: Joined, start: int, at: int, stop: int, end: int) -> bool:
    """Whether the next line is a value of its own, and nothing else: an address, a number or a date. A number of twelve
    digits and more that is broken once is not made up by two others.

    start, end: of the value; at, stop: of its part in the next line.
    """
    line = text.line_from(at)
    if _ADDRESS.fullmatch(line):
        return True
    return _NUMBER.fullmatch(line) is not None and not (
        _digits(text.data[start:end]) >= _LONG and min(at - start, stop - at) > _PIECE
    )


def _digits(value: bytes) -> int:
    return sum(48 <= byte <= 57 for byte in value)


class Folds:
    """Which values a format folds that parts long lines at any character. It is looked for once a text."""

    def __init__(self, text: bytes | memoryview) -> None:
        self._text = text

    @cached_property
    def _has_any(self) -> bool:
        return _FOLDING.search(self._text) is not None

    def join(self, places: Places) -> bool:
        """Whether all breaks in a value are folds: it is one word. places: where each byte of it is."""
        ends = np.flatnonzero(np.diff(places) > 1)
        gaps = (self._text[int(places[end]) + 1 : int(places[end + 1])] for end in ends.tolist())
        return all(_AT_FOLD.fullmatch(gap) for gap in gaps) and self._has_any


def _may_be_listed(value: bytes) -> bool:
    """Whether a value has no sign, and is short or has no digit."""
    return all(map(_of_word, value)) and (len(value) < _LONG or not any(48 <= byte <= 57 for byte in value))


def _of_word(byte: int) -> bool:
    return byte > 127 or chr(byte).isalnum()
