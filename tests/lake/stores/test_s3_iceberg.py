"""Iceberg tables in S3 that a catalog names: their states, and rows of now and of before, as of local tables."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.types import StringType

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import data_files, read_columns
from pii_tracer.lake.rows.historical_rows import Sought, read_former
from pii_tracer.lake.rows.rows_of_files import names_in_files, read_part
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.lake.table_descriptions import COLUMNS, FORMER_COLUMNS, description
from pii_tracer.model.column_paths import find_spot
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import S3Location
from tests.lake.catalogs.test_catalogs import (
    SQL,
    estate,
    sql_catalog,
    table,
)
from tests.lake.formerly import add_position_delete
from tests.lake.lakehouse import ROWS, House
from tests.s3support import World, standin, world
from tests.servers import Json, answering

__all__ = ["standin", "world"]


@pytest.fixture
def house(world: World, tmp_path: Path) -> House:
    return House(world, world.new("house"), tmp_path)


def uids(house: House, state: TableState) -> list[int]:
    return sorted(read_columns(state, ["uid"], house.paths).column("uid").to_pylist())


def parts(house: House, state: TableState) -> list[int]:
    paths = house.paths
    batches = read_part(state, ["uid"], data_files(state, paths), paths)
    return sorted(value for batch in batches for value in batch.column("uid").to_pylist())


def written(catalog: SqlCatalog) -> Any:
    """A table with much to tell: snapshots, references, a renamed column, a delete file, properties."""
    made = table(catalog, "prod.people", properties={"write.merge.mode": "merge-on-read", "owner": "sales"})
    first = made.current_snapshot().snapshot_id
    made.manage_snapshots().create_branch(first, "audit").create_tag(first, "quarter", max_ref_age_ms=1000).commit()
    with made.update_schema() as change:
        change.rename_column("name", "called")
        change.add_column("late", StringType())
    with made.update_spec() as partition:
        partition.add_identity("late")
    made.append(pa.table({"uid": [4, 5], "called": ["d", "e"], "late": ["x", "x"]}))
    made = catalog.load_table("prod.people")
    (file,) = [f for f in made.inspect.files().column("file_path").to_pylist() if "late=" not in f]
    add_position_delete(made, made.current_snapshot(), file, 1)
    return made


def test_its_state_is_that_of_the_same_table_on_this_machine(house: House, tmp_path: Path) -> None:
    there = written(house.catalog())
    (tmp_path / "here").mkdir()
    here = written(sql_catalog(tmp_path / "here"))
    (local,) = discover(estate(core=SQL), tmp_path / "here").tables
    state = house.state()
    bucket, place = house.bucket, f"{house.warehouse}/prod/people"
    assert (state.location, state.metadata) == (place, there.metadata_location)
    assert state.dataset == DatasetId(namespace=f"s3://{bucket}", name="wh/prod/people")
    assert state.snapshot == str(there.current_snapshot().snapshot_id)
    assert [ref.at for ref in state.refs] == [str(there.metadata.snapshots[0].snapshot_id)] * 2
    assert local.snapshot == str(here.current_snapshot().snapshot_id)
    assert (state.rows, state.files, len(state.refs)) == (4, 2, 2)

    def plain(one: TableState) -> dict[str, Any]:
        told = one.model_dump(exclude={"location", "metadata", "dataset", "snapshot"})
        for ref in told["refs"]:
            assert ref.pop("at")
            ref.pop("lapses")
        assert told.pop("expiry")["ran"] is False
        return told

    assert plain(state) == plain(local)


def test_its_name_leads_lineage_to_it(house: House) -> None:
    house.table()
    state = house.state()
    assert state.table == "core.prod.orders"
    assert house.paths.aliases["core.prod.orders"] == state.dataset
    (place,) = house.inventory().remote
    assert (str(place.location), place.untreated, place.tables) == (state.location, None, ("core.prod.orders",))


def test_rows_without_those_that_delete_files_delete(house: House) -> None:
    made = written(house.catalog())
    state = house.state()
    assert uids(house, state) == parts(house, state) == [1, 3, 4, 5]
    assert all(str(path).startswith(f"{state.location}/data/") for path in data_files(state, house.paths))
    assert names_in_files(state, house.paths)["name"] == {"called"}
    told = description(state, house.paths)
    assert "called" in json.dumps(told[COLUMNS])
    assert "called" not in json.dumps(told[FORMER_COLUMNS])
    assert made.properties["owner"] == state.properties["owner"]


def test_rows_of_former_snapshots_and_of_branches(house: House) -> None:
    made = house.table()
    first = made.current_snapshot().snapshot_id
    made.manage_snapshots().create_branch(first, "audit").commit()
    made.append(pa.table({"uid": [4], "name": ["branch only"]}), branch="audit")
    made.overwrite(pa.table({"uid": [1], "name": ["new"]}), EqualTo("uid", 1))
    state = house.state()
    sought = Sought({name: find_spot(name, state.columns, "t") for name in ("uid", "name")}, ("uid",))
    told: list[str] = []
    found = list(read_former(state, sought, house.paths, told.append, told.append))
    assert {pair for v in found for pair in zip(v["uid"], v["name"], strict=True)} >= {(1, "a"), (4, "branch only")}
    assert told == []
    for path in house.world.versions(house.bucket):  # what an expiry elsewhere has taken
        if path[0].endswith(".avro"):
            house.drop(f"s3://{house.bucket}/{path[0]}")
    assert list(read_former(state, sought, house.paths, told.append, told.append)) == []
    assert told[-1].endswith("versions of core.prod.orders cannot be read any more")


@pytest.mark.parametrize("scheme", ["s3a", "s3n"])
def test_paths_in_schemes_of_other_engines(house: House, scheme: str) -> None:
    """Where one job writes `s3a://` into the metadata, the table is the same."""
    made = house.table()
    text = house.read(made.metadata_location).decode().replace("s3://", f"{scheme}://")
    house.put(made.metadata_location, text.encode())
    with sqlite3.connect(house.base / "core.db") as database:
        database.execute("UPDATE iceberg_tables SET metadata_location = replace(metadata_location, 's3:', 's3a:')")
    state = house.state()
    assert (state.location, state.metadata) == (house.orders, made.metadata_location)
    assert uids(house, state) == parts(house, state) == [1, 2, 3]


@pytest.mark.parametrize("name", ["metadata.json.gz", "gz.metadata.json", "metadata.json"])
def test_metadata_that_is_compressed(house: House, name: str) -> None:
    made = house.table()
    place = f"{house.orders}/metadata/00009-2f1c5b0e-7d0f-4c0e-9a52-0d6f4f1c9b11.{name}"
    house.put(place, gzip.compress(house.read(made.metadata_location)))
    with sqlite3.connect(house.base / "core.db") as database:
        database.execute(f"UPDATE iceberg_tables SET metadata_location = '{place}'")
    assert uids(house, house.state()) == [1, 2, 3]


def test_large_files_are_fetched_in_parts(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    made = house.catalog().create_table("prod.orders", schema=pa.schema([("uid", pa.int64()), ("noise", pa.binary())]))
    noise = pa.array([bytes([n % 251]) * 3 + str(n).encode() for n in range(200_000)])
    made.append(pa.table({"uid": pa.array(range(200_000), pa.int64()), "noise": noise}))
    state, asked = house.state(), list[str]()
    (file,) = data_files(state, house.paths)
    client = house.world.client()
    size = client.head_object(Bucket=house.bucket, Key=house.key(str(file)))["ContentLength"]
    paths = house.paths
    place = paths.place(state.location)
    assert isinstance(place, S3Path)
    place.client.meta.events.register(
        "before-parameter-build.s3.GetObject", lambda params, **_: asked.append(params.get("Range", params["Key"]))
    )
    assert len(read_columns(state, ["uid"], paths)) == 200_000
    ranges = [part.removeprefix("bytes=").split("-") for part in asked if part.startswith("bytes=")]
    assert ranges
    assert not any(key.endswith(".parquet") for key in asked)
    assert sum(int(last) - int(first) + 1 for first, last in ranges) < size


def test_a_file_in_no_place_of_the_estate_is_not_read(house: House) -> None:
    house.table()
    state = house.state()
    house.catalogs.clear()
    with pytest.raises(EstateError, match="outside of the estate's places in its store"):
        read_columns(state, ["uid"], house.paths)


def test_nothing_is_written(house: House) -> None:
    made = house.table()
    state = house.state()
    found = load_iceberg(house.paths.place(state.location), state.metadata)
    assert found.io.new_input(made.metadata_location).exists()
    assert len(found.io.new_input(made.metadata_location)) == len(house.read(made.metadata_location))
    with found.io.new_input(made.metadata_location).open() as stream:
        assert stream.read(1) + stream.read() == house.read(made.metadata_location)
    for write in (found.io.new_output, found.io.delete):
        with pytest.raises(PermissionError):
            write(made.metadata_location)


@contextmanager
def serving(made: Any) -> Iterator[str]:
    """A REST catalog that knows one table (https://iceberg.apache.org/rest-catalog-spec/); gives its URI."""
    answers = {
        "/v1/config": {"defaults": {}, "overrides": {}},
        "/v1/namespaces": {"namespaces": [["prod"]]},
        "/v1/namespaces/prod": {"namespace": ["prod"], "properties": {}},
        "/v1/namespaces/prod/tables": {"identifiers": [{"namespace": ["prod"], "name": "orders"}]},
        "/v1/namespaces/prod/tables/orders": {
            "metadata-location": made.metadata_location,
            "metadata": json.loads(made.metadata.model_dump_json()),
            "config": {},
        },
    }

    class Catalog(Json):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            told = {"namespaces": []} if "parent=" in query else answers.get(path)
            self.answer(200 if told else 404, json.dumps(told or {}).encode())

    with answering(Catalog) as uri:
        yield uri


def test_a_table_of_a_rest_catalog(house: House) -> None:
    made = house.table()
    with serving(made) as uri:
        house.catalogs = {"club": {"type": "iceberg-rest", "uri": uri}}
        state = house.state()
        assert (state.table, state.location, state.rows) == ("club.prod.orders", house.orders, 3)
        assert uids(house, state) == [1, 2, 3]


def test_a_place_is_told_apart_from_one_whose_name_begins_alike(house: House) -> None:
    house.table()
    house.table("prod.orders2")
    found = house.inventory()
    assert [state.table for state in found.tables] == ["core.prod.orders", "core.prod.orders2"]
    assert not found.gaps
    assert S3Location(bucket=house.bucket, key="wh/prod/orders") in {place.location for place in found.remote}
    assert EstatePaths(house.estate, house.base).place(found.tables[0].location)
    assert len(ROWS) == found.tables[0].rows
