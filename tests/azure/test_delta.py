"""Delta tables in Azure Storage: what is planned for them, what stays a gap, and the whole path with Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from executors.engine.version_profiles import installed_profile
from pii_tracer.model.errors import ExitCode
from tests.azure.blob_service import BlobService
from tests.azure.dfs_service import DfsService
from tests.azure.lake import Lake
from tests.azure.shared_key import KEY
from tests.gcs.tables import deleted, delta, put_all
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER
from tests.leaks import Person, leaks


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(installed_profile().name != "3.5", reason="the driver was not tried with it")
def test_the_person_leaves_a_table_in_a_data_lake_and_nobody_else_does(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    """A hierarchical namespace: a kill in the middle, then soft-deleted paths are waited for."""
    shop = Lake.of_account(azure, dfs, tmp_path, hierarchical=True, soft_delete_days=7, page=500)
    delta(shop, "t", [OTHERS[0], PERSON], OTHERS[1:], put=False)
    deleted(shop, "t", USER)
    put_all(shop, shop.base / "made" / "t", "t")
    naive = shop.holding(USER, MAIL)
    assert {name.endswith(".json") for name in naive} == {True, False}, "old files and the log"
    delta(shop, "t", [PERSON], again=True)
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert shop.approve() == 0
    shop.until = lambda: sum(one.startswith("DELETE") for one in dfs.asked) >= 1
    assert shop.apply()[0] < 0
    shop.until = lambda: False
    unfinished = f"t/_delta_log/.{6:020}.crc.5bd0a7a4-8f4e-4d0c-9c5e-1f6f3f0c2d11.tmp"
    shop.put(unfinished, b"")
    shop.blob(unfinished).stage(f"{0:020}", b"a checksum that no writer flushed", azure.account.now())
    code, result = shop.apply()
    assert (code, result["state"], result["residue"]) == (ExitCode.WAITING, "waiting", [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert shop.rows("t") == sorted(OTHERS)
    assert shop.holding(USER, MAIL) != [], "anybody with the right undeletes it"
    assert shop.verify() == ExitCode.PARTIAL
    azure.account.days = 8
    assert shop.verify() == 0
    assert shop.holding(USER, MAIL) == []
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
    assert leaks(Person((KEY,)), [shop.base]) == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(installed_profile().name != "3.5", reason="the driver was not tried with it")
def test_versions_and_snapshots_of_a_flat_account_go_with_the_person(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    shop = Lake.of_account(azure, dfs, tmp_path, versioning=True, page=500)
    delta(shop, "t", [OTHERS[0], PERSON], OTHERS[1:])
    log = f"t/_delta_log/{0:020}.json"
    shop.snapshot(log)
    shop.put(log, shop.read(log))
    assert len(shop.holding(USER, MAIL)) > 2
    assert shop.plan()[0] == 0
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert shop.holding(USER, MAIL) == []
    assert shop.kept() == []
    assert shop.rows("t") == sorted(OTHERS)
