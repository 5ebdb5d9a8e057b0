"""Numbers between escapes: the digits of an escape are none of another person's longer number."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pii_tracer.scan.hit_collector import Collector
from tests.scan import drawn_cells

WAYS: dict[str, Callable[[str], str]] = {
    "url": lambda sign: "".join(f"%{byte:02X}" for byte in sign.encode()),
    "url twice": lambda sign: "".join(f"%25{byte:02X}" for byte in sign.encode()),
    "json": lambda sign: f"\\u{ord(sign):04x}",
    "hex": lambda sign: f"\\x{ord(sign):02X}",
    "octal": lambda sign: f"\\{ord(sign):03o}" if sign.isascii() else sign,
    "points": lambda sign: f"\\U{ord(sign):08x}",
    "html": lambda sign: f"&#{ord(sign)};",
    "html hex": lambda sign: f"&amp;#x{ord(sign):x};",
}
SIGNS = "\t\n !\"#$&'()*,/:;<=>?[]{|}\xa0"


def found(value: str, text: str, *, weak: bool = False) -> int:
    collector = Collector(drawn_cells.patterns_of((value, weak)))
    collector.string(text, "data", "note")
    return sum(hit.count for hit in collector.hits())


@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("way", WAYS)
@given(number=st.integers(10_000, 10**19), sign=st.sampled_from(SIGNS), before=st.sampled_from(["", "id", "é", "7"]))
@example(number=551020, sign='"', before="id")
@example(number=9_999_999_999_999_999_999, sign="\t", before="")
def test_a_number_behind_an_escaped_sign_is_found(way: str, weak: bool, number: int, sign: str, before: str) -> None:
    escape = WAYS[way](sign)
    assert found(str(number), f"{before}{escape}{number}{escape}", weak=weak)


@pytest.mark.parametrize("key", ["551020", "4915123456789", "0f8fad5b-d9cb-469f-a165-70867728950e", "1979-11-04"])
def test_json_in_an_address_of_the_web_is_found(key: str) -> None:
    document = json.dumps({"user": key, "at": "Pune"})
    for text in (quote(document), quote_plus(document), quote(quote(document)), f"/q?f={quote(document)}&page=2"):
        assert found(key, text)
        assert found(key, text, weak=True) or not key.isdigit()


def test_a_longer_number_behind_an_escape_is_anothers() -> None:
    for text in (
        "%2255102099%22",
        "%2299551020%22",
        "id%3D55102099",
        "\\u00229551020",
        "100055102099",
        "D:\\19551020\\x",
    ):
        assert found("551020", text) == found("551020", text, weak=True) == 0, text


@pytest.mark.parametrize("way", sorted(set(WAYS) - {"points"}))
@given(st.sampled_from(["\xa0", " ", "-", "/", ".", ") "]), st.sampled_from(["", "+", "("]))
def test_a_number_with_escaped_signs_between_its_digits_is_found(way: str, sign: str, before: str) -> None:
    parts = ("49", "151", "23456789")
    if before == "(" and sign != ") ":
        before = ""
    text = "".join(map(WAYS[way], before)) + "".join(map(WAYS[way], sign)).join(parts)
    assert found("".join(parts), f"phone={text}&x=1") == 1
    assert found("".join(parts), f"phone={text}0&x=1") == 0


def test_quoted_printable_and_escaped_slashes_between_digits() -> None:
    for text in (
        "%2849 151 23456789%29",
        "49=20151=2023456789",
        "49\\/151\\/23456789",
        "49=C2=A0151=C2=A023456789",
        "49151=\n23456789",
    ):
        assert found("4915123456789", text), text
