"""Delta tables in Cloud Storage: what is planned for them, what stays a gap, and the whole path with Spark."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from executors.engine.version_profiles import installed_profile
from pii_tracer.model.errors import ExitCode
from tests.gcs.shop import BUCKET
from tests.gcs.tables import Lake, deleted, delta, holding, put_all, rows
from tests.gcssupport import Gcs
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, csv, parquet
from tests.leaks import Person, leaks
from tests.unitysupport import serving, token

__all__ = ["token"]

STATEMENTS = ["delta_delete_rows", "delta_purge", "delta_vacuum", "delta_clean_log", "object_clear_versions"]


def steps_of(plan: dict[str, Any], name: str) -> list[str]:
    return [step["action"] for step in plan["steps"] if step["copy"] and step["copy"].endswith(name)]


def gaps_of(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = (gap for gap in plan["gaps"] if gap["waiver"] is None)
    return {gap["dataset"]["name"].rpartition("/")[2]: gap for gap in found}


def test_tables_below_one_prefix_are_places_of_their_own(gcs: Gcs, tmp_path: Path) -> None:
    shop = Lake.of(gcs, tmp_path)
    delta(shop, "lake/found", [OTHERS[0], PERSON], OTHERS[1:])
    delta(shop, "lake/clean", OTHERS)
    shop.export("bare", "a.csv", csv(OTHERS[0], PERSON))
    code, plan = shop.plan(object_stores=shop.stored("lake/found", "lake/clean", "bare"))
    apart = [(copy["location"], copy["strategy"], copy["found"]["rows"]) for copy in plan["copies"]]
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert (f"gs://{BUCKET}/lake/found", "delete_by_key", 1) in apart
    assert steps_of(plan, "found") == [*STATEMENTS, "verify_copy"]
    first = next(step for step in plan["steps"] if step["action"] == "delta_delete_rows")
    assert {p["kind"] for p in first["preconditions"]} == {"clones", "columns", "refs", "snapshot"}
    assert [item["dataset"]["name"] for item in plan["examined"]] == ["lake/clean"]
    shop.put("lake/notes/a.csv", csv(*OTHERS))
    code, whole = shop.plan(object_stores=shop.stored("lake", "bare"))
    assert code == 0
    assert steps_of(whole, "found") == [*STATEMENTS, "verify_copy"]
    assert {item["dataset"]["name"] for item in whole["examined"]} == {"lake", "lake/clean"}


def test_a_table_is_the_source_of_the_persons(gcs: Gcs, tmp_path: Path) -> None:
    shop = Lake.of(gcs, tmp_path)
    delta(shop, "users", [OTHERS[0], PERSON], known=False)
    source = {
        "source": "harbour.users",
        "name": "user",
        "key": "uid",
        "identifiers": [{"column": "mail", "category": "email"}],
    }
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    table = {"name": "harbour.users", "format": "delta", "location": f"gs://{BUCKET}/users"}
    catalogs = {"spark_catalog": {"type": "declared", "tables": [users, table]}}
    plan = shop.plan(catalogs=catalogs, subjects=[source], holds=[], object_stores=shop.stored("other"))[1]
    copy = next(copy for copy in plan["copies"] if copy["kind"] == "SOURCE")
    assert (copy["table"], copy["strategy"], copy["found"]["rows"]) == ("harbour.users", "delete_by_key", 1)


def test_a_table_that_no_step_may_touch_stays_a_gap_and_says_why(gcs: Gcs, tmp_path: Path) -> None:
    shop = Lake.of(gcs, tmp_path)
    origin = delta(shop, "origin", [OTHERS[0], PERSON])
    clone = delta(shop, "clone", [OTHERS[0], PERSON], known=False, put=False)
    log, theirs = clone / "_delta_log" / f"{0:020}.json", next(origin.glob("*.parquet")).name
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = f"gs://{BUCKET}/origin/{theirs}"
    log.write_text("\n".join(map(json.dumps, lines)))
    put_all(shop, clone, "clone")
    for folder, sign in (("hudi", ".hoodie/hoodie.properties"), ("iceberg", "metadata/v1.metadata.json")):
        shop.export(folder, "a.parquet", parquet(PERSON))
        shop.put(f"{folder}/{sign}", b"{}")
    outer = delta(shop, "outer", [PERSON])
    put_all(shop, outer, "outer/inner")
    delta(shop, "broken", [PERSON])
    shop.put(f"broken/_delta_log/{0:020}.json", b"{")
    delta(shop, "fixed", [OTHERS[0], PERSON], configuration={"delta.appendOnly": "true"})
    places = shop.stored(*shop.exports, "clone")
    found = gaps_of(shop.plan(object_stores=places)[1])
    why = {
        "origin": "/clone reads its files, as a shallow clone does",
        "clone": "it reads files outside of its folder",
        "hudi": "Hudi's procedures need its name",
        "iceberg": "the tool erases Iceberg tables there only if a catalog names them",
        "outer": "/outer/inner lies inside its folder",
        "broken": "the Delta log cannot be read",
        "fixed": "delta.appendOnly",
    }
    assert {name: reason in found[name]["reason"] for name, reason in why.items()} == dict.fromkeys(why, True)


def test_objects_that_a_table_elsewhere_reads_are_not_written_again(gcs: Gcs, tmp_path: Path) -> None:
    """A log may name files by their places: to write these again would break that table."""
    shop = Lake.of(gcs, tmp_path)
    shop.export("bare", "a.parquet", parquet(OTHERS[0], PERSON))
    table = delta(shop, "t", OTHERS, known=False, put=False)
    log = table / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace(next(table.glob("*.parquet")).name, f"gs://{BUCKET}/bare/a.parquet"))
    put_all(shop, table, "t")
    plan = shop.plan(object_stores=shop.stored("bare", "t"))[1]
    assert f"tables in other places may read its files: gs://{BUCKET}/t" in gaps_of(plan)["bare"]["reason"]


def test_a_table_under_a_hold_is_a_gap_and_one_in_another_store_too(gcs: Gcs, tmp_path: Path) -> None:
    shop = Lake.of(gcs, tmp_path)
    here = delta(shop, "held", [OTHERS[0], PERSON], put=False)
    for file in sorted(here.rglob("*")):
        if file.is_file():
            shop.put(f"held/{file.relative_to(here).as_posix()}", file.read_bytes(), temporaryHold=True)
    plan = shop.plan()[1]
    assert [gap["kind"] for gap in plan["gaps"] if gap["waiver"] is None] == ["object_held"]
    assert steps_of(plan, "held") == []


def test_a_table_that_was_written_since_the_plan_is_drift(gcs: Gcs, tmp_path: Path) -> None:
    shop = Lake.of(gcs, tmp_path)
    delta(shop, "t", [OTHERS[0], PERSON])
    assert shop.plan()[0] == 0
    assert shop.cli("drift", str(shop.plan_file)) == ExitCode.DONE
    delta(shop, "t", OTHERS[1:], again=True)
    assert shop.cli("drift", str(shop.plan_file)) == ExitCode.DRIFT


@pytest.mark.usefixtures("token")
def test_unity_catalog_names_tables_in_buckets_that_the_estate_declares(gcs: Gcs, tmp_path: Path) -> None:
    """Lineage knows the tables by these names; one of a bucket that nobody declared is a gap."""
    shop = Lake.of(gcs, tmp_path)
    delta(shop, "uc/people", [OTHERS[0], PERSON], known=False)
    delta(shop, "uc/seen", [OTHERS[1], PERSON], known=False)
    (tmp_path / "jobs.sql").write_text("CREATE TABLE main.sales.seen AS SELECT uid, mail FROM main.sales.people;\n")
    columns = [{"name": name, "type_text": "string"} for name in ("uid", "mail")]
    with serving() as unity:
        for name in ("people", "seen", "gone"):
            unity.table(f"main.sales.{name}", f"gs://{BUCKET}/uc/{name}", columns=columns)
        unity.table("main.sales.far", "gs://elsewhere/far", columns=columns)
        source = {"name": "user", "source": "main.sales.people", "key": "uid"}
        plan = shop.plan(
            catalogs={"uc": {"type": "unity", "uri": unity.uri}},
            subjects=[source | {"identifiers": [{"column": "mail", "category": "email"}]}],
            lineage={"sql": ["jobs.sql"]},
            roots=[],
            holds=[],
            object_stores=shop.stored("notes"),
        )[1]
    copies = {copy["table"]: copy for copy in plan["copies"]}
    assert {name: copy["found"]["rows"] for name, copy in copies.items()} == {
        "main.sales.people": 1,
        "main.sales.seen": 1,
    }
    assert copies["main.sales.seen"]["carries"] == "key"
    assert {(gap["kind"], gap["evidence"]) for gap in plan["gaps"]} == {
        ("missing_table", f"gs://{BUCKET}/uc/gone"),
        ("remote_table", "gs://elsewhere/far"),
    }


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(installed_profile().name != "3.5", reason="the connector was not tried with it")
def test_the_person_leaves_a_table_and_nobody_else_does(gcs: Gcs, tmp_path: Path) -> None:
    shop = Lake.of(gcs, tmp_path, soft_delete=25)
    delta(shop, "t", [OTHERS[0], PERSON], OTHERS[1:], put=False)
    deleted(shop, "t", USER)
    put_all(shop, shop.base / "made" / "t", "t")
    naive = holding(shop, USER, MAIL)
    assert {name.partition("@")[0].endswith(".json") for name in naive} == {True, False}, "old files and the log"
    delta(shop, "t", [PERSON], again=True)
    shop.put("t/part-9.parquet", parquet(PERSON))
    gcs.delete(BUCKET, "t/part-9.parquet")
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert shop.approve() == 0
    code, result = shop.apply()
    if code == ExitCode.WAITING:  # else the days of soft delete were over before the step looked
        assert result["state"] == "waiting"
        while set(gcs.states(BUCKET)) != {"live"}:
            time.sleep(0.1)
        code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    assert holding(shop, USER, MAIL) == []
    assert rows(shop, "t") == sorted(OTHERS)
    assert set(gcs.states(BUCKET)) == {"live"}
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
