"""Partitions that a real Hive metastore names since the plan was made, whose key is in the metastore alone."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.app.settings import Settings
from pii_tracer.app.verification import Verification
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import ErasurePlan
from tests.app.planning import test_remote
from tests.app.planning.test_hive_s3 import calls, hive, parquet, running, shop
from tests.app.planning.test_remote import PERSON, Shop
from tests.hivesupport import Hive
from tests.storeservers import signed
from tests.storeservers import strict_store as store
from tests.verify.s3lake import MARKS, no_spark

__all__ = ["hive", "running", "shop", "signed", "store"]

NOTE = parquet(pa.table({"note": ["called at noon"]}))


def looked(shop: Shop, person: int = PERSON) -> dict[str, tuple[str, ...]]:
    """What is not verified, by name."""
    settings = Settings(shop.base / "pii-tracer.yaml", shop.base / "state")
    plan = ErasurePlan.model_validate_json((shop.base / "p.plan.json").read_bytes())
    key = KeySet(name="user.uid", origin="uid", weak=False, values=(("l", str(person)),))
    looks = Verification(
        plan=plan,
        estate=settings.estate(),
        base=shop.base,
        keys=(key,),
        marks=MARKS,
        spark=no_spark,
        now=lambda: datetime.now(timezone.utc),
    )
    found = looks.elsewhere()
    assert str(person) not in repr(found)
    return {verdict.copy_id: verdict.unverified for verdict in found}


@pytest.mark.parametrize("folder", ["old/place9", "wh/core.db/notes/place9"])
def test_a_partition_that_came_since_is_never_clean(shop: Shop, hive: Hive, folder: str) -> None:
    """In a folder of its own, and in its table's. Its file has nothing of the person, whose key the metastore has."""
    home = f"s3a://{shop.bucket}/wh/core.db/notes"
    shop.put("wh/core.db/notes/day=7/0.parquet", NOTE)
    hive.table("core.notes", home, columns={"note": "string"}, partitions={"7": f"{home}/day=7"})
    shop.jobs += "INSERT INTO core.notes SELECT 'x' AS note, uid AS day FROM shop.people;\n"
    plan = shop.plan()
    assert plan["gaps"] == []
    assert not any(looked(shop).values())
    shop.put(f"{folder}/0.parquet", NOTE)
    with hive.client() as client:
        (partition,) = client.get_partitions_by_names("core", "notes", ["day=7"])
        partition.values, partition.sd.location = [str(PERSON)], f"s3a://{shop.bucket}/{folder}"
        client.add_partition(partition)
    found = [reason for reasons in looked(shop).values() for reason in reasons]
    assert len(found) == 1
    assert "plan again" in found[0]


def test_a_partition_whose_name_a_gap_masks_is_not_told_as_new(
    shop: Shop, hive: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan has it as a gap, which an owner may waive."""
    monkeypatch.setattr(test_remote, "PERSON", 20190301)
    shop.put("old/day=20190301/0.parquet", NOTE)
    calls(shop, hive, {"20190301": f"s3a://{shop.bucket}/old/day=20190301"})
    people = pa.table({"uid": pa.array([20190301], pa.int64()), "mail": ["a@x.example"]})
    pq.write_table(people, shop.base / "w" / "people" / "1.parquet")
    assert [gap["kind"] for gap in shop.plan()["gaps"]].count("external_files") == 1
    assert not [name for name in looked(shop, 20190301) if "old" in name or "partition" in name]
