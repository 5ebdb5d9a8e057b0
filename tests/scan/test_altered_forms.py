"""Values behind escapes, doubled quotes, other blanks and ends of lines: in every place of every container."""

from __future__ import annotations

import base64
import bz2
import csv
import gzip
import html
import io
import json
import lzma
import textwrap
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import pyarrow as pa
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.decode import dispatch
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.value_forms import Patterns, build_patterns
from tests.scan.decode.test_whole_containers import BESIDE, STREAMS
from tests.scan.support import avro, parquet, scan


def _patterns(*values: str) -> Patterns:
    return build_patterns(
        [KeySet(name=f"k{i}", origin="k", weak=False, values=(("s", v),)) for i, v in enumerate(values)]
    )


NAME, QUOTED, SHORT = "Aoife O'Ferro-Lindqvist", 'Noor "Nuri" Haddad', "Wei O'Neil"
PHONE, MAIL, KEY = "+91 98450 12345", "siobhan.o'dea@mail.example", "P-55102"
ACCENTS = "José O'Neil", "Zoë Müller 17"
ALL = (NAME, QUOTED, SHORT, PHONE, MAIL)
PATTERNS = _patterns(*ALL, *ACCENTS)
BLANKS = [chr(c) for c in (9, 0x85, 0xA0, 0x1680, 0x2002, 0x2009, 0x200A, 0x2028, 0x202F, 0x205F, 0x3000)]

WRITINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "csv": lambda v: v.replace('"', '""'),
    "sql, doubled": lambda v: v.replace("'", "''"),
    "sql, backslash": lambda v: v.replace("'", "\\'"),
    "json in json": lambda v: json.dumps(json.dumps(v)[1:-1])[1:-1],
    "json in json in json": lambda v: json.dumps(json.dumps(json.dumps(v)[1:-1])[1:-1])[1:-1],
    "sql of json": lambda v: json.dumps(v)[1:-1].replace("'", "''"),
    "csv of sql": lambda v: v.replace("'", "''").replace('"', '""'),
    "shell": lambda v: v.replace("'", "'\\''"),
    "shell, both quotes": lambda v: v.replace("'", "'\"'\"'"),
    "sql in sql": lambda v: v.replace("'", "''" * 2),
    "sql of shell": lambda v: v.replace("'", "''" + chr(92) + "''" * 2),
    "html": html.escape,
    "html, names": lambda v: html.escape(v).replace("&#x27;", "&apos;").replace(" ", "&nbsp;"),
    "html, twice": lambda v: html.escape(html.escape(v)).replace(" ", "&amp;nbsp;"),
    "percent": lambda v: v.replace("'", "%27").replace('"', "%22").replace(" ", "%20"),
    "percent, all": lambda v: quote(v, safe=""),
    "typographic": lambda v: v.replace("'", "\u2019").replace('"', "\u201d").replace("-", "\u2011"),
    "two blanks": lambda v: v.replace(" ", "  "),
    "many blanks": lambda v: v.replace(" ", " \t   "),
    "nbsp and blank": lambda v: v.replace(" ", "\u00a0 "),
    "unicode escapes": lambda v: v.replace("'", "\\u0027").replace(" ", "\\u00a0"),
    "quoted-printable": lambda v: v.replace("'", "=27").replace(" ", "=20"),
    "soft hyphen": lambda v: v[:3] + "\u00ad" + v[3:] if len(v) > 30 else v.replace(" ", "\u200b "),
    "upper case": lambda v: v.upper().replace("'", "''"),
    **{f"blank {ord(b):x}": lambda v, b=b: v.replace(" ", b) for b in BLANKS},  # type: ignore[misc]
}

IN_FORMS: dict[str, Callable[[str], str]] = {
    "form": quote_plus,
    "form of json": lambda v: quote_plus(json.dumps({"name": v})),
    "form of sql": lambda v: quote_plus("('" + v.replace("'", "''") + "', 7)"),
    "form of html": lambda v: quote_plus(html.escape(v)),
    "form in an address": lambda v: quote(quote_plus(json.dumps({"name": v}))),
}
"""Of the web, with `+` for a blank: in places of text."""


def _cell(text: str) -> bytes:
    sink = io.StringIO()
    csv.writer(sink, delimiter=",").writerows([["id", "note"], ["1", text], ["2", "x"]])
    return sink.getvalue().encode()


SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "c", "type": "string"}]}
FILLER = [f"somebody else {n}" for n in range(400)]
PLACES: dict[str, Callable[[str], tuple[str, bytes]]] = {
    "text": lambda t: ("notes.log", f"for {t}, paid".encode()),
    "long text": lambda t: ("notes.log", "\n".join([*FILLER, f"for {t}, paid", *FILLER]).encode()),
    "csv": lambda t: ("a.csv", _cell(t)),
    "csv, semicolon": lambda t: ("a.csv", ('id;note\n1;"' + t.replace('"', '""') + '"\n').encode()),
    "csv, header": lambda t: ("a.csv", ('id,"' + t.replace('"', '""') + '"\n1,2\n').encode()),
    "json": lambda t: ("a.json", json.dumps({"c": t}).encode()),
    "parquet": lambda t: ("a.parquet", parquet(pa.table({"c": [*FILLER, t]}), compression="zstd", write_statistics=False)),
    "parquet, plain": lambda t: ("a.parquet", parquet(pa.table({"c": [*FILLER, t]}), use_dictionary=False)),
    "parquet, csv in a cell": lambda t: ("a.parquet", parquet(pa.table({"c": [_cell(t).decode(), "x"]}))),
    "parquet, binary": lambda t: ("a.parquet", parquet(pa.table({"c": [zlib.compress(t.encode())]}))),
    "parquet, metadata": lambda t: ("a.parquet", parquet(pa.table({"c": [1]}).replace_schema_metadata({"n": t}))),
    "avro": lambda t: ("a.avro", avro(SCHEMA, [{"c": t}], codec="deflate")),
    "unknown": lambda t: ("a.bin", b"\x00\xff" + t.encode() + b"\xff\x00"),
}  # fmt: skip


def _found(result: FileScan) -> bool:
    return bool(result.strong) or bool(result.unread)


def _places(number: int) -> Iterator[tuple[str, Callable[[str], tuple[str, bytes]]]]:
    """Text, and the other places in turn."""
    return ((place, make) for n, (place, make) in enumerate(PLACES.items()) if n == 0 or (n + number) % 3 == 0)


@pytest.mark.parametrize("writing", [*WRITINGS, *IN_FORMS])
def test_every_writing_of_a_value_is_found(writing: str) -> None:
    for number, value in enumerate((*ALL, *ACCENTS)):
        text = {**WRITINGS, **IN_FORMS}[writing](value)
        for place, make in _places(number):
            if place == "unknown" and (value in ACCENTS or writing in IN_FORMS):
                continue  # where no text is known, not all signs are altered at once
            found = scan(*make(text), PATTERNS)
            assert f"k{number}" in {hit.key_set for hit in found.strong}, (place, text)


@pytest.mark.parametrize("writing", WRITINGS)
def test_writings_of_others_are_clean(writing: str) -> None:
    others = (
        "Aoife O'Ferro-Lindgren",
        'Noor "Nora" Haddad',
        "Wei O'Nail",
        "+91 98450 12354",
        "siobhan.o'doe@mail.example",
    )
    for number, other in enumerate(others):
        for place, make in _places(number):
            assert scan(*make(WRITINGS[writing](other)), PATTERNS).hits == (), (place, other)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    value=st.sampled_from(ALL),
    writing=st.sampled_from(sorted(WRITINGS)),
    place=st.sampled_from(sorted(PLACES)),
    outer=st.sampled_from(sorted({**STREAMS, **BESIDE})),
    front=st.text(st.characters(codec="utf-8", exclude_characters="\0/"), max_size=8),
)
def test_every_form_in_every_place_of_every_container(
    value: str, writing: str, place: str, outer: str, front: str
) -> None:
    """Found or unread: never clean."""
    text = WRITINGS[writing](value)
    if outer in STREAMS and not outer.startswith(("npy", "npz", "utf", "arrow")):
        _, inner = PLACES[place](text)
    else:
        inner = f"{front} {text} .".encode()  # names and cells hold texts
    made = {**STREAMS, **BESIDE}[outer]
    assert _found(scan("a.bin", made(inner), PATTERNS)), (outer, place)
    for pack in (gzip.compress, zstandard.compress, bz2.compress, lzma.compress):
        assert _found(scan("a.bin", pack(made(inner)), PATTERNS)), (outer, place)


