"""What is copied, what is written again, and what is not copied although it lies between."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from executors.formats.plain_files.arrow_match import RowsError
from executors.formats.plain_files.parquet_surgery import assembly
from executors.formats.plain_files.parquet_surgery.layout import Layout
from executors.formats.plain_files.parquet_surgery.recipe import Recipe
from executors.formats.plain_files.parquet_surgery.rewriting import (
    Original,
    Persons,
    read_back,
    scratch_beside,
    write_again,
)
from pii_tracer.model.datasets import Format, Match, MatchTerm
from pii_tracer.model.plan import HeldColumn, Mask
from tests.executors.formats.plain_files.alone import drop_rows
from tests.executors.formats.plain_files.parquet_surgery.support import (
    KEYS,
    MATCH,
    PERSON,
    chunk,
    edited,
    erased,
    parquet,
    put,
    rows,
    table,
)

PERSONS = Persons(MATCH, KEYS, KEYS["mail"])
SPARK = Path(__file__).parent / "data" / "spark-3.5.parquet"
"""Written by Spark 3.5.9: five row groups, page indexes, a bloom filter of `mail`; no person is real."""


def layout(data: bytes) -> Layout:
    return Layout.of(memoryview(data))


def recipe_of(data: bytes) -> tuple[Recipe, bytes]:
    kept = erased(data)
    assert isinstance(kept.made, Recipe)
    assert kept.data is not None
    return kept.made, kept.data


def test_only_the_row_group_of_the_person_is_written_again() -> None:
    data = parquet(bloom_filter_options={"mail": {"ndv": 20}}, write_page_checksum=True)
    found, new = recipe_of(data)
    assert (found.copied, found.made) == ((0, 2, 3), (1,))
    old, written = layout(data), layout(new)
    assert found.size == len(new)
    for number in found.copied:
        for one, other in zip(old.groups[number].chunks, written.groups[number].chunks, strict=True):
            assert other.offset_index
            assert other.column_index
            assert data[one.data.start : one.data.stop] == new[other.data.start : other.data.stop]
            assert (one.bloom is None, other.bloom is None) == (one.meta[3] != old.groups[0].chunks[0].meta[3],) * 2
            if one.bloom is None or other.bloom is None:
                continue
            assert data[one.bloom.start : one.bloom.stop] == new[other.bloom.start : other.bloom.stop]
    assert rows(new) == [row for row in table().to_pylist() if row["mail"] != PERSON]
    meta = pq.ParquetFile(io.BytesIO(new), page_checksum_verification=True)
    assert meta.read().num_rows == 19


def test_a_row_group_of_which_nothing_is_left_is_dropped() -> None:
    data = parquet(row_group_size=1)
    found, new = recipe_of(data)
    assert (len(found.copied), found.made) == (19, ())
    assert pq.ParquetFile(io.BytesIO(new)).num_row_groups == 19


def test_bytes_that_nothing_names_are_not_copied() -> None:
    data = edited(parquet(), lambda footer: None, junk=PERSON.encode() * 3)
    found, new = recipe_of(data)
    assert found.copied == (0, 2, 3)
    assert PERSON.encode() not in new


def test_a_place_outside_of_the_pages_is_named_no_more() -> None:
    """Old writers put a copy of a chunk's metadata behind it, with its bounds; that copy is not taken along."""
    data = edited(parquet(), lambda footer: put(chunk(footer, 2), 2, len(parquet()) - 40))
    _, new = recipe_of(data)
    assert [group.chunks[0].fields[2][1] for group in layout(new).groups] == [0, 0, 0, 0]


@pytest.mark.parametrize("index", [True, False])
def test_row_groups_with_a_value_beside_the_rows_are_written_again(index: bool) -> None:
    """Another's row quotes her: as a bound, and in an index, it names her."""
    data = table().to_pydict()
    data["note"][17] = f"as {PERSON} said"
    found, new = recipe_of(parquet(pa.table(data), write_page_index=index))
    assert (found.copied, found.made) == ((0, 2), (1, 3))
    assert rows(new)[16]["note"] == f"as {PERSON} said"


def test_entries_of_dictionaries_that_no_row_uses_are_not_copied() -> None:
    """Arrow writes all entries of a column of the type dictionary into each row group (hazard F3b)."""
    names = pa.array([f"name {n}" for n in range(20)]).dictionary_encode()
    data = parquet(table().append_column("name", names))
    assert data.count(b"name 5") > 1
    kept = erased(data)
    assert kept.data is not None
    assert b"name 5" not in kept.data
    # of a writer that nobody knows, numbers in dictionaries are not looked at
    unknown = edited(parquet(), lambda footer: put(footer, 6, b"somebody's writer"))
    assert not isinstance(erased(unknown).made, Recipe)
    texts = table().drop_columns(["n"])
    unknown = edited(parquet(texts), lambda footer: put(footer, 6, b"somebody's writer"))
    assert recipe_of(unknown)[0].copied == (0, 2, 3)


