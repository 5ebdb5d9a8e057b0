"""Bare folders: what the verifier says of the other people's rows does not hang on the persons' rows."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow import orc

from executors.engine.version_profiles import SPARK_3_5, installed_profile
from pii_tracer.lake.formats.plain_files.data_file import StoredFile
from pii_tracer.lake.formats.plain_files.rows import rows_of_file
from pii_tracer.model.datasets import (
    FieldAccess,
    Format,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import ScanError
from pii_tracer.verify.formats.plain_files.avro_rows import columns, rows
from pii_tracer.verify.row_checks import Verifier, compare
from tests.scan.support import PERSON_SCHEMA
from tests.scan.support import avro as packed_avro
from tests.sparksession import SparkEstate
from tests.verify.conftest import a_copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = KeySet(name="cust", origin="cust", weak=False, values=(("s", "K-30011"),))
MATCH = Match(terms=(MatchTerm(column="cust", key_set="cust", type="string"),))
INNER = Match(terms=(MatchTerm(column="who", access=(FieldAccess(name="cust"),), key_set="cust", type="string"),))

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "who", "type": {"type": "record", "name": "p", "fields": [{"name": "cust", "type": "string"}]}},
        {"name": "friend", "type": ["null", "p"]},
        {"name": "n", "type": ["null", "long"]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "due", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "any", "type": ["null", "long", "string", {"type": "array", "items": "int"}]},
        {"name": "raw", "type": "bytes"},
        {"name": "more", "type": {"type": "map", "values": "double"}},
        {"name": "tags", "type": {"type": "array", "items": {"type": "enum", "name": "e", "symbols": ["A", "B"]}}},
    ],
}


def a_record(cust: str, **changes: Any) -> dict[str, Any]:
    friend = {"cust": "K-1"}
    plain = {"friend": friend, "n": 7, "day": date(2026, 1, 2), "due": Decimal("12.50"), "any": [1, 2], "raw": b"\0x"}
    return {"who": {"cust": cust}, **plain, "more": {"a": 1.5}, "tags": ["A"], **changes}


def avro(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        fastavro.writer(stream, SCHEMA, records)
    return path


def test_avro_records_are_rows_with_types_that_hang_on_the_schema_only(tmp_path: Path) -> None:
    path = avro(tmp_path / "a.avro", a_record("K-30012"), a_record("K-30013", n=None, friend=None, any="x"))
    names = tuple(f["name"] for f in SCHEMA["fields"])
    assert columns(SCHEMA).simpleString() == (
        "struct<who:struct<cust:string>,friend:struct<cust:string>,n:bigint,day:string,due:string,any:string,"
        "raw:binary,more:map<string,double>,tags:array<string>>"
    )
    assert list(rows((str(path), ("east",), names))) == [
        (("K-30012",), ("K-1",), 7, "2026-01-02", "12.50", "[1, 2]", bytearray(b"\0x"), {"a": 1.5}, ["A"], "east"),
        (("K-30013",), None, None, "2026-01-02", "12.50", "x", bytearray(b"\0x"), {"a": 1.5}, ["A"], "east"),
    ]


def test_avro_is_read_in_the_codec_that_spark_writes(tmp_path: Path) -> None:
    """Snappy, unless it is told otherwise."""
    path, people = tmp_path / "a.avro", [{"phone": "030 5550111", "id": 7}, {"phone": None, "id": 8}]
    path.write_bytes(packed_avro(PERSON_SCHEMA, people, codec="snappy"))
    assert list(rows((str(path), (), ("phone", "id")))) == [("030 5550111", 7), (None, 8)]
    stored = StoredFile(path, Format.AVRO, None)
    assert rows_of_file(stored, ["phone", "id"]).to_pylist() == people


def test_an_avro_type_inside_itself_is_refused() -> None:
    link = {"type": "record", "name": "l", "fields": [{"name": "next", "type": ["null", "l"]}]}
    with pytest.raises(ScanError, match="contains itself"):
        columns(link)


@pytest.fixture
def verifier(spark: SparkSession) -> Verifier:
    return Verifier(spark, [KEYS])


@pytest.mark.spark
@pytest.mark.slow
def test_an_avro_folder_is_counted_before_and_after(spark_estate: SparkEstate, verifier: Verifier) -> None:
    folder = spark_estate.folder("bare/avro")
    avro(folder / "city=A" / "a.avro", a_record("K-30011"), a_record("K-30012", n=None))
    avro(folder / "city=B" / "b.avro", a_record("K-300110"))
    copy = a_copy(Format.AVRO, folder, match=INNER)
    assert verifier.rows(copy).rows_left == 1
    before = verifier.baseline(copy)
    assert [(s.rows_total, s.rows_person) for s in before.states] == [(3, 1)]
    avro(folder / "city=A" / "a.avro", a_record("K-30012", n=None))
    assert verifier.rows(copy).rows_left == 0
    assert compare(before, verifier.baseline(copy)).equal
    avro(folder / "city=A" / "a.avro", a_record("K-30012", n=8))
    assert not compare(before, verifier.baseline(copy)).equal


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("kind", [Format.AVRO, Format.CSV, Format.JSON])
def test_a_folder_that_may_not_be_listed_is_no_folder_without_the_person(
    spark_estate: SparkEstate, verifier: Verifier, kind: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, listed = spark_estate.folder(f"bare/denied_{kind.value}"), os.scandir
    for city, cust in (("A", "K-30012"), ("B", "K-30011")):
        path = folder / f"city={city}" / f"a.{kind.value}"
        avro(path, a_record(cust))
        if kind is not Format.AVRO:
            path.write_text(f"cust\n{cust}\n" if kind is Format.CSV else json.dumps({"cust": cust}))

    def denied(path: Any) -> Any:
        if Path(os.fsdecode(path)).name == "city=B":
            raise PermissionError(errno.EACCES, "Permission denied", os.fsdecode(path))
        return listed(path)

    copy = a_copy(kind, folder, match=INNER if kind is Format.AVRO else MATCH)
    assert verifier.rows(copy).rows_left == 1
    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(ScanError, match="cannot be listed: Permission denied"):
        verifier.rows(copy)


@pytest.mark.spark
@pytest.mark.slow
def test_a_csv_cell_may_hold_line_ends(spark_estate: SparkEstate, verifier: Verifier) -> None:
    """A person's cell with a line end, which was a second row, that nobody's key is in: another person's row."""
    folder = spark_estate.folder("bare/lines")
    folder.mkdir()
    file = folder / "a.csv"
    others = 'K-30012,"more\r\nline ""q"" é"\r\nK-30013, lead\r\n'
    file.write_text('cust,t\r\nK-30011,"a\nb"\r\n' + others, newline="")
    copy = a_copy(Format.CSV, folder, match=MATCH)
    before = verifier.baseline(copy)
    assert [(s.rows_total, s.rows_person) for s in before.states] == [(3, 1)]
    file.write_text("cust,t\r\n" + others, newline="")
    assert compare(before, verifier.baseline(copy)).equal
    assert verifier.rows(copy).rows_left == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("quote", ['""', '\\"'])
