"""Bare folders, what the walk meets besides tables, and copies by content: no Spark needed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import csv, orc

from pii_tracer.config.catalogs import Catalog, CatalogType, DeclaredTable
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.rows.current_rows import data_files, read_columns
from pii_tracer.model.datasets import Column, Format
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import below
from tests.lake.s3_lakehouse import estate_of

PEOPLE = pa.table({"uid": [1, 2, 3], "name": ["Asha", "Bo", "Chi"]})


def estate(*tables: DeclaredTable) -> Estate:
    catalogs = {"session": Catalog(type=CatalogType.DECLARED, tables=tables)}
    return estate_of().model_copy(update={"catalogs": catalogs})


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    path = tmp_path / "warehouse"
    path.mkdir()
    return path


def look(warehouse: Path, *tables: DeclaredTable) -> Inventory:
    return discover(estate(*tables), warehouse.parent)


def only(inventory: Inventory) -> TableState:
    assert inventory.gaps == ()
    (state,) = inventory.tables
    return state


def write(path: Path, table: pa.Table = PEOPLE, **options: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return path


def write_format(folder: Path, kind: Format) -> None:
    folder.mkdir()
    if kind is Format.PARQUET:
        pq.write_table(PEOPLE, folder / "a.parquet", compression="zstd")
    elif kind is Format.ORC:
        orc.write_table(PEOPLE, folder / "a.orc", compression="zstd")
    elif kind is Format.CSV:
        csv.write_csv(PEOPLE, folder / "a.csv")
    elif kind is Format.JSON:
        (folder / "a.jsonl").write_text("".join(f'{{"uid": {i}, "name": "{n}"}}\n' for i, n in people()))
    else:
        schema = {
            "type": "record",
            "name": "row",
            "fields": [{"name": "uid", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
        }
        with (folder / "a.avro").open("wb") as stream:
            fastavro.writer(stream, schema, PEOPLE.to_pylist(), codec="deflate")


def people() -> list[tuple[int, str]]:
    return [(row["uid"], row["name"]) for row in PEOPLE.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "codec", "rows"),
    [
        (Format.PARQUET, "zstd", 3),
        (Format.ORC, "zstd", 3),
        (Format.AVRO, "deflate", None),
        (Format.CSV, None, None),
        (Format.JSON, None, None),
    ],
)
def test_every_format(warehouse: Path, kind: Format, codec: str | None, rows: int | None) -> None:
    write_format(warehouse / "people", kind)
    state = only(look(warehouse))
    assert (state.format, state.codec, state.rows, state.files) == (kind, codec, rows, 1)
    uid = "string" if kind is Format.CSV else "bigint"
    assert state.columns == (Column(name="uid", type=uid), Column(name="name", type="string"))
    read = read_columns(state, ["name", "uid"], EstatePaths(estate(), warehouse.parent))
    assert [(int(r["uid"]), r["name"]) for r in read.to_pylist()] == people()


def test_format_by_first_bytes_where_the_name_says_nothing(warehouse: Path) -> None:
    write(warehouse / "people" / "part-0")
    assert only(look(warehouse)).format is Format.PARQUET


def test_partitions_are_columns(warehouse: Path) -> None:
    for part in ("city=A%2FB/n=1", "city=C/n=2", "city=__HIVE_DEFAULT_PARTITION__/n=3"):
        write(warehouse / "people" / part / "a.parquet", PEOPLE.slice(0, 1))
    state = only(look(warehouse))
    assert state.location == str(warehouse / "people")
    assert state.partition_columns == ("city", "n")
    assert state.columns[-2:] == (Column(name="city", type="string"), Column(name="n", type="int"))
    rows = read_columns(state, ["city", "uid"], EstatePaths(estate(), warehouse.parent)).to_pylist()
    assert sorted(str(r["city"]) for r in rows) == ["A/B", "C", "None"]
    assert read_columns(state, ["n"], EstatePaths(estate(), warehouse.parent)).num_rows == 3


def test_first_line_that_is_no_header_never_becomes_column_names(warehouse: Path) -> None:
    folder = warehouse / "people"
    folder.mkdir()
    (folder / "a.csv").write_text("17,Asha Rao,9812345678\n18,Bo,9812345679\n", encoding="utf-8")
    inventory = look(warehouse)
    assert "9812345678" not in inventory.model_dump_json()
    state = only(inventory)
    assert [c.name for c in state.columns] == ["_c0", "_c1", "_c2"]
    assert read_columns(state, ["_c0"], EstatePaths(estate(), warehouse.parent)).column(0).to_pylist() == ["17", "18"]


def test_digest_follows_content_only(warehouse: Path) -> None:
    file = write(warehouse / "people" / "a.parquet")
    before = only(look(warehouse)).snapshot
    os.utime(file, (1, 1))
    assert only(look(warehouse)).snapshot == before
    write(file, PEOPLE.slice(1))
    assert only(look(warehouse)).snapshot != before


def test_damaged_file_is_a_gap_that_names_it(warehouse: Path) -> None:
    write(warehouse / "people" / "a.parquet").write_bytes(b"PAR1 and nothing else")
    inventory = look(warehouse)
    assert inventory.tables == ()
    assert [(g.kind, g.evidence) for g in inventory.gaps] == [("unreadable", str(warehouse / "people" / "a.parquet"))]


def test_subfolders_that_are_no_partitions_are_places_of_their_own(warehouse: Path) -> None:
    write(warehouse / "people" / "a.parquet")
    write(warehouse / "people" / "old" / "b.parquet", PEOPLE.slice(1))
    inventory = look(warehouse)
    assert [s.location for s in inventory.tables] == [str(warehouse / "people"), str(warehouse / "people" / "old")]
    assert len(data_files(inventory.tables[0], EstatePaths(estate(), warehouse))) == inventory.tables[0].files == 1


def test_columns_that_not_every_file_has_are_told(warehouse: Path) -> None:
    write(warehouse / "t" / "2024.parquet", PEOPLE.rename_columns(["customer", "name"]))
    write(warehouse / "t" / "2025.parquet")
    assert only(look(warehouse)).uneven == (("customer",), ("uid",))
    (warehouse / "t" / "2024.parquet").unlink()
    assert only(look(warehouse)).uneven == ()


def test_two_formats_in_one_folder_are_a_gap(warehouse: Path) -> None:
    write(warehouse / "people" / "a.parquet")
    write(warehouse / "people" / "b.parquet", PEOPLE.slice(1))
    csv.write_csv(PEOPLE, warehouse / "people" / "c.csv")
    inventory = look(warehouse)
    assert inventory.tables[0].format is Format.PARQUET
    assert [g.kind for g in inventory.gaps] == ["mixed_formats"]


def test_of_two_formats_the_declared_one_counts(warehouse: Path) -> None:
    """However many files of others lie there: the table's rows, and the persons in them, are in its own format."""
    write(warehouse / "people" / "z.parquet")
    for name in ("a.csv", "b.csv"):
        csv.write_csv(PEOPLE.slice(1), warehouse / "people" / name)
    inventory = look(warehouse, DeclaredTable(name="crm.people", format=Format.PARQUET, location="warehouse/people"))
    assert inventory.tables[0].format is Format.PARQUET
    assert [(g.kind, Path(g.evidence).name) for g in inventory.gaps] == [("mixed_formats", "a.csv")]


