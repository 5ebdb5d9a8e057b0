"""The whole path over a Delta table in S3 by a key of several columns: no version holds her, her namesake stays."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.gcs.tables import Lake
from tests.kits.tenants_kit import ASHA, BY_KEY, COLUMNS, OTHERS, Row, as_table, erased
from tests.storeservers import ACCESS, REGION, SECRET, Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]


@dataclass
class Shop(Lake):
    """A table that a job fills from the users', in a bucket that keeps versions."""

    store: Store | None = None
    bucket: str = "tenants"

    @property
    def place(self) -> str:
        return f"s3://{self.bucket}/out"

    @property
    def client(self) -> Any:
        assert self.store is not None
        return self.store.client()

    @property
    def options(self) -> dict[str, str]:
        assert self.store is not None
        found = {"AWS_ENDPOINT_URL": self.store.endpoint_url, "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true"}
        return {**found, "AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "aws_conditional_put": "etag"}

    def _places(self) -> dict[str, Any]:
        assert self.store is not None
        users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
        out = {"name": "shop.out", "format": "delta", "location": self.place}
        return {
            "roots": ["tables"],
            "catalogs": {"spark_catalog": {"type": "declared", "tables": [users, out]}},
            "s3": {"endpoint_url": self.store.endpoint_url, "region": REGION},
            "writers": [{"job": "web", "stopped": True}],
        }

    def _dataset(self, folder: str) -> dict[str, str]:
        return {"namespace": f"s3://{self.bucket}", "name": folder}

    def rows(self) -> list[Row]:
        found = DeltaTable(self.place, storage_options=self.options).to_pyarrow_table().to_pylist()
        return sorted((tuple(row[name] for name in COLUMNS) for row in found), key=repr)  # type: ignore[misc]

    def rows_of_all_versions(self) -> set[Row]:
        """Also of files that no snapshot has any more."""
        found = set[Row]()
        for version in self.client.list_object_versions(Bucket=self.bucket)["Versions"]:
            if version["Key"].endswith(".parquet") and "_delta_log" not in version["Key"]:
                where = {"Bucket": self.bucket, "Key": version["Key"], "VersionId": version["VersionId"]}
                data = io.BytesIO(self.client.get_object(**where)["Body"].read())
                found |= {tuple(row[n] for n in COLUMNS) for row in pq.read_table(data).to_pylist()}  # type: ignore[misc]
        return found


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Shop:
    shop = Shop(None, tmp_path, "", store=store, exports=["out"])  # type: ignore[arg-type]
    shop.client.create_bucket(Bucket=shop.bucket)
    shop.client.put_bucket_versioning(Bucket=shop.bucket, VersioningConfiguration={"Status": "Enabled"})
    return shop


def test_she_leaves_every_version_and_her_namesake_stays(shop: Shop) -> None:
    write_deltalake(shop.place, as_table(ASHA, *OTHERS), storage_options=shop.options)
    write_deltalake(shop.place, as_table(BY_KEY, *OTHERS[:1]), mode="append", storage_options=shop.options)
    DeltaTable(shop.place, storage_options=shop.options).delete("mail = 'asha.rao@north.example'")
    assert {ASHA, BY_KEY} <= shop.rows_of_all_versions(), "the naive way leaves her"
    stay = [row for row in shop.rows() if row != BY_KEY]
    erased(shop, 1, lambda: (), ())
    assert shop.rows() == stay
    assert shop.rows_of_all_versions() == set(OTHERS)
