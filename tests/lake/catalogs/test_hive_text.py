"""Delimited text and CSV of a real Hive metastore: tables by their columns' positions, and what stays a gap."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pii_tracer.cli.main import run as cli
from pii_tracer.config.catalogs import CatalogType
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.catalogs.hive.text_tables import layout_of, text_table
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.rows.current_rows import read_columns
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.hive_text.columns import UnreadText
from tests.hivesupport import ORC, TEXT, Hive
from tests.hivetextsupport import LAZY, OPEN_CSV
from tests.lake.catalogs.test_catalogs import GLUE, estate, glue, glue_table, kinds
from tests.lake.catalogs.test_hive import hive, lake, running

__all__ = ["glue", "hive", "running"]

COLUMNS = {"uid": "bigint", "name": "varchar(9)", "more": "map<string,string>"}


def text(folder: Path, content: bytes, name: str = "000000_0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder


def rows(hive: Hive, base: Path, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table that discovery found, in the order of its files."""
    paths = EstatePaths(lake(hive), base)
    (state,) = (one for one in discover(lake(hive), base).tables if one.table == table)
    assert state.format is Format.CSV
    return list(zip(*read_columns(state, [c.name for c in state.columns], paths).to_pydict().values(), strict=True))


def test_a_table_has_the_columns_and_signs_that_the_metastore_names(hive: Hive, tmp_path: Path) -> None:
    home = tmp_path / "warehouse"
    text(home / "plain", b"007\x01a\x01k\x03v\n\\N\x01\\N\x01\\N\n8\n9\x01b\x01\x01more\n")
    hive.table("prod.plain", home / "plain", TEXT, serde=LAZY, columns=COLUMNS)
    text(home / "bars", b"name|uid\n7|a\\|b|x\nTOTAL 1\n", "export.csv")
    bars = {"field.delim": "|", "escape.delim": "\\", "serialization.format": "|", "colelction.delim": ";"}
    skipped = {"skip.header.line.count": "1", "skip.footer.line.count": "1", "classification": "csv"}
    hive.table("prod.bars", home / "bars", TEXT, serde=LAZY, columns=COLUMNS, options=bars, parameters=skipped)
    text(home / "quoted", b'"7","a, b"\n8\n')
    hive.table("prod.quoted", home / "quoted", TEXT, serde=OPEN_CSV, options={"escapeChar": '"'})
    found = discover(lake(hive), tmp_path)
    assert found.gaps == ()
    assert {s.table for s in found.tables} == {"prod.plain", "prod.bars", "prod.quoted"}
    assert rows(hive, tmp_path, "prod.plain") == [("7", "a", "k\x03v"), (None,) * 3, ("8", None, None), ("9", "b", "")]
    assert rows(hive, tmp_path, "prod.bars") == [("7", "a|b", "x")]
    assert rows(hive, tmp_path, "prod.quoted") == [("7", "a, b"), ("8", None)]


REFUSED: list[tuple[str, str, Mapping[str, str], Mapping[str, str]]] = [
    ("unknown format", "org.apache.hadoop.hive.serde2.RegexSerDe", {"input.regex": "(.*)"}, {}),
    ("unknown format", "org.apache.hadoop.hive.contrib.serde2.MultiDelimitSerDe", {"field.delim": "||"}, {}),
    ("not a single ASCII character", LAZY, {"field.delim": "||"}, {}),
    ("not a single ASCII character", LAZY, {"field.delim": "é"}, {}),
    ("beyond ASCII", LAZY, {"field.delim": "-56"}, {}),
    ("lines do not end", LAZY, {"line.delim": "\x02"}, {}),
    ("escape character", LAZY, {"escape.delim": "^"}, {}),
    ("text for NULL", LAZY, {"field.delim": ",", "serialization.null.format": "a,b"}, {}),
    ("text for NULL", LAZY, {"escape.delim": "\\", "serialization.null.format": "\\"}, {}),
    ("does not read its encoding", LAZY, {"serialization.encoding": "Shift_JIS"}, {}),
    ("of the serializer", LAZY, {"some.day": "1"}, {}),
    ("two values", LAZY, {"field.delim": ","}, {"field.delim": ";"}),
    ("unknown property of the table", LAZY, {}, {"textinputformat.record.delimiter": "||"}),
    ("skipped lines", LAZY, {}, {"skip.header.line.count": "one"}),
    ("skipped lines", LAZY, {}, {"skip.footer.line.count": "101"}),
    ("its quote", OPEN_CSV, {"quoteChar": "'"}, {}),
    ("its quote", OPEN_CSV, {"escapeChar": "^"}, {}),
    ("not a single ASCII character", OPEN_CSV, {"separatorChar": "\\"}, {}),
    ("empty text", LAZY, {"field.delim": "", "serialization.format": "|"}, {}),
    ("of the serializer", LAZY, {"FIELD.DELIM": "|"}, {}),
    ("of the serializer", OPEN_CSV, {"separatorchar": ";"}, {}),
    ("of the serializer", OPEN_CSV, {"separatorChar": ",", "separatorchar": ";"}, {}),
    ("unknown property of the table", LAZY, {}, {"Skip.Header.Line.Count": "1"}),
    ("does not read", OPEN_CSV, {"serialization.encoding": "ISO-8859-1"}, {}),
]