def test_hidden_and_unknown_data_is_told_and_markers_are_not(warehouse: Path) -> None:
    write(warehouse / "people" / "a.parquet")
    write(warehouse / "_backup" / "deep" / "a.parquet", PEOPLE.slice(1))
    (warehouse / "people" / "_SUCCESS").touch()
    (warehouse / "people" / ".a.parquet.crc").write_bytes(b"crc")
    (warehouse / "dump.xlsx").write_bytes(b"PK who knows")
    gaps = {(g.kind, Path(g.evidence).name) for g in look(warehouse).gaps}
    assert gaps == {("hidden_data", "_backup"), ("unknown_file", "dump.xlsx")}


def test_links_out_are_told_and_links_inside_are_not_counted_twice(warehouse: Path) -> None:
    write(warehouse / "people" / "a.parquet")
    write(warehouse.parent / "private" / "a.parquet")
    (warehouse / "alias").symlink_to(warehouse / "people")
    (warehouse / "leak").symlink_to(warehouse.parent / "private")
    inventory = look(warehouse)
    assert [s.location for s in inventory.tables] == [str(warehouse / "people")]
    assert [(g.kind, Path(g.evidence).name) for g in inventory.gaps] == [("outside_link", "leak")]


def test_declared_tables_that_are_not_as_declared(warehouse: Path) -> None:
    write(warehouse / "people" / "a.parquet")
    write(warehouse / "staff" / "a.parquet", PEOPLE.slice(1))
    inventory = look(
        warehouse,
        DeclaredTable(name="a.people", format=Format.PARQUET, location="warehouse/people"),
        DeclaredTable(name="a.staff", format=DELTA, location="warehouse/staff"),
        DeclaredTable(name="a.gone", format=DELTA, location="warehouse/gone"),
        DeclaredTable(name="a.far", format=DELTA, location="../far"),
    )
    assert [s.table for s in inventory.tables] == ["a.people", "a.staff"]
    assert {(g.kind, Path(g.evidence).name) for g in inventory.gaps} == {
        ("format_mismatch", "staff"),
        ("missing_table", "gone"),
        ("outside_roots", "far"),
    }


def test_missing_root_is_a_gap(tmp_path: Path) -> None:
    assert [g.kind for g in discover(estate(), tmp_path).gaps] == ["missing_root"]


