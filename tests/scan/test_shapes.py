"""Shapes of column chunks: no value of anybody is left out, and nothing that is found changes."""

from __future__ import annotations

import io
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_tracer.scan.folder_scan import _scan
from pii_tracer.scan.hits import FileScan, Form
from pii_tracer.scan.shapes import word_tables
from pii_tracer.scan.shapes.chunk_value_tables import Place, TextShape, read, whole_numbers, written
from pii_tracer.scan.shapes.file_shapes import FileShapes
from pii_tracer.scan.shapes.word_tables import LONG, SHORT, PatternDigits, PatternWords, fold
from pii_tracer.scan.value_forms import Patterns
from tests.scan import drawn_cells

NOBODY = drawn_cells.patterns_of(("nobody.at.all@elsewhere.example", False))
HER = ("ipsita.nayak@mail.example", False)


class Keeper:
    """Shapes in memory, as bytes."""

    def __init__(self) -> None:
        self.content: bytes | None = None
        self.left: frozenset[Place] = frozenset()
        self.decoded = 0

    def shapes_of(self, data: memoryview, digest: str, patterns: Patterns) -> FileShapes:
        return FileShapes(data, patterns.sought, lambda: read(self.content) if self.content is not None else None)

    def keep(self, shapes: FileShapes, scan: FileScan) -> None:
        if shapes.made:
            self.content = written(shapes.made)
        self.left, self.decoded = shapes.left, shapes.decoded


def file_of(table: pa.Table, **how: Any) -> memoryview:
    out = io.BytesIO()
    pq.write_table(table, out, **how)
    return memoryview(out.getvalue())


def scanned(data: memoryview, patterns: Patterns, keeper: Keeper | None = None) -> FileScan:
    return _scan("t.parquet", "t.parquet", data, patterns, keeper)


def same_with_shapes(data: memoryview, *sought: Patterns) -> Keeper:
    """Each search finds the same with shapes that a search for somebody else wrote down."""
    keeper = Keeper()
    scanned(data, NOBODY, keeper)
    assert not keeper.left
    for patterns in sought:
        assert scanned(data, patterns, keeper) == scanned(data, patterns)
    return keeper


def names_left(data: memoryview, keeper: Keeper) -> list[str]:
    meta = pq.ParquetFile(pa.BufferReader(data)).metadata
    return [meta.row_group(group).column(index).path_in_schema for group, index in sorted(keeper.left)]


def test_a_column_that_cannot_hold_her_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    many = range(1_000)
    table = pa.table(
        {
            "mail": [f"someone{n}@mail.example" for n in many],
            "amount": [n + 0.5 for n in many],
            "at": pa.array(many, pa.timestamp("us")),
            "day": [date.fromordinal(700_000 + n) for n in many],
            "paid": [Decimal(n) / 4 for n in many],
            "is_open": [n % 2 == 0 for n in many],
            "who": [HER[0] if n == 500 else f"w{n}" for n in many],
        }
    )
    data, keeper = file_of(table), Keeper()
    scanned(data, NOBODY, keeper)
    read_columns: list[str] = []
    batches = pq.ParquetFile.iter_batches

    def noted(self: Any, size: int, groups: Any, columns: list[str], **how: Any) -> Any:
        read_columns.extend(columns)
        return batches(self, size, groups, columns, **how)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    found = scanned(data, drawn_cells.patterns_of(HER), keeper)
    assert {hit.column for hit in found.hits} == {"who", None}
    assert read_columns == ["who"]
    assert names_left(data, keeper) == ["mail", "amount", "at", "day", "paid", "is_open"]
    assert keeper.decoded == 1


def test_a_number_in_a_dictionary_page_is_found_behind_a_shape() -> None:
    """Dictionary pages are looked at whatever the rows hold: an instant's number there counts, in the rows it does not."""
    table = pa.table({"at": pa.array([8_841_302, 5, 5, 5, 5], pa.timestamp("us")), "x": [1, 2, 3, 4, 5]})
    data = file_of(table, write_statistics=False)
    her = drawn_cells.patterns_of(("8841302", True))
    keeper = same_with_shapes(data, her)
    assert [hit.where for hit in scanned(data, her, keeper).hits] == ["dictionary page of numbers"]
    assert names_left(data, keeper) == ["x"]


def test_bytes_and_nested_numbers_always_count_as_possible() -> None:
    """Cells of bytes may be compressed, and a column of several leaves is read whole."""
    table = pa.table(
        {
            "blob": pa.array([b"nothing"] * 9, pa.binary()),
            "fixed": pa.array([b"sixteen bytes..."] * 9, pa.binary(16)),
            "list": pa.array([[1, 2]] * 9, pa.list_(pa.int64())),
            "map": pa.array([[("a", 1)]] * 9, pa.map_(pa.string(), pa.int64())),
        }
    )
    data = file_of(table)
    keeper = same_with_shapes(data, drawn_cells.patterns_of(HER))
    assert not keeper.left