@pytest.mark.parametrize("value", [NAME, QUOTED, PHONE, MAIL, "a.b.c.d@mail.example", KEY])
def test_a_value_goes_on_in_the_next_line(value: str) -> None:
    patterns = _patterns(value)
    others = ("long text", "csv", "json", "parquet", "parquet, plain")
    for at in range(1, len(value)):
        if value[at - 1].isdigit() and value[at].isdigit() and min(at, len(value) - at) < 3:
            continue  # may be two short numbers
        for n, end in enumerate(("\n", "\r\n", "\n    ", "\n> ", "=\n", "\\\n", "\n\t")):
            text = f"dear all, ask {value[:at]}{end}{value[at:]} for it"
            # every cut with every end in a text; each of both in every other place
            for place in ("text", "avro" if at == n + 1 else others[(at + n) % len(others)]):
                assert scan(*PLACES[place](text), patterns).strong, (place, text)


def test_rows_of_a_table_are_no_text_that_goes_on() -> None:
    patterns = _patterns(NAME, KEY, "Asha Rao")
    assert not scan("a.csv", b"last,first\nIyer,Asha\nRao,Tom\n", patterns).hits
    assert not scan("a.log", b"got P-5510\n2 items left\n", patterns).hits
    assert not scan("a.log", b"got P-5510\n2026-11-24 next\n", patterns).hits
    assert scan("a.txt", b"dear all, ask Asha\nRao for it, please\n", patterns).hits


LINES = {
    "begins and ends a line": "hello\n{}\n{}\nok",
    "ends a line": "for {}\n{}\nok",
    "begins a line": "hello\n{}\n{} ok",
    "a reply": "> hello\n> {}\n> {}\n> ok",
    "CRLF": "hello\r\n{}\r\n{}\r\nok",
    "quoted-printable": "hello=\n{}=\n{}=\nok",
    "the end of the text": "{}\n{}\n\n  ",
}


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
@pytest.mark.parametrize("value", [NAME, PHONE, MAIL, "asha.rao@example.org", "5500123456789", "ab12cd34ef56"])
def test_a_value_over_lines_that_also_ends_a_line_is_found(value: str, text: str) -> None:
    patterns, at = _patterns(value), len(value) // 2
    written = text.format(value[:at], value[at:])
    assert scan("a.txt", written.encode(), patterns).strong
    assert scan("a.parquet", parquet(pa.table({"c": ["Pune", written, "x"]})), patterns).strong


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("annmarie", "guests: ann\nmarie\njohn"),
        ("maryelizabeth", "john\nmary\nelizabeth\nann"),
        ("1002003", "1001\n1002\n003\n1004"),
        ("AB12CD34", "AA11\nAB12\nCD34\nEE55"),
        ("1002003", "ids\n1002\n003\nend"),
        ("joanna@x.example", "word\nmax\njo\nanna@x.example\nzed"),
        ("joanna@x.example", "Contact:\nname jo\nanna@x.example\nzed"),
        ("12-34567", "10\n12\n-34567\n-99"),
        ("123-45678", "10\n123\n-45678\n-99"),
        ("A-1234", "B\nA\n-1234\n-2"),
        ("1990-02-03", "1989\n1990\n-02-03\n"),
        ("100200300400", "000\n100\n200\n300\n400\n500"),
        ("asha.rao@example.org", "mary-asha\n.rao@example.orgs\nok"),
        ("asha.rao@example.org", "xasha.rao@ex\nample.org\nok"),
        ("asha.rao@example.org", "ravi.rao@example.org\nasha.roy@example.org\nok"),
    ],
)
def test_lines_of_a_list_make_up_nobody(value: str, text: str) -> None:
    assert not scan("a.txt", text.encode(), _patterns(value)).hits


@pytest.mark.parametrize("text", ["> jo\n> {}", "jo=\n{}", "jo\\\n{}", "  jo\n  {}", "to " + "x" * 55 + " jo\n{}"])
def test_a_break_that_a_program_made_joins_what_could_stand_alone(text: str) -> None:
    written = f"hello\n{text.format('anna@x.example')}\nok"
    assert scan("a.txt", written.encode(), _patterns("joanna@x.example")).strong


