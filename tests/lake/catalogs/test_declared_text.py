"""CSV folders that the estate file declares with options of Spark's reader, and what it refuses of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pii_tracer.config.catalogs import Catalog, CatalogType, DeclaredTable
from pii_tracer.config.estate_file import Estate, load_estate
from pii_tracer.config.hdfs import NameNode
from pii_tracer.config.stores.object_stores import DeclaredStore, StoredFiles
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.rows.current_rows import read_columns
from pii_tracer.model.datasets import Format
from pii_tracer.model.errors import ConfigError

COLUMNS = [{"name": "uid", "type": "bigint"}, {"name": "note"}]


def estate(base: Path, options: dict[str, Any], **more: Any) -> Estate:
    table = {"name": "prod.visits", "format": "csv", "location": "lake/visits", "options": options, "columns": COLUMNS}
    told = {
        "version": 1,
        "estate": "texts",
        "environment": "local",
        "roots": ["lake"],
        "lineage": {"sql": ["jobs.sql"]},
        "catalogs": {"spark_catalog": {"type": "declared", "tables": [table | more]}},
        "subjects": [{"name": "member", "source": "prod.people", "key": "uid"}],
    }
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(told))
    return load_estate(base / "pii-tracer.yaml")


def put(base: Path, name: str, content: bytes) -> None:
    path = base / "lake" / "visits" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def rows(found: Inventory, made: Estate, base: Path) -> list[tuple[Any, ...]]:
    (state,) = found.tables
    assert (state.table, state.format) == ("prod.visits", Format.CSV)
    return list(
        zip(
            *read_columns(state, [c.name for c in state.columns], EstatePaths(made, base)).to_pydict().values(),
            strict=True,
        )
    )


def test_a_folder_is_read_by_the_declared_options_and_columns(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", b"041;'it''s; so'\n# a remark\n\nNA;\n7\n")
    put(tmp_path, "part-0", b"8;b;beyond\n")
    made = estate(tmp_path, {"sep": ";", "quote": "'", "escape": "'", "comment": "#", "nullValue": "NA"})
    found = discover(made, tmp_path)
    assert found.gaps == ()
    assert rows(found, made, tmp_path) == [("41", "it's; so"), (None, None), ("7", None), ("8", "b")]


def test_a_header_is_no_row_and_has_to_name_the_columns(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", b'\nUID|"note"\n1|a\n')
    made = estate(tmp_path, {"delimiter": "|", "header": True})
    found = discover(made, tmp_path)
    assert rows(found, made, tmp_path) == [("1", "a")]
    put(tmp_path, "b.csv", b"note|uid\nb|2\n")
    (gap,) = discover(made, tmp_path).gaps
    assert (gap.kind, "names or order differ" in gap.reason) == ("unreadable", True)


def test_rows_go_on_over_ends_of_lines_in_quotes(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", b'uid;note\r\n1;"a\r\n\r\n;b"\r\n\r\n2;c\r\n')
    made = estate(tmp_path, {"sep": ";", "header": True, "multiLine": True})
    found = discover(made, tmp_path)
    assert rows(found, made, tmp_path) == [("1", "a\n\n;b"), ("2", "c")]
    put(tmp_path, "b.csv", b"uid;note\n2;c\r\n")
    (gap,) = discover(made, tmp_path).gaps
    assert (gap.kind, "different line endings" in gap.reason) == ("unreadable", True)


def test_partition_folders_are_columns(tmp_path: Path) -> None:
    put(tmp_path, "day=1/a.csv", b"1\tx\n")
    put(tmp_path, "day=2/a.csv", b"2\t\n")
    made = estate(tmp_path, {"sep": "\\t"}, partitions=["day"])
    assert rows(discover(made, tmp_path), made, tmp_path) == [("1", "x", "1"), ("2", None, "2")]


@pytest.mark.parametrize("content", [b'1;"a\n2;b"\n', b'1;"a"b\n', b'1;"a""b"\n', b"1;a\0\n"])
def test_lines_that_are_not_read_for_certain_are_a_gap(content: bytes, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", content)
    found = discover(estate(tmp_path, {"sep": ";"}), tmp_path)
    assert (found.tables, [gap.kind for gap in found.gaps]) == ((), ["unreadable"])


@pytest.mark.parametrize(
    ("told", "options", "more"),
    [
        ("`multiLine` is neither", {"multiLine": "yes"}, {}),
        ("lineSep", {"lineSep": "\n"}, {}),
        ("ignoreLeadingWhiteSpace", {"ignoreleadingwhitespace": "true"}, {}),
        ("mode", {"mode": "DROPMALFORMED"}, {}),
        ("sep", {"sep": "||"}, {}),
        ("sep", {"sep": "x"}, {}),
        ("`sep` has two values", {"sep": ";", "delimiter": "|"}, {}),
        ("same sign", {"sep": '"'}, {}),
        ("quote", {"quote": "é"}, {}),
        ("escape", {"escape": ""}, {}),
        ("comment", {"comment": "\t"}, {}),
        ("comment", {"comment": " "}, {}),
        ("comment", {"comment": "\x1f"}, {}),
        ("charToEscapeQuoteEscaping", {"charToEscapeQuoteEscaping": "^"}, {}),
        ("header", {"header": "yes"}, {}),
        ("encoding", {"encoding": "Shift_JIS"}, {}),
        ("nullValue", {"nullValue": "é"}, {}),
        ("not known here: somethingElse", {"somethingElse": "1"}, {}),
        ("also needs `columns`", {"sep": ";"}, {"columns": []}),
        ("two of one name", {"sep": ";"}, {"columns": [{"name": "a"}, {"name": "A"}]}),
        ("a type that is not known", {"sep": ";"}, {"columns": [{"name": "a", "type": "bigint not null"}]}),
        ("a type that is not known", {"sep": ";"}, {"columns": [{"name": "a", "type": "array<int>"}]}),
        ("have one name", {"sep": ";"}, {"partitions": ["UID"]}),
        ("must be under the `options` of the table", {"sep": ";"}, {"encoding": "windows-1252"}),
        ("only to CSV tables", {"sep": ";"}, {"format": "parquet"}),
        ("only to CSV tables with `options`", {}, {}),
    ],
)
def test_what_is_not_understood_exactly_is_refused_by_its_name(
    told: str, options: dict[str, Any], more: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=told):
        estate(tmp_path, options, **more)


def test_every_store_is_told_how_its_folders_are_read(tmp_path: Path) -> None:
    """As of tables that a catalog names; each once, and under its name."""
    places = ("lake/visits", "s3://b/visits", "hdfs://nn:8020/visits", "gs://b/visits")
    one = {"format": "csv", "options": {"sep": ";"}, "columns": COLUMNS}
    made = estate(tmp_path, {"sep": ";"})
    tables = tuple(DeclaredTable(name=f"a.t{n}", location=place, **one) for n, place in enumerate(places))
    node = NameNode(namenode="hdfs://nn:8020", webhdfs=("http://nn:9870",), user="hdfs")
    store = DeclaredStore(store="gs://b", places=(StoredFiles(prefix="visits"),))
    catalogs = {"spark_catalog": Catalog(type=CatalogType.DECLARED, tables=tables)}
    paths = EstatePaths(
        made.model_copy(update={"catalogs": catalogs, "hdfs": (node,), "object_stores": (store,)}), tmp_path
    )
    registry = paths.registry
    (here,) = registry.tables.values()
    found = [here, *registry.remote, *registry.hdfs, *registry.stored]
    assert [table.text for table in found] == [tables[0].text] * 4
    assert [str(table.location) for table in found] == [
        str(tmp_path / places[0]),
        "s3://b/visits",
        "hdfs://nn/visits",
        "gs://b/visits",
    ]
    assert {"a.t0", "a.t1", "a.t2", "a.t3"} <= paths.aliases.keys()
    assert paths.declared_remote == ()


def test_a_folder_that_a_catalog_reads_otherwise_is_nobodys(tmp_path: Path) -> None:
    """Two declarations of one folder are an error of the estate file; two catalogs are a gap."""
    put(tmp_path, "a.csv", b"1;a\n")
    made = estate(tmp_path, {"sep": ";"})
    (table,) = made.catalogs["spark_catalog"].tables
    other = table.model_copy(update={"options": {"sep": "|"}, "name": "b.visits"})
    catalogs = {**made.catalogs, "z": Catalog(type=CatalogType.DECLARED, tables=(other,))}
    found = discover(made.model_copy(update={"catalogs": catalogs}), tmp_path)
    assert found.tables == ()
    assert "registered_twice" in {gap.kind for gap in found.gaps}


@pytest.mark.parametrize("kind", ["long", "LONG", "short", "byte", "bigint", "Integer"])
def test_whole_numbers_are_known_by_every_name_that_spark_has(kind: str, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", b"007;x\n")
    made = estate(tmp_path, {"sep": ";"}, columns=[{"name": "uid", "type": kind}, {"name": "note"}])
    assert rows(discover(made, tmp_path), made, tmp_path) == [("7", "x")]