def test_files_within_files_have_no_shapes() -> None:
    import gzip

    inner = file_of(pa.table({"mail": [HER[0]]}))
    keeper = Keeper()
    assert scanned(memoryview(gzip.compress(inner)), drawn_cells.patterns_of(HER), keeper).hits
    assert keeper.content is None


PEOPLE = (
    HER,
    ("8841302", True),
    ("+91 98450 12345", False),
    ("José O'Neil", False),
    ("0f8fad5b-d9cb-469f-a165-70867728950e", False),
    ("P-55102", False),
    ("4711", True),
    ("Rao", False),
)


@pytest.mark.parametrize(
    ("value", "written_as"),
    [
        ("+91 98450 12345", "call +91-98450-12345 back"),
        ("+91 98450 12345", "(919) 845.012345"),
        ("7340219981", "no. 7,340,219,981"),
        ("919845012345", "phone=%2B91%2098450%2012345"),
        (HER[0], "ip\u200bsita.na\u00adyak@ma\u2060il.exa\ufeffmple"),
        (HER[0], "".join(f"{sign}\u200c" for sign in HER[0])),
        (HER[0], HER[0].replace("a", "\\u0061")),
        (HER[0], "".join(f"&#{ord(sign):05d};" for sign in HER[0])),
        ("P-55102", "P\u200d-\u200d5\u200d5\u200d1\u200d0\u200d2"),
    ],
)
@pytest.mark.parametrize("coded", [True, False], ids=["dictionary", "plain"])
def test_a_value_in_pieces_of_which_no_pattern_stands_in_the_text(value: str, written_as: str, coded: bool) -> None:
    """Found by what is between its signs, or left out there: no word of it needs to be in a table."""
    cells = [f"nothing at all {n}" for n in range(400)]
    cells[200] = written_as
    data = file_of(pa.table({"note": cells, "n": list(range(400))}), use_dictionary=coded, write_statistics=False)
    her = drawn_cells.patterns_of((value, False))
    assert scanned(data, her).hits
    assert "note" not in names_left(data, same_with_shapes(data, her))


def fits(patterns: Patterns, *pieces: bytes) -> bool:
    text = TextShape(1 << 12)
    for piece in pieces:
        text.add(piece)
    return patterns.sought.fits(text.shape())


@pytest.mark.parametrize("person", PEOPLE, ids=lambda person: person[0])
def test_every_pattern_of_a_search_fits_where_it_stands(person: tuple[str, bool]) -> None:
    """Whatever form it is called, wherever it lies, in the midst of others' cells."""
    patterns = drawn_cells.patterns_of(person)
    assert patterns.sought.patterns or patterns.has_tiny
    for number, pattern in enumerate(patterns.sought.patterns):
        assert fits(patterns, b"other cell 17", bytes(number % 4) + pattern + b"\0\0\0", b"and another")
    assert patterns.has_tiny or len(person[0]) < 5 or not fits(patterns, b"other cell 17", b"and another")


@pytest.mark.parametrize("value", [HER[0], "José O'Neil", "P-5510212345"])
def test_a_value_over_ends_of_lines_fits(value: str) -> None:
    """Broken at each place, in the ways that the search knows, at the beginning of a cell, in its midst, at its end."""
    patterns, found = drawn_cells.patterns_of((value, False)), 0
    for end in ("\n", "\r\n", "=\n", "\\\n", "\n > "):
        for n in range(1, len(value)):
            for before, behind in (("", ""), ("so ", " on")):
                text = (before + value[:n] + end + value[n:] + behind).encode()
                if not patterns.quiet(text):
                    found += 1
                    assert fits(patterns, b"other cell", text)
    assert found > 4 * len(value)


NAMES = ("Müller Berg", "Zoë Berg", "Öz Ng-Åse", "O'Neil Rao", "José O'Neil", "Ipsita Nayak", "Siobhán Ferro")


@pytest.mark.parametrize("value", [*(person[0] for person in PEOPLE if len(person[0]) > 4), *NAMES, "nån@mail.example"])
def test_a_value_fits_wherever_the_search_finds_it_behind_an_escape(value: str) -> None:
    """Every way of writing a sign down, of one sign, of all of a kind, of two ways: an escape may stand in any word."""
    patterns, found = drawn_cells.patterns_of((value, False)), 0
    others = sorted({c for c in value if not (c.isascii() and c.isalnum())})
    kinds = [*({sign} for sign in sorted(set(value))), set(others), {c for c in value if not c.isascii()}]
    for way in drawn_cells.ESCAPES:
        for kind in kinds:
            text = "so " + "".join(way(c) if c in kind else c for c in value) + ", on"
            if any(True for _ in patterns.occurrences(text.encode(), lines=True)):
                found += 1
                assert fits(patterns, b"other cell", text.encode()), text
    assert found > len(drawn_cells.ESCAPES)


@settings(deadline=None, max_examples=300)
@given(draw=st.randoms(use_true_random=False))
def test_a_drawn_value_fits_wherever_the_search_finds_it(draw: Random) -> None:
    person = drawn_cells.person(draw) if draw.random() < 0.5 else (draw.choice(NAMES), False)
    patterns = drawn_cells.patterns_of(person)
    for _ in range(4):
        text = drawn_cells.noise(draw) + drawn_cells.escaped(draw, drawn_cells.text(draw, person[0]))
        if any(True for _ in patterns.occurrences(text.encode(), lines=True)):
            assert fits(patterns, b"other cell", text.encode()), text


