"""The bytes that a text writes down, read: base64, hex, escapes, lists of numbers, uuencode, yEnc."""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pii_tracer.scan.forms import rare_text_bytes_decoding
from pii_tracer.scan.forms.text_bytes_finding import (
    ARMOUR,
    BASE64,
    ESCAPES,
    HEADLESS,
    LEAST_HEX,
    LINE,
    LONG,
    MARKUP,
    UUENCODE,
    YENC,
    ZLIB_BASE64,
    Places,
    long_runs,
    spots,
    starts_in,
)  # fmt: skip

_SMALL = 4096
_GAP = (
    rb"(?:=?\r?\n[ \t>]*|(?:\\+r)?\\+n[ \t]*|\\+/|\\+t|%(?:2[BbFf]|0[AaDd])|\\+u00(?:2[bBfF]|0[aAdD])"
    rb"|&#(?:10|13|x0*[AaDd]);\s*|\"\s*[,+]\s*\")"
)
"""What stands between letters of one piece of base64: ends of lines, escapes of its signs, quotes of a list."""
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+(?:" + _GAP + rb"+[A-Za-z0-9+/_-]+)*")
_RUN = re.compile(rb"[A-Za-z0-9+/_-]{%d,}" % LEAST_HEX)
_SIGN_GAP = rb"(?:%2[BbFf]|\\+/|\\+u002[bBfF])"
_WHOLE = rb"(?=([A-Za-z0-9+/_-]+))\1"
"""A run that is not tried again with fewer letters."""
_PARTED_RUN = re.compile(rb"(?:" + _WHOLE + _SIGN_GAP + rb")*[A-Za-z0-9+/_-]{%d,}" % LEAST_HEX)
_LINED = re.compile(
    rb"(?:" + _WHOLE + rb"(?:(?<=[A-Za-z0-9+/_-]{%d})" % LINE + _GAP + rb"+|" + _SIGN_GAP + rb"))*[A-Za-z0-9+/_-]+"
)
_BEFORE = 512
_BORDER = re.compile(rb"[^A-Za-z0-9+/_\\%-]")
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_\\%-"
_ESCAPED_RUN = re.compile(rb"(?:\\+x[0-9a-fA-F]{2}|\\+[0-3][0-7]{2}|\\+u00[0-9a-fA-F]{2}){18,}")
_HEX = re.compile(rb"(?:0x|0X|\\+x|x)?((?:[0-9a-fA-F]{2})+)")
_PARTED_HEX = re.compile(rb"(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ :,-]{1,2}){12,}[0-9a-fA-F]{2}")
_ESCAPE = re.compile(
    rb"\\+(?:x([0-9a-fA-F]{2})|u00([0-9a-fA-F]{2})|([0-3][0-7]{2})|([abfnrtvZ0\\'\"]))|([^\\])", re.DOTALL
)
_SIGNS = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
    b"Z": b"\x1a",
    b"0": b"\0",
}
_DIGESTS = frozenset({32, 40, 56, 64, 96, 128})
"""Digits of a digest in hex: a list of them is no piece of bytes that goes on."""
_UU = re.compile(rb"begin [0-7]{3,4} [^\r\n]+\r?\n")
_YENC = re.compile(rb"=ybegin [^\r\n]*\r?\n(?:=ypart [^\r\n]*\r?\n)?")
_SHORT = 18
"""No stream that holds a value has fewer bytes."""


@dataclass(frozen=True)
class Written:
    """Bytes that a text writes down. data: None where `reason` says why they cannot be had.

    mark: what parts values in a document that begins or stands here, see `MARKUP`. letters: of base64, which may be no
    such at all. whole: no other search sees what the bytes hold. sized: as many bytes as a digest has, or met by
    chance, so that they hold a marked stream or none.
    """

    data: bytes | None = None
    reason: str = ""
    mark: bytes = b""
    letters: bytes = b""
    sized: bool = False
    whole: bool = False


