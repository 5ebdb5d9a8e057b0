"""Delta tables in a real HDFS: what is planned for them, what stays a gap, and the whole path with Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.locations import hdfs_location
from planners.copies.scan_evidence import HdfsEvidence
from planners.stores.hdfs.places import untreated
from tests.hdfs.running import Killed, killed_after
from tests.hdfs.shop import MAIL, OTHERS, PERSON, REFILLS, USER, Shop, csv, parquet
from tests.hdfs.tables import deleted, delta, files_of, opened_to_all, put_all
from tests.hdfssupport import Hdfs
from tests.leaks import Person, leaks

STATEMENTS = ["delta_delete_rows", "delta_purge", "delta_vacuum", "delta_clean_log"]


@pytest.fixture
def shop(hdfs: Hdfs, tmp_path: Path) -> Shop:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    return shop


def steps_of(plan: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [step for step in plan["steps"] if step["copy"] and step["copy"].endswith(name)]


def snapshot(shop: Shop, name: str = "s1") -> None:
    shop.hdfs.ask(shop.root, "ALLOWSNAPSHOT")
    shop.hdfs.ask(shop.root, "CREATESNAPSHOT", snapshotname=name)
    place = {"path": f"{shop.root}/.snapshot/{name}", "owner": "Ann", "reason": "nobody needs it"}
    shop.deletable.append(place)


def declared(shop: Shop, folder: str) -> dict[str, Any]:
    """The estate file's catalogs, with a table in HDFS."""
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    table = {"name": f"harbour.{folder}", "format": "delta", "location": f"{shop.hdfs.uri}{shop.root}/{folder}"}
    return {"spark_catalog": {"type": "declared", "tables": [users, table]}}


def test_a_table_is_planned_as_one_of_this_machine_and_snapshots_go_after_it(shop: Shop) -> None:
    delta(shop, "found", [OTHERS[0], PERSON], OTHERS[1:])
    delta(shop, "clean", OTHERS)
    snapshot(shop)
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    steps = steps_of(plan, "found")
    assert [step["action"] for step in steps] == [*STATEMENTS, "verify_copy"]
    assert {p["kind"] for p in steps[0]["preconditions"]} == {"clones", "columns", "refs", "snapshot"}
    copy = next(copy for copy in plan["copies"] if copy["id"] == "c-found")
    assert (copy["found"]["rows"], copy["strategy"]) == (1, "delete_by_key")
    last = next(step for step in plan["steps"] if step["action"] == "hdfs_delete_snapshot")
    assert steps[-1]["id"] in last["depends_on"]
    assert [item["dataset"]["name"] for item in plan["examined"]] == [f"{shop.root}/clean"]


def test_a_log_without_checksums_that_has_the_person_blocks_nothing(shop: Shop) -> None:
    """The person is alone in the version, so that its statistics are the person's values."""
    path = delta(shop, "found", OTHERS, [PERSON])
    log = f"_delta_log/{1:020}.json"
    shop.hdfs.put_unchecked(f"{path}/{log}", shop.base / "made" / "found" / log)
    with pytest.raises(StoreError, match="NullPointerException"):
        shop.hdfs.client().checksum(f"{path}/{log}")
    code, plan = shop.plan()
    assert (code, [gap["id"] for gap in plan["gaps"]]) == (0, [REFILLS])
    assert [step["action"] for step in steps_of(plan, "found")] == [*STATEMENTS, "verify_copy"]


def test_a_table_is_the_source_of_the_persons(shop: Shop) -> None:
    delta(shop, "users", [OTHERS[0], PERSON], known=False)
    source = {
        "source": "harbour.users",
        "name": "user",
        "key": "uid",
        "identifiers": [{"column": "mail", "category": "email"}],
    }
    plan = shop.plan(catalogs=declared(shop, "users"), subjects=[source], holds=[])[1]
    copy = next(copy for copy in plan["copies"] if copy["kind"] == "SOURCE")
    assert (copy["table"], copy["strategy"], copy["found"]["rows"]) == ("harbour.users", "delete_by_key", 1)


