"""Who was erased is on the list, nobody can be read out of it, and a backfill leaves them behind."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from executors.suppression_steps import SuppressionExecutor, without_suppressed
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import RunError
from pii_tracer.model.keys_as_text import joined
from pii_tracer.model.plan import Step
from pii_tracer.review.sealed_person_values import KEY_BYTES, EstateKey, KeyRing
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.run.suppression_list import SuppressionList
from tests.review import plans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
KEY, OTHER = EstateKey(bytes(range(KEY_BYTES))), EstateKey(bytes(KEY_BYTES))
PERSON, HASH = "8841302", "5feceb66ffc86f38"
SETS = KeyRing(
    (
        KeySet(name="user.uid", origin="uid", weak=False, values=(("subj_1", PERSON),)),
        KeySet(name="user.uid|md5(x)", origin="uid", expression="md5(x)", weak=False, values=(("subj_1", HASH),)),
    )
)


def step(*names: str) -> Step:
    recheck_on = (NOW + timedelta(days=30)).isoformat()
    parameters = {"key_sets": list(names), "plan_id": "plan-1", "recheck_on": recheck_on}
    return plans.step(
        "suppression/01-suppress", None, action=Action.SUPPRESS, executor="suppression", parameters=parameters
    )


def executor(path: Path, key: EstateKey = KEY) -> SuppressionExecutor:
    return SuppressionExecutor(SETS, key, path, lambda: NOW)


def test_a_suppressed_key_is_known_and_others_are_free(tmp_path: Path) -> None:
    file, both = tmp_path / "s.jsonl", step("user.uid", "user.uid|md5(x)")
    acting = executor(file)
    acting.check(both, None)
    assert not acting.verify(both, None).ok
    assert acting.probe(both, None) is Progress.NOT_STARTED
    assert acting.run(both, None).facts == {"suppressed": 2, "entries": 2}
    assert acting.verify(both, None).ok
    assert acting.probe(both, None) is Progress.DONE
    known = SuppressionList(file, KEY)
    found = known.find("user.uid", PERSON)
    assert found is not None
    assert (found.subject, found.plan_id, found.recheck_on) == ("subj_1", "plan-1", NOW + timedelta(days=30))
    assert known.find("user.uid", HASH) is None
    assert known.find("user.uid", PERSON + "0") is None
    assert known.find("user.phone", PERSON) is None


def test_nobody_can_be_read_out_of_it(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    executor(file).run(step("user.uid"), None)
    text = file.read_text()
    assert PERSON not in text
    assert KEY.reference("user", PERSON).removeprefix("subj_") not in text
    assert file.stat().st_mode & 0o077 == 0
    # another key would find nobody, which must not look as if nobody were on the list
    for asked in (
        lambda: SuppressionList(file, OTHER).find("user.uid", PERSON),
        lambda: executor(file, OTHER).verify(step("user.uid"), None),
        lambda: executor(file, OTHER).run(step("user.uid"), None),
    ):
        with pytest.raises(RunError, match="made with a different estate key"):
            asked()
    assert KEY.check not in (OTHER.check, "")
    old = text.replace(f'"key_check": "{KEY.check}"', '"key_check": ""')
    assert old != text
    file.write_text(old)  # as older versions wrote it
    assert SuppressionList(file, KEY).find("user.uid", PERSON) is not None


def test_adding_twice_is_adding_once_and_runs_beside_each_other_lose_nobody(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    for _ in range(2):
        executor(file).run(step("user.uid"), None)
    assert len(SuppressionList(file, KEY).entries) == 1

    def add(number: int) -> None:
        values = [("user.uid", f"subj_{number}", f"{number}")]
        SuppressionList(file, KEY).extended(values, plan_id="p", since=NOW, recheck_on=NOW)

    threads = [threading.Thread(target=add, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(SuppressionList(file, KEY).entries) == 21


def test_a_broken_list_is_an_error_and_never_an_empty_one(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    for broken in ('{"key_set": "user.uid"}\n', "\n", " \n"):
        file.write_text(broken)
        with pytest.raises(RunError, match="broken"):
            SuppressionList(file, KEY).find("user.uid", PERSON)
    with pytest.raises(RunError, match="broken"):
        executor(file).check(step("user.uid"), None)


@pytest.mark.spark
def test_a_backfill_leaves_them_behind(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    executor(file).run(step("user.uid"), None)
    known = SuppressionList(file, KEY)
    frame = frame_of_rows(
        spark, [(int(PERSON), "a"), (7, "b"), (None, "c"), (int(PERSON), "d")], "uid bigint, x string"
    )
    frame.createOrReplaceTempView("backfill")
    assert spark.table("backfill").where(f"uid = {PERSON}").count() == 2  # what a plain backfill would bring back
    kept = without_suppressed(spark.table("backfill"), "uid", known, "user.uid")
    assert sorted(row["x"] for row in kept.collect()) == ["b", "c"]
    assert kept.columns == ["uid", "x"]
    assert PERSON not in kept._jdf.queryExecution().toString()
    with pytest.raises(RunError, match="suppression list"):
        without_suppressed(frame, "uid", known, "user.phone")


@pytest.mark.spark
def test_a_backfill_asks_by_all_columns_of_a_key(spark: SparkSession, tmp_path: Path) -> None:
    file, name = tmp_path / "s.jsonl", "user.(tenant_id, user_id)"
    value = joined(["4", "17"]) or ""
    SuppressionList(file, KEY).extended([(name, "subj_1", value)], plan_id="p", since=NOW, recheck_on=NOW)
    known, rows = SuppressionList(file, KEY), [("4", 17), ("5", 17), ("4", 18), (None, 17), ("4", None)]
    frame = frame_of_rows(spark, rows, "tenant_id string, user_id bigint")
    kept = without_suppressed(frame, ["tenant_id", "user_id"], known, name)
    assert {tuple(row) for row in kept.collect()} == set(rows) - {("4", 17)}
    with pytest.raises(RunError, match="several columns"):
        without_suppressed(frame, "user_id", known, name)
