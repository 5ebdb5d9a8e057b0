"""Joints inside a value: marks of HTML, strings put together, encoded words of mails, soft ends of lines.

Around each the text is looked at without it. Letters that a program lists one by one (`CHR(83)||CHR(105)`,
`'s', 'i'`) are put together, too.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from pii_tracer.scan.forms.escape_views import View, replaced, windows

_MARKS = (b"b", b"i", b"u", b"s", b"em", b"strong", b"span", b"font", b"a", b"mark", b"small", b"sub", b"sup")
_PARTS = (
    *(b"</" + mark + b">" for mark in _MARKS),
    *(
        b"\x1b[",
        b"concat(",
        b"CONCAT(",
        b"concatenate(",
        b"CONCATENATE(",
        b"<wbr",
        b"<!--",
        b"?= =?",
        b"?=\n",
        b"?=\r\n",
        b"=\n",
        b"=\r\n",
    ),
    *(
        quote + sign
        for quote in (b"'", b'"')
        for sign in (b"||", b" ||", b" + ", b"+" + quote, b" & ", b" . ", b"&amp;")
    ),
    *(b"')||", b")||", b"')"),
)
_LISTED = len(_PARTS)
_LEADS = BytesAhoCorasick([*_PARTS, b"', '", b"','"], matchkind=MatchKind.LeftmostFirst)
_JOINT = re.compile(
    rb"</?(?:b|i|u|s|em|strong|span|font|a|mark|small|sub|sup|wbr)(?:\s[^<>]{0,400})?/?>|<!--.{0,400}?-->"
    rb"|(['\"])\s*(?:\|\||&amp;|[+&.])\s*\1|\x1b\[[0-9;]{0,40}m|(['\"])\s*\)?\s*(?:\|\||[+&.])\s*(?=chr|char)"
    rb"|=\r?\n[ \t]*"
    rb"|((?:chr|char)\(\d{1,3}\)(?:\s*(?:\|\||[+&.])\s*(?:chr|char)\(\d{1,3}\))*)(?:\s*(?:\|\||[+&.])\s*['\"])?"
    rb"|(?<![\w'])((?:'(?:[^'\\]|\\.)'\s*,\s*){3,}'(?:[^'\\]|\\.)')"
    rb"|\?=\s*=\?[a-z0-9-]{1,40}\?q\?",
    re.DOTALL,
)
_CONCAT = re.compile(
    rb"\bconcat(?:enate)?\(\s*((?:'[^'\n]*'|\"[^\"\n]*\")(?:\s*,\s*(?:'[^'\n]*'|\"[^\"\n]*\"))+)\s*\)", re.IGNORECASE
)
_BETWEEN = re.compile(rb"(['\"])\s*,\s*\1")
_CODE = re.compile(rb"\((\d{1,3})\)")
_LETTER = re.compile(rb"'(?:\\)?(.)'", re.DOTALL)
_WORDS = re.compile(rb"=\?[\w-]{1,40}\?[Bb]\?[A-Za-z0-9+/]*=*\?=(?:\s*=\?[\w-]{1,40}\?[Bb]\?[A-Za-z0-9+/]*=*\?=)+")
_WORD = re.compile(rb"\?[Bb]\?([A-Za-z0-9+/]*)=*\?=")


def views(data: bytes, around: int) -> Iterator[tuple[int, View]]:
    """The parts of a text around joints, folded and without them: where each begins, and how it looks.

    around: how far a value may reach from a joint, in bytes.
    """
    for low, high in windows(_places(data), around, len(data)):
        plain = View(data[low:high], list(range(high - low + 1)))
        view = replaced(_WORDS, _words, plain)
        view = replaced(_CONCAT, _together, view)
        view = replaced(_JOINT, _joined, View(view.data.lower(), view.origins))
        if len(view.data) < high - low:
            yield low, view


def _joined(joint: re.Match[bytes]) -> bytes:
    codes, letters = joint.group(3), joint.group(4)
    if codes:
        return bytes(int(code) & 255 for code in _CODE.findall(codes)).lower()
    return b"".join(_LETTER.findall(letters)) if letters else b""


def _together(call: re.Match[bytes]) -> bytes:
    return _BETWEEN.sub(b"", call.group())


def _words(words: re.Match[bytes]) -> bytes:
    out = b""
    for letters in _WORD.findall(words.group()):
        try:
            out += base64.b64decode(letters + b"=" * (-len(letters) % 4))
        except binascii.Error:
            return words.group()
    return out


def stand_in(data: bytes) -> bool:
    """Whether one may stand in a text."""
    return bool(_places(data))


def _places(data: bytes) -> list[tuple[int, int]]:
    """Where joints are; a comma between quotes is one where a single letter stands before it."""
    found = _LEADS.find_matches_as_indexes(data)
    return [(start, end) for n, start, end in found if n < _LISTED or data[max(0, start - 2) : start - 1] == b"'"]