def test_a_csv_cell_may_end_in_a_backslash(spark_estate: SparkEstate, verifier: Verifier, quote: str) -> None:
    """Quotes are doubled, or escaped as Spark does it. Taken for the other way, a cell goes on into the next rows."""
    folder = spark_estate.folder(f"bare/escape{len(quote.strip(chr(34)))}")
    folder.mkdir()
    ends = "C:\\" if quote == '""' else "C:\\\\"
    rows = [f'{who},"{ends}","say {quote}a, b{quote}"\n' for who in ("K-30012", "K-30011", "K-30013")]
    (folder / "a.csv").write_text("cust,t,u\n" + "".join(rows))
    copy = a_copy(Format.CSV, folder, match=MATCH)
    before = verifier.baseline(copy)
    assert [(s.rows_total, s.rows_person) for s in before.states] == [(3, 1)]
    (folder / "a.csv").write_text("cust,t,u\n" + rows[0] + rows[2])
    assert compare(before, verifier.baseline(copy)).equal
    assert verifier.rows(copy).rows_left == 0


@pytest.mark.spark
@pytest.mark.parametrize("kind", [Format.CSV, Format.JSON])
def test_a_key_that_is_a_text_with_a_fraction_is_a_key(
    spark: SparkSession, spark_estate: SparkEstate, kind: Format
) -> None:
    """Pandas made texts of numbers before the source was written: her row counted as somebody else's, and as lost."""
    folder = spark_estate.folder(f"bare/fraction_{kind.value}")
    folder.mkdir(parents=True)
    keys = KeySet(name="cust", origin="cust", weak=False, values=(("s", "3001177.0"),))
    verifier, copy = Verifier(spark, [keys]), a_copy(kind, folder, match=MATCH)

    def write(*cells: str) -> None:
        lines = ["cust,n", *(f"{c},1" for c in cells)] if kind is Format.CSV else [f'{{"cust": "{c}"}}' for c in cells]
        (folder / f"a.{kind.value}").write_text("".join(f"{line}\n" for line in lines))

    write("3001177.0", "3001188.0", "3001177.00")
    before = verifier.baseline(copy)
    assert [(s.rows_total, s.rows_person) for s in before.states] == [(3, 2)]
    assert verifier.rows(copy).rows_left == 2
    write("3001188.0")
    assert compare(before, verifier.baseline(copy)).equal
    assert verifier.rows(copy).rows_left == 0


