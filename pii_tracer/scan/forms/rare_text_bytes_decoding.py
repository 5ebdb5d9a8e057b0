"""Bytes that a text lists as numbers or dumps, or writes down with percent signs, in base32 or base85.

What stands there is told by how a stream, or a text, begins in each writing.
`pii_tracer.scan.forms.text_bytes_decoding` reads the more common writings.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from pii_tracer.scan.forms.text_bytes_finding import STREAMS, ZLIB, Places, apart_from, runs

_LIST = re.compile(rb"(?:-?\d{1,3}(?:\s*,\s*|\s+)){8,}-?\d{1,3}(?![\d.])")
_NUMBER = re.compile(rb"-?\d+")
_LISTED = apart_from(b"0123456789,- \t\r\n")
_DIGESTS = frozenset({16, 20, 32, 64})
_SHOWN = bytes((*range(32, 127), 9, 10, 13))
_MOST_HIDDEN = 0.1

_PERCENT = (b"%1F%8B", b"%1f%8b", b"x%9C", b"x%9c", b"x%DA", b"x%da", b"%28%B5", b"(%B5/", b"(%b5/")
_PRINTABLE = (b"=1F=8B", b"x=9C", b"x=DA", b"=28=B5", b"(=B5/")
_BASE32 = tuple(
    cased
    for start in (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", *ZLIB[2:])
    for text in [base64.b32encode(start)[: len(start) * 8 // 5]]
    for cased in (text, text.lower())
)
_BASE85 = tuple(encode(b"\x1f\x8b\x08\0")[:5] for encode in (base64.a85encode, base64.b85encode)) + tuple(
    encode(b"\x28\xb5\x2f\xfd")[:5] for encode in (base64.a85encode, base64.b85encode)
)
_DUMPS = (b"00000010: ", b"00000010  ", b"0000020 ")
_REGISTRY = b"hex("
_STARTS = tuple(dict.fromkeys((*_PERCENT, *_PRINTABLE, *_BASE32, *_BASE85, *_DUMPS, _REGISTRY)))
assert len(_STARTS) <= 34, "more patterns are searched several times as slowly"
_SEARCH = BytesAhoCorasick(list(_STARTS), matchkind=MatchKind.LeftmostFirst)

_PERCENT_RUN = re.compile(rb"(?:%[0-9A-Fa-f]{2}|[^\s\"'<>&?=%\\]){16,}")
_PRINTABLE_RUN = re.compile(rb"(?:=[0-9A-F]{2}|=\r?\n|[!-<>-~ \t\r\n]){16,}")
_BASE32_RUN = re.compile(rb"(?:[A-Z2-7]{24,}|[a-z2-7]{24,})")
_BASE85_RUN = re.compile(rb"[!-~]{20,}")
_DUMPED = re.compile(
    rb"(?<!\w)[0-9a-f]{8}: ((?:[0-9a-f]{2,4} ){1,8}) "
    rb"|(?<!\w)[0-9a-f]{8}  ((?:[0-9a-f]{2} {1,2}){1,16})"
    rb"|(?<!\w)[0-7]{7}((?: [0-7]{3}){1,16})$",
    re.MULTILINE,
)
_REGISTRY_RUN = re.compile(rb"hex\(\w+\):([0-9a-f]{2}(?:,(?:\\+\s*)?[0-9a-f]{2})+)")


def places(data: bytes, borders: Places | None = None) -> list[int]:
    """Where something of the kind may stand. borders: as of `text_bytes_finding.spots`."""
    found = [start for _, start, _ in _SEARCH.find_matches_as_indexes(data)]
    return found + [place.start() for place in _lists(data, borders)]


def read(text: bytes) -> Iterator[bytes]:
    """What a text lists: streams, texts, digests."""
    for found in _lists(text, None):
        numbers = [int(number) for number in _NUMBER.findall(found.group())]
        if min(numbers) > -129 and max(numbers) < 256 and _tells(data := bytes(n & 255 for n in numbers)):
            yield data
    done = 0
    dumped = False
    for index, start, _ in _SEARCH.find_matches_as_indexes(text):
        lead = _STARTS[index]
        if start < done:
            continue
        if lead in _DUMPS:
            if not dumped:
                dumped = True
                yield b"".join(_line(line) for line in _DUMPED.finditer(text))
        elif stream := _begun(lead, text, start):
            done = start + 1
            yield stream


def _begun(lead: bytes, text: bytes, at: int) -> bytes | None:
    """What is written from a place on, where it is a stream."""
    if lead == _REGISTRY:
        run = _REGISTRY_RUN.match(text, at)
        return bytes.fromhex(re.sub(rb"[^0-9a-f]", b"", run.group(1)).decode()) if run else None
    data: bytes | None = None
    if lead in _PERCENT and (run := _PERCENT_RUN.match(text, at)):
        data = unquote_to_bytes(run.group())
    elif lead in _PRINTABLE and (run := _PRINTABLE_RUN.match(text, at)):
        soft = re.sub(rb"=\r?\n", b"", run.group())
        data = re.sub(rb"=([0-9A-F]{2})", lambda pair: bytes([int(pair.group(1), 16)]), soft)
    elif lead in _BASE32 and (run := _BASE32_RUN.match(text, at)):
        letters = run.group()[: len(run.group()) - (0, 1, 0, 1, 0, 0, 1, 0)[len(run.group()) % 8]]
        data = base64.b32decode(letters + b"=" * (-len(letters) % 8), casefold=True)
    elif lead in _BASE85 and (run := _BASE85_RUN.match(text, at)):
        data = _from_fives(run.group())
    return data if data and data.startswith((*STREAMS, *ZLIB)) else None


def _from_fives(letters: bytes) -> bytes | None:
    """Ascii85 or base85, of which the text may have gone on behind it with signs of the same alphabet."""
    for decode in (base64.b85decode, base64.a85decode):
        for end in (letters.find(b"~>"), letters.find(b'"'), letters.find(b"'"), len(letters)):
            try:
                data = decode(letters[:end]) if end >= 0 else b""
            except ValueError:
                continue
            if data.startswith(STREAMS):
                return data
    return None


def _lists(text: bytes, borders: Places | None) -> Iterator[re.Match[bytes]]:
    starts, ends = runs(text, _LISTED, borders)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield from _LIST.finditer(text, start, end)


def _tells(data: bytes) -> bool:
    """Whether bytes begin as a stream does, are a text, or are as many as a digest has."""
    hidden = len(data.translate(None, _SHOWN))
    return data.startswith((*STREAMS, *ZLIB)) or len(data) in _DIGESTS or hidden <= _MOST_HIDDEN * len(data)


def _line(line: re.Match[bytes]) -> bytes:
    pairs, spread, octal = line.groups()
    if octal:
        return bytes(int(number, 8) & 255 for number in octal.split())
    return bytes.fromhex((pairs or spread).decode())