@pytest.mark.parametrize(("told", "serde", "options", "parameters"), REFUSED)
def test_what_is_not_understood_exactly_is_a_gap(
    told: str, serde: str, options: Mapping[str, str], parameters: Mapping[str, str], hive: Hive, tmp_path: Path
) -> None:
    """And its files are searched, and never read as rows, whatever their names end in."""
    home = text(tmp_path / "warehouse" / "odd", b"uid,name\n1,a\n", "a.csv")
    hive.table("prod.odd", home, TEXT, serde=serde, options=options, parameters=dict(parameters))
    found = discover(lake(hive), tmp_path)
    assert found.tables == ()
    assert sorted(kinds(found)) == [("unknown_file", str(home / "a.csv")), ("unknown_table", "catalog lake.prod.odd")]
    assert told in next(gap.reason for gap in found.gaps if gap.kind == "unknown_table")


def partitions(hive: Hive, name: str, **changes: Any) -> None:
    """Change the second of two partitions."""
    database, _, table = name.partition(".")
    with hive.client() as client:
        one = client.get_partitions_by_names(database, table, ["day=2"])[0]
        changes.pop("change")(one)
        client.alter_partition(database, table, one)


def test_each_partition_is_read_by_its_own_properties(hive: Hive, tmp_path: Path) -> None:
    home = tmp_path / "warehouse" / "days"
    text(home / "day=1", b"1,a\n")
    text(home / "day=2", b"2;b\n")
    text(home / "day=3", b"3,c\n")  # no partition of the metastore yet: MSCK REPAIR TABLE would add it like the table
    places = {"1": home / "day=1", "2": home / "day=2"}
    hive.table("prod.days", home, TEXT, serde=LAZY, options={"field.delim": ","}, partitions=places)

    def semicolons(one: Any) -> None:
        one.sd.serdeInfo.parameters = {"field.delim": ";"}

    partitions(hive, "prod.days", change=semicolons)
    assert discover(lake(hive), tmp_path).gaps == ()
    assert rows(hive, tmp_path, "prod.days") == [("1", "a", "1"), ("2", "b", "2"), ("3", "c", "3")]

    def csv(one: Any) -> None:
        one.sd.serdeInfo.serializationLib = OPEN_CSV
        one.sd.serdeInfo.parameters = {"separatorChar": ";"}

    text(home / "day=2", b'"2";"b;c"\n')
    partitions(hive, "prod.days", change=csv)
    assert rows(hive, tmp_path, "prod.days") == [("1", "a", "1"), ("2", "b;c", "2"), ("3", "c", "3")]


def _orc(one: Any) -> None:
    one.sd.inputFormat = ORC


def _without_properties(one: Any) -> None:
    one.sd.serdeInfo.parameters = {}


def _other_columns(one: Any) -> None:
    one.sd.cols = list(reversed(one.sd.cols))


def _elsewhere(one: Any) -> None:
    one.sd.location = f"{one.sd.location}/inner"


def _with_a_word_more(one: Any) -> None:
    one.parameters = {"skip.header.line.count": "x"}