@pytest.mark.parametrize("width", [64, 76])
def test_base64_in_lines(width: int) -> None:
    for value, red in ((MAIL, True), ("siobhan.o'doe@mail.example", False)):
        packed = base64.b64encode(b"x" * 57 + f"hello {value} and others".encode() * 3).decode()
        for end in ("\n", "\r\n"):
            text = end.join(textwrap.wrap(packed, width))
            for place in ("text", "long text", "csv", "json", "parquet"):
                assert bool(scan(*PLACES[place](text), PATTERNS).hits) == red, place


@pytest.mark.parametrize("given_as", ["{}      ", "   {}", "\t{}\u00a0", "{}\u3000"])
def test_blanks_that_the_source_pads_with_are_no_part_of_a_value(given_as: str) -> None:
    for value in (NAME, MAIL, PHONE, "7340219981"):
        patterns = _patterns(given_as.format(value))
        for text in (value, given_as.format(value), value + "   "):
            for place, make in PLACES.items():
                if place != "unknown":
                    assert scan(*make(text), patterns).strong, (place, text)


@pytest.mark.parametrize(("phone", "number"), [(PHONE, 919845012345), ("+1 (415) 555-0142", 14155550142)])
def test_a_phone_kept_as_a_number(phone: str, number: int) -> None:
    patterns = _patterns(phone)
    for shown, red in ((number, True), (number + 1, False)):
        for column in (pa.array([1, shown]), pa.array([1.5, float(shown)])):
            assert bool(scan("a.parquet", parquet(pa.table({"c": column})), patterns).strong) == red
        for text in (
            f"{shown}",
            f"{shown}.0",
            f"{str(shown)[0]}.{str(shown)[1:]}E{len(str(shown)) - 1}",
            f"tel:{shown}",
        ):
            assert bool(scan("a.csv", f"id,c\n1,{text}\n".encode(), patterns).strong) == red, text
    assert not scan("a.csv", b"d\n19900228\n", _patterns("1990-02-28")).hits


@pytest.mark.parametrize(
    ("text", "hers"),
    [
        ("7340219981", True),
        ("97340219981", False),
        ("73402199810", False),
        ("973402199810", False),
        ("12973402199810", False),
        ("0007340219981", True),
        ("917340219981", True),  # with a country's code in front
        ("17340219981", True),
        ("+97340219981", True),
        ("2026112497340219981", True),  # a record of fixed widths
        ("a97340219981", True),
    ],
)
def test_digits_on_both_sides_of_a_key_are_told_alike(text: str, hers: bool) -> None:
    patterns = _patterns("7340219981")
    for place in ("csv", "json", "parquet", "avro"):
        assert bool(scan(*PLACES[place](text), patterns).hits) is hers, place
    assert scan("a.txt", f"{text} Bengaluru\n".encode(), patterns).hits  # nobody sees where fields end


def test_a_common_surname_hides_no_altered_first_name() -> None:
    """Around an anchor the rest of the value is told from others', however it is written."""
    rows = "".join(f"{i},Mara Lindqvist,x\n" for i in range(400))
    patterns = _patterns("Wei Lindqvist")
    for wei in ("Wei", "W\\u0065i", "We&#105;", "%57ei", "W\u00ade\u200bi", "W=65i"):
        for blank in ("  ", "\u00a0", " " * 90, "\\n"):
            assert scan("a.txt", f"{rows}{wei}{blank}Lindqvist\n{rows}".encode(), patterns).hits, (wei, blank)
    assert not scan("a.txt", f"{rows}Lindqvist  Wei, Mara  Lindqvist\n".encode(), patterns).hits


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.json"])
@pytest.mark.parametrize("border", [1, 2])
def test_a_value_over_lines_is_found_where_a_block_ends(
    monkeypatch: pytest.MonkeyPatch, name: str, border: int
) -> None:
    monkeypatch.setattr(dispatch, "BLOCK", 4096)
    lines = ["to " + MAIL[:8], MAIL[8:16], MAIL[16:] + " of"]
    start = b'{"a": 1}\n' if name == "a.json" else b"id,name\n"
    for wrapped, red in (("\n".join(lines), True), ("\n".join(lines[::-1]), False)):
        at = len("\n".join(lines[:border])) + 1  # of its lines, so many stand in the first block
        filled = start + (b"0,0\n" * 2000)[: 4096 - len(start) - at - 1] + b"\n"
        assert bool(scan(name, filled + wrapped.encode() + b"\n" + b"0,0\n" * 2000, PATTERNS).hits) is red
