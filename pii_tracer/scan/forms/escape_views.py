"""Values behind escapes, doubled quotes and other blanks, in any mixture.

Text is looked at in views in which escapes are undone, and blanks, quotes and dashes of all kinds are made alike; the
values are searched as they look there. Views are made only around anchors: pieces of a value that nothing alters.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from pii_tracer.scan.forms.invisible_characters import UNSEEN
from pii_tracer.scan.hits import Form

Term = tuple[str, Form]

LEAST = 5
"""An anchor has at least so many bytes: shorter ones would slow down the search for all patterns."""

_LONG = 7
"""Anchors of so many bytes slow down nothing."""

_REACH = 96
_LARGEST = 1 << 16
"""Bytes that are looked at together."""

_BLANK = (
    rb"(?:[\t-\r ]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80"
    rb"|\xe1\x85[\x9f\xa0]|\xe3\x85\xa4|\xef\xbe\xa0|\xe2\xa0\x80)"
)
"""Every blank of Unicode (White_Space, https://www.unicode.org/Public/UCD/latest/ucd/PropList.txt), in UTF-8, and what
looks like one: fillers of Hangul, Braille without dots."""
_QUOTE = (
    rb"(?:['\"`]|\xc2[\xab\xb4\xbb]|\xca[\xb9-\xbd]|\xcb[\x88\x8b]"
    rb"|\xe2\x80[\x98-\x9f\xb2-\xb7\xb9\xba]|\xef\xbc[\x82\x87])"
)
"""Quotes and apostrophes, those of typographers, too."""
_DASH = rb"(?:\xe2\x80[\x90-\x95]|\xe2\x81\x83|\xe2\x88\x92|\xef\xb9[\x98\xa3]|\xef\xbc\x8d|\xd6\x8a)"
_DROPPED = re.compile(UNSEEN + rb"|\\+(?![a-z0-9\\])|(?<=\\)\\+")
_ALIKE = re.compile(rb"(" + _QUOTE + rb"+)|(" + _DASH + rb")|(?:\n[ \t>]*|" + _BLANK + rb")+")
_ESCAPES = re.compile(
    rb"((?:%(?:25)*[0-9a-f]{2})+)"
    rb"|&(?:amp;)*(#\d{1,9};?|#x[0-9a-f]{1,8};?|[a-z][a-z0-9]{1,30};)"
    rb"|((?:(?:\\+|%)u[0-9a-f]{4})+)"
    rb"|\\+(?:u\{([0-9a-f]{1,6})\}|x([0-9a-f]{2})|([0-3][0-7]{2})|([nrtfv]))"
    rb"|<br ?/?>"
)
_PLUS = re.compile(rb"\+")
_PRINTABLE = re.compile(rb"(=\r?\n)|((?:=[0-9a-f]{2})+)")
"""Quoted-printable (RFC 2045, section 6.7). A view of its own: `=` stands before values of other kinds."""

_HARD = re.compile(rb"[a-z0-9._@]+")
_HARD_WIDE = re.compile(rb"[a-z0-9._@\x80-\xff]+")
_SOFT = re.compile(rb"[^a-z0-9._@]")

_LEADS = (
    *(first + second for first in (b" ", b"\t", b"\n", b"\r") for second in (b" ", b"\t", b"\n", b"\r", b">", b"\xc2")),
    *(first + second for first in (b"'", b'"') for second in (b"'", b'"', b"\\")),
    *(b"\\" + second for second in (b"\\", b"'", b'"', b"u", b"x", b"n", b"r", b"t", b"0", b" ", b"/", b"-", b"+")),
    *(b"\\" + second for second in (b"\n", b"\r", b"\t", b".", b",", b"&", b"%", b"<", b"=", b"`")),
    *(b"&" + second for second in (b"#", b"n", b"a", b"q", b"l", b"r", b"e", b"t", b"p", b"s", b"h")),
    *(b"%" + second for second in (b"2", b"0", b"c", b"e", b"5", b"3")),
    *(b"=" + second for second in (b"2", b"c", b"e", b"\r", b"\n")),
    *(b"\xc2" + bytes([second]) for second in (0x85, 0xA0, 0xAB, 0xAD, 0xB4, 0xBB)),
    *(b"\xe2" + bytes([second]) for second in (0x80, 0x81, 0x88)),
    *(b" " + bytes([first]) for first in (0xE1, 0xE2, 0xE3)),
    b"\xe1\x9a", b"\xe1\x85", b"\xe3\x80", b"\xe3\x85", b"\xef\xbe", b"\xe2\xa0", b"\xd6\x8a", b"\xef\xbc",
    b"\xef\xb9", b"\xef\xbb", b"\xca\xbc", b"<b",
)  # fmt: skip
"""How what stands in the place of a blank, a quote or a sign begins."""
_UNICODE = (
    *range(9, 14),
    0x85,
    0xA0,
    0x1680,
    *range(0x2000, 0x200B),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x2800,
    0x3000,
    0x3164,
)
_BLANKS = (
    *(chr(code).encode() for code in _UNICODE),
    *(b"  ", b"\r\n", b"\\ ", b"&nbsp;", b"&#160;", b"&#xa0;", b"&amp;nbsp;", b"&amp;#160;", b"&#32;", b"&#x20;"),
    *(b"\\u00a0", b"\\u0020", b"\\xa0", b"\\t", b"\\n", b"\\r\\n", b"%c2%a0", b"%20", b"%2520", b"=20", b"=c2=a0"),
    *(b"<br>", b"=\n ", b"=\r\n ", b"\\\n ", b"\\\r\n "),
)  # fmt: skip
_ANY = (b" ", b"\t")
_BEGUN = (*_ANY, b"\n", b"\r\n", b"\n>", b"\xc2\xa0")
_TWO = tuple(first + second for first in _BEGUN for second in (*_ANY, b"\xc2\xa0", b"\n"))
_THREE = tuple(two + third for two in _TWO for third in _ANY)
_RUNS = (*_BLANKS, *_TWO, *_THREE)
"""What stands between short words; before longer ones it is told by how it begins."""
_LONGER = tuple(three + fourth for three in _THREE for fourth in _ANY)
_QUOTES = (
    *(b"''", b'""', b"\\'", b'\\"', b"\\\\'", b'\\\\"', b"\\''", b"'\\''", b"`", b"'", b'"', b"%27", b"%22", b"=27"),
    *(b"&#39;", b"&#039;", b"&#x27;", b"&apos;", b"&#34;", b"&#x22;", b"&quot;", b"&amp;#39;", b"&amp;quot;"),
    *(b"\\u0027", b"\\u0022", b"\\x27", b"\\x22", b"&amp;#x27;", b"&amp;apos;", b"&rsquo;", b"&lsquo;"),
    *(b"''''", b'""""', b"'\"'\"'", b"\\'\\'", b"\\\\''", b"'\\\\''", b"'\\'''\\''", b"''\\''''", b"%27%27"),
    *(b"%2527", b"\\u2019", b"%e2%80%99"),
    *(chr(code).encode() for code in (0xB4, 0x2BC, 0x2018, 0x2019, 0x201C, 0x201D, 0x2032)),
)  # fmt: skip


