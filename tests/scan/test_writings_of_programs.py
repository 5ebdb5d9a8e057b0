"""Values as programs write them that print numbers, send mails, or take one encoding for another."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from pii_tracer.model.datasets import KeySet
from pii_tracer.model.number_keys import is_short_number
from pii_tracer.scan.value_forms import Patterns, build_patterns
from tests.scan.support import parquet, scan
from tests.scan.test_altered_forms import PLACES

NUMBERS = {"8841302": 8841302, "7340219981": 7340219981, "7340219000": 7340219000, "9120000": 9120000}
"""Short and long ones, also with zeros at the end."""
MAIL, OTHER = "siobhan.odea@mail.example", "siobhan.odeb@mail.example"
NAME, NAMESAKE = "José Müller", "Josè Müller"
IBAN = "DE89370400440532013000"


def patterns(*values: str) -> Patterns:
    return build_patterns(
        [KeySet(name=f"k{n}", origin="k", weak=is_short_number(v), values=(("s", v),)) for n, v in enumerate(values)]
    )


def shown(number: float) -> list[str]:
    """With an exponent, as NumPy's `savetxt`, C, SQL Server, Java and Excel write it."""
    text, digits = f"{number:.9e}", str(int(number)).rstrip("0")
    java = f"{digits[0]}.{digits[1:]}E{len(str(int(number))) - 1}"
    wide = text.replace("e+0", "e+00")
    return [f"{number:.18e}", text, f"{number:.15E}", wide, java, java.replace("E", "E+00")]


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize("place", ["text", "csv", "json", "parquet", "parquet, plain", "avro", "parquet, metadata"])
def test_whole_numbers_with_an_exponent(value: str, place: str) -> None:
    mine = patterns(value)
    for text in shown(float(NUMBERS[value])):
        assert scan(*PLACES[place](text), mine).hits, text
    for other in (NUMBERS[value] + 1, NUMBERS[value] * 10, NUMBERS[value] // 10, NUMBERS[value] + 0.5):
        for text in (f"{other:.12e}", f"{other:.12E}".replace("E+0", "E+00")):
            assert not scan(*PLACES[place](text), mine).hits, text


def test_a_number_without_an_exponent_that_begins_alike_is_another() -> None:
    for text in ("8.841302", "8.841302e", "8.841302e-6", "8.841302e+61", "8.8413020", "18.841302e6", "8.841302e5"):
        assert not scan("notes.log", f"paid {text}, thanks".encode(), patterns("8841302")).hits, text


def test_what_savetxt_writes() -> None:
    sink = io.BytesIO()
    np.savetxt(sink, np.array([[7340219981, 1.5], [3, 4]]), delimiter=",")
    assert scan("a.csv", sink.getvalue(), patterns("7340219981")).hits


@pytest.mark.parametrize("zero", "٠۰०０০੦૦୦௦౦೦൦๐໐༠၀០")
def test_digits_of_all_scripts(zero: str) -> None:
    digits = str.maketrans("0123456789", "".join(chr(ord(zero) + n) for n in range(10)))
    for value, other in (("7340219981", "7340219982"), ("+919845012345", "+919845012346")):
        for place, make in PLACES.items():
            found = scan(*make(value.translate(digits)), patterns(value))
            assert found.strong or (place == "unknown" and found.unread), place
            assert not scan(*make(other.translate(digits)), patterns(value)).hits, place


@pytest.mark.parametrize("joint", [" ", "\u00a0", "-"])
def test_an_iban_in_groups_and_in_one_piece(joint: str) -> None:
    grouped = joint.join(IBAN[at : at + 4] for at in range(0, len(IBAN), 4))
    for value, text in (
        (IBAN, grouped),
        (IBAN, grouped.lower()),
        (grouped, IBAN),
        (grouped.replace(joint, " "), grouped),
    ):
        for place in ("text", "csv", "json", "parquet", "avro"):
            assert scan(*PLACES[place](text), patterns(value)).strong, (place, value, text)
            assert not scan(
                *PLACES[place](text.replace("0532", "0533").replace("40053", "40063")), patterns(value)
            ).hits, (place, value, text)


ADDRESSES: dict[str, Callable[[str], str]] = {
    "bounce": lambda v: f"bounce-17-{v.replace('@', '=')}@list.example",
    "forwarder": lambda v: f"SRS0=HHH=TT={v.split('@')[1]}={v.split('@')[0]}@fwd.example",
    "guest": lambda v: f"{v.replace('@', '_')}#EXT#@tenant.example",
}


@pytest.mark.parametrize("form", ADDRESSES)
def test_an_address_within_another_address(form: str) -> None:
    for place, make in PLACES.items():
        for text in (ADDRESSES[form](MAIL), ADDRESSES[form](MAIL.upper())):
            found = scan(*make(text), patterns(MAIL))
            assert found.strong or (place == "unknown" and found.unread), (place, text)
        assert not scan(*make(ADDRESSES[form](OTHER)), patterns(MAIL)).hits, place


OLD: dict[str, Callable[[str], bytes]] = {
    "UTF-8 taken for Latin-1": lambda v: v.encode().decode("latin-1").encode(),
    "and once more": lambda v: v.encode().decode("latin-1").encode().decode("latin-1").encode(),
    "UTF-8 taken for Windows-1252": lambda v: v.encode().decode("cp1252").encode(),
    "taken for Windows-1252 twice": lambda v: v.encode().decode("cp1252").encode().decode("cp1252").encode(),
    "Latin-1 in base64": lambda v: base64.b64encode(f"for {v}".encode("latin-1")),
    "Latin-1 in hex": lambda v: f"for {v}".encode("latin-1").hex().upper().encode(),
    "a mail's header": lambda v: b"=?iso-8859-1?Q?" + _word(v, "latin-1") + b"?=",
    "all of a mail's header": lambda v: b"=?iso-8859-1?q?" + b"".join(b"=%02X" % b for b in v.encode("latin-1")) + b"?=",
    "a mail's header in base64": lambda v: b"=?windows-1252?B?" + base64.b64encode(v.encode("cp1252")) + b"?=",
}  # fmt: skip


def _word(value: str, page: str) -> bytes:
    encoded = (b"_" if c == " " else c.encode() if c.isascii() else b"=%02X" % c.encode(page)[0] for c in value)
    return b"".join(encoded)


@pytest.mark.parametrize("form", OLD)
def test_letters_in_the_encodings_of_before(form: str) -> None:
    for value, found in ((NAME, True), (NAMESAKE, False)):
        data = OLD[form](value)
        assert bool(scan("notes.log", b"sent: " + data + b"\n", patterns(NAME)).strong) is found
        cell = pa.table({"c": ["x", data.decode()]})
        assert bool(scan("a.parquet", parquet(cell), patterns(NAME)).strong) is found
        assert bool(scan("a.json", json.dumps({"c": data.decode()}).encode(), patterns(NAME)).strong) is found
