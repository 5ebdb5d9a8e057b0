"""Check and enforce on real tables: settings are said, changed, and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.retention.hoard import Hoard, hold

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def answer(hoard: Hoard, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = hoard.command(*words, "--format", "json")
    return code, json.loads(capsys.readouterr().out)


def test_settings_are_found_changed_and_found_in_order(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hoard = Hoard(tmp_path, "hoardlive")
    table = hoard.iceberg(spark, 1)
    spark.sql(f"ALTER TABLE {table} CREATE TAG q3")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('history.expire.min-snapshots-to-keep' = '9')")
    path = hoard.delta(spark, "t", 1)
    hoard.delta(spark, "held", 1)
    hoard.write(
        tables={table: "pii", "delta/t": "week", "delta/held": "pii"},
        classes={"week": 6},
        holds=[hold("delta/held")],
    )
    code, found = answer(hoard, capsys, "check")
    assert code == 4
    assert {(v["table"], v["setting"], v["keeps"]) for v in found["violations"]} == {
        (table, "history.expire.min-snapshots-to-keep", None),
        (table, "tag q3: max-ref-age-ms", None),
        (table, "write.metadata.delete-after-commit.enabled", None),
        ("delta/t", "delta.deletedFileRetentionDuration", 7),
        ("delta/t", "delta.logRetentionDuration", 30),
        ("delta/held", "delta.logRetentionDuration", 30),
    }
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file()}
    code, told = answer(hoard, capsys, "enforce", "--dry-run")
    assert code == 4
    assert {p: p.read_bytes() for p in path.rglob("*") if p.is_file()} == before
    assert ("delta.logRetentionDuration", None, "interval 6 days") in {
        (c["setting"], c["old"], c["new"]) for c in told["changes"]
    }
    code, done = answer(hoard, capsys, "enforce", "--apply")
    assert (code, done["failed"]) == (4, [])
    assert {(k["table"], k["setting"]) for k in done["kept"]} == {
        (table, "tag q3: max-ref-age-ms"),
        ("delta/held", "delta.logRetentionDuration"),
    }
    head = spark.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'").first()
    assert answer(hoard, capsys, "enforce", "--apply", "--refs")[1]["failed"] == []
    assert spark.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'").first() == head
    _, left = answer(hoard, capsys, "check")
    assert {(v["table"], v["setting"]) for v in left["violations"]} == {("delta/held", "delta.logRetentionDuration")}


def test_a_floor_lengthens_what_is_kept_too_short(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hoard = Hoard(tmp_path, "hoardfloor")
    path = hoard.delta(spark, "t", 1)
    pairs = "'delta.deletedFileRetentionDuration' = 'interval 2 days', 'delta.logRetentionDuration' = 'interval 5 days'"
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({pairs})")
    hoard.write(tables={"delta/t": "pii"}, floors={"delta/t": 5})
    _, found = answer(hoard, capsys, "check")
    assert [(v["kind"], v["keeps"]) for v in found["violations"]] == [("too_short", 2)]
    assert answer(hoard, capsys, "enforce", "--apply")[0] == 0
    assert answer(hoard, capsys, "check") == (0, {"violations": [], "notes": []})