@dataclass(frozen=True)
class View:
    """Bytes as they look, and where each of them, and the end, stands in the bytes that they were made of."""

    data: bytes
    origins: list[int]


@dataclass(frozen=True)
class Seen:
    """A value in a view. terms: what it stands for; start and end: where it stands in the bytes themselves."""

    terms: tuple[Term, ...]
    start: int
    end: int


def alike(text: bytes) -> bytes:
    """Folded text with blanks, quotes and dashes made alike; escapes of letters are left."""
    return made_alike(View(text, list(range(len(text) + 1)))).data


def is_altered(value: bytes) -> bool:
    """Whether a writer may alter something in a folded value, so that it is searched in views."""
    return bool(_SOFT.search(value))


def reach(value: bytes) -> int:
    """From a value's anchor on, it lies within so many bytes, whatever its escapes."""
    return 8 * len(value) + _REACH


def anchors(value: bytes) -> set[bytes]:
    """Pieces of a value as it looks, of which one stands in every altered writing of it.

    The longest run that nothing alters; where all are short, what stands before the first place that is altered and how
    that begins.
    """
    longest = max(reversed(_HARD.findall(value)), key=len, default=b"")
    if len(longest) >= _LONG:
        return {longest}
    begun = set(_begun(value, _LONG))
    if begun and min(map(len, begun)) >= _LONG:
        return begun
    wide = max(reversed(_HARD_WIDE.findall(value)), key=len, default=b"")
    short = {anchor for anchor in _begun(value, LEAST) if len(anchor) >= LEAST}
    return next(({run} for run in (longest, wide) if len(run) >= LEAST), short)


def _begun(value: bytes, least: int) -> Iterator[bytes]:
    for soft in _SOFT.finditer(value):
        left = value[max(0, soft.start() - 6) : soft.start()]
        right = _SOFT.split(value[soft.end() : soft.end() + 6])[0]
        if len(left) >= least - 2:
            yield from (left + lead for lead in _LEADS)
            yield from (left + blank + right[:1] for blank in (b"\t", b"\n", b"+"))
        else:
            others = _RUNS if soft.group() == b" " else _QUOTES if soft.group() == b"'" else ()
            yield from (left + other + right for other in others)
            if left and soft.group() == b" ":
                yield from (left + run for run in _LONGER if len(left) + len(run) >= least)


