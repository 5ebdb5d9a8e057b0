"""How systems write bytes and texts down: lists, dumps, other alphabets, and joints inside a value."""

from __future__ import annotations

import base64
import gzip
import json
import quopri
import urllib.parse
import zlib
from collections.abc import Callable

import pytest
import zstandard

from tests.scan.support import BOTH, OTHER_PHONE, PHONE, scan


def _document(phone: str) -> bytes:
    return json.dumps({"id": 7, "to": phone, "note": "see order 4412"}).encode()


def _signed(data: bytes) -> list[int]:
    return [byte - 256 if byte > 127 else byte for byte in data]


def _pieces(text: str) -> list[str]:
    return [text[at : at + 6] for at in range(0, len(text), 6)]


def _dump(text: str) -> str:
    data = f"to={text} ok".encode()
    rows = (data[at : at + 16] for at in range(0, len(data), 16))
    return "\n".join(f"{16 * n:08x}  {row.hex(' ')}  |{row.decode()}|" for n, row in enumerate(rows))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


TEXTS: dict[str, Callable[[str], str]] = {
    "list of zlib": lambda v: str(list(zlib.compress(_document(v)))),
    "list of zlib, signed": lambda v: json.dumps(_signed(zlib.compress(_document(v)))),
    "list of zstd, signed": lambda v: json.dumps(_signed(zstandard.compress(_document(v)))),
    "list, a number a line": lambda v: json.dumps(list(v.encode()), indent=1),
    "numbers and blanks": lambda v: "[" + " ".join(map(str, gzip.compress(_document(v)))) + "]",
    "base32 of gzip": lambda v: base64.b32encode(gzip.compress(_document(v))).decode(),
    "base32 of zlib, lower": lambda v: base64.b32encode(zlib.compress(_document(v))).decode().lower(),
    "base85 of gzip": lambda v: base64.b85encode(gzip.compress(_document(v), mtime=0)).decode(),
    "base64 of hex": lambda v: _base64(v.encode().hex().encode()),
    "hex of base64": lambda v: _base64(v.encode()).encode().hex(),
    "base64 four times": lambda v: _base64(_base64(_base64(_base64(v.encode()).encode()).encode()).encode()),
    "percent signs of gzip": lambda v: urllib.parse.quote_from_bytes(gzip.compress(_document(v)), safe=""),
    "quoted-printable of gzip": lambda v: quopri.encodestring(gzip.compress(_document(v)), quotetabs=True).decode(),
    "a dump": _dump,
    "registry": lambda v: '"to"=hex(1):' + ",".join(f"{byte:02x}" for byte in v.encode("utf-16-le")),
    "encoded words": lambda v: " ".join(f"=?utf-8?B?{_base64(piece.encode())}?=" for piece in _pieces(v)),
    "marks of html": lambda v: f"<b>{v[:6]}</b><i>{v[6:]}</i>",
    "a line that may be broken": lambda v: f"{v[:9]}<wbr>{v[9:]}",
    "strings put together": lambda v: f"VALUES ('{v[:9]}' || '{v[9:]}')",
    "letters by number": lambda v: "||".join(f"CHR({ord(sign)})" for sign in v),
    "quoted-printable, broken": lambda v: (
        "".join(f"={byte:02X}" for byte in v[:9].encode()) + "=\n" + "".join(f"={byte:02X}" for byte in v[9:].encode())
    ),
}


@pytest.mark.parametrize("name", ["a.json", "a.log"])
@pytest.mark.parametrize("writing", TEXTS)
def test_a_writing_of_other_systems_is_found(writing: str, name: str) -> None:
    for phone, red in ((PHONE, True), (OTHER_PHONE, False)):
        text = TEXTS[writing](phone)
        data = json.dumps({"id": 7, "p": text}) if name == "a.json" else f"got {text} \n"
        assert bool(scan(name, data.encode(), BOTH).strong) is red
