"""Hudi tables in S3: those that can be erased are read as on this machine, the others are left alone with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.inventory import RefKind, TableState
from pii_tracer.lake.rows.current_rows import data_files, read_columns
from pii_tracer.lake.rows.rows_of_files import read_part
from tests.lake.lakehouse import House
from tests.lake.s3_lakehouse import Lake
from tests.s3support import World, standin, world
from tests.sparksession import HAS_HUDI

__all__ = ["standin", "world"]

pytestmark = [pytest.mark.spark, pytest.mark.skipif(not HAS_HUDI, reason="this Spark has no bundle of Hudi")]


@pytest.fixture
def house(world: World, tmp_path: Path) -> House:
    return House(world, world.new("hudi"), tmp_path)


def moved(house: House, lake: Lake, name: str, key: str | None = None) -> str:
    """A table of this machine in the bucket, and declared; its place."""
    here, place = lake.warehouse / "hudi" / name, f"s3://{house.bucket}/{key or 'wh/' + name}"
    for path in sorted(p for p in here.rglob("*") if p.is_file() and not p.name.endswith(".crc")):
        house.put(f"{place}/{path.relative_to(here)}", path.read_bytes())
    declared = house.catalogs.setdefault("session", {"type": "declared", "tables": []})["tables"]
    declared.append({"name": f"prod.{name}", "format": "hudi", "location": place})
    return place


def here(lake: Lake, name: str) -> TableState:
    [state] = [s for s in discover(lake.estate, lake.base).tables if s.location.endswith(f"/hudi/{name}")]
    return state


@pytest.mark.parametrize("name", ["trips", "rides"])
def test_its_state_and_rows_are_those_of_the_same_table_here(
    house: House, lake: Lake, paths: EstatePaths, name: str
) -> None:
    place, local = moved(house, lake, name), here(lake, name)
    state = house.state()
    of_the_place = {"location": place, "dataset": state.dataset, "table": f"prod.{name}"}
    assert state == local.model_copy(update=of_the_place)
    assert [ref.kind for ref in state.refs] == ([RefKind.SAVEPOINT] if name == "trips" else [])
    columns = ["name", "uid"]
    rows = read_columns(state, columns, house.paths).to_pylist()
    assert rows == read_columns(local, columns, paths).to_pylist()
    assert {row["uid"] for row in rows}.isdisjoint({7})
    files = data_files(state, house.paths)
    assert all(str(path).startswith(place) for path in files)
    assert [row for batch in read_part(state, columns, files, house.paths) for row in batch.to_pylist()] == rows


def test_a_table_that_others_files_belong_to(house: House, lake: Lake) -> None:
    """Bootstrapped by metadata alone, it reads its rows from the place that it was made of."""
    place, source = moved(house, lake, "trips"), moved(house, lake, "rides")
    properties = f"{place}/.hoodie/hoodie.properties"
    house.put(properties, house.read(properties) + f"hoodie.bootstrap.base.path=s3a\\://{source[5:]}\n".encode())
    assert "it was bootstrapped, and reads files outside its folder" in house.why(place)
    assert "the table prod.trips reads its files" in house.why(source)


def test_what_its_reader_cannot_read_is_left_alone(house: House, lake: Lake) -> None:
    escaped = moved(house, lake, "trips", key="wh/a%20b")
    assert "folders with `%`" in house.why(escaped)
    place = moved(house, lake, "rides")
    house.drop(f"{place}/.hoodie/hoodie.properties")
    assert "NoSuchKey" in house.why(place)


def test_another_tables_folder_around_it(house: House, lake: Lake) -> None:
    outer = moved(house, lake, "trips")
    moved(house, lake, "rides", key="wh/trips/rides")
    assert "is inside its folder" in house.why(outer)
