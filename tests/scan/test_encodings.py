"""Digests and escapes of a value: red with the person's, green with the twin's, whole and in cells of files."""

from __future__ import annotations

import base64
import hashlib
import html
import uuid
from collections.abc import Callable
from urllib.parse import quote, quote_plus
from xml.sax import saxutils

import pyarrow as pa
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.hits import Form
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import OTHER_USER, USER, avro, parquet, scan

MAIL, TWIN = "Anita.o'Rao+news@x.example", "Anita.o'Rai+news@x.example"
PATTERNS = build_patterns(
    [
        KeySet(name="mail", origin="mail", weak=False, values=(("s", MAIL),)),
        KeySet(name="uid", origin="uid", weak=True, values=(("s", str(USER)),)),
    ]
)
HEXES = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]
SEALED = ["md5", "sha1", "sha256", "sha512"]


def forms(data: bytes) -> set[Form]:
    found = scan("notes.log", data, PATTERNS)
    return {hit.form for hit in found.hits}


def digest(algorithm: str, value: str) -> bytes:
    return hashlib.new(algorithm, value.encode()).digest()


@pytest.mark.parametrize("algorithm", HEXES)
@pytest.mark.parametrize("case", [str, str.lower, str.upper])
def test_digests_in_hex(algorithm: str, case: Callable[[str], str]) -> None:
    for value, other in ((case(MAIL), case(TWIN)), (str(USER), str(OTHER_USER))):
        assert forms(f"token {digest(algorithm, value).hex()};".encode()) == {Form(algorithm)}
        assert forms(digest(algorithm, value).hex().upper().encode()) == {Form(algorithm)}
        assert forms(f"token {digest(algorithm, other).hex()};".encode()) == set()


@pytest.mark.parametrize("algorithm", SEALED)
@pytest.mark.parametrize("kind", [pa.binary(), None])
def test_digests_as_bytes_in_cells(algorithm: str, kind: pa.DataType | None) -> None:
    """As `unhex(sha2(email, 256))` writes them; `None`: of the digest's fixed size."""
    for value, other in ((MAIL.lower(), TWIN.lower()), (str(USER), str(OTHER_USER))):
        mine, hers = digest(algorithm, value), digest(algorithm, other)
        for options in ({}, {"use_dictionary": False, "compression": "zstd"}):
            made = [pa.table({"h": pa.array([hers, cell], kind or pa.binary(len(cell)))}) for cell in (mine, hers)]
            seen = [scan("a.parquet", parquet(table, write_statistics=False, **options), PATTERNS) for table in made]
            assert {(hit.form, hit.where, hit.column) for hit in seen[0].hits} >= {(Form(algorithm), "data", "h")}
            assert (seen[1].hits, seen[0].unread, seen[1].unread) == ((), (), ())
        schema = {"type": "record", "name": "r", "fields": [{"name": "h", "type": "bytes"}]}
        for cell, found in ((mine, True), (hers, False)):
            assert bool(scan("a.avro", avro(schema, [{"h": cell}], codec="deflate"), PATTERNS).hits) == found


@pytest.mark.parametrize("algorithm", SEALED)
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_digests_in_base64(algorithm: str, encode: Callable[[bytes], bytes]) -> None:
    for number in range(40):  # so that both alphabets' own characters come up, wherever they stand
        value, other = f"b{number}@x.example", f"c{number}@x.example"
        patterns = build_patterns([KeySet(name="mail", origin="mail", weak=False, values=(("s", value),))])
        for text, found in ((value, True), (other, False)):
            for data in (encode(digest(algorithm, text)), encode(digest(algorithm, text)).rstrip(b"=")):
                assert bool(scan("a.log", b'{"h": "' + data + b'"}', patterns).hits) == found


ESCAPES: dict[str, Callable[[str], str]] = {
    "python": html.escape,
    "php": lambda text: html.escape(text).replace("&#x27;", "&#039;"),
    "go": lambda text: html.escape(text).replace("&#x27;", "&#39;").replace("+", "&#43;"),
    "xml, not for robots": lambda text: saxutils.escape(text).replace("@", "&#64;"),
    "xml": lambda text: html.escape(text).replace("&#x27;", "&apos;"),
    "no robots": lambda text: html.escape(text).replace("&#x27;", "&#39;").replace("@", "&#64;"),
    "no robots, hex": lambda text: html.escape(text).replace("@", "&#x40;"),
    "owasp": lambda text: "".join(c if c.isalnum() or c in ",.-_ " else f"&#x{ord(c):x};" for c in text),
    "all": lambda text: "".join(c if c.isalnum() else f"&#{ord(c)};" for c in text),
    "all, hex in capitals": lambda text: "".join(c if c.isalnum() else f"&#x{ord(c):X};" for c in text),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_escapes_of_markup(name: str) -> None:
    for case in (str, str.lower, str.upper):
        assert forms(f"<b>{ESCAPES[name](case(MAIL))}</b>".encode()) == {Form.HTML}
        assert forms(f"<b>{ESCAPES[name](case(TWIN))}</b>".encode()) == set()


def test_letters_of_other_scripts_as_numbers_in_markup() -> None:
    patterns = build_patterns([KeySet(name="name", origin="name", weak=False, values=(("s", "Zoë d'Ångström"),))])
    for text in (
        "Zo&#235; d&#39;&#197;ngstr&#246;m",
        "Zo&#xEB; d&#x27;&#xC5;ngstr&#xF6;m",
        "zo&#235; d'&#229;ngstr&#246;m",
    ):
        assert scan("a.log", text.encode(), patterns).hits
    assert not scan("a.log", b"Zo&#234; d&#39;&#197;ngstr&#246;m", patterns).hits


@pytest.mark.parametrize("inner", [quote, quote_plus, lambda text: quote(text, safe="")])
def test_url_escapes_of_url_escapes(inner: Callable[[str], str]) -> None:
    for value, found in ((MAIL, {Form.URL}), (TWIN, set())):
        assert forms(f"GET /r?u=https%3A%2F%2Fx%2F%3Fm%3D{quote(inner(value), safe='')}%26n".encode()) == found


KEY, NEXT = "7c9e6679-7425-40de-944b-e07fc1f90ae7", "7c9e6679-7425-40de-944b-e07fc1f90ae8"


@pytest.mark.parametrize("given", [KEY, KEY.upper(), KEY.replace("-", "")])
def test_uuids_as_text_and_as_bytes(given: str) -> None:
    """Iceberg's and Parquet's type `uuid` is sixteen bytes: no text of the key is in such a file."""
    patterns = build_patterns([KeySet(name="key", origin="key", weak=False, values=(("s", given),))])
    mine, hers = uuid.UUID(KEY), uuid.UUID(NEXT)
    for write in (str, lambda key: key.hex.upper()):
        assert scan("a.log", f"id={write(mine)};".encode(), patterns).hits
        assert not scan("a.log", f"id={write(hers)};".encode(), patterns).hits
    for kind in (pa.binary(16), pa.binary()):
        for options in ({}, {"use_dictionary": False, "compression": "zstd"}):
            for cells, found in (([mine.bytes], True), ([mine.bytes_le], True), ([hers.bytes, hers.bytes_le], False)):
                table = pa.table({"k": pa.array([hers.bytes, *cells], kind)})
                seen = scan("a.parquet", parquet(table, write_statistics=False, **options), patterns)
                assert (bool(seen.hits), seen.unread) == (found, ())