def test_a_file_of_spark() -> None:
    data = SPARK.read_bytes()
    match = Match(terms=(MatchTerm(column="uid", key_set="uid", type="bigint"),))
    gone = {"uid": frozenset({"800", "801"})}
    kept = drop_rows(data, Format.PARQUET, match, gone, frozenset())
    assert isinstance(kept.made, Recipe)
    assert (kept.made.copied, kept.made.made) == ((0, 2, 3, 4), (1,))
    assert kept.data is not None
    assert rows(kept.data) == [row for row in rows(data) if row["uid"] not in (800, 801)]
    old, new = layout(data), layout(kept.data)
    assert {number: new.footer[number] for number in (1, 2, 5, 6)} == {n: old.footer[n] for n in (1, 2, 5, 6)}
    assert [group.fields[7][1] for group in new.groups] == [0, 1, 2, 3, 4]
    assert all(group.chunks[1].bloom and group.chunks[1].offset_index for group in new.groups)


def test_the_row_groups_of_spark_are_numbered_anew() -> None:
    data = SPARK.read_bytes()
    match = Match(terms=(MatchTerm(column="uid", key_set="uid", type="bigint"),))
    gone = {"uid": frozenset(map(str, range(745)))}
    kept = drop_rows(data, Format.PARQUET, match, gone, frozenset())
    assert isinstance(kept.made, Recipe)
    assert (kept.made.copied, kept.made.made) == ((1, 2, 3, 4), ())
    assert kept.data is not None
    assert [group.fields[7][1] for group in layout(kept.data).groups] == [0, 1, 2, 3]
    assert rows(kept.data) == rows(data)[745:]


def test_a_hold_changes_only_row_groups_with_masked_rows(tmp_path: Path) -> None:
    path, new = tmp_path / "data.parquet", tmp_path / "new.parquet"
    path.write_bytes(parquet())
    mask = Mask(columns=("note",), held=tuple(HeldColumn(name=n, holds=("h",), until=None) for n in ("mail", "n")))
    persons = Persons(MATCH, KEYS, KEYS["mail"], mask)
    with Original.at(path) as old, new.open("w+b") as sink:
        made = write_again(old, sink, lambda: scratch_beside(path), persons)
        assert isinstance(made, Recipe)
        assert (made.copied, made.made) == ((0, 2, 3), (1,))
        with Original.at(new) as written:
            read_back(old, written, made, persons)
    assert rows(new.read_bytes())[5] == {"mail": PERSON, "n": 5, "note": None}
    assert set(tmp_path.iterdir()) == {path, new}


@pytest.mark.parametrize("system", [True, False])
def test_the_system_copies_where_it_can(system: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    real = assembly.os.copy_file_range

    def copy(*args: int) -> int:
        if not system or copied:
            raise OSError(18, "another file system")
        copied.append(real(*args))
        return copied[-1]

    monkeypatch.setattr(assembly.os, "copy_file_range", copy)
    path, new = tmp_path / "data.parquet", tmp_path / "new.parquet"
    path.write_bytes(parquet())
    with Original.at(path) as old, new.open("w+b") as sink:
        write_again(old, sink, lambda: scratch_beside(path), PERSONS)
    assert bool(copied) == system
    assert new.read_bytes() == recipe_of(parquet())[1]


def test_a_byte_of_a_copied_row_group_that_differs_is_found() -> None:
    data = parquet(bloom_filter_options={"mail": {"ndv": 20}})
    made, new = recipe_of(data)
    last = layout(new).groups[3].chunks[2]
    bloom, index = layout(new).groups[3].chunks[0].bloom, last.column_index
    assert bloom
    assert index
    read_back(Original.in_memory(data), Original.in_memory(new), made, PERSONS)
    for place in (last.data.stop - 1, bloom.stop - 1, index.stop - 2):
        other = new[:place] + bytes([new[place] ^ 1]) + new[place + 1 :]
        with pytest.raises(RowsError):
            read_back(Original.in_memory(data), Original.in_memory(other), made, PERSONS)


def test_a_footer_that_says_something_else_of_a_copied_row_group_is_found() -> None:
    data = parquet()
    made, new = recipe_of(data)
    edits = [
        lambda footer: put(footer, 3, 18),
        lambda footer: put(footer[4][1][1][3], 3, 4),
        lambda footer: put(footer, 6, b"another"),
        lambda footer: footer[4][1][1].pop(),
        lambda footer: put(chunk(footer, 3)[3][1], 6, 1),
    ]
    for edit in edits:
        with pytest.raises(RowsError):
            read_back(Original.in_memory(data), Original.in_memory(edited(new, edit)), made, PERSONS)