def written(value: bytes) -> set[bytes]:
    """A value as it looks with its blanks, or its quotes, written in one of the other ways: of one too short to be
    searched in views.
    """
    ways = ((b" ", _BLANKS), (b"'", _QUOTES))
    return {value.replace(sign, other) for sign, others in ways if sign in value for other in others} - {value}


def views(window: bytes) -> Iterator[View]:
    """A folded window in its views, those that differ from one another."""
    plain = View(window, list(range(len(window) + 1)))
    bare = _unescaped(plain)
    shown = printable(plain)
    done = set()
    form = replaced(_PLUS, lambda _: b" ", bare) if b"%" in window else bare  # of the web: `+` is a blank
    for view in (plain, bare, shown, _unescaped(shown) if shown is not plain else bare, form):
        if view.data not in done:
            done.add(view.data)
            yield made_alike(view)


def windows(places: Iterable[tuple[int, int]], around: int, size: int) -> Iterator[tuple[int, int]]:
    """What lies around sorted places, in parts that hold each of them with its surroundings and are not too large."""
    low = high = -1
    for start, end in places:
        first, last = max(0, start - around), min(size, end + around)
        if low >= 0 and (first > high or last - low > _LARGEST):
            yield low, high
            low = first
        low, high = (first if low < 0 else low), max(high, last)
    if low >= 0:
        yield low, high


def printable(view: View) -> View:
    """With quoted-printable undone."""
    return replaced(_PRINTABLE, _from_printable, view)


def _unescaped(view: View) -> View:
    """Two layers: escapes of escapes."""
    return undone(view, 2)


def made_alike(view: View) -> View:
    """With blanks, quotes and dashes of all kinds made alike, and without what nobody sees."""
    return replaced(_ALIKE, _one_of_its_kind, replaced(_DROPPED, lambda _: b"", view))


def undone(view: View, layers: int) -> View:
    """With its escapes undone, and escapes of escapes, as often as that."""
    for _ in range(layers):
        before, view = view, replaced(_ESCAPES, _from_escape, view)
        if view is before:
            break
    return view


def replaced(pattern: re.Pattern[bytes], put: Callable[[re.Match[bytes]], bytes], view: View) -> View:
    """With what a pattern matches replaced; the very view where it matches nothing."""
    out: list[bytes] = []
    origins: list[int] = []
    last = 0
    for match in pattern.finditer(view.data):
        new = put(match)
        out += (view.data[last : match.start()], new)
        origins += view.origins[last : match.start()]
        origins += [view.origins[match.start()]] * len(new)
        last = match.end()
    if not last:
        return view
    return View(b"".join((*out, view.data[last:])), origins + view.origins[last:])


def _one_of_its_kind(match: re.Match[bytes]) -> bytes:
    return b"'" if match.group(1) else b"-" if match.group(2) else b" "


def _from_printable(match: re.Match[bytes]) -> bytes:
    return b"" if match.group(1) else _lower(bytes.fromhex(match.group(2).replace(b"=", b"").decode()))


def _from_escape(match: re.Match[bytes]) -> bytes:
    percent, entity, units, point, byte, octal, _ = match.groups()
    if percent:
        return _lower(bytes.fromhex("".join(part[-2:].decode() for part in percent.split(b"%"))))
    if entity:
        return _lower(html.unescape(f"&{entity.decode().rstrip(';')};").encode("utf-8", "replace"))
    if units:
        digits = re.sub(rb"(?:\\+|%)u", b"", units).decode()
        return _lower(bytes.fromhex(digits).decode("utf-16-be", "replace").encode())
    if point:
        return _lower(chr(min(int(point, 16), 0x10FFFF)).encode("utf-8", "replace"))
    if byte or octal:
        return _lower(chr(int(byte, 16) if byte else int(octal, 8)).encode())
    return b" "


def _lower(text: bytes) -> bytes:
    try:
        return text.decode().lower().encode()
    except UnicodeDecodeError:
        return text.lower()


def search(
    data: bytes,
    found_anchors: Collection[tuple[int, int]],
    matches: Callable[[bytes], Iterable[tuple[tuple[Term, ...], int, int]]],
    around: int,
) -> Iterator[Seen]:
    """Values in folded bytes as they look, around anchors that were found there.

    matches: finds them in a view. around: how far from its anchor a value may reach.
    """
    done: set[tuple[int, int]] = set()
    for low, high in windows(sorted(found_anchors), around, len(data)):
        for view in views(data[low:high]):
            for terms, start, end in matches(view.data):
                place = low + view.origins[start], low + view.origins[end]
                if place not in done:
                    done.add(place)
                    yield Seen(terms, *place)
