"""Writings that leave nothing of a value as it is, other code pages, unseen signs, and numbers grouped another way."""

from __future__ import annotations

import base64
import io
import json
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.value_forms import Patterns, build_patterns
from tests.scan.support import USERS, parquet, scan

NAME, MAIL, KEY = "Marta Kowalczyk-Ode", "lena.brandt@mail.example", "CUST0081KX"
OTHERS = {NAME: "Marta Kowalczyk-Ida", MAIL: "lena.brandl@mail.example", KEY: "CUST0081QX"}


def _patterns(value: str) -> Patterns:
    return build_patterns([KeySet(name="k", origin="k", weak=False, values=(("s", value),))])


def _each(style: str) -> Callable[[str], str]:
    return lambda value: "".join(style.format(byte) for byte in value.encode())


def _signs(style: str) -> Callable[[str], str]:
    return lambda value: "".join(c if c.isalnum() else style.format(ord(c)) for c in value)


STYLES = ("\\u{:04x}", "\\u{:04X}", "\\x{:02x}", "\\{:03o}", "%{:02X}", "={:02X}", "&#{};", "&#x{:X};", "\\U{:08x}")
WRITINGS: dict[str, Callable[[str], str]] = {
    **{f"each sign as {style}": _each(style) for style in (*STYLES, "&#x{:04x};", "\\u{{{:x}}}")},
    **{f"signs as {style}": _signs(style) for style in (*STYLES, "&#x{:04x};", "\\{:04x}", "\\{:02x}", "%u{:04x}")},
    "@ alone": lambda v: v.replace("@", "\\u0040"),
    "@ by name": lambda v: v.replace("@", "&commat;"),
    "mail's header": lambda v: "=?utf-8?q?" + v.replace(" ", "_").replace(".", "=2E").replace("@", "=40") + "?=",
    "hex in pairs": lambda v: v.encode().hex(" "),
    "hex with colons": lambda v: v.encode().hex(":").upper(),
    "hex of utf-16": lambda v: v.encode("utf-16-le").hex(),
    "base64 of utf-16": lambda v: base64.b64encode(v.encode("utf-16-le")).decode(),
    "base64 in lower case": lambda v: base64.b64encode(v.lower().encode()).decode(),
    "base64 in upper case": lambda v: base64.b64encode(json.dumps({"n": v.upper()}).encode()).decode(),
    "full width": lambda v: "".join(chr(ord(c) + 0xFEE0) if c != " " else "\u3000" for c in v),
}
UNSEEN = ("\u00ad", "\u200b", "\u200d", "\u2060", "\u2066", "\ufe0f", "\ufeff")
PLACES: dict[str, Callable[[str], tuple[str, bytes]]] = {
    "log": lambda t: ("a.log", f"for {t}, paid".encode()),
    "csv": lambda t: ("a.csv", f'id,note\n1,"{t}"\n2,x\n'.encode()),
    "xml": lambda t: ("a.xml", f"<?xml version='1.0'?><a>{t}</a>".encode()),
    "parquet": lambda t: ("a.parquet", parquet(pa.table({"c": [f'{{"n": "{t}"}}', "x"]}), compression="zstd")),
    "long": lambda t: ("a.log", ("somebody else, 0\n" * 900 + f"for {t}, paid\n" + "z\n" * 900).encode()),
}


@pytest.mark.parametrize("writing", WRITINGS)
def test_nothing_of_a_value_needs_to_stand_as_it_is(writing: str) -> None:
    for value, other in OTHERS.items():
        for place, make in PLACES.items():
            assert scan(*make(WRITINGS[writing](value)), _patterns(value)).strong, (value, place)
            assert not scan(*make(WRITINGS[writing](other)), _patterns(value)).hits, (other, place)


@settings(max_examples=60, deadline=None)
@given(
    value=st.sampled_from(sorted(OTHERS)),
    sign=st.sampled_from(UNSEEN),
    at=st.sets(st.integers(1, 9), min_size=1),
    place=st.sampled_from(sorted(PLACES)),
)
def test_what_nobody_sees_hides_no_value(value: str, sign: str, at: set[int], place: str) -> None:
    written = "".join(sign + c if n in at else c for n, c in enumerate(value))
    assert scan(*PLACES[place](written), _patterns(value)).strong
    other = "".join(sign + c if n in at else c for n, c in enumerate(OTHERS[value]))
    assert not scan(*PLACES[place](other), _patterns(value)).hits


