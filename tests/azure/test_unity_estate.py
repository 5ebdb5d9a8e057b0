"""An estate in Azure Storage under Unity Catalog and a REST catalog: the whole path with Spark, killed in the middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from executors.engine.version_profiles import installed_profile
from pii_tracer.model.errors import ExitCode
from tests.azure.blob_service import BlobService
from tests.azure.dfs_service import DfsService
from tests.azure.estate import WAIVED, Estate
from tests.azure.lake import Lake
from tests.azure.rest_catalog import catalog_server
from tests.azure.shared_key import KEY
from tests.gcs.test_iceberg_rest import verified
from tests.hdfs.shop import MAIL, PERSON, REFILLS, USER, parquet
from tests.leaks import Person, leaks
from tests.unitysupport import serving, token

__all__ = ["token"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("account", ["flat", "data lake"])
@pytest.mark.skipif(installed_profile().name != "3.5", reason="the driver was not tried with it")
def test_an_estate_of_eight_tables_is_erased_though_the_run_is_killed(
    account: str, azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    """In a data lake, what engines delete is soft-deleted, and waited for."""
    lake = account == "data lake"
    settings = {"hierarchical": True, "soft_delete_days": 7} if lake else {"versioning": True}
    shop = Lake.of_account(azure, dfs, tmp_path, **settings, page=500)
    with catalog_server(shop) as server, serving() as unity:
        estate = Estate(shop, server, unity)
        estate.make()
        before = estate.staying()
        code, plan = estate.plan()
        assert (code, {gap["id"] for gap in plan["gaps"]}) == (0, {REFILLS, WAIVED})
        assert shop.approve() == 0
        shop.until = lambda: verified(shop) >= 20
        assert shop.apply()[0] < 0
        shop.until = lambda: False
        assert 0 < verified(shop) < len(plan["steps"])
        assert shop.holding(USER, MAIL), "the person is there still"
        code, result = shop.apply()
        if lake:
            assert (code, result["state"], result["residue"]) == (ExitCode.WAITING, "waiting", [])
            assert shop.holding(USER, MAIL), "anybody with the right undeletes it"
            azure.account.days = 8
            assert shop.verify() == 0
        else:
            assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
        assert result["bystander_rows_lost"] == 0
        assert shop.holding(USER, MAIL) == []
        assert shop.kept() == []
        assert estate.staying() == before
        assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
        assert leaks(Person((KEY,)), [shop.base]) == []
        shop.put("wh/db/seen/data/later.parquet", parquet(PERSON))
        assert shop.verify() == ExitCode.RESIDUE