@pytest.mark.spark
@pytest.mark.slow
def test_csv_files_are_read_by_their_own_header(spark_estate: SparkEstate, verifier: Verifier) -> None:
    """The same columns in another order, a column that a folder has as well, and a name that Spark would take for a pattern."""
    folder = spark_estate.folder("bare/orders")
    texts = {
        "day=1/a.csv": ["cust,note,club\n", "K-30011,a,north\n", "K-30012,K-30011,south\n"],
        "day=1/b [2].csv": ["\ufeffclub,note,cust\n", "west,b,K-30011\n", "K-30011,c,K-30013\n"],
        "day=x/c.csv": ["note,DAY,cust\n", "d,7,K-30014\n", "e,7,K-30011\n"],
    }

    def write(kept: Callable[[str], bool]) -> None:
        for name, written in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("".join(filter(kept, written)), encoding="utf-8")

    write(lambda row: True)
    copy = a_copy(Format.CSV, folder, match=MATCH)
    before = verifier.baseline(copy)
    assert [(s.rows_total, s.rows_person) for s in before.states] == [(6, 3)]
    write(lambda row: row not in ("K-30011,a,north\n", "west,b,K-30011\n", "e,7,K-30011\n"))
    assert compare(before, verifier.baseline(copy)).equal
    assert verifier.rows(copy).rows_left == 0
    write(lambda row: "K-30011" not in row)  # two rows of others that name the person are gone as well
    assert compare(before, verifier.baseline(copy)).lost == 2


HERS = {"cust": "K-30011"}
OTHERS = [{"cust": "K-30012", "n": 2, "a": {"x": 3}, "e": None}, {"cust": "K-300110", "n": 2, "a": {"x": 3}}]


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.spark
@pytest.mark.slow
def test_what_only_the_person_had_in_json_does_not_change_other_people(
    spark_estate: SparkEstate, verifier: Verifier
) -> None:
    """A column, a field of a struct, and a number's type that come from the person's row alone, and go with it."""
    file = spark_estate.folder("bare/json") / "a.json"
    lines(file, HERS | {"note": "hers", "n": 1.5, "a": {"x": 1, "y": [2]}}, *OTHERS)
    copy = a_copy(Format.JSON, file.parent, match=MATCH)
    before = verifier.baseline(copy)
    assert verifier.rows(copy).rows_left == 1
    lines(file, *OTHERS)
    assert compare(before, verifier.baseline(copy, before)).equal
    assert verifier.rows(copy, before).rows_left == 0
    for changed in ({"n": 3}, {"n": None}, {"a": {"y": 3}}, {"a": {"x": 4}}, {"extra": 1}):
        lines(file, OTHERS[0] | changed, OTHERS[1])
        assert not compare(before, verifier.baseline(copy, before)).equal, changed