@pytest.mark.parametrize("value", [HER[0], "Ipsita Nayak"])
def test_escapes_beside_others_words_admit_nobody(value: str) -> None:
    """Addresses of the web, sums and entities stand in most texts: then all words of a value must be there, too."""
    patterns = drawn_cells.patterns_of((value, False))
    for text in ("a=1&b=2", "mail%20to=someone%40mail.example", "R&D caf=C3=A9", "C:\\temp", "caf&eacute;", "a[.]b"):
        assert not fits(patterns, b"other cell", text.encode()), text


@pytest.mark.parametrize("codec", ["snappy", "none"])
def test_all_forms_of_a_value_show_the_same_with_shapes(codec: str) -> None:
    """Each in a column of its own, in the midst of others' cells."""
    patterns = drawn_cells.patterns_of(HER)
    texts = [text for pattern in patterns.sought.patterns if (text := as_text(pattern)) is not None]
    cells = {f"c{n}": ["other", "x" * (n % 4) + text, "cell"] for n, text in enumerate(texts)}
    data = file_of(pa.table(cells), compression=codec, use_dictionary=codec == "none")
    same_with_shapes(data, patterns)
    assert {Form.TEXT, Form.URL, Form.HEX, Form.BASE64, Form.SHA256} < {
        hit.form for hit in scanned(data, patterns).hits
    }


def as_text(pattern: bytes) -> str | None:
    try:
        return pattern.decode()
    except UnicodeDecodeError:
        return None


def drawn_file(draw: Random, value: str, version: str) -> memoryview:
    """A Parquet file, written in one of many ways, with cells that may hold the value."""
    columns: dict[str, Any] = {}
    for n in range(draw.randrange(1, 4)):
        cells = [drawn_cells.text(draw, value) for _ in range(draw.randrange(1, 4))]
        columns[f"text{n}"] = pa.array(cells * 2)
        columns[f"list{n}"] = pa.array([[cell, None] for cell in cells] * 2)
        columns[f"struct{n}"] = pa.array([{"a": cell, "b": 1.5} for cell in cells] * 2)
    columns["bytes"] = pa.array([drawn_cells.packed(draw, value) for _ in range(3)])
    most = max(map(len, columns.values()))
    columns["number"] = drawn_cells.number(draw, value)
    table = pa.table(
        {name: column.take(pa.array([n % len(column) for n in range(most)])) for name, column in columns.items()}
    )
    plain = draw.random() < 0.5
    encoded = draw.choice(("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"))
    texts = {name: encoded for name, column in columns.items() if column.type == pa.string()}
    return file_of(
        table,
        compression=draw.choice(("none", "snappy", "zstd", "gzip")),
        use_dictionary=not plain,
        column_encoding=texts if plain else None,
        data_page_version=version,
        data_page_size=draw.choice((64, 1 << 20)),
        row_group_size=draw.choice((2, 1 << 20)),
        write_statistics=draw.random() < 0.5,
        write_page_index=draw.random() < 0.3,
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(draw=st.randoms(use_true_random=False), version=st.sampled_from(["1.0", "2.0"]))
def test_drawn_cells_show_the_same_with_shapes(draw: Random, version: str) -> None:
    person = drawn_cells.person(draw)
    data = drawn_file(draw, person[0], version)
    other = drawn_cells.person(draw)
    same_with_shapes(
        data, drawn_cells.patterns_of(person, other) if draw.random() < 0.5 else drawn_cells.patterns_of(person)
    )


@settings(deadline=None)
@given(
    data=st.binary(max_size=40) | st.text("0123456789", max_size=40).map(str.encode),
    block=st.sampled_from([1, 2, 1 << 16]),
    where=st.integers(0, 40),
    size=st.integers(1, 40),
)
def test_all_pieces_of_some_bytes_are_in_their_tables(data: bytes, block: int, where: int, size: int) -> None:
    """Whatever the piece, its length, its place and how the bytes are divided to be looked at."""
    piece = data[where : where + size]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_tables, "_BLOCK", block)
        text = TextShape(1)
        text.add(data)
    tables = text.shape().tables
    assert PatternWords(fold([piece]), SHORT).may_stand(tables[0]).all()
    assert PatternWords(fold([piece]), LONG).may_stand(tables[1]).all()
    assert PatternDigits([piece]).may_stand(tables[2]).all()


@settings(deadline=None)
@given(draw=st.randoms(use_true_random=False))
def test_whole_numbers_of_a_column_are_all_noted(draw: Random) -> None:
    array = drawn_cells.number(draw, drawn_cells.person(draw)[0])
    if not (pa.types.is_temporal(array.type)):
        found = whole_numbers(array)
        wanted = {int(v) for v in array.to_pylist() if v is not None and v == v and abs(v) <= 2**53 and v == int(v)}
        assert found is None or wanted <= set(found.tolist())