class TestCopies:
    """A copied folder survives the erasure of its original, and no lineage event ever told of it."""

    def test_a_copy_under_other_names_is_known_by_its_bytes(self, warehouse: Path) -> None:
        original = write(warehouse / "people" / "a.parquet")
        copy = warehouse / "dev" / "scratch" / "renamed.parquet"
        copy.parent.mkdir(parents=True)
        shutil.copy(original, copy)
        write(copy.with_name("own.parquet"), PEOPLE.slice(2))
        original.unlink()  # the naive way
        assert 1 in pq.read_table(copy).column("uid").to_pylist()
        shutil.copy(copy, original)
        states = {Path(s.location).name: s for s in look(warehouse).tables}
        assert states["scratch"].same_files_as == str(warehouse / "people")
        assert states["people"].same_files_as is None

    def test_the_registered_table_is_the_original(self, warehouse: Path) -> None:
        write(warehouse / "a" / "a.parquet")
        shutil.copytree(warehouse / "a", warehouse / "z")
        table = DeclaredTable(name="db.z", format=Format.PARQUET, location="warehouse/z")
        assert [s.same_files_as for s in look(warehouse, table).tables] == [str(warehouse / "z"), None]

    def test_the_older_folder_is_the_original(self, warehouse: Path) -> None:
        newer = write(warehouse / "a" / "a.parquet")
        older = write(warehouse / "b" / "a.parquet")
        os.utime(older, (1, 1))
        assert newer.read_bytes() == older.read_bytes()
        assert [s.same_files_as for s in look(warehouse).tables] == [str(warehouse / "b"), None]

    def test_equal_sizes_and_empty_files_prove_nothing(self, warehouse: Path) -> None:
        for name, table in (("a", PEOPLE.slice(0, 0)), ("b", PEOPLE.slice(0, 0))):
            write(warehouse / name / "empty.parquet", table)
        for name, text in (("a", "x,y\n1,2\n"), ("b", "x,y\n3,4\n")):
            (warehouse / f"{name}-csv").mkdir()
            (warehouse / f"{name}-csv" / "a.csv").write_text(text)
        assert [s.same_files_as for s in look(warehouse).tables] == [None] * 4


def test_reading_refuses_unknown_columns_and_places_outside(warehouse: Path, tmp_path: Path) -> None:
    write(warehouse / "people" / "a.parquet")
    state = only(look(warehouse))
    paths = EstatePaths(estate(), tmp_path)
    with pytest.raises(EstateError, match="no column salary"):
        read_columns(state, ["salary"], paths)
    shutil.move(warehouse / "people" / "a.parquet", tmp_path / "a.parquet")
    (warehouse / "people" / "a.parquet").symlink_to(tmp_path / "a.parquet")
    with pytest.raises(EstateError, match="outside"):
        read_columns(state, ["uid"], paths)


def test_errors_of_readers_do_not_quote_rows(warehouse: Path) -> None:
    (warehouse / "people").mkdir()
    file = warehouse / "people" / "a.csv"
    file.write_text("uid,name\n1,Asha\n", encoding="utf-8")
    state = only(look(warehouse))
    file.write_text("uid,name\n1,Asha,9812345678\n", encoding="utf-8")
    with pytest.raises(EstateError) as error:
        read_columns(state, ["uid"], EstatePaths(estate(), warehouse.parent))
    assert "9812345678" not in str(error.value)


def test_a_place_that_is_declared_under_two_names_is_known_by_both(warehouse: Path) -> None:
    write(warehouse / "people" / "1.parquet")
    (warehouse / "also").symlink_to(warehouse / "people")
    one = DeclaredTable(name="prod.people", format=Format.PARQUET, location="warehouse/people")
    two = DeclaredTable(name="old.people", format=Format.PARQUET, location="warehouse/also")
    state = only(look(warehouse, one, two))
    aliases = EstatePaths(estate(one, two), warehouse.parent).aliases
    assert aliases["prod.people"] == aliases["old.people"] == state.dataset


def test_data_files_beside_a_table_are_no_folder_to_be_written_again(warehouse: Path) -> None:
    """A file somebody left in the folder of all tables: to rewrite `warehouse` would break the table in it."""
    pq.write_table(PEOPLE, warehouse / "left.parquet")
    write_deltalake(str(warehouse / "tables" / "t"), PEOPLE)
    found = look(warehouse)
    assert [s.location for s in found.tables] == [str(warehouse), str(warehouse / "tables" / "t")]
    assert [(g.kind, g.evidence) for g in found.gaps] == [("folder_around_tables", str(warehouse))]


@pytest.mark.parametrize(("folder", "inside"), [("/a", ["/a/b", "/a/b/c"]), ("/a/b", ["/a/b/c"]), ("/ab", [])])
def test_places_inside_a_folder(folder: str, inside: list[str]) -> None:
    assert list(below(folder, sorted(["/a", "/a-b/c", "/a/b", "/a/b/c", "/ab"]))) == inside


def test_one_more_file_like_most_changes_nothing_of_what_a_folder_of_several_tables_shows(warehouse: Path) -> None:
    for name in ("1", "2"):
        write(warehouse / f"t/{name}.parquet")
    write(warehouse / "t/other.parquet", pa.table({"n": [1]}))
    first = look(warehouse).gaps
    assert [gap.kind for gap in first] == ["mixed_columns"]
    write(warehouse / "t/3.parquet")
    assert look(warehouse).gaps == first
    write(warehouse / "t/4.parquet", pa.table({"m": [1]}))
    assert [gap.listed for gap in look(warehouse).gaps] != [gap.listed for gap in first]