def stand_in(data: bytes | memoryview) -> bool:
    """Whether bytes may be written down in a text."""
    return len(places(data)) > 0


def places(data: bytes | memoryview, borders: Places | None = None) -> Places:
    """Sorted positions near which bytes may be written down. borders: as of `spots`."""
    listed = rare_text_bytes_decoding.places(bytes(data), borders)
    found = spots(data, borders)
    return np.union1d(found, np.array(listed, np.int64)) if listed else found


def written(text: bytes) -> Iterator[Written]:
    """Everything of the kind in a text, once or more."""
    if len(text) < _SHORT:
        return
    for start, at in starts_in(text):
        yield from _begun(text, start, at)
    yield from _runs(text)
    yield from (Written(data, whole=True) for data in rare_text_bytes_decoding.read(text))
    for sign in (b":", b" ", b"-"):
        if b"1f" + sign + b"8b" + sign + b"08" in text:
            for found in _PARTED_HEX.finditer(text):
                yield Written(_parted_hex(found.group()))


def _begun(text: bytes, start: bytes, at: int) -> Iterator[Written]:
    """What begins with one of the patterns."""
    if start in ZLIB_BASE64 and at and chr(text[at - 1]).isalnum():
        return  # in the middle of a word
    if start in HEADLESS:
        yield from _decoded(_BASE64, b"/" + text[at:], 0)
    elif start in BASE64 or start in ZLIB_BASE64:
        head = next(_decoded(_BASE64, text[at : at + _HEAD], 0), None)
        if start in BASE64:
            yield from _decoded(_BASE64, text, at)
        elif head is not None and _may_be_zlib(head.data):  # three letters are met by chance in any long run
            yield from (replace(piece, sized=True) for piece in _decoded(_BASE64, text, at))
    elif start in ESCAPES:
        if start[:1] == b"\\" or _may_be_zlib(_unescaped(text[at : at + _HEAD])):
            yield Written(_unescaped(_quoted(text, at)))
    elif start in ARMOUR:
        yield Written(reason="encrypted text (ASCII armor)")
    elif start in UUENCODE and (line := _UU.match(text, at)):
        yield _uudecoded(text, line.end())
    elif start == YENC and (line := _YENC.match(text, at)):
        yield Written(_yenc_decoded(text, line.end()))
    elif start in MARKUP:
        yield Written(mark=start)


def _parted_hex(digits: bytes) -> bytes:
    """Pairs of digits, of a dump without the numbers of its lines."""
    return bytes.fromhex(re.sub(rb"0x|\\x|[^0-9a-fA-F]", b"", digits).decode())


def _safe(decode: object, letters: bytes) -> bytes | None:
    try:
        return bytes(decode(letters))  # type: ignore[operator]
    except ValueError:
        return None


def _runs(text: bytes) -> Iterator[Written]:
    """What stands in runs of letters that are long."""
    if len(text) < LEAST_HEX:
        return
    small, done = len(text) < _SMALL, 0
    for at in [0] if small else long_runs(text).tolist():
        if at < done:
            continue  # in a run that was read
        low, high = (0, len(text)) if small else _span(text, at)
        if b"\\" in text[low:high]:
            yield from (Written(_unescaped(found.group())) for found in _ESCAPED_RUN.finditer(text, low, high))
        parted = b"%2" in text[low:high] or b"\\" in text[low:high]
        for run in (_PARTED_RUN if parted else _RUN).finditer(text, low, high):
            if run.start() >= done and (found := _LINED.match(text, run.start())):
                done = found.end()
                yield from _decoded(_LINED, text, run.start())
        done = max(done, high)


def _span(text: bytes, at: int) -> tuple[int, int]:
    """What has no separator around a place."""
    before = text[max(0, at - _BEFORE) : at]
    end = _BORDER.search(text, at)
    return at - len(before) + len(before.rstrip(_LETTERS)), end.start() if end else len(text)


