"""Folders whose files have a key as different types: what readers see alike is erased, all else is blocked by name."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from pii_tracer.lake.formats.plain_files.differing_schemas import kind_of_both, ways_apart
from pii_tracer.lake.spark_types import avro_type
from tests.app.planning.test_others_rows import planned
from tests.cli.small import declared, request

KEY = 55102
WHOLE = pa.array([KEY, 8])
DAY = date(2120, 11, 13)


def estate(base: Path, format_: str) -> Path:
    for name in ("people", "visits"):
        (base / "lake" / name).mkdir(parents=True)
    pq.write_table(pa.table({"uid": WHOLE, "city": ["Pune", "Goa"]}), base / "lake" / "people" / "a.parquet")
    tables = declared("lake", {"s.people": "parquet", "s.visits": format_})
    (base / "pii-tracer.yaml").write_text(tables + "  - {name: user, source: s.people, key: uid}\n")
    (base / "jobs.sql").write_text("INSERT INTO s.visits (uid, n) SELECT uid, city AS n FROM s.people;\n")
    (base / "request.yaml").write_text(request("user", str(KEY)))
    (base / "policy.yaml").write_text("version: 1\n")
    return base


def visits(base: Path, format_: str, *files: pa.Array) -> dict[str, Any]:
    """A plan for a folder of files with these keys."""
    folder = estate(base, format_) / "lake" / "visits"
    for number, cells in enumerate(files):
        rows = pa.table({"uid": cells, "n": ["x", "y"]})
        if format_ == "orc":
            orc.write_table(rows, folder / f"{number}.orc")
        else:
            pq.write_table(rows, folder / f"{number}.parquet")
    return planned(base)


def blocked(plan: dict[str, Any]) -> bool:
    gaps = [gap["kind"] for gap in plan["gaps"]]
    copy = next(copy for copy in plan["copies"] if copy["table"] == "s.visits")
    assert (gaps == ["cannot_be_proved"]) is (copy["strategy"] == "blocked"), (gaps, copy["strategy"])
    return bool(gaps)


APART = {
    "double": pa.array([float(KEY), 8.5]),
    "float": pa.array([float(KEY), 8.5], pa.float32()),
    "decimal": pa.array([Decimal(KEY), Decimal(8)], pa.decimal128(10, 0)),
    "string": pa.array([str(KEY), "8"]),
    "date": pa.array([DAY, None]),
    "bool": pa.array([True, False]),
}


@pytest.mark.parametrize("format_", ["parquet", "orc"])
@pytest.mark.parametrize("other", sorted(APART))
def test_a_key_that_files_have_as_types_between_which_readers_differ_is_blocked(
    tmp_path: Path, format_: str, other: str
) -> None:
    assert blocked(visits(tmp_path / "1", format_, WHOLE, APART[other]))
    assert blocked(visits(tmp_path / "2", format_, APART[other], WHOLE))


@pytest.mark.parametrize(
    ("one", "other", "kind", "rows"),
    [
        (WHOLE.cast(pa.int32()), WHOLE, "bigint", 2),
        (pa.array(["x", str(KEY)]), pa.array([str(KEY), "y"], pa.large_string()), "string", 2),
        (pa.array(["x", str(KEY)]), pa.array([str(KEY), "y"]).dictionary_encode(), "string", 2),
        (pa.nulls(2), WHOLE, "bigint", 1),
    ],
)
def test_a_key_that_all_readers_see_alike_is_erased(
    tmp_path: Path, one: pa.Array, other: pa.Array, kind: str, rows: int
) -> None:
    plan = visits(tmp_path, "parquet", one, other)
    assert not blocked(plan)
    copy = next(copy for copy in plan["copies"] if copy["table"] == "s.visits")
    assert (copy["match"]["terms"][0]["type"], copy["found"]["rows"]) == (kind, rows)


@pytest.mark.parametrize(
    ("kinds", "apart"),
    [
        (["long", "double"], True),
        (["long", ["null", "string"]], True),
        ([["null", "long", "string"]], True),
        (["int", ["null", "long"]], False),
        ([["int", "long"]], False),
    ],
)
def test_avro_files_and_unions(tmp_path: Path, kinds: list[Any], apart: bool) -> None:
    folder = estate(tmp_path, "avro") / "lake" / "visits"
    for number, kind in enumerate(kinds):
        fields = [{"name": "uid", "type": kind}, {"name": "n", "type": "string"}]
        schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": fields})
        uid = str(KEY) if kind == ["null", "string"] else KEY
        with (folder / f"{number}.avro").open("wb") as stream:
            fastavro.writer(stream, schema, [{"uid": uid, "n": "x"}])
    assert blocked(planned(tmp_path)) is apart


def test_only_the_field_with_the_key_has_to_be_alike(tmp_path: Path) -> None:
    """A struct that got a field later is one to every reader."""
    small = pa.array([{"uid": KEY}, {"uid": 8}])
    large = pa.array([{"uid": KEY, "by": "x"}, {"uid": 9, "by": "y"}])
    text = pa.array([{"uid": str(KEY)}, {"uid": "9"}])
    for base, other in ((tmp_path / "1", large), (tmp_path / "2", text)):
        estate(base, "parquet")
        (base / "jobs.sql").write_text(
            "INSERT INTO s.visits (who) SELECT named_struct('uid', uid) AS who FROM s.people;\n"
        )
        for number, cells in enumerate((small, other)):
            pq.write_table(pa.table({"who": cells}), base / "lake" / "visits" / f"{number}.parquet")
    assert not blocked(planned(tmp_path / "1"))
    assert blocked(planned(tmp_path / "2"))


def structs(base: Path, key: str, *files: pa.Array) -> dict[str, Any]:
    """A plan for Parquet files with these structs, of which the job writes one field."""
    estate(base, "parquet")
    (base / "jobs.sql").write_text(
        f"INSERT INTO s.visits (who) SELECT named_struct('{key}', uid) AS who FROM s.people;\n"
    )
    for number, cells in enumerate(files):
        pq.write_table(pa.table({"who": cells}), base / "lake" / "visits" / f"{number}.parquet")
    return planned(base)


def struct(uid: pa.DataType | None, value: Any = None, **beside: tuple[pa.DataType, Any]) -> pa.Array:
    """Two structs with a key of this type, where they have one, and with other fields."""
    fields = ({} if uid is None else {"uid": (uid, value)}) | beside
    cell = {name: inner for name, (_, inner) in fields.items()}
    return pa.array([cell, cell], pa.struct([(name, kind) for name, (kind, _) in fields.items()]))


LONG, TEXT = pa.int64(), pa.string()
BESIDE = {
    "numbers": ((LONG, 2**60 + 1), (pa.float64(), 1.5)),
    "text": ((LONG, 3), (TEXT, "x")),
    "decimals": ((pa.decimal128(10, 2), Decimal("1.50")), (pa.decimal128(10, 3), Decimal("1.500"))),
    "days": ((pa.date32(), DAY), (TEXT, "2120")),
    "lists": ((pa.list_(LONG), [3]), (pa.list_(TEXT), ["x"])),
    "inside": ((pa.struct([("a", LONG)]), {"a": 3}), (pa.struct([("a", TEXT)]), {"a": "x"})),
}


@pytest.mark.parametrize("beside", sorted(BESIDE))
def test_fields_beside_the_key_may_be_unlike(tmp_path: Path, beside: str) -> None:
    one, other = BESIDE[beside]
    for base, cells in (("1", (one, other)), ("2", (other, one))):
        first, second = (struct(LONG, KEY, amount=cell) for cell in cells)
        plan = structs(tmp_path / base, "uid", first, second)
        assert not blocked(plan)
        copy = next(copy for copy in plan["copies"] if copy["table"] == "s.visits")
        assert copy["found"]["rows"] == 4


@pytest.mark.parametrize("other", [(pa.list_(LONG), [3]), (pa.struct([("a", LONG)]), {"a": 3}), (pa.binary(), b"\xff")])
def test_fields_of_which_no_text_can_be_made_block_the_key_beside_them(
    tmp_path: Path, other: tuple[pa.DataType, Any]
) -> None:
    assert blocked(structs(tmp_path, "uid", struct(LONG, KEY, amount=(LONG, 3)), struct(LONG, KEY, amount=other)))


@pytest.mark.parametrize(
    "files",
    [
        (struct(pa.null()), struct(LONG, KEY), struct(pa.float64(), float(KEY))),
        (struct(pa.null()), struct(pa.float64(), float(KEY)), struct(LONG, KEY)),
        (struct(pa.null()), struct(pa.binary(), str(KEY).encode()), struct(TEXT, str(KEY))),
        (pa.nulls(2), struct(pa.binary(), str(KEY).encode()), struct(TEXT, str(KEY))),
    ],
)
def test_a_first_file_without_values_hides_no_types_of_a_structs_key(
    tmp_path: Path, files: tuple[pa.Array, ...]
) -> None:
    assert blocked(structs(tmp_path / "1", "uid", *files))
    assert not blocked(structs(tmp_path / "2", "uid", files[0], files[1], files[1]))


def test_rows_of_a_file_whose_struct_lacks_the_key_are_nobody_knows_whose(tmp_path: Path) -> None:
    """As of a column that not every file has."""
    lacking, having = struct(None, n=(TEXT, "x")), struct(LONG, KEY, n=(TEXT, "x"))
    for number, files in enumerate(((lacking, having), (having, lacking))):
        plan = structs(tmp_path / str(number), "uid", *files)
        assert blocked(plan)
        assert "not every file of the folder has" in plan["gaps"][0]["reason"]


@pytest.mark.parametrize(
    ("kinds", "both", "ways"),
    [
        (["array<null>", "bigint"], "array<null>", {("c",)}),
        (["array<null>", "array<bigint>", "array<string>"], "array<bigint>", {("c",)}),
        (["array<null>", "array<int>", "array<bigint>"], "array<bigint>", set()),
        (["struct<a:array<null>>", "struct<a:array<int>>", "struct<a:array<date>>"], None, {("c", "a")}),
        (["struct<b:int>", "struct<a:int>", "struct<a:string>"], None, {("c", "a")}),
        (["struct<a:int>", "struct<a:int,A:int>"], "struct<a:int,A:int>", set()),
        (["struct<a:int>", "struct<A:bigint>"], "struct<a:bigint>", set()),
        (["struct<`a:b`:int,c:null>", "struct<c:int>"], "struct<`a:b`:int,c:int>", set()),
        (["decimal(10,0)", "decimal(12,0)", "decimal(11,0)"], "decimal(12,0)", set()),
        (["decimal(10,2)", "decimal(12,0)"], "decimal(10,2)", {("c",)}),
        (["map<string,int>", "map<string,bigint>"], "map<string,int>", {("c",)}),
    ],
)
def test_what_files_have_is_compared_with_all_before(kinds: list[str], both: str | None, ways: set[Any]) -> None:
    merged, found = kinds[0], set[tuple[str, ...]]()
    for kind in kinds[1:]:
        found |= set(ways_apart(("c",), merged, kind))
        merged = kind_of_both(merged, kind)
    assert found == ways
    assert both in (None, merged)


def test_decimals_of_one_scale_are_one_key(tmp_path: Path) -> None:
    cells = [pa.array([Decimal(KEY), Decimal(8)], pa.decimal128(wide, 0)) for wide in (10, 12)]
    for number, files in enumerate((cells, cells[::-1])):
        plan = visits(tmp_path / str(number), "parquet", *files)
        assert not blocked(plan)
        copy = next(copy for copy in plan["copies"] if copy["table"] == "s.visits")
        assert (copy["match"]["terms"][0]["type"], copy["found"]["rows"]) == ("decimal(12,0)", 2)


def test_a_union_of_null_alone_is_null() -> None:
    assert avro_type(["null"]) == "null"


def test_a_field_of_json_beside_the_key_may_be_unlike(tmp_path: Path) -> None:
    """A fraction in one line and text in another, as of columns beside the key."""
    for base, first, second in (("1", '"uid":55102,"a":1.5', '"uid":8,"a":"x"'), ("2", '"uid":1.5', '"uid":"55102"')):
        estate(tmp_path / base, "json")
        (tmp_path / base / "jobs.sql").write_text(
            "INSERT INTO s.visits (who) SELECT named_struct('uid', uid) AS who FROM s.people;\n"
        )
        lines = "".join(f'{{"who":{{{fields}}}}}\n' for fields in (first, second))
        (tmp_path / base / "lake" / "visits" / "a.json").write_text(lines)
    assert not blocked(planned(tmp_path / "1"))
    assert blocked(planned(tmp_path / "2"))
