"""Values in other alphabets, with letters as escapes, as phones are dialled at home: a form is added in one table."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import Patterns, build_patterns
from tests.scan.support import parquet, scan
from tests.scan.test_altered_forms import PLACES

MAIL, OTHER = "siobhan.odea@mail.example", "siobhan.odeb@mail.example"
PHONE, NAME = "+49 30 1234567", "José Müller"


def _patterns(value: str) -> Patterns:
    return build_patterns([KeySet(name="k", origin="k", weak=False, values=(("s", value),))])


def _one(style: str) -> Callable[[str], str]:
    """One letter, the last before the `@`, as an escape."""
    return lambda v: v[:11] + style.format(ord(v[11])) + v[12:]


def _all(style: str) -> Callable[[str], str]:
    return lambda v: "".join(style.format(ord(c)) for c in v)


FORMS: dict[str, Callable[[str], str]] = {
    **{f"one letter as {style}": _one(style) for style in (
        "\\u{:04x}", "\\\\u{:04x}", "\\x{:02x}", "%{:02X}", "%25{:02X}", "%2525{:02X}", "%u{:04x}", "&#{};", "&#{:06d};",
        "&#x{:x};", "&amp;#{};", "\\{:03o}", "\\{:x} ", "\\{:06x}", "\\u{{{:x}}}",
    )},
    **{f"all letters as {style}": _all(style) for style in (
        "&#{:05d};", "&#x{:06x};", "&#X{:x};", "\\{:06x}", "\\\\\\\\u{:04x}", "%2525{:02x}", "&amp;amp;#{};",
    )},
    "list of codes": lambda v: "String.fromCharCode(" + ",".join(str(ord(c)) for c in v) + ")",
    "list of bytes": lambda v: "{" + ", ".join(hex(ord(c)) for c in v) + "}",
    "base32": lambda v: base64.b32encode(f"x:{v} yz".encode()).decode(),
    "ascii85": lambda v: base64.a85encode(f"x:{v} yz".encode()).decode(),
    "base85": lambda v: base64.b85encode(f"x:{v} yz".encode()).decode(),
    "uuencode, in a line": lambda v: binascii.b2a_uu(f"q{v}".encode()).decode().strip(),
    "base64 of base64": lambda v: base64.b64encode(base64.b64encode(f"for {v}".encode())).decode(),
    "utf-7": lambda v: v.replace("@", "+AEA-"),
    **{f"{name} with colons": lambda v, name=name: hashlib.new(name, v.encode()).digest().hex(":").upper()  # type: ignore[misc]
       for name in ("md5", "sha1", "sha256", "sha512")},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_in_every_place(form: str) -> None:
    patterns = _patterns(MAIL)
    for place, make in PLACES.items():
        found = scan(*make(FORMS[form](MAIL)), patterns)
        assert found.strong or (place == "unknown" and found.unread), place
        assert not scan(*make(FORMS[form](OTHER)), patterns).hits, place


@pytest.mark.parametrize("encoding", ["cp037", "cp500", "utf-32-le", "utf-32-be"])
def test_cells_of_bytes_in_other_encodings(encoding: str) -> None:
    for value, red in ((MAIL, True), (OTHER, False)):
        for text in (value, value.upper()):
            cells = pa.array([b"other", f"x {text} y".encode(encoding)], pa.binary())
            assert bool(scan("a.parquet", parquet(pa.table({"c": cells})), _patterns(MAIL)).hits) is red


def test_letters_that_are_no_ascii() -> None:
    octal = "".join(c if c.isascii() else "".join(f"\\{b:03o}" for b in c.encode()) for c in NAME)
    json_in = base64.b64encode(b'{"n": "Jos\\u00e9 M\\u00fcller"}').decode()
    for text in (repr(NAME.encode()), octal, NAME.encode("utf-7").decode(), json_in):
        assert scan(*PLACES["parquet"](text), _patterns(NAME)).strong, text
    at_home, in_ascii = "anna@müller.example", "anna@xn--mller-kva.example"
    for value, text in ((at_home, in_ascii), (in_ascii, at_home)):
        assert scan(*PLACES["csv"](text), _patterns(value)).strong
        assert not scan(*PLACES["csv"](text.replace("anna", "anne")), _patterns(value)).hits


@pytest.mark.parametrize("text", ["030 1234567", "0301234567", "(030) 123-4567", "030/123 45 67", "+49 (0)30 1234567"])
def test_a_phone_as_it_is_dialled_at_home(text: str) -> None:
    for shown, red in ((text, True), (text[:-1] + "8", False), ("9" + text, False)):
        for place in ("text", "csv", "json", "parquet", "parquet, plain", "avro"):
            if shown[0] != "9" or text[0] == "0":
                assert bool(scan(*PLACES[place](shown), _patterns(PHONE)).hits) is red, (place, shown)


def test_a_phone_without_its_country_as_an_integer() -> None:
    for number, red in ((9845012345, True), (9845012346, False)):
        table = pa.table({"c": [1, number]})
        assert bool(scan("a.parquet", parquet(table), _patterns("+91 98450 12345")).hits) is red


def test_a_number_in_pieces_behind_a_cell_that_ends_with_a_digit() -> None:
    """Cells of a column lie behind each other without anything between them."""
    table = pa.table({"c": ["other 299", "+91-98450-12345", "7 others"]})
    assert scan("a.parquet", parquet(table, write_statistics=False), _patterns("+91 98450 12345")).strong


def test_what_is_called_checksums_or_a_deletion_vector_is_one() -> None:
    bitmaps = (1681511377).to_bytes(4, "little") + bytes(8)
    vector = b"\x01" + len(bitmaps).to_bytes(4, "big") + bitmaps + zlib.crc32(bitmaps).to_bytes(4, "big")
    packed = zlib.compress(b"\xff" + MAIL.encode() * 9) + b"\xfe"
    for name, data, known in (
        (".a.parquet.crc", b"crc\0\0\0\x02\0" + b"\x12\xf4\x56\x78" * 3, True),
        (".a.parquet.crc", b"crc\0\0\0\x02\0" + packed + bytes(-len(packed) % 4), False),
        ("deletion_vector_1.bin", vector, True),
        ("deletion_vector_1.bin", b"\x01" + packed, False),
        ("deletion_vector_1.bin", vector + packed, False),
    ):
        assert bool(scan(name, data, _patterns(MAIL)).unread) is not known, (name, known)


@pytest.mark.parametrize(
    "start", [b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\x89LZO\0"]
)
def test_a_cell_that_is_a_container_of_an_unknown_kind_is_unread(start: bytes) -> None:
    for cell, unread in ((start + bytes(99), True), (b"q" + start + bytes(99), False)):
        table = pa.table({"c": pa.array([b"other", cell], pa.binary())})
        assert bool(scan("a.parquet", parquet(table), _patterns(MAIL)).unread) is unread