def _decoded(pattern: re.Pattern[bytes], text: bytes, at: int) -> Iterator[Written]:
    """Letters at a place as hex where they are nothing else, and as base64."""
    digits = _HEX.match(text, at)
    found = pattern.match(text, at)
    if found is None:
        return
    letters = found.group()
    first = re.match(rb"[A-Za-z0-9+/_-]+", letters)
    if digits and first and len(digits.group(1)) >= len(first.group()) - 3 and len(digits.group(1)) >= LEAST_HEX:
        if len(digits.group(1)) not in _DIGESTS:
            letters = re.sub(_GAP, b"", letters).removeprefix(b"0x").removeprefix(b"x")
            whole = re.match(rb"(?:[0-9a-fA-F]{2})*", letters)
            digits_ = whole.group() if whole else b""
        else:
            digits_ = digits.group(1)
        yield Written(binascii.unhexlify(digits_), sized=len(digits_) in _DIGESTS)
        return
    letters = _plain(letters)
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    data = _safe(base64.b64decode, letters.translate(_STANDARD) + b"=" * (-len(letters) % 4))
    if data is None or (pattern is _LINED and len(letters) < LONG and data.translate(None, _SHOWN)):
        return
    if len(data) >= _SHORT:
        yield Written(data, letters=letters)


_STANDARD = bytes.maketrans(b"-_", b"+/")
_SIGN = re.compile(rb"%2[Bb]|\\+u002[bB]")
_SLASH = re.compile(rb"%2[Ff]|\\+u002[fF]|\\+/")
_GAPS = re.compile(_GAP)
_SHOWN = bytes((*range(32, 127), 9, 10, 13))


def _plain(letters: bytes) -> bytes:
    """Letters of base64 without what parts them."""
    if _GAPS.search(letters) is None:
        return letters
    return _GAPS.sub(b"", _SLASH.sub(b"/", _SIGN.sub(b"+", letters)))


_HEAD = 96
_STRING_END = {
    quote: re.compile(rb"(?<!\\)(?:\\\\)*(?:" + (quote or b"['\"]") + rb"|\n)") for quote in (b"'", b'"', b"")
}
_LONGEST = 1 << 20


def _may_be_zlib(data: bytes | None) -> bool:
    """Whether bytes do not contradict that a stream of zlib begins with them."""
    try:
        return data is not None and zlib.decompressobj().decompress(data) is not None
    except zlib.error:
        return False


def _quoted(text: bytes, at: int) -> bytes:
    """A string from a place on, to its end."""
    quote = text[max(0, at - 1) : at]
    end = _STRING_END[quote if quote in _STRING_END else b""].search(text, at, at + _LONGEST)
    return text[at : end.end() - 1 if end else at + _LONGEST]


def _unescaped(text: bytes) -> bytes:
    """A text with escapes undone as programs print them."""
    out = bytearray()
    for found in _ESCAPE.finditer(text):
        number, unit, octal, sign, plain = found.groups()
        if number or unit:
            out.append(int(number or unit, 16))
        elif octal:
            out.append(int(octal, 8) & 255)
        else:
            out += plain if plain is not None else _SIGNS.get(sign, sign)
    return bytes(out)


def _uudecoded(text: bytes, at: int) -> Written:
    out = bytearray()
    for line in text[at:].splitlines():
        if line.strip() in (b"end", b"`", b""):
            break
        try:
            out += binascii.a2b_uu(line)
        except binascii.Error:
            return Written(reason="a part in uuencode that cannot be read")
    return Written(bytes(out))


def _yenc_decoded(text: bytes, at: int) -> bytes:
    end = text.find(b"\n=yend", at)
    body = text[at : end if end >= 0 else len(text)]
    with contextlib.suppress(UnicodeDecodeError, UnicodeEncodeError):  # as text that was in ISO 8859-1
        body = body.decode().encode("latin-1")
    body = body.replace(b"\r", b"").replace(b"\n", b"")
    body = re.sub(rb"=(.)", lambda found: bytes([(found.group(1)[0] - 64) & 255]), body, flags=re.DOTALL)
    return bytes((byte - 42) & 255 for byte in body)
