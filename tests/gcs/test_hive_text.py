"""Delimited text in Cloud Storage that a catalog describes: found, planned, erased and verified.

The catalog is Glue's stand-in, which takes any location: a metastore needs the driver of the store.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_glue_text import described
from tests.gcs.running import Killed, killed_after
from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs
from tests.gluesupport import glue_at, glue_door
from tests.hdfs.shop import OTHERS as EVERYBODY
from tests.hdfs.shop import PERSON, REFILLS, csv
from tests.hivetextsupport import LAZY
from tests.leaks import Person, leaks
from tests.storeservers import REGION, Store, signed
from tests.storeservers import strict_store as store

__all__ = ["signed", "store"]

pytestmark = pytest.mark.slow

USER, MAIL = "M|4410027", "zq.person@example.net"
BARS = {"field.delim": "|", "escape.delim": "\\"}
HERS, OTHERS = b"M\\|4410027|\\N\n", b"M-1|a\\|b|\xc3\xa9\r\nM\\\\|\\N\n"


def told(store: Store, uri: str, folder: str) -> dict[str, Any]:
    """The catalogs of the estate file, when Glue names one table of text in the bucket."""
    client = glue_at(store.endpoint_url)
    for database in client.get_databases()["DatabaseList"]:
        client.delete_database(Name=database["Name"])
    client.create_database(DatabaseInput={"Name": "prod"})
    columns = {"uid": "string", "mail": "string"}
    described(client, "members", f"gs://{BUCKET}/{folder}", LAZY, BARS, columns=columns)
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    aws = {"type": "glue", "region": REGION, "endpoint_url": uri}
    return {"spark_catalog": {"type": "declared", "tables": [users]}, "aws": aws}


def test_the_person_leaves_every_generation_of_text(
    gcs: Gcs, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.user = USER
    shop.put("members/000000_0.gz", gzip.compress(HERS))
    shop.export("members", "000000_0.gz", gzip.compress(OTHERS + HERS + OTHERS))
    shop.export("members", "000001_0", HERS + OTHERS)
    shop.export("members", "000002_0", OTHERS)
    with glue_door(store.endpoint_url) as uri:
        catalogs = told(store, uri, "members")
        code, plan = shop.plan(catalogs=catalogs)
        assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
        assert {copy["table"]: copy["strategy"] for copy in plan["copies"]} == {
            "shop.users": "exempt",
            "prod.members": "delete_by_key",
        }
        assert [step["hazards"] for step in plan["steps"] if step["action"] == "object_rewrite"] == [
            ["S10", "F3", "F8"]
        ]
        assert not [value for value in (USER, "4410027", MAIL) if value in shop.plan_file.read_text()]
        shop.approve()
        with killed_after(monkeypatch, 1), pytest.raises(Killed):
            shop.apply()
        code, result = shop.apply()
        assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
        assert (result["rows_erased"], result["bystander_rows_lost"]) == (2, 0)
        assert gzip.decompress(shop.read("members/000000_0.gz")) == OTHERS + OTHERS
        assert [shop.read(f"members/00000{n}_0") for n in (1, 2)] == [OTHERS, OTHERS]
        assert gcs.states(BUCKET) == ["live"] * 3
        assert shop.verify() == ExitCode.DONE
        assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
        shop.put("members/000003_0", HERS)
        assert shop.verify() == ExitCode.RESIDUE


def test_text_inside_a_larger_place_is_never_read_by_its_first_line(gcs: Gcs, store: Store, tmp_path: Path) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.export("lake", "day=1/a.csv", csv(EVERYBODY[0], PERSON))
    with glue_door(store.endpoint_url) as uri:
        plan = shop.plan(catalogs=told(store, uri, "lake/day=1"))[1]
    (gap,) = [gap for gap in plan["gaps"] if gap["kind"] == "object_place"]
    assert "prod.members is in this place" in gap["reason"]
    assert [step for step in plan["steps"] if step["executor"] == "objects"] == []
