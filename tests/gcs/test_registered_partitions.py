"""Partitions in Cloud Storage outside their table's folder: found, planned, erased and verified.

The catalog is Glue's stand-in, which takes any location, as a Hive metastore with the store's driver does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pii_tracer.model.errors import ExitCode
from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs
from tests.gluesupport import glue_at, glue_door, glue_partition, glue_table
from tests.hdfs.shop import HELD, OTHERS, PERSON, REFILLS, parquet
from tests.storeservers import REGION, Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]


def visits(shop: Shop, store: Store, uri: str) -> dict[str, Any]:
    """The catalogs of the estate file, when Glue names a table with a partition in its folder and one elsewhere."""
    client = glue_at(store.endpoint_url)
    for database in client.get_databases()["DatabaseList"]:
        client.delete_database(Name=database["Name"])
    client.create_database(DatabaseInput={"Name": "prod"})
    glue_table(
        client, "visits", f"gs://{BUCKET}/visits", "parquet", {"uid": "string", "mail": "string"}, {"day": "string"}
    )
    shop.export("visits", "day=1/0.parquet", parquet(OTHERS[0], PERSON))
    shop.put("old/2019/0.parquet", parquet(PERSON, OTHERS[1]))
    for day, folder in (("1", "visits/day=1"), ("2", "old/2019")):
        glue_partition(client, "visits", [day], f"gs://{BUCKET}/{folder}")
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    aws = {"type": "glue", "region": REGION, "endpoint_url": uri}
    return {"spark_catalog": {"type": "declared", "tables": [users]}, "aws": aws}


def test_a_partition_elsewhere_is_erased_with_its_table(gcs: Gcs, store: Store, tmp_path: Path) -> None:
    """Nobody looked into it: no place of the estate file contains it."""
    shop = Shop.of(gcs, tmp_path)
    with glue_door(store.endpoint_url) as uri:
        code, plan = shop.plan(catalogs=visits(shop, store, uri))
        assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
        assert {copy["location"] for copy in plan["copies"]} >= {f"gs://{BUCKET}/{at}" for at in ("visits", "old/2019")}
        shop.approve()
        code, result = shop.apply()
        assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
        assert (result["rows_erased"], result["bystander_rows_lost"]) == (2, 0)
        assert shop.verify() == ExitCode.DONE
    assert PERSON[1].encode() not in shop.read("old/2019/0.parquet")


def test_a_hold_on_the_table_keeps_it(gcs: Gcs, store: Store, tmp_path: Path) -> None:
    shop = Shop.of(gcs, tmp_path)
    held = {**HELD, "id": "visits", "datasets": ["prod.visits"]}
    with glue_door(store.endpoint_url) as uri:
        plan = shop.plan(holds=[HELD, held], catalogs=visits(shop, store, uri))[1]
    strategies = {copy["location"]: copy["strategy"] for copy in plan["copies"]}
    assert strategies[f"gs://{BUCKET}/old/2019"] == "exempt"
