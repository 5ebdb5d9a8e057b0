"""A name of the estate file, and the column or field of a struct that it means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.plain_files.data_file import StoredFile, csv_header
from pii_tracer.lake.rows.current_rows import read_spots
from pii_tracer.lake.spark_types import spark_type
from pii_tracer.model.column_paths import find_spot, struct_fields
from pii_tracer.model.datasets import Column, Format
from pii_tracer.model.errors import ConfigError, EstateError
from tests.lake.s3_lakehouse import estate_of

CONTACT = (
    "struct<email:string,home:struct<phone:string,rate:decimal(10,2)>,tags:array<struct<x:string>>,"
    "more:map<string,string>,a.b:bigint>"
)
COLUMNS = (
    Column(name="contact", type=CONTACT),
    Column(name="contact.fax", type="string"),
    Column(name="id", type="bigint"),
    Column(name="seen", type="array<string>"),
)


@pytest.mark.parametrize(
    ("name", "names", "kind"),
    [
        ("id", ("id",), "bigint"),
        ("contact.email", ("contact", "email"), "string"),
        ("contact.home.phone", ("contact", "home", "phone"), "string"),
        ("contact.home.rate", ("contact", "home", "rate"), "decimal(10,2)"),
        ("contact.fax", ("contact.fax",), "string"),
        ("contact.a.b", ("contact", "a.b"), "bigint"),
        ("seen.element", ("seen", "element"), "string"),
        ("contact.tags.element.x", ("contact", "tags", "element", "x"), "string"),
        ("contact.more.key", ("contact", "more", "key"), "string"),
    ],
)
def test_a_name_leads_to_a_column_or_a_field(name: str, names: tuple[str, ...], kind: str) -> None:
    found = find_spot(name, COLUMNS, "prod.users")
    assert (found.names, found.type) == (names, kind)
    assert found.shared is (not {"element", "key"}.isdisjoint(names))


def test_a_column_of_the_whole_name_goes_before_a_field() -> None:
    both = (*COLUMNS, Column(name="contact.email", type="string"))
    assert find_spot("contact.email", both, "t").names == ("contact.email",)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nope", "has no column nope\n"),
        ("nope.x", "has no column nope.x\n"),
        ("contact.nope", "the struct `contact` has no field nope"),
        ("contact.home.nope", "the struct `home` has no field nope"),
        ("contact.email.x", "`email` is of type string"),
        ("contact.tags.x", "`tags` is a list, whose elements are named `element`"),
        ("contact.tags.element.y", "`tags` is a list, whose elements are named `element`"),
        ("contact.more.x", "`more` is a map, whose keys are named `key`, and whose values cannot be named"),
        ("contact.more.value", "`more` is a map, whose keys are named `key`, and whose values cannot be named"),
        ("contact.tags.element", "is a struct: no value"),
        ("contact", "is a struct: no value"),
        ("contact.home", "is a struct: no value"),
        ("seen", "is a list: no value"),
        ("contact.more", "is a map: no value"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_with_the_place_it_ends_at(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        find_spot(name, COLUMNS, "prod.users")
    assert "prod.users" in caught.value.what


def test_a_csv_file_with_a_name_twice_is_said_to_name_no_columns(tmp_path: Path) -> None:
    """Its columns are called by their numbers, so that a name which the file shows leads nowhere."""
    file = tmp_path / "a.csv"
    file.write_text("customer_id,city,customer_id\n1,Pune,2\n")
    names, _ = csv_header(StoredFile(file, Format.CSV, None))
    for told, said in ((names, True), ((*names, "x"), False)):
        with pytest.raises(ConfigError, match=r"lake\.csv_dup has no column customer_id") as caught:
            find_spot("customer_id", [Column(name=name, type="string") for name in told], "lake.csv_dup")
        assert ("their first line has a name twice or is no header" in caught.value.what) is said


def test_sql_quotes_every_name_on_the_way() -> None:
    column = Column(name="a`b", type="struct<c.d:string>")
    assert find_spot("a`b.c.d", [column], "t").sql == "`a``b`.`c.d`"


_NAMES = st.text("abcXYZ_ .09", min_size=1, max_size=5).map(str.strip).filter(bool)
_KINDS = st.recursive(
    st.sampled_from(["string", "long", "decimal(10,2)"]),
    lambda inner: st.lists(st.tuples(_NAMES, inner), min_size=1, max_size=3, unique_by=lambda f: f[0]).map(
        lambda fields: {"type": "struct", "fields": [{"name": n, "type": k} for n, k in fields]}
    ),
    max_leaves=6,
)


@given(_KINDS)
def test_the_fields_of_a_written_type_are_those_it_was_written_from(kind: Any) -> None:
    text = spark_type(kind)
    if isinstance(kind, str):
        assert struct_fields(text) is None
    else:
        assert struct_fields(text) == tuple((f["name"], spark_type(f["type"])) for f in kind["fields"])


# --- reading

SCHEMA = pa.schema(
    [
        ("contact", pa.struct([("email", pa.string()), ("home", pa.struct([("no", pa.int64())]))])),
        ("contact.fax", pa.string()),
    ]
)
ROWS = [
    {"contact": {"email": "a@x.example", "home": {"no": 7}}, "contact.fax": "f1"},
    {"contact": {"email": None, "home": None}, "contact.fax": None},
    {"contact": None, "contact.fax": "f3"},
]
READ = {
    "contact.email": ["a@x.example", None, None],
    "contact.home.no": [7, None, None],
    "contact.fax": ["f1", None, "f3"],
}


def write(folder: Path, kind: str) -> None:
    table = pa.Table.from_pylist(ROWS, SCHEMA)
    folder.mkdir(parents=True)
    if kind == "delta":
        write_deltalake(str(folder), table)
    elif kind == "parquet":
        pq.write_table(table, folder / "a.parquet")
    elif kind == "orc":
        orc.write_table(table, folder / "a.orc")
    elif kind == "json":
        import json

        (folder / "a.json").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        home = {"type": "record", "name": "home", "fields": [{"name": "no", "type": "long"}]}
        fields = [{"name": "email", "type": ["null", "string"]}, {"name": "home", "type": ["null", home]}]
        contact = {"type": "record", "name": "contact", "fields": fields}
        schema = {"type": "record", "name": "row", "fields": [{"name": "contact", "type": ["null", contact]}]}
        with (folder / "a.avro").open("wb") as stream:
            fastavro.writer(stream, schema, [{"contact": row["contact"]} for row in ROWS])


def spots_in(base: Path, names: list[str]) -> dict[str, list[Any]]:
    estate = estate_of()
    (state,) = discover(estate, base).tables
    return read_spots(state, {n: find_spot(n, state.columns, "t") for n in names}, EstatePaths(estate, base))


@pytest.mark.parametrize("kind", ["delta", "parquet", "orc", "json", "avro"])
def test_fields_are_read_from_every_format_that_has_them(tmp_path: Path, kind: str) -> None:
    """A field named like the column `contact.fax` stands beside it; Avro takes no dot in a name."""
    write(tmp_path / "warehouse" / "t", kind)
    names = [name for name in READ if kind != "avro" or name != "contact.fax"]
    assert spots_in(tmp_path, names) == {name: READ[name] for name in names}


def test_files_of_before_the_struct_and_of_before_the_field_have_nothing_there(tmp_path: Path) -> None:
    write(tmp_path / "warehouse" / "t", "parquet")
    older = pa.table({"contact": pa.array([{"email": "b@x.example"}])})
    pq.write_table(older, tmp_path / "warehouse" / "t" / "b.parquet")
    pq.write_table(pa.table({"contact.fax": ["f5"]}), tmp_path / "warehouse" / "t" / "c.parquet")
    found = spots_in(tmp_path, list(READ))
    assert found["contact.email"] == ["a@x.example", None, None, "b@x.example", None]
    assert found["contact.home.no"] == [7, None, None, None, None]
    assert found["contact.fax"] == ["f1", None, "f3", None, "f5"]


def test_a_file_with_another_kind_of_column_there_is_an_error_without_values(tmp_path: Path) -> None:
    write(tmp_path / "warehouse" / "t", "parquet")
    pq.write_table(pa.table({"contact": ["secret@x.example"]}), tmp_path / "warehouse" / "t" / "b.parquet")
    with pytest.raises(EstateError, match="cannot be read") as caught:
        spots_in(tmp_path, ["contact.email"])
    assert "secret" not in str(caught.value)
