"""Letters and digits that are written as escapes, which no writer needs: one of them hides a value from its patterns.

A mail address has no sign that is altered elsewhere, so no view is made around it (`escape_views`). Around every escape
of a letter or digit the text is looked at with all its escapes undone, in up to four layers and in each of the
languages that read them otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from pii_tracer.scan.forms.escape_views import View, replaced, undone, windows

_LAYERS = 4
_LEADS = BytesAhoCorasick(
    [
        *(b"\\u00" + digit for digit in (b"3", b"4", b"5", b"6", b"7")),
        *(b"\\x" + digit for digit in (b"3", b"4", b"5", b"6", b"7")),
        *(b"%" + digit for digit in (b"3", b"4", b"5", b"6", b"7")),
        *(b"\\" + digit for digit in (b"06", b"07", b"10", b"11", b"12", b"13", b"14", b"15", b"16", b"17")),
        *(b"\\" + digit for digit in (b"3", b"4", b"5", b"6", b"7", b"00")),
        *(b"\\u{", b"\\U00", b"%u00", b"%25", b"&#", b"&amp;"),
    ],
    matchkind=MatchKind.LeftmostFirst,
)
_HEX = rb"(?:3[0-9]|4[1-9a-fA-F]|5[0-9aA]|6[1-9a-fA-F]|7[0-9aA])"
_LETTER = re.compile(
    rb"\\(?:u00|x|u\{0*|U0{4,6}|0{0,4})" + _HEX + rb"|%(?:25)*(?:u00)?" + _HEX + rb"|\\(?:0[67]|1[0-7])[0-7]"
    rb"|&(?:amp;)*#(?:0*(?:4[89]|5[0-7]|6[5-9]|[78][0-9]|90|9[7-9]|1[01][0-9]|12[0-2])(?![0-9])|[xX]0*" + _HEX + rb")"
)
"""An escape of a letter or digit of ASCII."""

_SQL = re.compile(rb"\\([0-9a-f]{4})")
_LDAP = re.compile(rb"\\([0-9a-f]{2})")
_CSS = re.compile(rb"\\([0-9a-f]{1,6})\s?")
"""`U&'…'` of SQL:2003; RFC 4515, section 3; CSS (https://www.w3.org/TR/css-syntax-3/#consume-escaped-code-point)."""


def places(data: bytes) -> list[tuple[int, int]]:
    """Where letters and digits are written as escapes."""
    leads = _LEADS.find_matches_as_indexes(data)
    return [match.span() for _, start, _ in leads if (match := _LETTER.match(data, start))]


def stand_in(data: bytes) -> bool:
    """Whether one stands in a text."""
    return bool(places(data))


def views(data: bytes, around: int) -> Iterator[tuple[int, View]]:
    """The parts of a text around such escapes, folded and with all escapes undone: where each begins, and how it looks.

    around: how far a value may reach from one of its escapes, in bytes.
    """
    for low, high in windows(places(data), around, len(data)):
        window = data[low:high].lower()
        plain = View(window, list(range(len(window) + 1)))
        yield low, undone(plain, _LAYERS)
        yield from ((low, view) for view in (readings(plain) if b"\\" in window else ()))


def readings(plain: View) -> Iterator[View]:
    """A folded text with its backslashes read as each of the languages does that read them otherwise."""
    for pattern in (_SQL, _LDAP, _CSS):
        yield replaced(pattern, _sign, plain)


def _sign(match: re.Match[bytes]) -> bytes:
    return chr(min(int(match.group(1), 16), 0x10FFFF)).lower().encode("utf-8", "replace")