@pytest.mark.parametrize(
    ("told", "change"),
    [
        ("is not text", _orc),
        ("lacks properties", _without_properties),
        ("columns of a partition differ", _other_columns),
        ("does not have the form", _elsewhere),
        ("skipped lines", _with_a_word_more),
    ],
)
def test_a_partition_that_is_not_understood_makes_the_table_a_gap(
    told: str, change: Any, hive: Hive, tmp_path: Path
) -> None:
    home = tmp_path / "warehouse" / "days"
    places = {day: text(home / f"day={day}", b"1,a\n") for day in "12"}
    hive.table("prod.days", home, TEXT, serde=LAZY, options={"field.delim": ","}, partitions=places)
    partitions(hive, "prod.days", change=change)
    found = discover(lake(hive), tmp_path)
    assert found.tables == ()
    assert told in next(gap.reason for gap in found.gaps if gap.kind == "unknown_table")
    assert {kind for kind, _ in kinds(found)} == {"unknown_table", "unknown_file"}


def test_files_beside_the_rows_are_gaps(hive: Hive, tmp_path: Path) -> None:
    """Hive passes over folders that are no partitions."""
    home = text(tmp_path / "warehouse" / "plain", b"1\x01a\n")
    text(home / "inner", b"2\x01b\n")
    text(home, b"3\x01c\n", "b.lz4")
    hive.table("prod.plain", home, TEXT, serde=LAZY)
    found = discover(lake(hive), tmp_path)
    assert sorted(kinds(found)) == [
        ("unknown_file", str(home / "inner" / "000000_0")),
        ("unreadable", str(home / "b.lz4")),
    ]


def test_a_quote_that_readers_understand_differently_is_a_gap(hive: Hive, tmp_path: Path) -> None:
    home = text(tmp_path / "warehouse" / "quoted", b'"1","a\nb"\n')
    hive.table("prod.quoted", home, TEXT, serde=OPEN_CSV)
    found = discover(lake(hive), tmp_path)
    assert [(gap.kind, "not closed on its line" in gap.reason) for gap in found.gaps] == [("unreadable", True)]


@pytest.mark.parametrize("content", [b"1\x01a\n2\x01b\0\n", b"1\x01\xff\n2\x01\x02\n", bytes(range(160, 255)) + b"\n"])
def test_bytes_that_the_byte_search_does_not_read_are_a_gap(content: bytes, hive: Hive, tmp_path: Path) -> None:
    home = text(tmp_path / "warehouse" / "plain", content)
    hive.table("prod.plain", home, TEXT, serde=LAZY)
    found = discover(lake(hive), tmp_path)
    assert [(gap.kind, "not text" in gap.reason) for gap in found.gaps] == [("unreadable", True)]


def test_two_partitions_that_read_one_folder_differently_are_not_read() -> None:
    def table(sign: str, folder: str = "") -> Any:
        serde = SimpleNamespace(serializationLib=LAZY, parameters={"field.delim": sign})
        columns = [SimpleNamespace(name="uid", type="string")]
        storage = SimpleNamespace(serdeInfo=serde, inputFormat=TEXT, location=f"/w/{folder}", cols=columns)
        keys = [SimpleNamespace(name="day")]
        return SimpleNamespace(sd=storage, parameters={}, partitionKeys=keys, values=["1"])

    for signs in ([",", ";"], [";", ","], [";", "|"]):
        with pytest.raises(UnreadText, match="differently"):
            text_table(table(","), layout_of(table(",")), [("day=1", table(sign)) for sign in signs])
    twice = text_table(table(","), layout_of(table(",")), [("day=1", table(";")) for _ in range(2)])
    assert len(twice.others) == 1


def test_two_tables_that_read_the_same_files_differently_are_a_gap(hive: Hive, tmp_path: Path) -> None:
    home = text(tmp_path / "warehouse" / "plain", b"1,a\n")
    hive.table("prod.one", home, TEXT, serde=LAZY, options={"field.delim": ","})
    hive.table("prod.two", home, TEXT, serde=LAZY)
    found = discover(lake(hive), tmp_path)
    assert found.tables == ()
    assert sorted(kinds(found)) == [("registered_twice", str(home)), ("unknown_file", str(home / "000000_0"))]


