"""Iceberg tables in Azure Storage: what is planned for them, what stays a gap, and the whole path with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from executors.engine.version_profiles import installed_profile
from pii_tracer.model.errors import ExitCode
from tests.azure.blob_service import BlobService
from tests.azure.dfs_service import DfsService
from tests.azure.lake import Lake
from tests.azure.shared_key import ACCOUNT, KEY
from tests.azure.shop import CONTAINER, STORE
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, parquet
from tests.icebergstores import Files, catalog_in, iceberg
from tests.leaks import Person, leaks

WAREHOUSE = f"{STORE}/wh"


def catalog_of(shop: Lake, warehouse: str = WAREHOUSE) -> SqlCatalog:
    """warehouse: in whatever spelling."""

    def key(uri: str) -> str:
        return uri.partition("://")[2].partition("/")[2]

    files = Files(lambda uri, data: shop.put(key(uri), data), lambda uri: shop.read(key(uri)))
    return catalog_in(shop.base, warehouse, files)


def catalogs_of(shop: Lake) -> dict[str, Any]:
    """The estate file's catalogs."""
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    return {
        "spark_catalog": {"type": "declared", "tables": [users]},
        "ice": {"type": "iceberg-sql", "uri": f"sqlite:///{shop.base / 'catalog.db'}", "warehouse": WAREHOUSE},
    }


def planned(shop: Lake, **more: Any) -> tuple[int, dict[str, Any]]:
    """A plan of the shop with the catalog."""
    return shop.plan(catalogs=catalogs_of(shop), **{"object_stores": shop.stored("wh"), **more})


def test_a_table_that_a_catalog_names_is_planned_with_its_snapshots(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    shop = Lake.of_account(azure, dfs, tmp_path, hierarchical=True, soft_delete_days=7, page=99)
    catalog = catalog_of(shop)
    where = iceberg(catalog, "db.seen", [OTHERS[0], PERSON], OTHERS[1:])
    iceberg(catalog, "db.clean", OTHERS)
    shop.exports += ["wh/db/seen", "wh/db/clean"]
    assert where == f"{WAREHOUSE}/db/seen"
    code, plan = planned(shop)
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    copy = next(copy for copy in plan["copies"] if copy["location"] == where)
    assert (copy["table"], copy["strategy"], copy["found"]["rows"]) == ("ice.db.seen", "delete_by_key", 1)
    steps = [step["action"] for step in plan["steps"] if step["copy"] == copy["id"]]
    assert steps[0] == "iceberg_delete_rows"
    assert steps[-5:] == [
        "iceberg_expire_snapshots",
        "iceberg_remove_orphans",
        "object_clear_versions",
        "object_await_purge",
        "verify_copy",
    ]
    assert {item["dataset"]["name"] for item in plan["examined"]} == {"wh", "wh/db/clean"}, "directories, and a table"


def test_tables_that_no_step_may_touch_stay_gaps_and_say_why(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    """The metadata of `web` names its files as another driver of Hadoop's does, and Spark takes such names as they are."""
    shop = Lake.of_account(azure, dfs, tmp_path, versioning=True, page=99)
    catalog = catalog_of(shop)
    for name in ("dropped", "twice", "strange"):
        iceberg(catalog, f"db.{name}", [OTHERS[0], PERSON])
    shop.put("wh/db/strange/data/notes.txt", b"somebody's")
    catalog.register_table("db.second", catalog.load_table("db.twice").metadata_location)
    catalog.drop_table("db.dropped")
    web = f"wasbs://{CONTAINER}@{ACCOUNT}.blob.core.windows.net"
    iceberg(catalog_of(shop, f"{web}/wh"), "db.web", [PERSON])
    iceberg(catalog_of(shop, f"abfs://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/wh"), "db.plain", [PERSON])
    shop.exports += [f"wh/db/{name}" for name in ("dropped", "twice", "strange", "web", "plain")]
    gaps = (gap for gap in planned(shop)[1]["gaps"] if gap["waiver"] is None)
    found = {gap["dataset"]["name"].rpartition("/")[2]: gap["reason"] for gap in gaps}
    why = {
        "dropped": "the tool erases Iceberg tables there only if a catalog names them",
        "twice": "it has more than one name (ice.db.second, ice.db.twice)",
        "strange": "may belong to somebody",
        "web": f"references files with {web}, but Spark can access only {STORE}",
    }
    assert found.keys() == why.keys()
    assert {name: reason in found[name] for name, reason in why.items()} == dict.fromkeys(why, True)


def rows_of(shop: Lake, name: str) -> list[tuple[str, str]]:
    rows = catalog_of(shop).load_table(name).scan().to_arrow().to_pylist()
    return sorted((row["uid"], row["mail"]) for row in rows)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(installed_profile().name != "3.5", reason="the driver was not tried with it")
def test_the_person_leaves_every_snapshot_in_a_data_lake_and_nobody_else_does(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    """A hierarchical namespace: a kill in the middle, then soft-deleted paths are waited for."""
    shop = Lake.of_account(azure, dfs, tmp_path, hierarchical=True, soft_delete_days=7, page=500)
    catalog = catalog_of(shop)
    iceberg(catalog, "db.seen", [OTHERS[0], PERSON], OTHERS[1:])
    catalog.load_table("db.seen").delete(f"uid = '{USER}'")
    assert rows_of(shop, "db.seen") == sorted(OTHERS)
    assert any(name.endswith(".parquet") for name in shop.holding(USER, MAIL)), "old snapshots have the person"
    iceberg(catalog, "db.seen", [PERSON])
    shop.exports.append("wh/db/seen")
    code, plan = planned(shop)
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert shop.approve() == 0
    shop.until = lambda: sum(one.startswith("DELETE") for one in dfs.asked) >= 2
    assert shop.apply()[0] < 0
    shop.until = lambda: False
    code, result = shop.apply()
    assert (code, result["state"], result["residue"]) == (ExitCode.WAITING, "waiting", [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert rows_of(shop, "db.seen") == sorted(OTHERS)
    assert shop.holding(USER, MAIL) != [], "anybody with the right undeletes it"
    assert shop.verify() == ExitCode.PARTIAL
    azure.account.days = 8
    assert shop.verify() == 0
    assert shop.holding(USER, MAIL) == []
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
    assert leaks(Person((KEY,)), [shop.base]) == []
    shop.put("wh/db/seen/data/later.parquet", parquet(PERSON))
    assert shop.verify() == ExitCode.RESIDUE


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(installed_profile().name != "3.5", reason="the driver was not tried with it")
def test_versions_and_snapshots_of_a_flat_account_go_with_the_person(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    """A snapshot of a blob keeps engines from deleting it: what Iceberg cannot remove, it leaves without a word."""
    shop = Lake.of_account(azure, dfs, tmp_path, versioning=True, page=500)
    catalog = catalog_of(shop)
    iceberg(catalog, "db.seen", [OTHERS[0], PERSON], OTHERS[1:])
    data = next(name for name in shop.container.blobs if name.endswith(".parquet"))
    shop.snapshot(data)
    shop.put(data, shop.read(data))
    shop.exports.append("wh/db/seen")
    assert planned(shop)[0] == 0
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert shop.holding(USER, MAIL) == []
    assert shop.kept() == []
    assert rows_of(shop, "db.seen") == sorted(OTHERS)
