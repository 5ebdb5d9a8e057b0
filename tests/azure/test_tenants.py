"""Keys of several columns in a container of Azure: blobs, their snapshots and versions."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from executors.engine.version_profiles import installed_profile
from tests.azure.blob_service import BlobService
from tests.azure.dfs_service import DfsService
from tests.azure.lake import Lake
from tests.azure.shop import Shop
from tests.azure.test_iceberg import catalog_of, catalogs_of
from tests.kits.tenants_kit import ASHA, BY_KEY, COLUMNS, OTHERS, WRITERS, as_table, erased


def test_one_person_leaves_and_her_namesake_of_another_tenant_stays(azure: BlobService, tmp_path: Path) -> None:
    """A snapshot has her by the key alone; another blob's snapshot has nobody, and stays."""
    shop, write = Shop.on(azure, tmp_path, versioning=False, soft_delete_days=0), WRITERS["csv"]
    shop.export("out", "a.csv", write(BY_KEY, *OTHERS))
    shop.snapshot("out/a.csv")
    shop.export("out", "b.csv", write(*OTHERS))
    shop.snapshot("out/b.csv")
    erased(shop, 1, lambda: (shop.read("out/a.csv"), *shop.kept()), (write(*OTHERS), write(*OTHERS)))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(installed_profile().name != "3.5", reason="the driver was not tried with it")
def test_she_leaves_every_snapshot_of_an_iceberg_table_and_her_namesake_stays(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    """A table of a SQL catalog, in an account that keeps versions; an old snapshot has her by the key alone."""
    shop = Lake.of_account(azure, dfs, tmp_path, versioning=True, page=500)
    catalog = catalog_of(shop)
    catalog.create_namespace("db")
    table = catalog.create_table("db.seen", as_table().schema)
    table.append(as_table(BY_KEY, OTHERS[0]))
    table.overwrite(as_table(ASHA, *OTHERS))
    shop.exports.append("wh/db/seen")
    erased(shop, 1, lambda: (), (), catalogs=catalogs_of(shop), object_stores=shop.stored("wh"))
    rows = catalog_of(shop).load_table("db.seen").scan().to_arrow().to_pylist()
    assert sorted((tuple(row[name] for name in COLUMNS) for row in rows), key=repr) == sorted(OTHERS, key=repr)
    files = [state.data for name, state in shop.states() if name.endswith(".parquet")]
    left = {tuple(row[n] for n in COLUMNS) for data in files for row in pq.read_table(io.BytesIO(data)).to_pylist()}
    assert left == set(OTHERS), "no version of a data file has her"
