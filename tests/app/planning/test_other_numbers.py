"""Another system's number that equals a person's key: a gap until the owner's word says what it is, in rebuilt tables,
too; and a word that lineage or the rows contradict is not taken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import LongType

from pii_tracer.cli.main import run
from tests.cli.small import declared, request

KEY, MAIL = "7340219981", "asha.rao@x.example"
TABLES = {"s.riders": "delta", "s.drivers": "csv", "s.trips": "delta", "m.rides": "delta", "m.by_city": "delta"}
SUBJECT = """\
  - name: rider
    source: s.riders
    key: rider_id
    identifiers: [{column: email, category: email}]
    tables: [{table: s.trips, key: rider_id}]
"""
JOBS = """\
CREATE OR REPLACE TABLE m.rides AS SELECT rider_id, driver_id AS driver, city FROM s.trips;
CREATE OR REPLACE TABLE m.by_city AS SELECT t.city, CAST(t.driver_id AS STRING) AS driver, count(t.rider_id) AS trips
  FROM s.trips t GROUP BY t.city, t.driver_id;
"""
TRIPS = [
    {"rider_id": int(KEY), "driver_id": 9000000001, "city": "Pune"},
    {"rider_id": 7340219982, "driver_id": int(KEY), "city": "Pune"},
    {"rider_id": 7340219983, "driver_id": int(KEY), "city": "Goa"},
    {"rider_id": 7340219983, "driver_id": 9000000002, "city": "Goa"},
]


def word(*columns: str) -> str:
    said = ", ".join(
        f"{{table: {name.rpartition('.')[0]}, column: {name.rpartition('.')[2]}, reason: numbers of drivers,"
        " owner: Ravi Nair}"
        for name in columns
    )
    return f"    not_keys: [{said}]\n" if columns else ""


def planned(
    base: Path,
    *words: str,
    jobs: str = JOBS,
    trips: list[dict[str, Any]] = TRIPS,
    change: Callable[[Path], None] = lambda base: None,
) -> dict[str, Any]:
    lake = base / "lake"
    riders = {"rider_id": [7340219981, 7340219982, 7340219983], "email": [MAIL, "b@x.example", "c@x.example"]}
    write_deltalake(lake / "riders", pa.table(riders))
    write_deltalake(lake / "trips", pa.Table.from_pylist(trips))
    rides = [{"rider_id": t["rider_id"], "driver": t["driver_id"], "city": t["city"]} for t in trips]
    write_deltalake(lake / "rides", pa.Table.from_pylist(rides))
    cities = [{"city": t["city"], "driver": str(t["driver_id"]), "trips": 1} for t in trips]
    write_deltalake(lake / "by_city", pa.Table.from_pylist(cities))
    (lake / "drivers").mkdir()
    (lake / "drivers" / "d.csv").write_text(f"driver_id,name\n{KEY},Om\n9000000001,Jo\n9000000002,Al\n")
    (base / "pii-tracer.yaml").write_text(declared("lake", TABLES) + SUBJECT + word(*words))
    (base / "jobs.sql").write_text(jobs)
    (base / "request.yaml").write_text(request("rider", KEY))
    (base / "policy.yaml").write_text("version: 1\n")
    change(base)
    out = base / "r.plan.json"
    run(["plan", str(base / "request.yaml"), "--format", "json", "--out", str(out), "--estate",
         str(base / "pii-tracer.yaml"), "--state", str(base / "state")])  # fmt: skip
    text = out.read_text()
    assert KEY not in text
    made: dict[str, Any] = json.loads(text)
    return made


def gaps(plan: dict[str, Any]) -> set[tuple[str, str]]:
    return {(gap["kind"], gap["id"]) for gap in plan["gaps"]}


def test_without_a_word_the_number_is_a_gap_wherever_it_would_stay(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert {kind for kind, _ in gaps(plan)} == {"others_rows", "unexpected_copy"}
    told = {g["id"].removeprefix("gap-others_rows-"): g for g in plan["gaps"] if g["kind"] == "others_rows"}
    assert sorted(told) == ["m.by_city-driver", "m.rides-driver", "s.trips-driver_id"]
    assert not plan["complete"]
    for gap in told.values():  # clearing it would harm the drivers' rows
        assert "`other_keys`" not in gap["evidence"]
        assert "`not_keys`" in gap["evidence"]


def test_the_owners_word_is_followed_and_shown(tmp_path: Path) -> None:
    plan = planned(tmp_path, "s.trips.driver_id", "s.drivers.driver_id")
    assert gaps(plan) == set()
    assert plan["complete"]
    told = {f"{n['table']}.{n['column']}": n["copied_from"] for n in plan["not_keys"]}
    assert told == {
        "s.trips.driver_id": None,
        "s.drivers.driver_id": None,
        "m.rides.driver": "s.trips.driver_id",
        "m.by_city.driver": "s.trips.driver_id",
    }
    assert sum(o["kind"] == "not_keys" and "Ravi Nair" in o["reason"] for o in plan["overrides"]) == 4
    assert {c["table"]: c["found"]["files_with_person"] for c in plan["copies"]}["m.by_city"] == 0


UNION = JOBS.replace("FROM s.trips;", "FROM s.trips UNION ALL SELECT rider_id, rider_id, 'x' FROM s.riders;")
MIXED = JOBS.replace(
    "driver_id AS driver, city FROM s.trips",
    "d.driver_id + 0 AS driver, t.city FROM s.trips t JOIN s.drivers d ON d.driver_id = t.driver_id",
)


@pytest.mark.parametrize("jobs", [UNION, MIXED], ids=["a union with the key", "an expression"])
def test_a_column_that_is_no_plain_copy_alone_is_not_left_out(tmp_path: Path, jobs: str) -> None:
    plan = planned(tmp_path, "s.trips.driver_id", "s.drivers.driver_id", jobs=jobs)
    assert "m.rides.driver" not in {f"{n['table']}.{n['column']}" for n in plan["not_keys"]}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["m.rides.rider_id"], "lineage shows"),
        (["s.trips.nothing"], "no such column"),
        (["s.elsewhere.driver_id"], "not found"),
    ],
)
def test_a_word_that_cannot_be_true_is_a_gap_and_not_taken(tmp_path: Path, words: list[str], why: str) -> None:
    plan = planned(tmp_path, *words)
    assert plan["not_keys"] == []
    assert [why in g["reason"] for g in plan["gaps"] if g["kind"] == "not_keys"] == [True]


def test_a_column_of_the_sources_keys_needs_a_named_person(tmp_path: Path) -> None:
    """A word about a column that holds the persons after all would silence what was found."""
    trips = [{**trip, "driver_id": trip["rider_id"]} for trip in TRIPS]
    plan = planned(tmp_path, "s.trips.driver_id", trips=trips)
    assert ["half" in g["reason"] for g in plan["gaps"] if g["kind"] == "not_keys"] == [True]
    assert not plan["applyable"]


@pytest.mark.parametrize("made_anew", [False, True])
def test_a_column_that_took_the_place_of_another_of_its_name_is_not_left_out(tmp_path: Path, made_anew: bool) -> None:
    """Files of before still have the other one, under the same name."""

    def as_iceberg(base: Path) -> None:
        shutil.rmtree(base / "lake" / "trips")
        catalog = SqlCatalog("ice", uri=f"sqlite:///{base}/c.db", warehouse=f"file://{base}/lake")
        catalog.create_namespace("s")
        rows = pa.Table.from_pylist(TRIPS)
        table = catalog.create_table("s.trips", rows.schema)
        table.append(rows)
        if made_anew:
            with table.update_schema() as change:
                change.delete_column("driver_id")
            with table.update_schema() as change:
                change.add_column("driver_id", LongType())
        file = base / "pii-tracer.yaml"
        told = file.read_text().replace("      - {name: s.trips, format: delta, location: lake/trips}\n", "")
        ice = "  ice: {type: iceberg-sql, uri: 'sqlite:///c.db', warehouse: lake}\nroots:"
        file.write_text(told.replace("roots:", ice).replace("table: s.trips", "table: ice.s.trips"))
        (base / "jobs.sql").write_text(JOBS.replace("FROM s.trips", "FROM ice.s.trips"))

    plan = planned(tmp_path, "s.trips.driver_id", "s.drivers.driver_id", change=as_iceberg)
    assert ("ice.s.trips" in {n["table"] for n in plan["not_keys"]}) is not made_anew
    assert {g["kind"] for g in plan["gaps"] if "s.trips" in g["id"]} == ({"not_keys"} if made_anew else set())
