"""Cells that are looked at together show what each shows that is searched by itself, by the slow way."""

from __future__ import annotations

import copy
import re
import string
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.decode.arrow import search_leaf
from pii_tracer.scan.decode.dispatch import _search_cell
from pii_tracer.scan.forms import (
    escape_free_text,
    escaped_letters,
    escaped_punctuation,
    invisible_characters,
    text_bytes_decoding,
    text_bytes_finding,
    values_in_pieces,
)
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import Hit
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.many_values import pattern_windows, search
from pii_tracer.scan.value_forms import Patterns
from tests.scan import drawn_cells

_SEEDS = st.integers(0, 2**32)
_BESIDE = (
    "x",
    "8",
    "7.",
    "100%",
    "R&",
    "\\",
    "C:\\u",
    "&#",
    "'",
    "'||",
    "=",
    "a=\n",
    "<b",
    "<b>",
    "\x1b[",
    "\xad",
    "+49 ",
    "é",
)
"""Cells that change what they stand before, or behind, if nothing is between them."""


def _persons(draw: Random) -> list[tuple[str, bool]]:
    """Some persons, of whom some have values that are parts of another's, or another's in another case."""
    people = [drawn_cells.person(draw) for _ in range(draw.randrange(1, 4))]
    value, weak = draw.choice(people)
    related = (value[1:], value[:-1], value + draw.choice("17x"), f"a.{value}", value.swapcase(), f"{value}.br")
    return people + [(one, weak and one.isdigit()) for one in draw.sample(related, draw.randrange(3)) if one.strip()]


def _patterns(people: list[tuple[str, bool]], *, many: bool) -> Patterns:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "MANY", 0 if many else 5_000)
        return drawn_cells.patterns_of(*people)


def _cell(draw: Random, people: list[tuple[str, bool]]) -> str | None:
    """Nothing, a whole value, or several of them in any form and with anything between them."""
    values = [value for value, _ in people]
    value = draw.choice(values)
    kind = draw.randrange(9)
    if kind == 0:
        return draw.choice((None, "", "Pune", "eJw" + value, "H4sI" + value, *_BESIDE))
    if kind == 1:
        return draw.choice(drawn_cells.SIGNS + "x7Z").join(draw.sample(values, draw.randrange(1, len(values) + 1)))
    whole = (value, value.upper(), f" {value}  ", f"{value}.0", f"0{value}")
    return whole[kind - 2] if kind < 7 else drawn_cells.text(draw, value)


def _forgetful(patterns: Patterns) -> Patterns:
    """The same patterns, which do not know what was found in a text before."""
    same = copy.copy(patterns)
    same._known = {}
    return same


@contextmanager
def _slowly() -> Iterator[None]:
    """Nothing is left out of the search of a text, and no texts are looked at together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(escape_free_text, "are_all", lambda text: False)
        patch.setattr(search.Writings, "expect", lambda self, texts: None)
        patch.setattr(text_bytes_decoding, "LEAST_HEX", 0)
        yield


def _collector(patterns: Patterns, *, files: bool) -> Collector:
    made = Collector(patterns)
    made.search_file = partial(_search_cell, 0) if files else None
    return made


def _seen(collector: Collector) -> tuple[tuple[Hit, ...], tuple[Hit, ...], tuple[str, ...], dict[str, object]]:
    return collector.hits(), collector.left.hits(), collector.reasons, dict(collector.longer)


@settings(max_examples=25, deadline=None)
@example(seed=1, many=True, files=True)
@example(seed=21169, many=False, files=False)
@example(seed=13324107, many=False, files=False)  # a padded key over a line, with blanks alone in the last line
@given(seed=_SEEDS, many=st.booleans(), files=st.booleans())
def test_a_column_shows_what_its_cells_show(seed: int, many: bool, files: bool) -> None:
    draw = Random(seed)
    people = _persons(draw)
    names = [f"key{n}" for n in range(len(people))]
    columns = KeyColumns({"c": draw.sample(names, draw.randrange(len(names) + 1))})
    columns = columns.leaving_out({"c": draw.sample(names, draw.randrange(2))})
    cells = [_cell(draw, people) for _ in range(draw.randrange(1, 9))]
    cells += draw.choices(cells, k=draw.randrange(4))
    patterns = _patterns(people, many=many).comparing(columns)
    for label in ("c", "d"):
        fast = _collector(patterns, files=files)
        search_leaf(pa.array(cells, pa.string()), fast, "data", label)
        slow = _collector(_forgetful(patterns), files=files)
        with _slowly():
            for cell in cells:
                if cell is not None:
                    slow.string(cell, "data", label)
        assert _seen(fast) == _seen(slow), cells


@settings(max_examples=25, deadline=None)
@given(_SEEDS, st.lists(st.text("0123456789abcxyzXYZ@._-", max_size=50), max_size=6), st.sampled_from("._-@0x"))
def test_texts_of_plain_signs_show_all_they_have(seed: int, beside: list[str], sign: str) -> None:
    draw = Random(seed)
    people = _persons(draw)
    patterns = _patterns(people, many=True)
    model = _forgetful(patterns)
    kept = [re.sub(r"[^\w@.-]|[^\x00-\x7f]", sign, drawn_cells.text(draw, value)) for value, _ in people]
    texts = [sign.join(draw.choices([*beside, *kept], k=draw.randrange(1, 4))).encode() for _ in range(6)]
    assert all(map(escape_free_text.are_all, texts))
    patterns.expect(texts)
    found = [list(patterns.occurrences(text, lines=True)) for text in texts]
    with _slowly():
        assert found == [list(model.occurrences(text, lines=True)) for text in texts]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("d3ade077-5881-0434-2ee1-cd9f3d452368", "d3ade077-5881-\n0434-2ee1-cd9f3d452368"),
        ("ada@mail.example", "ada%40mail.example"),
        ("ada@mail.example", "ad<b>a@mail.exam</b>ple"),
        ("ada@mail.example", "a\\u0064a@mail.example"),
        ("ada@mail.example", "a&#100;a@mail.example"),
        ("ada@mail.example", "a\xadda@mail.example"),
        ("49151234567", "49 151 234 567"),
        ("49151234567", "49%20151%20234%20567"),
        ("1512345678", "151.234.5678"),
        ("O'Neil Rao 17", "O''Neil Rao 17"),
    ],
)
@pytest.mark.parametrize("rows", [1, 300])
def test_no_cell_hides_what_the_next_one_holds(value: str, cell: str, rows: int) -> None:
    """Nor the one before it: a column is looked at as a whole first, and cells of one can be read together."""
    for beside in (*_BESIDE, value[0], value[-1]):
        patterns = drawn_cells.patterns_of((value, False))
        found, alone = _collector(patterns, files=False), _collector(patterns, files=False)
        search_leaf(pa.array([beside, cell, beside] + ["Pune"] * rows), found, "data", "c")
        alone.string(cell, "data", "c")
        assert found.hits() == alone.hits() != (), beside


def test_a_cell_with_a_writing_is_found_beside_cells_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of cells of which few hold an encoded value, and one where the border of two cells looks like one."""
    monkeypatch.setattr(search, "MANY", 0)
    value = "siobhan.rao@mail.example"
    keys = KeySet(name="one", origin="one", weak=False, values=(("s", value),))
    coded = value.encode().hex()
    cells = ["x" * n for n in range(40)] + [coded, coded[:9], coded[9:], value, value]
    fast = Collector(Patterns([keys]))
    search_leaf(pa.array(cells), fast, "data", "c")
    assert {(hit.form.value, hit.count) for hit in fast.hits()} == {("text", 2), ("hex", 1)}