@pytest.mark.spark
def test_documents_of_json_are_read_beside_lines(spark_estate: SparkEstate, verifier: Verifier) -> None:
    """An array, an object over many lines, and lines, in partition folders."""
    folder = spark_estate.folder("bare/documents")

    def write(*mine: dict[str, Any], last: dict[str, Any] = OTHERS[1]) -> None:
        for name, text in (
            ("day=01/a.json", json.dumps([*mine, OTHERS[0]], indent=2)),
            ("day=02/b.json", json.dumps(mine[0] if mine else [], indent=1)),
            ("day=02/c.json", json.dumps(last) + "\n"),
        ):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    write(HERS | {"note": "hers", "a": {"y": 1}})
    copy = a_copy(Format.JSON, folder, match=MATCH)
    before = verifier.baseline(copy)
    assert [(s.rows_total, s.rows_person) for s in before.states] == [(4, 2)]
    write()
    assert compare(before, verifier.baseline(copy, before)).equal
    assert verifier.rows(copy, before).rows_left == 0
    write(last=OTHERS[1] | {"n": 3})
    assert not compare(before, verifier.baseline(copy, before)).equal
    for path in folder.rglob("*.json"):
        path.write_text(json.dumps([HERS, OTHERS[0]], indent=2))
    assert verifier.rows(copy, before).rows_left == 3, "and where all files are documents"


@pytest.mark.spark
@pytest.mark.slow
def test_a_json_folder_that_was_wholly_the_persons_ends_clean(spark_estate: SparkEstate, verifier: Verifier) -> None:
    """Without rows there is no column. Rows without the key column are another matter: a baseline must know of it."""
    file = lines(spark_estate.folder("bare/all") / "a.json", HERS, HERS)
    copy = a_copy(Format.JSON, file.parent, match=MATCH)
    before = verifier.baseline(copy)
    file.write_text("")
    assert compare(before, verifier.baseline(copy, before)).equal
    assert verifier.rows(copy, before).rows_left == 0
    assert [s.rows for s in verifier.rows(copy).states] == [0]
    assert [s.rows for s in verifier.rows(a_copy(Format.PARQUET, file.parent, match=MATCH)).states] == [0]
    lines(file, {"other": "K-30012"})
    assert [s.rows for s in verifier.rows(copy, before).states] == [0]
    assert not compare(before, verifier.baseline(copy, before)).equal
    with pytest.raises(ScanError, match="key column is missing"):
        verifier.rows(copy)
    for fmt in (Format.PARQUET, Format.JSON, Format.AVRO, Format.CSV):
        with pytest.raises(ScanError, match="cannot be read"):
            verifier.rows(a_copy(fmt, file.parent / "gone", match=MATCH), before)


@pytest.mark.spark
@pytest.mark.parametrize("kind", [Format.JSON, Format.CSV])
def test_texts_in_zstd_are_counted_or_the_error_says_what_spark_lacks(
    verifier: Verifier, tmp_path: Path, kind: Format
) -> None:
    """Packages of PySpark 3.5 have no native Hadoop, which alone knows the codec there; a cluster may. Spark 4 reads it."""
    text = b'{"cust": "K-30011"}\n' if kind is Format.JSON else b"cust,n\nK-30011,1\n"
    (tmp_path / f"a.{kind}.zst").write_bytes(zstandard.compress(text))
    if installed_profile() is not SPARK_3_5:
        (state,) = verifier.baseline(a_copy(kind, tmp_path, match=MATCH)).states
        assert (state.rows_total, state.rows_person) == (1, 1)
        return
    with pytest.raises(ScanError) as raised:
        verifier.baseline(a_copy(kind, tmp_path, match=MATCH))
    told = str(raised.value.what) + str(raised.value.todo)
    assert "native library" in told
    assert "as .gz" in told
    assert "K-30011" not in told


@pytest.mark.spark
@pytest.mark.parametrize("kind", [Format.PARQUET, Format.ORC])
def test_columns_that_some_files_have_are_compared(spark_estate: SparkEstate, verifier: Verifier, kind: Format) -> None:
    """Spark takes the columns of one file for those of the folder: what others' rows have more was not compared."""
    folder = spark_estate.folder(f"bare/uneven-{kind}")
    folder.mkdir()
    write = {Format.PARQUET: pq.write_table, Format.ORC: orc.write_table}[kind]

    def later(*notes: str | None) -> None:
        write(pa.table({"cust": ["K-30011", "K-30012"], "note": pa.array(notes, pa.string())}), folder / f"b.{kind}")

    write(pa.table({"cust": ["K-30011", "K-30013"]}), folder / f"a.{kind}")
    later("hers", "his")
    copy = a_copy(kind, folder, match=MATCH)
    before = verifier.baseline(copy)
    assert [(s.rows_total, s.rows_person) for s in before.states] == [(4, 2)]
    later(None, "his")
    assert compare(before, verifier.baseline(copy)).equal
    later(None, "altered")
    assert not compare(before, verifier.baseline(copy)).equal
