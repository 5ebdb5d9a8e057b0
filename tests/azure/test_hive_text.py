"""Delimited text in a data lake that a catalog describes: found, planned, erased and verified.

The catalog is Glue's stand-in, which takes any location: a metastore needs the driver of the store.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_glue_text import described
from tests.azure.blob_service import BlobService
from tests.azure.dfs_service import DfsService
from tests.azure.shop import STORE, Shop
from tests.azure.test_file_rewrite import SET, kept, state
from tests.gluesupport import glue_at, glue_door
from tests.hdfs.shop import REFILLS
from tests.hivetextsupport import LAZY
from tests.leaks import Person, leaks
from tests.storeservers import REGION, Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

pytestmark = pytest.mark.slow

USER, MAIL = "M|4410027", "zq.person@example.net"
BARS = {"field.delim": "|", "escape.delim": "\\"}
HERS, OTHERS = b"M\\|4410027|\\N\n", b"M-1|a\\|b|\xc3\xa9\r\nM\\\\|\\N\n"


def test_the_person_leaves_text_whose_owner_and_access_list_stay(
    azure: BlobService, dfs: DfsService, store: Store, tmp_path: Path
) -> None:
    shop = Shop.on(azure, tmp_path, hierarchical=True, soft_delete_days=7, page=99)
    shop.dfs, shop.user = dfs, USER
    shop.export("members", "000000_0.gz", gzip.compress(OTHERS + HERS + OTHERS), **SET)
    shop.export("members", "000001_0", OTHERS)
    before = kept(state(shop, "members/000000_0.gz"))
    with glue_door(store.endpoint_url) as uri:
        client = glue_at(store.endpoint_url)
        client.create_database(DatabaseInput={"Name": "prod"})
        columns = {"uid": "string", "mail": "string"}
        described(client, "members", f"{STORE}/members", LAZY, BARS, columns=columns)
        users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
        catalogs = {
            "spark_catalog": {"type": "declared", "tables": [users]},
            "aws": {"type": "glue", "region": REGION, "endpoint_url": uri},
        }
        code, plan = shop.plan(catalogs=catalogs)
        assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
        assert {copy["table"]: copy["strategy"] for copy in plan["copies"]} == {
            "shop.users": "exempt",
            "prod.members": "delete_by_key",
        }
        assert not [value for value in (USER, "4410027", MAIL) if value in shop.plan_file.read_text()]
        shop.approve()
        code, result = shop.apply()
        assert (code, result["state"], result["residue"]) == (ExitCode.WAITING, "waiting", [])
        assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
        azure.account.days = 8
        assert shop.verify() == ExitCode.DONE
    assert gzip.decompress(shop.read("members/000000_0.gz")) == OTHERS + OTHERS
    assert (kept(state(shop, "members/000000_0.gz")), shop.read("members/000001_0")) == (before, OTHERS)
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