def _searches(cells: list[str]) -> int:
    """How often windows are searched for in a column."""
    keys = KeySet(
        name="one", origin="one", weak=False, values=tuple(("s", f"asha{n}@mail.example") for n in range(200))
    )
    patterns, times = Patterns([keys]), 0
    find = pattern_windows.Windows.find

    def counted(self: pattern_windows.Windows, data: bytes) -> object:
        nonlocal times
        times += 1
        return find(self, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern_windows.Windows, "find", counted)
        collector = Collector(patterns)
        search_leaf(pa.array(cells), collector, "data", "c")
    assert sum(hit.count for hit in collector.hits()) == len(cells)
    return times


def test_windows_are_searched_for_once_a_column_and_not_once_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MANY", 0)
    few, many = ([f"asha{n}@mail.example" for n in range(count)] for count in (20, 200))
    assert _searches(few) == _searches(many)


def test_a_cell_that_is_a_value_is_searched_once_for_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where another's key is in it: there, the column decides. Nor where it is packed in another text."""
    values = (
        "asha.rao@mail.example",
        "rao@mail.example",
        "9f8e7d6c-1234-4bcd-8abc-0123456789ab",
        "O'Neil",
        "7340219981",
    )
    keys = KeySet(name="one", origin="one", weak=False, values=tuple(("s", v) for v in values), others=("O'Neil",))
    patterns = Patterns([keys])
    columns = patterns.comparing(KeyColumns({"id": ["one"]}))
    column = pa.array([*values, "Pune", f" {values[0]}", *values])
    searched: list[str] = []
    string_ = Collector.string

    def counted(self: Collector, value: str, where: str, column: str | None, **more: bool) -> None:
        searched.append(value)
        string_(self, value, where, column, **more)

    monkeypatch.setattr(Collector, "string", counted)
    for again, label, used in ((False, "mail", patterns), (True, "id", columns), (True, "mail", columns)):
        searched.clear()
        fast, slow = _collector(used, files=True), _collector(_forgetful(used), files=True)
        search_leaf(column, fast, "data", label)
        assert set(values[1:3] + values[4:]).isdisjoint(searched) is again
        assert searched.count(values[0]) == searched.count("O'Neil") == 2 + (not again)
        for cell in column.to_pylist():
            string_(slow, cell, "data", label)
        assert _seen(fast) == _seen(slow)


@given(st.lists(st.text("0123, ", min_size=33, max_size=39) | st.text("0xZ+/%", min_size=33, max_size=39), max_size=2))
def test_runs_are_as_long_as_they_must_be(pieces: list[str]) -> None:
    text = ".".join(pieces).encode()
    for parting, signs in (
        (text_bytes_finding._APART, string.ascii_letters + string.digits + r"+/\-_\\%"),
        (text_bytes_finding.apart_from(b"0123456789,- \t\r\n"), r"0-9,\- \t\r\n"),
    ):
        expected = [run.span() for run in re.finditer(rf"[{signs}]{{36,}}".encode(), text)]
        starts, ends = text_bytes_finding.runs(text, parting, None)
        assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == expected


def test_all_that_is_left_out_begins_with_another_sign() -> None:
    """No lead of an escape, a joint or an unseen sign consists of plain signs."""
    letters = (b"\\u0061", b"\\x61", b"%61", b"\\141", b"&#97;", b"&#x61;", b"%u0061", b"\\U00000061", b"\\u{61}")
    assert not any(map(escape_free_text.are_all, (*letters, *values_in_pieces._PARTS, *invisible_characters._ALL)))
    assert not any(map(escape_free_text.are_all, (*escaped_punctuation._BEGIN, b"\n", b"\r")))
    assert all(map(escaped_letters.stand_in, letters))
