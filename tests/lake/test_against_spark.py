"""Every field of a table's state against what Spark says of the same table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.inventory import (
    Inventory,
    Ref,
    RefKind,
    TableState,
)
from pii_tracer.lake.rows.current_rows import data_files, read_columns
from pii_tracer.lake.rows.historical_rows import Sought, read_former
from pii_tracer.lake.rows.rows_of_files import read_part
from pii_tracer.model.column_paths import Spot
from pii_tracer.model.datasets import Format
from tests.lake.s3_lakehouse import HUDI_TABLES, ROWS, Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ICEBERG = ("lake/prod/payments", "lake/prod/riders", "lake/prod/vectors")
DELTA = ("delta/wallets", "delta/feed", "delta/sidecars", "delta/parts", "dev/wallets clone")
FOLDERS = ("exports/daily", "dev/daily copy", 'exports/Kunden\'s "listé"')


def state_at(inventory: Inventory, lake: Lake, place: str) -> TableState:
    return next(s for s in inventory.tables if s.location == str((lake.warehouse / place).resolve()))


def frame(spark: SparkSession, lake: Lake, place: str) -> DataFrame:
    location = str(lake.warehouse / place)
    if place in ICEBERG:
        return spark.table("discovery_lake." + place.removeprefix("lake/").replace("/", "."))
    if place in DELTA:
        return spark.read.format("delta").load(location)
    if place in HUDI_TABLES:
        table = spark.read.format("hudi").load(location)
        return table.drop(*(c for c in table.columns if c.startswith("_hoodie_")))
    if place.startswith("exports/Kunden"):
        return spark.read.csv(location, header=True)
    return spark.read.parquet(location)


def as_rows(rows: list[Any]) -> list[str]:
    return sorted(repr(row) for row in rows)


@pytest.mark.parametrize("place", [*ICEBERG, *DELTA, *HUDI_TABLES, *FOLDERS])
class TestEveryTable:
    def test_columns_and_types(self, spark: SparkSession, lake: Lake, inventory: Inventory, place: str) -> None:
        state = state_at(inventory, lake, place)
        assert [(c.name, c.type) for c in state.columns] == frame(spark, lake, place).dtypes

    def test_rows(self, spark: SparkSession, lake: Lake, inventory: Inventory, place: str) -> None:
        rows = state_at(inventory, lake, place).rows
        if place == "hudi/rides" or "Kunden" in place:
            assert rows is None  # only a scan could tell
        else:
            assert rows == frame(spark, lake, place).count()

    def test_current_rows_are_the_same(
        self, spark: SparkSession, lake: Lake, inventory: Inventory, paths: EstatePaths, place: str
    ) -> None:
        state = state_at(inventory, lake, place)
        simple = [c.name for c in state.columns if c.type in ("bigint", "string")]
        ours = read_columns(state, simple, paths).to_pylist()
        theirs = [row.asDict() for row in frame(spark, lake, place).select(*(f"`{c}`" for c in simple)).collect()]
        assert as_rows(ours) == as_rows(theirs)

    def test_rows_of_single_files(self, lake: Lake, inventory: Inventory, paths: EstatePaths, place: str) -> None:
        state = state_at(inventory, lake, place)
        simple = [c.name for c in state.columns if c.type in ("bigint", "string")]
        files = [[path] for path in data_files(state, paths)]
        whole = place in HUDI_TABLES or place == "delta/feed"  # logs are read with their base file; mapped columns
        parts = [data_files(state, paths)] if whole else files
        batches = [batch for part in parts for batch in read_part(state, simple, part, paths)]
        ours = [row for batch in batches for row in batch.to_pylist()]
        assert as_rows(ours) == as_rows(read_columns(state, simple, paths).to_pylist())

    def test_files_and_bytes(
        self, spark: SparkSession, lake: Lake, inventory: Inventory, paths: EstatePaths, place: str
    ) -> None:
        state = state_at(inventory, lake, place)
        files = data_files(state, paths)
        assert len(files) == state.files
        assert sum(p.stat().st_size for p in files) == state.bytes
        if place in ICEBERG:
            name = "discovery_lake." + place.removeprefix("lake/").replace("/", ".")
            read = [r["file_path"] for r in spark.table(f"{name}.files").where("content = 0").collect()]
        elif place in HUDI_TABLES:
            return  # Spark lists base files only
        else:
            read = frame(spark, lake, place).inputFiles()
        assert {unquote(Path(p).name) for p in read} == {p.name for p in files}


@pytest.mark.parametrize("place", ["lake/prod/riders", "lake/prod/vectors", "delta/wallets", "delta/feed"])
def test_rows_that_delete_files_and_vectors_hide_are_in_the_versions_before(
    lake: Lake, inventory: Inventory, paths: EstatePaths, place: str
) -> None:
    told: list[str] = []
    state = state_at(inventory, lake, place)
    versions = list(read_former(state, Sought({"who": Spot("uid")}, ("who",)), paths, told.append, told.append))
    assert {uid for version in versions for uid in version["who"]} == {uid for uid, *_ in ROWS}
    assert 7 not in read_columns(state, ["uid"], paths).column("uid").to_pylist()
    assert told == []


def test_every_table_is_found_and_nothing_else(lake: Lake, inventory: Inventory) -> None:
    found = {s.location for s in inventory.tables}
    assert found == {str((lake.warehouse / p).resolve()) for p in (*ICEBERG, *DELTA, *HUDI_TABLES, *FOLDERS)}


def test_iceberg_refs_snapshots_and_modes(spark: SparkSession, lake: Lake, inventory: Inventory) -> None:
    state = state_at(inventory, lake, "lake/prod/riders")
    refs = spark.sql("SELECT name, type, snapshot_id FROM discovery_lake.prod.riders.refs").collect()
    assert {(r.name, r.kind.value.upper(), int(r.at)) for r in state.refs} == {
        tuple(r) for r in refs if r["name"] != "main"
    }
    main = next(r["snapshot_id"] for r in refs if r["name"] == "main")
    assert state.snapshot == str(main)
    assert state.write_mode == "merge-on-read"
    for place in ICEBERG:
        name = "discovery_lake." + place.removeprefix("lake/").replace("/", ".")
        assert state_at(inventory, lake, place).versions == spark.table(f"{name}.snapshots").count()
    assert state_at(inventory, lake, "lake/prod/payments").write_mode == "copy-on-write"
    assert state_at(inventory, lake, "lake/prod/payments").partition_columns == ("day",)
    assert state_at(inventory, lake, "lake/prod/payments").format_version == 2
    vectors = state_at(inventory, lake, "lake/prod/vectors")
    assert (vectors.format_version, vectors.deletion_vectors) == (3, True)
    assert not state.deletion_vectors


@pytest.mark.parametrize("place", DELTA)
def test_delta_versions_and_settings(spark: SparkSession, lake: Lake, inventory: Inventory, place: str) -> None:
    state = state_at(inventory, lake, place)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{lake.warehouse / place}`").collect()
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{lake.warehouse / place}`").collect()[0]
    assert state.snapshot == str(history[0]["version"])
    assert state.versions == len(history)
    assert (state.files, state.bytes) == (detail["numFiles"], detail["sizeInBytes"])
    assert list(state.partition_columns) == detail["partitionColumns"]
    assert state.properties == detail["properties"]
    assert state.format_version == detail["minReaderVersion"]
    assert state.deletion_vectors == ("deletionVectors" in detail["tableFeatures"])
    assert state.change_data_feed == (place == "delta/feed")


def test_shallow_clone_names_its_source(lake: Lake, inventory: Inventory) -> None:
    clone = state_at(inventory, lake, "dev/wallets clone")
    assert clone.clone_of == state_at(inventory, lake, "delta/wallets").location
    assert state_at(inventory, lake, "delta/wallets").clones == (clone.location,)
    assert not list((lake.warehouse / "dev/wallets clone").glob("*.parquet"))  # its own folder shows no data at all


def test_hudi_kind_instants_and_savepoint(spark: SparkSession, lake: Lake, inventory: Inventory) -> None:
    for name, mode in (("trips", "cow"), ("rides", "mor")):
        state = state_at(inventory, lake, f"hudi/{name}")
        commits = [
            r["commit_time"]
            for r in spark.sql(f"CALL show_commits(table => 'discovery.{name}', limit => 99)").collect()
        ]
        assert (state.write_mode, state.snapshot, state.versions) == (mode, max(commits), len(commits))
        assert state.properties["hoodie.table.recordkey.fields"] == "uid"
        assert state.row_key == ("uid",)
    savepoints = spark.sql("CALL show_savepoints(table => 'discovery.trips')").collect()
    assert state_at(inventory, lake, "hudi/trips").refs == tuple(
        Ref(name=r["savepoint_time"], kind=RefKind.SAVEPOINT, at=r["savepoint_time"]) for r in savepoints
    )


def test_copied_folder_is_a_copy_of_the_original(lake: Lake, inventory: Inventory) -> None:
    original, copy = (state_at(inventory, lake, p) for p in ("exports/daily", "dev/daily copy"))
    assert copy.same_files_as == original.location
    # the rows of the export stand in a table as well, in a file of its own: that is said, and is the weaker of the two
    assert original.same_files_as == state_at(inventory, lake, "lake/prod/riders").location
    assert original.snapshot == copy.snapshot  # the digest speaks of content, not of place


def test_gzip_folder_with_a_hostile_name(lake: Lake, inventory: Inventory, paths: EstatePaths) -> None:
    state = state_at(inventory, lake, FOLDERS[2])
    assert (state.format, state.codec, state.files) == (Format.CSV, "gzip", 1)
    assert read_columns(state, ["phone"], paths).column("phone").to_pylist() == [phone for _, _, phone in ROWS]


def test_nested_columns_can_be_read(lake: Lake, inventory: Inventory, paths: EstatePaths) -> None:
    for place, column in (("lake/prod/payments", "rider"), ("delta/wallets", "profile")):
        rows = read_columns(state_at(inventory, lake, place), [column], paths).column(column).to_pylist()
        assert {row["id"] for row in rows} >= {1, 20}


def test_what_is_missing_or_broken_is_a_gap(lake: Lake, inventory: Inventory) -> None:
    assert {(g.kind, Path(g.dataset.name).name) for g in inventory.gaps if g.dataset} == {
        ("missing_table", "gone"),
        ("unreadable", "broken"),
    }


def test_names(lake: Lake, inventory: Inventory) -> None:
    names = {place: state_at(inventory, lake, place).table for place in (*ICEBERG, *DELTA, *HUDI_TABLES)}
    assert {name for name in names.values() if name} == {
        "lake.prod.payments",
        "lake.prod.riders",
        "lake.prod.vectors",
        "prod.wallets",
        *(["prod.trips"] if HUDI_TABLES else []),
    }
    assert names["delta/feed"] is None
    assert state_at(inventory, lake, "delta/feed").dataset.name == "/lakehouse/warehouse/delta/feed"
