"""A Hudi table in Cloud Storage, merge-on-read: planned, erased by Spark, verified."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_tracer.model.errors import ExitCode
from tests.gcs.shop import BUCKET
from tests.gcs.tables import Lake, put_all
from tests.gcssupport import Gcs
from tests.hdfs.shop import MAIL, REFILLS, USER
from tests.hudistores import EVERYBODY_ELSE, declared, hold, hudi, refilled, rows
from tests.leaks import Person, leaks
from tests.sparksession import HAS_HUDI

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def holding(shop: Lake) -> list[str]:
    """Every version of every object with the person, whatever its state."""
    return [str(o["name"]) for o in shop.gcs.there(shop.gcs.buckets[BUCKET]) if hold(o["data"])]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not HAS_HUDI, reason="this Spark has no bundle of Hudi")
def test_the_person_leaves_a_table_and_nobody_else_does(gcs: Gcs, tmp_path: Path, spark: SparkSession) -> None:
    shop = Lake.of(gcs, tmp_path, soft_delete=25)
    made = hudi(spark, tmp_path / "made" / "mor", "mor")
    put_all(shop, made, "mor")
    assert any("/.hoodie/" not in name for name in holding(shop)), "older file slices and logs"
    there = set(made.rglob("*"))
    refilled(spark, "mor")
    put_all(shop, made, "mor", there)
    shop.exports.append("mor")
    code, plan = shop.plan(catalogs=declared(f"gs://{BUCKET}", "mor"))
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert "object_clear_versions" in [step["action"] for step in plan["steps"]]
    assert shop.approve() == 0
    code, result = shop.apply()
    if code == ExitCode.WAITING:  # else the days of soft delete were over before the step looked
        assert result["state"] == "waiting"
        while set(gcs.states(BUCKET)) != {"live"}:
            time.sleep(0.1)
        code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert holding(shop) == []
    assert set(gcs.states(BUCKET)) == {"live"}
    left = {str(o["name"]): o["data"] for o in gcs.there(gcs.buckets[BUCKET])}
    assert rows(left, "mor", tmp_path / "left") == EVERYBODY_ELSE
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
