"""Searches that compare by columns take nothing from the scan ledger that columns could have shown."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import Format, KeyPart, KeySet, Match, MatchTerm
from pii_tracer.model.hive_text.layout import Serde, TextColumn, TextLayout, TextTable
from pii_tracer.model.hive_text.text_reading_rules import TextPlaces
from pii_tracer.model.keys_as_text import joined
from pii_tracer.scan.folder_scan import FileLook, scan_bytes
from pii_tracer.scan.key_boundaries import KeyColumns
from pii_tracer.scan.rows.composite_keys import RowKeys
from pii_tracer.scan.search_workers import place_in_store
from pii_tracer.scan.value_forms import Patterns
from tests.scan.test_scan_ledger import HER, World, patterns_of, world

__all__ = ["world"]

CELLS = st.text("ab1@.- \"';é", max_size=12)
DIGITS = st.text("0123456789", min_size=3, max_size=12)
TAKING = {
    "key columns": KeyColumns({"key": {"email"}}),
    "no keys": KeyColumns().leaving_out({"key": {"email"}}),
    "both": KeyColumns({"key": {"email"}}).leaving_out({"note": {"email"}}),
}


def as_csv(*cells: str) -> bytes:
    return ("key,note\n" + ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)).encode()


def as_json(*cells: str) -> bytes:
    return json.dumps(dict(zip(("key", "note"), cells, strict=True))).encode()


def as_parquet(*cells: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(zip(("key", "note"), ([cell] for cell in cells), strict=True))), sink)
    return sink.getvalue()


@pytest.mark.parametrize(("name", "write"), [("t.csv", as_csv), ("t.json", as_json), ("t.parquet", as_parquet)])
@pytest.mark.parametrize("columns", TAKING)
@settings(max_examples=20)
@given(value=CELLS.filter(lambda v: len(v.strip()) >= 3) | DIGITS, before=CELLS, behind=CELLS, other=CELLS)
def test_what_no_search_finds_without_columns_none_finds_with_those_that_leave_out(
    name: str, write: Callable[..., bytes], columns: str, value: str, before: str, behind: str, other: str
) -> None:
    """The rule by which a clean entry is taken for a search that compares by columns."""
    weak = value.isdigit() and len(value) < 8
    patterns = Patterns([KeySet(name="email", origin="people.email", weak=weak, values=(("s", value),))])
    comparing = patterns.comparing(TAKING[columns]).leaving_out(TAKING[columns].not_keys)
    assert TAKING[columns].only_leave_out
    for cells in ((before + value + behind, other), (other, before + value + behind), (value, other), (other, value)):
        data = write(*cells)
        if not scan_bytes(name, data, patterns).hits:
            assert not scan_bytes(name, data, comparing).hits


def test_rows_are_compared_where_a_search_without_them_found_nothing(world: World) -> None:
    """A key of several columns stands in no bytes, so that only a search of the rows finds the person."""
    both = KeySet(name="both", origin="p", weak=False, columns=("id", "no"), values=(("s", joined(["7", "55"])),))
    patterns = Patterns([*patterns_of(HER).key_sets, both])
    for name in ("a.csv", "b.csv", "c.csv"):
        world.write(name, "id,no\n7,55\n" if name == "c.csv" else "id,no\n7,1\n9,55\n")
    (world.root / "c.txt").unlink()
    assert not world.scan(patterns)[0].with_person
    term = MatchTerm(column="id", type="string", key_set="both", beside=(KeyPart(column="no", type="string"),))
    keys = KeyColumns(rows=RowKeys.of(Match(terms=(term,)), Format.CSV))
    for _ in range(2):
        found, _ = world.scan(patterns.comparing(keys))
        assert [file.path for file in found.with_person] == ["c.csv"]
    json_rows = KeyColumns(rows=RowKeys.of(Match(terms=(term,)), Format.JSON))
    assert world.scan(patterns.comparing(json_rows))[0].unread, "the format of the rows is part of the search"
    assert not world.scan(patterns)[0].with_person


def test_columns_of_text_are_part_of_where_a_file_is_known(tmp_path: Path) -> None:
    """A catalog's word for how a file is read shows values that nobody finds without it."""
    thing = ("f", tmp_path / "f")
    layout = TextLayout(serde=Serde.DELIMITED, delimiter=",")
    named = (TextTable(columns=(TextColumn(name=name, type="string"),), layout=layout) for name in ("a", "b"))
    texts = [None, *named]
    assert len(
        {FileLook(tmp_path, texts=TextPlaces.of_table(str(tmp_path), text)).place(thing) for text in texts}
    ) == len(texts)
    whole = [text and text.of(Path()) for text in texts]
    assert len({place_in_store("s3://b/", "f", text) for text in whole}) == len(whole)


def test_texts_near_a_folder_are_those_around_and_below_it() -> None:
    """Names that a sorted list has between a folder and what lies in it are neither."""
    text = TextTable(columns=(), layout=TextLayout(serde=Serde.DELIMITED, delimiter=","))
    places = ["s3://b", "s3://b/a", "s3://b/a-", "s3://b/a/x", "s3://b/a/x/y", "s3://b/a0", "s3://b/ab", "s3://c/a"]
    near = TextPlaces(tables=dict.fromkeys(places, text), unknown=dict.fromkeys(places, "why")).near("s3://b/a/")
    assert sorted(near.tables) == sorted(near.unknown) == ["s3://b", "s3://b/a", "s3://b/a/x", "s3://b/a/x/y"]
    assert near.untold("s3://b/a/x") == ("s3://b/a/x: why", "s3://b/a/x/y: why")
    assert TextPlaces(unknown={"s3://b": "why"}).untold("s3://b/a/x") == ("s3://b: why",)


def test_files_of_several_folders_are_read_by_the_table_of_each(tmp_path: Path) -> None:
    """One folder is another's link, and files are asked for in any order."""
    for name in "ab":
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("b")
    tables = {
        (tmp_path / name).resolve().as_posix(): TextTable(
            columns=(), layout=TextLayout(serde=Serde.DELIMITED, delimiter=sign)
        )
        for name, sign in (("a", "|"), ("b", ";"))
    }
    texts = TextPlaces(tables=tables)
    found = [texts.of_path(tmp_path / folder / "x.csv") for folder in ("a", "b", "a", "link", "b")]
    assert [one and one.layout.delimiter for one in found] == ["|", ";", "|", ";", ";"]