@pytest.mark.parametrize(
    ("value", "page"),
    [
        ("Zoë Müller-Ögünç", "iso8859_9"),
        ("Zoë Müller-Öhm", "cp1252"),
        ("Zoë Müller-Öhm", "cp850"),
        ("Zoë Müller-Öhm", "mac_roman"),
        ("Łukasz Dąbrowski", "cp1250"),
        ("Ирина Соколова", "cp1251"),
        ("Ирина Соколова", "koi8_r"),
        ("山田太郎", "shift_jis"),
        ("山田太郎", "euc_jp"),
        ("王小明先生", "gb18030"),
    ],
)
def test_text_before_utf_8(value: str, page: str) -> None:
    for data in (value, value.upper()):
        cells = pa.array([b"1|" + data.encode(page) + b"|x", b"y"])
        assert scan("a.parquet", parquet(pa.table({"c": cells})), _patterns(value)).strong
        found = scan("a.csv", b"id,name\n1," + data.encode(page) + b"\n", _patterns(value))
        assert found.strong or found.unread


@pytest.mark.parametrize("value", ["山田太郎", "Иван", "Zoë", "Wei"])
@pytest.mark.parametrize("around", ["“{}”", "—{}—", "«{}»", "({})", "、{}。", "{}…", "‘{}’"])
def test_signs_beside_a_short_name_are_no_letters(value: str, around: str) -> None:
    text = around.format(value)
    assert scan("a.log", f"to {text} of".encode(), _patterns(value)).hits
    assert scan("a.parquet", parquet(pa.table({"c": [text]})), _patterns(value)).hits
    assert not scan("a.log", "to Weiß, Zoëlle, Иванов, 山田二郎".encode(), _patterns(value)).hits


def test_a_name_in_a_script_without_blanks() -> None:
    assert scan("a.log", "お客様は山田太郎です。".encode(), _patterns("山田太郎")).hits


GROUPED = {
    "+91 98450 12345": ("+91-98450-12345", "(91) 98450-12345", "0091 98450 12345", "91.98450.12345", "+91 9845 012 345",
                        "+91\u00a098450\u00a012345", "+91\u201198450\u201112345", "919,845,012,345", "+91/98450/12345",
                        "000919845012345", "９１９８４５０１２３４５", "٩١٩٨٤٥٠١٢٣٤٥", "9.19845012345e+11"),
    "7340219981": ("7,340,219,981", "7_340_219_981", "7'340'219'981", "7.340.219.981", "7 340 219 981",
                   "7,34,02,19,981", "734-021-9981", "7.340219981e+09", "７３４０２１９９８１"),
}  # fmt: skip


@pytest.mark.parametrize("value", GROUPED)
def test_digits_are_a_number_whatever_parts_them(value: str) -> None:
    for text in GROUPED[value]:
        for make in (*PLACES.values(), lambda t: ("a.json", json.dumps({"c": t}).encode())):
            assert scan(*make(text), _patterns(value)).strong, text
            assert not scan(*make(text[:-1]), _patterns(value)).hits, text
    for text in ("91 98450 123456", "1 7340219 9811", "7,3402,19981", "7340 : 219981", "7\t340\t219\t981"):
        assert not scan(*PLACES["log"](text), _patterns(value)).hits, text


def test_zeros_in_front_are_no_other_number() -> None:
    """Exports of fixed widths pad numbers, and a source may do so where another table has numbers."""
    weak = build_patterns([USERS])
    for place in ("log", "csv", "long"):
        assert scan(*PLACES[place]("0008841302"), weak).hits, place
        assert scan(*PLACES[place]("0000000000000008841302"), weak).hits, place
        for other in ("1008841302", "1.08841302", "000884130", "0088413021"):
            assert not scan(*PLACES[place](other), weak).hits, other
    numbers = parquet(pa.table({"c": pa.array([1, 8841302])}))
    assert scan("a.parquet", numbers, _patterns("0008841302")).hits
    assert not scan("a.parquet", numbers, _patterns("0008841303")).hits


def test_one_long_row_of_a_csv_takes_no_longer_than_several() -> None:
    """Hundred thousand cells in a row: what a cell costs does not grow with the row."""
    row = io.StringIO()
    row.write("somebody,else," * 30_000 + MAIL)
    began = time.process_time()
    assert scan("a.csv", row.getvalue().encode(), _patterns(MAIL)).hits
    assert time.process_time() - began < 30
