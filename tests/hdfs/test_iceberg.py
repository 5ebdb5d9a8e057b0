"""Iceberg tables in a real HDFS that a SQL catalog names: planned, erased by Spark, verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.app.stored_places.hdfs_reading import elsewhere
from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.discovery import discover
from pii_tracer.model.datasets import KeySet
from pii_tracer.review.plan_file import load_plan
from pii_tracer.scan.value_forms import build_patterns
from tests.commands_apart import run_apart
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, Shop, parquet
from tests.hdfs.tables import files_of
from tests.hdfssupport import SUPERUSER, Hdfs
from tests.icebergstores import Files, catalog_in, iceberg
from tests.waivers import MARKS


class Lake(Shop):
    """A shop whose commands run in another process: a session that is open already gets no driver of a catalog."""

    def cli(self, *words: str) -> int:
        where = ["--estate", str(self.base / "pii-tracer.yaml"), "--state", str(self.base / "state")]
        return run_apart([*words, *where], self.base / "apart.log", more={"HADOOP_USER_NAME": SUPERUSER})


@pytest.fixture
def lake(hdfs: Hdfs, tmp_path: Path) -> Lake:
    shop = Lake(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    return shop


def catalog_of(shop: Lake) -> SqlCatalog:
    def path(uri: str) -> str:
        return uri.removeprefix(shop.hdfs.uri)

    files = Files(lambda uri, data: shop.hdfs.put(path(uri), data), lambda uri: shop.read(path(uri)))
    return catalog_in(shop.base, f"{shop.hdfs.uri}{shop.root}/wh", files)


def planned(shop: Lake) -> tuple[int, dict[str, Any]]:
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    uri, warehouse = f"sqlite:///{shop.base / 'catalog.db'}", f"{shop.hdfs.uri}{shop.root}/wh"
    ice = {"type": "iceberg-sql", "uri": uri, "warehouse": warehouse}
    return shop.plan(catalogs={"spark_catalog": {"type": "declared", "tables": [users]}, "ice": ice})


def test_a_table_that_no_catalog_names_or_two_names_have_stays_a_gap(lake: Lake) -> None:
    catalog = catalog_of(lake)
    for name in ("dropped", "twice"):
        iceberg(catalog, f"db.{name}", [OTHERS[0], PERSON])
        lake.exports.append(f"wh/db/{name}")
    catalog.register_table("db.second", catalog.load_table("db.twice").metadata_location)
    catalog.drop_table("db.dropped")
    plan = planned(lake)[1]
    found = {gap["dataset"]["name"].rpartition("/")[2]: gap for gap in plan["gaps"] if gap["waiver"] is None}
    assert "there only if a catalog names them" in found["dropped"]["reason"]
    assert "it has more than one name (ice.db.second, ice.db.twice)" in found["twice"]["reason"]


def test_somebody_of_a_like_name_is_not_taken_for_the_person(lake: Lake) -> None:
    """Manifests have the first 16 characters of both alike; the rows of the file that they describe decide."""
    catalog, alike = catalog_of(lake), ("770000000002", MAIL.replace("example.net", "example.org"))
    iceberg(catalog, "db.seen", [alike, PERSON])
    iceberg(catalog, "db.alike", [alike])
    lake.exports += ["wh/db/seen", "wh/db/alike"]
    plan = planned(lake)[1]
    assert [copy["table"] for copy in plan["copies"]] == ["shop.users", "ice.db.seen"]
    assert [item["dataset"]["name"] for item in plan["examined"]] == [f"{lake.root}/wh/db/alike"]
    estate, loaded = load_estate(lake.base / "pii-tracer.yaml"), load_plan(lake.plan_file).plan
    patterns = build_patterns([KeySet(name="mail", origin="users", weak=False, values=(("s1", MAIL),))])

    def beside() -> list[str]:
        found = elsewhere(estate, loaded, discover(estate, lake.base), patterns, MARKS)
        return [residue.where for verdict in found for residue in verdict.residue]

    assert beside() == []
    lake.put("wh/db/alike/data/later.parquet", parquet(PERSON))
    assert "mail" in beside()


@pytest.mark.spark
@pytest.mark.slow
def test_the_person_leaves_every_snapshot_and_nobody_else_does(lake: Lake) -> None:
    catalog = catalog_of(lake)
    iceberg(catalog, "db.seen", [OTHERS[0], PERSON], OTHERS[1:])
    catalog.load_table("db.seen").delete(f"uid = '{USER}'")
    iceberg(catalog, "db.seen", [PERSON])
    lake.exports.append("wh/db/seen")
    folder = f"{lake.root}/wh/db/seen"
    assert sum(USER.encode() in lake.read(path) for path in files_of(lake, folder)) > 1
    code, plan = planned(lake)
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    copy = next(copy for copy in plan["copies"] if copy["table"] == "ice.db.seen")
    assert (copy["strategy"], copy["found"]["rows"]) == ("delete_by_key", 1)
    assert lake.approve() == 0
    code, result = lake.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    left = [path for path in files_of(lake, folder) if any(text.encode() in lake.read(path) for text in (USER, MAIL))]
    assert left == []
    rows = catalog_of(lake).load_table("db.seen").scan().to_arrow().to_pylist()
    assert sorted((row["uid"], row["mail"]) for row in rows) == sorted(OTHERS)
    assert lake.verify() == 0