def test_tables_of_glue(glue: Any, tmp_path: Path) -> None:
    """On a file system like those of a metastore; what lies in S3 is a place of its own."""
    glue.create_database(DatabaseInput={"Name": "prod"})
    home = tmp_path / "warehouse" / "leads"
    places = [text(home / "day=1", b"uid,name\n7,a\n"), text(home / "day=2", b"8;b\n")]
    columns = [{"Name": "uid", "Type": "bigint"}, {"Name": "name", "Type": "string"}]

    def storage(sign: str) -> dict[str, Any]:
        serde = {"SerializationLibrary": LAZY, "Parameters": {"field.delim": sign}}
        return {"InputFormat": TEXT, "Columns": columns, "SerdeInfo": serde}

    crawled = {"classification": "csv", "areColumnsQuoted": "false", "delimiter": ",", "skip.header.line.count": "1"}
    keys = {"PartitionKeys": [{"Name": "day", "Type": "string"}]}
    glue_table(glue, "leads", home, {"Parameters": crawled, "storage": storage(","), **keys})
    glue_table(glue, "far", "s3://bucket/far", {"Parameters": crawled, "storage": storage(",")})
    for place, sign in zip(places, ",;", strict=True):
        told = {"Values": [place.name[4:]], "StorageDescriptor": {"Location": str(place), **storage(sign)}}
        glue.create_partition(DatabaseName="prod", TableName="leads", PartitionInput=told)
    found = discover(estate(aws=GLUE), tmp_path)
    assert kinds(found) == [("remote_table", "s3://bucket/far")]
    (state,) = found.tables
    assert (state.table, state.format) == ("prod.leads", Format.CSV)
    read = read_columns(state, ["uid", "name", "day"], EstatePaths(estate(aws=GLUE), tmp_path))
    assert read.to_pydict() == {"uid": ["7"], "name": ["a"], "day": ["1"]}


def test_another_way_of_reading_is_another_state(hive: Hive, tmp_path: Path) -> None:
    """A run stops where the metastore says something else than when it was planned."""
    home = text(tmp_path / "warehouse" / "plain", b"1,a;b\n")
    hive.table("prod.plain", home, TEXT, serde=LAZY, options={"field.delim": ","})
    (before,) = discover(lake(hive), tmp_path).tables
    with hive.client() as client:
        table = client.get_table("prod", "plain")
        table.sd.serdeInfo.parameters = {"field.delim": ";"}
        client.alter_table("prod", "plain", table)
    (after,) = discover(lake(hive), tmp_path).tables
    assert before.snapshot != after.snapshot


def test_a_first_estate_file_names_the_catalog_alone(
    hive: Hive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`init --discover`: the table needs no declaration, and its columns are those of the catalog."""
    home = text(tmp_path / "warehouse" / "customers", b"71234501|asha@north.example\n71234502|chen@north.example\n")
    columns = {"customer_id": "bigint", "email": "string"}
    hive.table("prod.customers", home, TEXT, serde=LAZY, options={"field.delim": "|"}, columns=columns)
    base = tmp_path / "new"
    base.mkdir()
    words = ["init", str(base), "--state", str(base / "state"), "--discover", hive.uri]
    assert cli(words) == ExitCode.DONE, capsys.readouterr().err
    drafted = load_estate(base / "pii-tracer.yaml")
    assert CatalogType.HIVE in {catalog.type for catalog in drafted.catalogs.values()}
    assert [table for catalog in drafted.catalogs.values() for table in catalog.tables] == []
    assert [(s.source, s.key) for s in drafted.subjects] == [("prod.customers", "customer_id")]
    assert [i.column for s in drafted.subjects for i in s.identifiers] == ["email"]
    assert [s.table for s in discover(drafted, base).tables] == ["prod.customers"]
    assert "asha" not in (base / "pii-tracer.yaml").read_text()


def test_a_copied_table_has_the_files_of_the_other(hive: Hive, tmp_path: Path) -> None:
    """Known by the bytes of a file, whatever its name: the copy is planned like its original."""
    for name, content in (("first", b"1\x01a\n2\x01b\n"), ("second", b"1\x01a\n2\x01b\n"), ("third", b"3\x01c\n")):
        hive.table(f"prod.{name}", text(tmp_path / "warehouse" / name, content), TEXT, serde=LAZY)
    found = {state.table: state.same_files_as for state in discover(lake(hive), tmp_path).tables}
    assert found == {"prod.first": None, "prod.second": str(tmp_path / "warehouse" / "first"), "prod.third": None}
