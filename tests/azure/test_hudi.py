"""Hudi tables in Azure Storage: planned, erased by Spark, verified."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_tracer.model.errors import ExitCode
from tests.azure.blob_service import BlobService
from tests.azure.dfs_service import DfsService
from tests.azure.lake import Lake
from tests.azure.shared_key import KEY
from tests.azure.shop import STORE
from tests.gcs.tables import put_all
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER
from tests.hudistores import EVERYBODY_ELSE, declared, hold, hudi, made_by_hand, refilled, rows
from tests.leaks import Person, leaks
from tests.sparksession import HAS_HUDI

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HudiLake(Lake):
    """A shop with Hudi tables."""

    def left(self) -> list[str]:
        """Every state of every path that has the person in its bytes, and not only somebody of a like key."""
        return sorted(name for name, state in self.states() if hold(state.data))

    def seen(self, folder: str, here: Path) -> list[tuple[str, str]]:
        """What a reader of a table sees."""
        blobs = {name: blob.current for name, blob in self.container.blobs.items()}
        files = {name: one.data for name, one in blobs.items() if one is not None and not one.folder}
        return rows(files, folder, here)


def test_a_table_is_planned_and_one_without_a_name_stays_a_gap(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    """A snapshot of a blob keeps engines from deleting it, so that it goes before the first removal of files."""
    shop = HudiLake.of_account(azure, dfs, tmp_path, hierarchical=True, soft_delete_days=7, page=99)
    for folder in ("t", "nameless"):
        for path, data in made_by_hand(OTHERS[0], PERSON).items():
            shop.put(f"{folder}/{path}", data)
        shop.exports.append(folder)
    shop.snapshot("t/.hoodie/20261101000000000.commit")
    plan = shop.plan(catalogs=declared(STORE, "t"))[1]
    [copy] = [copy for copy in plan["copies"] if copy["location"] == f"{STORE}/t"]
    assert (copy["table"], copy["strategy"], copy["found"]["rows"]) == ("quay.t", "delete_by_key", 1)
    steps = [step["action"] for step in plan["steps"] if step["copy"] == copy["id"]]
    assert steps == [
        "hudi_delete_rows",
        "object_clear_versions",
        "hudi_clean",
        "hudi_rebuild_metadata",
        "object_clear_versions",
        "object_await_purge",
        "verify_copy",
    ]
    [gap] = [gap for gap in plan["gaps"] if gap["dataset"]["name"].endswith("nameless")]
    assert "declare the table in the estate file" in gap["reason"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not HAS_HUDI, reason="this Spark has no bundle of Hudi")
def test_the_person_leaves_a_table_in_a_data_lake_and_nobody_else_does(
    azure: BlobService, dfs: DfsService, tmp_path: Path, spark: SparkSession
) -> None:
    """A hierarchical namespace, merge-on-read: a kill in the middle, then soft-deleted paths are waited for."""
    shop = HudiLake.of_account(azure, dfs, tmp_path, hierarchical=True, soft_delete_days=7, page=500)
    made = hudi(spark, tmp_path / "made" / "mor", "mor")
    put_all(shop, made, "mor")
    assert any("/.hoodie/" not in name for name in shop.left()), "older file slices and logs"
    there = set(made.rglob("*"))
    refilled(spark, "mor")
    put_all(shop, made, "mor", there)
    shop.exports.append("mor")
    code, plan = shop.plan(catalogs=declared(STORE, "mor"))
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert shop.approve() == 0
    shop.until = lambda: any(one.startswith("DELETE") and ".parquet" in one for one in dfs.asked)
    assert shop.apply()[0] < 0
    shop.until = lambda: False
    code, result = shop.apply()
    assert (code, result["state"], result["residue"]) == (ExitCode.WAITING, "waiting", [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert shop.seen("mor", tmp_path / "left") == EVERYBODY_ELSE
    assert shop.left() != [], "anybody with the right undeletes it"
    assert shop.verify() == ExitCode.PARTIAL
    azure.account.days = 8
    assert shop.verify() == 0
    assert shop.left() == []
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
    assert leaks(Person((KEY,)), [shop.base]) == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not HAS_HUDI, reason="this Spark has no bundle of Hudi")
def test_versions_and_snapshots_of_a_flat_account_go_with_the_person(
    azure: BlobService, dfs: DfsService, tmp_path: Path, spark: SparkSession
) -> None:
    """Copy-on-write; a data file has a snapshot."""
    shop = HudiLake.of_account(azure, dfs, tmp_path, versioning=True, page=500)
    made = hudi(spark, tmp_path / "made" / "cow", "cow")
    put_all(shop, made, "cow")
    there = set(made.rglob("*"))
    refilled(spark, "cow")
    put_all(shop, made, "cow", there)
    data = next(name for name in shop.container.blobs if name.endswith(".parquet"))
    shop.snapshot(data)
    shop.put(data, shop.read(data))
    shop.exports.append("cow")
    assert shop.plan(catalogs=declared(STORE, "cow"))[0] == 0
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert shop.left() == []
    assert shop.kept() == []
    assert shop.seen("cow", tmp_path / "left") == EVERYBODY_ELSE