def test_a_table_that_no_step_may_touch_stays_a_gap_and_says_why(shop: Shop) -> None:
    origin = delta(shop, "origin", [OTHERS[0], PERSON])
    clone = delta(shop, "clone", [OTHERS[0], PERSON], known=False)
    log, theirs = f"{clone}/_delta_log/{0:020}.json", next(f for f in files_of(shop, origin) if f.endswith(".parquet"))
    lines = [json.loads(line) for line in shop.read(log).splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = f"{shop.hdfs.uri}{theirs}"
    shop.hdfs.client().delete(log)
    shop.hdfs.put(log, "\n".join(map(json.dumps, lines)).encode())
    for sign in (".hoodie/hoodie.properties", "metadata/v1.metadata.json"):
        shop.export(f"other{sign[1]}", "a.parquet", parquet(PERSON))
        shop.put(f"other{sign[1]}/{sign}", b"{}")
    delta(shop, "outer", [PERSON])
    put_all(shop, shop.base / "made" / "outer", "outer/inner")
    delta(shop, "broken", [PERSON])
    shop.hdfs.client().delete(f"{shop.root}/broken/_delta_log/{0:020}.json")
    shop.put(f"broken/_delta_log/{0:020}.json", b"{")
    gaps = {
        gap["dataset"]["name"].rpartition("/")[2]: gap for gap in shop.plan()[1]["gaps"] if gap["kind"] == "hdfs_place"
    }
    why = {
        "origin": "/clone reads its files, as a shallow clone does",
        "clone": "it reads files outside of its folder",
        "otherh": "Hudi's procedures need its name",
        "othere": "the tool erases Iceberg tables there only if a catalog names them",
        "outer": "/outer/inner lies inside its folder",
        "broken": "the Delta log cannot be read",
    }
    assert {name: reason in gaps[name]["reason"] for name, reason in why.items()} == dict.fromkeys(why, True)


def test_what_its_format_its_folder_or_its_rights_forbid_blocks_too(shop: Shop) -> None:
    delta(shop, "fixed", [OTHERS[0], PERSON], configuration={"delta.appendOnly": "true"})
    delta(shop, "beside", [OTHERS[0], PERSON])
    shop.put("beside/notes.csv", csv(OTHERS[1]))
    hidden = delta(shop, "hidden", [OTHERS[0], PERSON])
    shop.hdfs.ask(f"{hidden}/_delta_log", "SETPERMISSION", permission="700")
    name_node = {"namenode": shop.hdfs.uri, "webhdfs": shop.hdfs.webhdfs, "user": "somebody"}
    plan = shop.plan(hdfs=[name_node])[1]
    found = {gap["kind"]: gap for gap in plan["gaps"] if gap["waiver"] is None}
    assert "delta.appendOnly" in found["cannot_be_proved"]["reason"]
    assert "may belong to somebody" in found["strange_files"]["reason"]
    assert "AccessControlException" in found["hdfs_unread"]["reason"]
    assert steps_of(plan, "fixed") == []
    assert any(gap["kind"] == "hdfs_place" and gap["dataset"]["name"] == hidden for gap in plan["gaps"])


def test_a_table_in_an_encryption_zone_or_named_by_another_ones_metadata_is_left() -> None:
    place = HdfsPlace(location=hdfs_location("hdfs://nn/lake/t"), kind=HdfsKind.TABLE)
    seen = HdfsEvidence(files=1, holders=1, strong=frozenset({"user.uid"}))
    assert untreated(place.model_copy(update={"encrypted": True}), seen) == (
        "no step rewrites or deletes encrypted or erasure-coded files"
    )
    assert untreated(place, seen) == "", "without a state nothing is planned"


def test_a_table_that_was_written_since_the_plan_is_drift(shop: Shop) -> None:
    path = delta(shop, "t", [OTHERS[0], PERSON])
    assert shop.plan()[0] == 0
    assert shop.cli("drift", str(shop.plan_file)) == ExitCode.DONE
    delta(shop, "t", OTHERS[1:], again=True)
    assert len(files_of(shop, path)) == 4
    assert shop.cli("drift", str(shop.plan_file)) == ExitCode.DRIFT


@pytest.mark.spark
def test_a_table_that_spark_may_not_write_stays_as_it_is(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    path = delta(shop, "t", [OTHERS[0], PERSON])
    assert shop.plan(catalogs=declared(shop, "t"))[0] == 0
    assert shop.approve() == 0
    before = files_of(shop, path)
    capsys.readouterr()
    assert shop.apply() == (ExitCode.PARTIAL, {})
    assert "Spark may not write the table" in capsys.readouterr().err
    assert not list(shop.base.glob("state/runs/*/baseline.json")), "nothing was begun"
    assert files_of(shop, path) == before


@pytest.mark.spark
@pytest.mark.slow
def test_the_person_leaves_a_table_and_nobody_else_does(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    delta(shop, "t", [OTHERS[0], PERSON], OTHERS[1:], put=False)
    deleted(shop, "t", USER)
    naive = put_all(shop, shop.base / "made" / "t", "t")
    holding = [path for path in files_of(shop, naive) if MAIL.encode() in shop.read(path)]
    assert {path.endswith(".json") for path in holding} == {True, False}, "old files and the log's statistics have them"
    delta(shop, "t", [PERSON], again=True)
    snapshot(shop)
    shop.hdfs.put(f"/user/ann/.Trash/Current{shop.root}/t/old.parquet", parquet(PERSON))
    assert shop.plan(catalogs=declared(shop, "t"))[0] == 0
    assert shop.approve() == 0
    opened_to_all(shop, naive)
    with killed_after(monkeypatch, 2), pytest.raises(Killed):
        shop.apply()
    code, result = shop.apply()
    assert (code, result["state"], result["residue"], result["unverified"]) == (0, "complete", [], [])
    assert (result["rows_erased"], result["bystander_rows_lost"]) == (1, 0)
    left = [path for path in files_of(shop, naive) if any(text.encode() in shop.read(path) for text in PERSON)]
    assert left == []
    rows = DeltaTable(f"{shop.hdfs.uri}{naive}").to_pyarrow_table().to_pylist()
    assert sorted((row["uid"], row["mail"]) for row in rows) == sorted(OTHERS)
    assert [e.name for e in shop.hdfs.client().entries(f"{shop.root}/.snapshot")] == []
    assert [user.name for user in shop.hdfs.client().entries("/user")] == ["ann"], "nothing went to a trash"
    assert files_of(shop, "/user/ann") == []
    assert shop.verify() == ExitCode.DONE
    assert leaks(Person((MAIL, USER)), [shop.base / "state"]) == []
    shop.hdfs.put(f"{naive}/later.parquet", parquet(PERSON))
    assert shop.verify() == ExitCode.RESIDUE
