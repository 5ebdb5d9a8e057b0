"""Where a weak number, or a short word, stands alone in text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from pii_tracer.scan.email_boundaries import RUN
from pii_tracer.scan.hits import Form

_OPAQUE_RUN = 20
_OF_SIGNS = rb"(?:%%(?:25)*|\\(?:u00|x)|&(?:amp;)?#x)%s|&(?:amp;)?#%s;"
_OCTAL = rb"01[0-5]|0[45][0-7]|07[2-7]|13[3-7]|17[3-6]"
"""Of signs alone: behind the backslash of a path, `\20261104` is a day."""
_ESCAPE = re.compile(
    rb"(?:(?:%|" + _OF_SIGNS % (b"25", b"37") + rb"|\\045)(?:25)*(?:u00)?[0-9a-f]{2}"
    rb"|(?:\\|" + _OF_SIGNS % (b"5c", b"92") + rb"|\\134)(?:u[0-9a-f]{4}|x[0-9a-f]{2}|U000[0-9a-f]{5}|"
    + _OCTAL + rb"))\Z",
    re.IGNORECASE,
)  # fmt: skip
_LONGEST = 14
"""Bytes of an escape: `%` escaped five times."""


@dataclass(frozen=True)
class WeakMatch:
    """A bounded match in text: who, and where it starts and ends in the searched bytes."""

    key_set: str
    form: Form
    start: int
    end: int


def is_behind_escape(data: bytes, at: int) -> bool:
    """Whether an escape ends here whose digits could be taken for those of a number: `%22551020%22` is `"551020"`."""
    return _ESCAPE.search(data, max(0, at - _LONGEST), at) is not None


def whole_segment(path: bytes, start: int, end: int) -> bool:
    """A tiny number in a path counts as a whole segment or as `name=number`; file names are full of numbers."""
    before, after = path[:start], path[end:]
    return (not before or before[-1:] in b"/=") and (not after or after[:1] == b"/")


_MANTISSA = re.compile(rb"-?\d\.\d+\Z")
_EXPONENT = re.compile(rb"-?(\d)\.(\d+)e\+?0*(\d{1,3})(?!\d)")


def with_exponent(data: bytes, start: int, end: int) -> tuple[int | None, int] | None:
    """The whole number in the notation with an exponent that begins with a match, and where it ends. The number is None
    where the match says it; None where no such number stands there.
    """
    if not _MANTISSA.match(data[start:end]):
        return None, end
    shown = _EXPONENT.match(data, start)
    if shown is None or len(shown[2].rstrip(b"0")) > int(shown[3]):
        return None
    return int(data[start : shown.start(1)] + shown[1] + shown[2].rstrip(b"0").ljust(int(shown[3]), b"0")), shown.end()


def stands_alone(data: bytes, start: int, end: int) -> bool:
    """Whether no digits, nor letters where it is a word, touch a match. Zeros may pad a number."""
    if not 48 <= data[start] <= 57:  # a short word: no letter or digit may touch it
        left = data[max(0, start - 4) : start].decode("utf-8", "ignore")
        right = data[end : end + 4].decode("utf-8", "ignore")
        return not (_of_word(left[-1:]) or _of_word(right[:1]))
    whole = start
    while start and data[start - 1] == 48 and not is_behind_escape(data, start):
        start -= 1
    escaped = is_behind_escape(data, start)
    before = data[start - 1] if start and not escaped else 32
    after = data[end] if end < len(data) else 32
    if start < whole and before == 46:  # the fraction of another number
        return False
    if 48 <= before <= 57 or 48 <= after <= 57:
        return False
    if before == 46 and start > 1 and 48 <= data[start - 2] <= 57:  # the fraction of another number
        return False
    if after == 46 and end + 1 < len(data) and 48 <= data[end + 1] <= 57 and not _zero_fraction(data, end + 1):
        return False
    return not _in_opaque_run(data, start, end, from_start=escaped) or _is_apart(data, start, end, escaped)


def _of_word(sign: str) -> bool:
    """Letters, digits, and what stands above or below them."""
    return bool(sign) and (sign.isalnum() or unicodedata.category(sign)[0] == "M")


def _zero_fraction(data: bytes, position: int) -> bool:
    """`8841302.0` is the same number; `8841302.5` is not."""
    while position < len(data) and 48 <= data[position] <= 57:
        if data[position] != 48:
            return False
        position += 1
    return True


def _is_apart(data: bytes, start: int, end: int, escaped: bool) -> bool:
    """Whether nothing of a token touches it on either side: zeros make it as long. escaped: behind an escape."""
    return (escaped or not (start and data[start - 1] in RUN)) and not (end < len(data) and data[end] in RUN)


def _in_opaque_run(data: bytes, start: int, end: int, *, from_start: bool) -> bool:
    """Inside a long run of letters and digits (base64, hex, a token) digits mean nothing by themselves.

    from_start: what is before them is no part of the run.
    """
    left, right = start, end
    while not from_start and left > 0 and data[left - 1] in RUN and end - left <= _OPAQUE_RUN:
        left -= 1
    while right < len(data) and data[right] in RUN and right - start <= _OPAQUE_RUN:
        right += 1
    return right - left >= _OPAQUE_RUN
