"""How one value can be written: case, escapes, encodings and plain digests of it. Nothing else is derived."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
import uuid
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from pii_tracer.scan.hits import Form

SHORT_BASE64 = 8
"""Fewer characters would be found by chance."""


def spellings(value: str) -> list[str]:
    """Case and Unicode variants; ASCII case is folded at search time."""
    variants = [value]
    if not value.isascii():
        cased = [value, value.lower(), value.upper(), value.casefold(), value.title()]
        variants += [unicodedata.normalize(form, v) for v in cased for form in ("NFC", "NFD")]
    return list(dict.fromkeys(variants))


def turkish(value: str) -> list[str]:
    """As Turkish and Azeri change its case (`İ` is the capital of `i`), and what others make of that: a dot above."""
    capitals = value.replace("i", "İ").replace("ı", "I").upper()
    found = (capitals, capitals.lower(), *(cased.replace("İ", "I\u0307") for cased in (value, value.title())))
    return list(dict.fromkeys(text for text in found if "İ" in text or "\u0307" in text or "ı" in value))


_NESTED = (1, 2, 4)
"""Backslashes before an escape in JSON, in JSON that is a text of JSON, and once more."""

_CAREFUL = frozenset("+&'<>`")
"""What some writers of JSON escape for the sake of HTML, .NET's among them
(https://learn.microsoft.com/dotnet/standard/serialization/system-text-json/character-encoding)."""


def json_escaped(value: str) -> tuple[str, ...]:
    """How JSON may write a value: plain, or `\\uXXXX` for what is no ASCII or looks like markup, nested or not."""
    plain = json.dumps(value)[1:-1]
    found = [plain, plain.replace("/", "\\/")]
    for careful in (frozenset[str](), _CAREFUL):
        for slashes in _NESTED:
            signs = (_escaped(c, slashes) if not c.isascii() or c in careful else c for c in value)
            found.append("".join(signs))
    return tuple(found)


def _escaped(sign: str, slashes: int) -> str:
    """In UTF-16's units (RFC 8259, section 7)."""
    units = sign.encode("utf-16-be")
    return "".join("\\" * slashes + f"u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def url_escaped(value: str) -> tuple[str, ...]:
    """Once, with or without slashes and with `+` for a space, and each of them once more (`%2540`)."""
    once = (quote(value, safe=""), quote(value), quote_plus(value))
    return (*once, *(quote(escaped, safe="") for escaped in once))


_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_DECIMAL, _HEX = "&#{};", "&#x{:x};"
_STYLES = (
    *(("'", number) for number in (_DECIMAL, _HEX)),
    *((apostrophe, _DECIMAL) for apostrophe in ("&#39;", "&#039;", "&apos;")),
    ("&#x27;", _HEX),
)
"""What becomes of an apostrophe, and of the other signs that are written as numbers."""
_ALSO = ("", "+", "@", "@+", "!#$%()*+,-./:;=?@[]^_`{|}~")
"""Beside markup, what escapers are known to write as numbers: nothing (XML, Python, PHP), `+` (Go's attributes),
`@` (addresses hidden from robots), both (OWASP's encoders), all punctuation."""


def html_escaped(value: str) -> tuple[str, ...]:
    """As HTML and XML may write a value: names for markup, numbers for signs and for what is no ASCII, or not."""
    found = []
    for also in _ALSO:
        for apostrophe, number in _STYLES:
            named = _NAMED | {sign: number.format(ord(sign)) for sign in also} | {"'": apostrophe}
            found.append("".join(named.get(c, c) for c in value))
            found.append("".join(named.get(c, c) if c.isascii() else number.format(ord(c)) for c in value))
    return tuple(found)


def utf16(value: str) -> list[bytes]:
    """In both byte orders."""
    little = value.encode("utf-16-le")
    if value.isascii():
        return [little[:-1]]  # without its last zero the same bytes stand in big-endian text too
    return [little, value.encode("utf-16-be")]


_UUID = re.compile(r"\{?[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}\}?", re.IGNORECASE)


def uuid_of(value: str) -> uuid.UUID | None:
    """The UUID that a value is, with dashes, without, or in braces; None where it is none. Formats store it as
    sixteen bytes (https://parquet.apache.org/docs/file-format/types/logicaltypes/, https://iceberg.apache.org/spec/#parquet).
    """
    return uuid.UUID(value) if _UUID.fullmatch(value) else None


def base64_cores(value: bytes) -> Iterator[bytes]:
    """The characters that stand for `value` wherever it lies in the encoded bytes (three alignments)."""
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + value)
        core = encoded[(0, 2, 3)[offset] : (offset + len(value)) * 8 // 6]
        if len(core) >= SHORT_BASE64:
            yield core
            yield core.replace(b"+", b"-").replace(b"/", b"_")


ALGORITHMS = {
    Form.MD5: "md5",
    Form.SHA1: "sha1",
    Form.SHA224: "sha224",
    Form.SHA256: "sha256",
    Form.SHA384: "sha384",
    Form.SHA512: "sha512",
}
"""What Spark computes with `md5`, `sha1` and `sha2` (https://spark.apache.org/docs/latest/api/sql/#sha2)."""

SEALED = frozenset({Form.MD5, Form.SHA1, Form.SHA256, Form.SHA512})
"""Digests that are searched as bytes and in base64, too: each pattern more costs every scan."""

ENOUGH = 16
"""Characters of base64 (12 bytes of a digest) that are not met by chance."""


def digests(value: str) -> Iterator[tuple[bytes, Form]]:
    """Plain digests of the value as it is and in both cases, as bytes."""
    for variant in dict.fromkeys((value, value.lower(), value.upper())):
        for form, algorithm in ALGORITHMS.items():
            yield hashlib.new(algorithm, variant.encode(), usedforsecurity=False).digest(), form


def base64_alone(data: bytes) -> set[bytes]:
    """Characters that stand for bytes which were encoded alone, in both alphabets, whatever the padding.

    A run in which the alphabets do not differ where one is long enough, so that there is one pattern and not two.
    """
    core = base64.b64encode(data)[: len(data) * 8 // 6]
    plain = max(re.split(rb"[+/]", core), key=len)
    return {plain} if len(plain) >= ENOUGH else {core, core.replace(b"+", b"-").replace(b"/", b"_")}


_TELLING_DECIMALS = 4
"""Fewer in front of an exponent are those of many numbers."""


def scientific(digits: str) -> tuple[str, ...]:
    """How the notation with an exponent begins for a whole number: `8.841302` of `8.841302e+006`, `7.34021998100E9`.

    Which number it is, the exponent tells (`weak_boundaries.with_exponent`). Programs add as many zeros as they like.
    """
    sign, figures = digits[: digits.startswith("-")], digits.lstrip("-")
    start, exponent = f"{sign}{figures[0]}.{figures[1:].rstrip('0') or '0'}", len(figures) - 1
    decimals = len(start) - start.index(".") - 1
    if decimals >= _TELLING_DECIMALS:
        return (start,)
    padded = start + "0" * (_TELLING_DECIMALS - decimals)
    return f"{start}e{exponent}", f"{start}e+{exponent:02}", f"{start}e+{exponent}", f"{start}e+{exponent:03}", padded


_IBAN = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}\Z", re.IGNORECASE)


def regrouped(value: str) -> tuple[str, ...]:
    """An account's number (IBAN) in one piece and in groups of four, as it is printed; nothing for other values."""
    compact = re.sub(r"[\s-]", "", value)
    groups = [compact[at : at + 4] for at in range(0, len(compact), 4)] if _IBAN.match(compact) else []
    return tuple(text for text in ("".join(groups), " ".join(groups), "-".join(groups)) if text not in ("", value))


def in_other_addresses(value: str) -> tuple[str, ...]:
    """An address as other addresses hold it: of bounces (`bounce-asha=x.example@…`), of forwarders (SRS), and of guests
    in Microsoft Entra (`asha_x.example#EXT#@…`).
    """
    local, at, domain = value.rpartition("@")
    return (
        (f"{local}={domain}", f"{domain}={local}", f"{local}_{domain}#EXT#") if at and local and "." in domain else ()
    )


_NUMBER = re.compile(r"[+(]?\d[\d\s().+/-]*\Z")
_TELLING = 10
"""Fewer digits are many things' numbers."""


def bare_number(value: str) -> str | None:
    """The digits of a number that is written with signs between them, as a phone's (`+91 98450 12345`) or a card's is:
    programs keep it as an integer or a double, too. None for other values.
    """
    if value.isdigit() or not value.isascii() or not _NUMBER.match(value):
        return None
    digits = re.sub(r"\D", "", value).lstrip("0")
    return digits if len(digits) >= _TELLING else None


def cut_values(cells: dict[str, tuple[str, ...]], weak: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Cut forms of long values: 16 characters and their upper bound (Iceberg), 32 marked by a final NUL (Delta)."""
    cut: dict[str, set[str]] = {}
    for value, names in cells.items():
        strong = [name for name in names if name not in weak]
        if len(value) > 16:
            cut.setdefault(value[:16], set()).update(strong)
            raised = chr(min(ord(value[15]) + 1, 0x10FFFF))
            cut.setdefault(value[:15] + raised, set()).update(strong)
        if len(value) > 32:
            cut.setdefault(value[:32] + "\0", set()).update(strong)
    return {bound: tuple(sorted(names)) for bound, names in cut.items() if names}
