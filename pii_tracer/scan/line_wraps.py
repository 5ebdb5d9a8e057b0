"""Text with its line breaks taken out: values, and base64 of them, go on in the next line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_INDENT = 16
"""Characters of indent or of marks (`>`) that are passed over at the beginning of a line."""
_PIECE = 3
"""Digits parted by a break are one number only where so many stand on each side: short numbers begin many lines."""


@dataclass(frozen=True)
class Joined:
    """data: the text in one line; kept: which of its bytes stand there."""

    data: bytes
    kept: npt.NDArray[np.bool_]

    @property
    def origins(self) -> npt.NDArray[np.int64]:
        """Where each byte stands in the text."""
        return np.flatnonzero(self.kept)


def joined(text: bytes | memoryview) -> Joined | None:
    """The text without its breaks, with what breaks add to them: soft ones of quoted-printable, a backslash, indents,
    marks of replies. None where there are no breaks between texts: lengths of binary formats look like them.
    """
    if len(text) < 3 or (isinstance(text, bytes) and b"\n" not in text):
        return None
    whole = np.frombuffer(text, np.uint8)
    breaks = np.flatnonzero(whole == 10)
    breaks = breaks[(breaks > 0) & (breaks < len(whole) - 1)]
    before, behind = whole[breaks - 1], whole[breaks + 1]
    breaks = breaks[(behind >= 32) & ((before >= 32) | (before == 13)) | (behind == 9)]
    if not len(breaks):
        return None
    kept = np.ones(len(whole), np.bool_)
    kept[breaks] = False
    ends = breaks - 1
    ends = ends[whole[ends] == 13]
    kept[ends] = False
    ends = np.concatenate((ends - 1, breaks - 1))
    ends = ends[ends >= 0]
    kept[ends[(whole[ends] == 61) | (whole[ends] == 92)]] = False
    starts = breaks + 1
    for _ in range(_INDENT):
        starts = starts[starts < len(whole)]
        starts = starts[np.isin(whole[starts], (9, 32, 62))]
        if not len(starts):
            break
        kept[starts] = False
        starts = starts + 1
    return Joined(whole[kept].tobytes(), kept)


def is_one(line: bytes, start: int, end: int, parts: npt.NDArray[np.int64]) -> bool:
    """Whether a value that was found across breaks surely is one word: nothing of a word touches it, and no short number
    of the next line makes it up.

    line: joined text; start, end: of the value there; parts: where it goes on after a break.
    """
    if (start and _of_word(line[start - 1])) or (end < len(line) and _of_word(line[end])):
        return False
    for at in parts.tolist():
        numbers = 48 <= line[at - 1] <= 57 and 48 <= line[at] <= 57
        if numbers and min(at - start, end - at) < _PIECE:
            return False
    return True


def _of_word(byte: int) -> bool:
    return byte > 127 or chr(byte).isalnum()
