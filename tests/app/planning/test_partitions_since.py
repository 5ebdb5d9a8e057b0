"""Partitions that a real Hive metastore names since the plan was made, whose key is in the metastore alone."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.app.settings import Settings
from pii_tracer.app.verification import Verification
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.plan import ErasurePlan
from tests.app.planning import test_remote
from tests.app.planning.test_hive_s3 import COLUMNS, calls, hive, parquet, running, shop
from tests.app.planning.test_remote import PERSON, Shop
from tests.hivesupport import Hive
from tests.storeservers import signed
from tests.storeservers import strict_store as store
from tests.verify.s3lake import no_spark

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
        marks=settings.key().marks,
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


def add(hive: Hive, table: str, day: str, place: str) -> None:
    with hive.client() as client:
        partition = client.get_partitions("core", table, -1)[0]
        partition.values, partition.sd.location = [day], place
        client.add_partition(partition)


def reasons(shop: Shop, person: int = PERSON) -> list[str]:
    return [reason for found in looked(shop, person).values() for reason in found]


def test_a_new_daily_partition_in_a_folder_of_its_own_is_searched(shop: Shop, hive: Hive) -> None:
    """Lineage leads no person into its day: its files tell all. It was never verified, whatever it was partitioned by."""
    shop.put("old/day=1/0.parquet", NOTE)
    calls(shop, hive, {"1": f"s3a://{shop.bucket}/old/day=1"})
    (known,) = shop.plan()["partitioned"]
    assert (known["no_keys"], known["left"]) == (["day"], None)
    shop.put("old/day=2/0.parquet", NOTE)
    add(hive, "calls", "2", f"s3a://{shop.bucket}/old/day=2")
    found = looked(shop)
    assert not any(found.values())
    assert any("old" in name or "core.calls" in name for name in found)


def test_a_new_partition_of_a_known_table_with_the_key_is_never_clean(shop: Shop, hive: Hive) -> None:
    home = f"s3a://{shop.bucket}/wh/core.db/notes"
    for folder in ("wh/core.db/notes/day=7", "old/place8", "old/place9"):
        shop.put(f"{folder}/0.parquet", NOTE)
    places = {"7": f"{home}/day=7", "8": f"s3a://{shop.bucket}/old/place8"}
    hive.table("core.notes", home, columns={"note": "string"}, partitions=places)
    shop.jobs += "INSERT INTO core.notes SELECT 'x' AS note, uid AS day FROM shop.people;\n"
    (known,) = shop.plan()["partitioned"]
    assert known["no_keys"] == []
    before = reasons(shop)
    add(hive, "notes", str(PERSON), f"s3a://{shop.bucket}/old/place9")
    (found,) = [reason for reason in reasons(shop) if reason not in before]
    assert "plan does not know" in found


def test_another_partition_does_not_hide_behind_a_gap_of_its_table(shop: Shop, hive: Hive) -> None:
    """Whoever waived the gap knew of one partition that nobody looks at."""
    shop.put("ext/big/y=1/0.parquet", parquet())
    hive.table("core.big", f"s3a://{shop.bucket}/ext/big", columns=COLUMNS)
    calls(shop, hive, {"1": f"s3a://{shop.bucket}/ext/big/y=1"})
    plan = shop.plan()
    assert [gap["kind"] for gap in plan["gaps"]].count("external_files") == 1
    assert not [reason for reason in reasons(shop) if "other partitions" in reason]
    shop.put("ext/big/y=2/0.parquet", NOTE)
    add(hive, "calls", "2", f"s3a://{shop.bucket}/ext/big/y=2")
    assert len([reason for reason in reasons(shop) if "other partitions" in reason]) == 1


def test_a_plan_of_before_partitions_were_recorded_tells_only_its_own_keys(shop: Shop, hive: Hive) -> None:
    home = f"s3a://{shop.bucket}/wh/core.db/calls"
    shop.put("old/place/0.parquet", NOTE)
    calls(shop, hive, {"1": f"s3a://{shop.bucket}/old/place"})
    hive.table(
        "core.keyed",
        f"s3a://{shop.bucket}/wh/core.db/keyed",
        columns={"note": "string"},
        partitions={"7": f"s3a://{shop.bucket}/wh/core.db/keyed/day=7"},
    )
    shop.put("wh/core.db/keyed/day=7/0.parquet", NOTE)
    shop.plan()
    file = shop.base / "p.plan.json"
    old = json.loads(file.read_bytes())
    del old["partitioned"]
    file.write_text(json.dumps(old))
    shop.put("old/place2/0.parquet", NOTE)
    add(hive, "calls", "2", f"s3a://{shop.bucket}/old/place2")
    add(hive, "calls", "3", f"{home}/place3")
    assert not reasons(shop)
    old["copies"] = [{**copy, "match": _by_day(copy["match"])} for copy in old["copies"]]
    file.write_text(json.dumps(old))
    found = reasons(shop)
    assert any("before partitions were recorded" in reason for reason in found)
    assert not [reason for reason in found if "at planning it was not so" in reason]


def _by_day(match: dict[str, Any] | None) -> dict[str, Any] | None:
    return match and {"terms": [{**term, "column": "day"} for term in match["terms"]]}


def test_another_partition_does_not_hide_behind_a_masked_name(
    shop: Shop, hive: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders whose names are one when a value is masked."""
    monkeypatch.setattr(test_remote, "PERSON", 20190301)
    shop.put("old/day=20190301/0.parquet", NOTE)
    calls(shop, hive, {"20190301": f"s3a://{shop.bucket}/old/day=20190301"})
    people = pa.table({"uid": pa.array([20190301], pa.int64()), "mail": ["a@x.example"]})
    pq.write_table(people, shop.base / "w" / "people" / "1.parquet")
    plan = shop.plan()
    assert "folder of 1 partition " in next(g["reason"] for g in plan["gaps"] if g["kind"] == "external_files")
    assert not [reason for reason in reasons(shop, 20190301) if "other partitions" in reason]
    shop.put("old/day=2019-03-01/0.parquet", NOTE)
    add(hive, "calls", "2019-03-01", f"s3a://{shop.bucket}/old/day=2019%2D0301")
    add(hive, "calls", "2019", f"s3a://{shop.bucket}/old2/day=20190301")
    assert [reason for reason in reasons(shop, 20190301) if "other partitions" in reason]


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
