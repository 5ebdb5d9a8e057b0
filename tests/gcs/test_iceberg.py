"""Iceberg tables in Cloud Storage: what is planned for them, what stays a gap, and the whole path with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from executors.engine.version_profiles import installed_profile
from pii_tracer.app.stored_places.object_reading import elsewhere
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.discovery import discover
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ExitCode
from pii_tracer.review.plan_file import load_plan
from pii_tracer.scan.value_forms import build_patterns
from pii_tracer.verify.verdicts import Residue
from tests.gcs.shop import BUCKET
from tests.gcs.tables import Lake, holding
from tests.gcssupport import Gcs
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, parquet
from tests.icebergstores import Files, catalog_in, iceberg
from tests.leaks import Person, leaks
from tests.waivers import MARKS

WAREHOUSE = f"gs://{BUCKET}/wh"


@pytest.fixture
def lake(gcs: Gcs, tmp_path: Path) -> Lake:
    return Lake.of(gcs, tmp_path)


def catalog_of(shop: Lake) -> SqlCatalog:
    def key(uri: str) -> str:
        return uri.removeprefix(f"gs://{BUCKET}/")

    files = Files(lambda uri, data: shop.put(key(uri), data), lambda uri: shop.read(key(uri)))
    return catalog_in(shop.base, WAREHOUSE, files)


def planned(shop: Lake, **more: Any) -> tuple[int, dict[str, Any]]:
    """A plan of the shop with the catalog."""
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    catalogs = {
        "spark_catalog": {"type": "declared", "tables": [users]},
        "ice": {"type": "iceberg-sql", "uri": f"sqlite:///{shop.base / 'catalog.db'}", "warehouse": WAREHOUSE},
    }
    return shop.plan(catalogs=catalogs, **{"object_stores": shop.stored("wh"), **more})


def beside(shop: Lake) -> tuple[Residue, ...]:
    """What verification finds of the person in places that are no copies of the plan."""
    estate, plan = load_estate(shop.base / "pii-tracer.yaml"), load_plan(shop.plan_file).plan
    patterns = build_patterns([KeySet(name="user", origin="users", weak=False, values=(("s1", USER), ("s1", MAIL)))])
    found = elsewhere(estate, plan, discover(estate, shop.base), patterns, MARKS)
    return tuple(residue for verdict in found for residue in verdict.residue)


def gaps_of(plan: dict[str, Any]) -> dict[str, str]:
    found = (gap for gap in plan["gaps"] if gap["waiver"] is None)
    return {gap["dataset"]["name"].rpartition("/")[2]: gap["reason"] for gap in found}


def test_a_table_that_a_catalog_names_is_planned_with_its_snapshots(lake: Lake) -> None:
    catalog = catalog_of(lake)
    where = iceberg(catalog, "db.seen", [OTHERS[0], PERSON], OTHERS[1:])
    iceberg(catalog, "db.clean", OTHERS)
    lake.exports += ["wh/db/seen", "wh/db/clean"]
    assert where == f"{WAREHOUSE}/db/seen"
    code, plan = planned(lake)
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    copy = next(copy for copy in plan["copies"] if copy["location"] == where)
    assert (copy["table"], copy["strategy"], copy["found"]["rows"]) == ("ice.db.seen", "delete_by_key", 1)
    steps = [step["action"] for step in plan["steps"] if step["copy"] == copy["id"]]
    assert steps[0] == "iceberg_delete_rows"
    assert steps[-4:] == ["iceberg_expire_snapshots", "iceberg_remove_orphans", "object_clear_versions", "verify_copy"]
    assert [item["dataset"]["name"] for item in plan["examined"]] == ["wh/db/clean"]


def test_somebody_of_a_like_name_is_not_taken_for_the_person(lake: Lake) -> None:
    """Manifests have the first 16 characters of both alike; the rows of the file that they describe decide."""
    catalog, alike = catalog_of(lake), ("770000000002", MAIL.replace("example.net", "example.org"))
    iceberg(catalog, "db.seen", [alike, PERSON])
    iceberg(catalog, "db.alike", [alike])
    lake.exports += ["wh/db/seen", "wh/db/alike"]
    code, plan = planned(lake)
    assert (code, [copy["table"] for copy in plan["copies"]]) == (0, ["shop.users", "ice.db.seen"])
    assert [item["dataset"]["name"] for item in plan["examined"]] == ["wh/db/alike"]
    assert beside(lake) == ()
    lake.put("wh/db/alike/data/later.parquet", parquet(PERSON))
    assert {one.where for one in beside(lake)} >= {"mail", "uid"}


def test_a_table_that_no_step_may_touch_stays_a_gap_and_says_why(lake: Lake) -> None:
    catalog = catalog_of(lake)
    iceberg(catalog, "db.dropped", [OTHERS[0], PERSON])
    iceberg(catalog, "db.twice", [OTHERS[0], PERSON])
    iceberg(catalog, "db.strange", [OTHERS[0], PERSON])
    iceberg(catalog, "db.led", [OTHERS[0], PERSON])
    with catalog.load_table("db.led").transaction() as change:
        change.set_properties({"write.data.path": f"gs://{BUCKET}/elsewhere"})
    lake.exports += [f"wh/db/{name}" for name in ("dropped", "twice", "strange", "led")]
    lake.put("wh/db/strange/data/notes.txt", b"somebody's")
    catalog.register_table("db.second", catalog.load_table("db.twice").metadata_location)
    catalog.drop_table("db.dropped")
    found = gaps_of(planned(lake)[1])
    why = {
        "dropped": "the tool erases Iceberg tables there only if a catalog names them",
        "twice": "it has more than one name (ice.db.second, ice.db.twice)",
        "strange": "may belong to somebody",
        "led": "its property write.data.path puts new files outside of its folder",
    }
    assert {name: reason in found[name] for name, reason in why.items()} == dict.fromkeys(why, True)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(installed_profile().name != "3.5", reason="the connector was not tried with it")
def test_the_person_leaves_every_snapshot_and_nobody_else_does(gcs: Gcs, tmp_path: Path) -> None:
    shop = Lake.of(gcs, tmp_path)
    catalog = catalog_of(shop)
    iceberg(catalog, "db.seen", [OTHERS[0], PERSON], OTHERS[1:])
    table = catalog.load_table("db.seen")
    table.delete(f"uid = '{USER}'")
    assert table.scan().to_arrow().num_rows == len(OTHERS)
    naive = holding(shop, USER, MAIL)
    assert any(name.partition("@")[0].endswith(".parquet") for name in naive), "old snapshots have the person"
    iceberg(catalog, "db.seen", [PERSON])
    shop.exports.append("wh/db/seen")
    code, plan = planned(shop)
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert shop.approve() == 0
    wanted = gcs.writes + 8
    shop.until = lambda: gcs.writes >= wanted
    assert shop.apply()[0] < 0
    shop.until = lambda: False
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert holding(shop, USER, MAIL) == []
    rows = catalog_of(shop).load_table("db.seen").scan().to_arrow().to_pylist()
    assert sorted((row["uid"], row["mail"]) for row in rows) == sorted(OTHERS)
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
    shop.put("wh/db/seen/data/later.parquet", parquet(PERSON))
    assert shop.verify() == ExitCode.RESIDUE
