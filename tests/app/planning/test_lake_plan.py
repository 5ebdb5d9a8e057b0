"""Delta tables in S3 that a plan erases: found, read and searched like those of this machine, old versions included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pii_tracer.model.errors import ExitCode
from tests import storeservers
from tests.app.planning.test_nested_subject import called
from tests.app.planning.test_remote import (
    OTHERS,
    PEOPLE,
    PERSON,
    Shop,
    store,
)
from tests.storeservers import Store, signed

__all__ = ["signed", "store"]

STEPS = ["delta_delete_rows", "delta_purge", "delta_vacuum", "delta_clean_log", "s3_clear_versions", "verify_copy"]
STOPPED = "writers: [{job: nightly, stopped: true}]\n"
FEED = "INSERT INTO shop.tickets SELECT uid, mail FROM shop.people;"


_numbers = iter(range(1000))


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Shop:
    return Shop(tmp_path, store, f"plan-{next(_numbers)}", jobs=FEED, more=STOPPED)


def emptied(shop: Shop, place: str) -> DeltaTable:
    """The table, from which the person was deleted as people do."""
    DeltaTable(place, storage_options=shop.options).delete(f"uid = {PERSON}")
    table = DeltaTable(place, storage_options=shop.options)
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    return table


def copies(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {copy["table"]: copy for copy in plan["copies"]}


def steps(plan: dict[str, Any], table: str) -> list[dict[str, Any]]:
    copy = copies(plan)[table]["id"]
    return [step for step in plan["steps"] if step["copy"] == copy]


def test_a_derived_table_is_a_copy_with_its_rows_and_the_steps_of_its_bucket(shop: Shop) -> None:
    place = shop.delta("shop.tickets", PEOPLE)
    plan = shop.plan()
    found = copies(plan)["shop.tickets"]
    assert (found["kind"], found["strategy"], found["location"]) == ("DERIVED", "delete_by_key", place)
    assert found["found"]["rows"] == 1
    assert found["found"]["files_with_person"] >= 1
    assert found["facts"]["region"]
    mine = steps(plan, "shop.tickets")
    assert [step["action"] for step in mine] == STEPS
    clear = next(step for step in mine if step["action"] == "s3_clear_versions")
    assert clear["parameters"]["bucket"] == shop.bucket
    assert clear["parameters"]["prefix"] == "delta/tickets/"
    assert clear["irreversible"] is True
    assert not [g for g in plan["gaps"] if g["kind"] == "remote_table"]


@pytest.mark.parametrize(
    ("more", "gaps"),
    [
        ("", 1),
        ("writers: [{job: nightly}, {job: hourly, stopped: true}]\n", 1),
        (STOPPED, 0),
        ("spark: {conf: {spark.delta.logStore.s3a.impl: io.delta.storage.S3DynamoDBLogStore}}\n", 0),
    ],
)
def test_jobs_that_may_commit_meanwhile_are_a_gap(shop: Shop, more: str, gaps: int) -> None:
    """On S3 one of two commits can be lost: docs.delta.io, "Delta Lake on S3", single-cluster setup."""
    shop.more = more
    shop.delta("shop.tickets", PEOPLE)
    assert sum(g["kind"] == "unguarded_commits" for g in shop.plan()["gaps"]) == gaps


def test_a_person_whom_only_old_versions_have_is_a_copy(shop: Shop) -> None:
    assert emptied(shop, shop.delta("shop.tickets", PEOPLE)).to_pyarrow_table().num_rows == 2
    found = copies(shop.plan())["shop.tickets"]["found"]
    assert found["rows"] == 0
    assert found["files_with_person"] >= 1


def test_a_key_in_the_name_of_a_deleted_partition_is_found(shop: Shop) -> None:
    emptied(shop, shop.delta("shop.tickets", PEOPLE, partition_by=["mail"]))
    assert copies(shop.plan())["shop.tickets"]["found"]["files_with_person"] >= 1


def test_a_table_without_the_person_is_no_copy(shop: Shop) -> None:
    shop.delta("shop.tickets", OTHERS)
    plan = shop.plan()
    assert "shop.tickets" not in copies(plan)
    assert "shop.tickets" in {item["table"] for item in plan["examined"]}


def test_a_table_that_no_lineage_explains(shop: Shop) -> None:
    shop.jobs = ""
    shop.delta("shop.tickets", PEOPLE)
    [gap] = [g for g in shop.plan()["gaps"] if g["kind"] == "unexpected_copy"]
    assert gap["dataset"]["namespace"] == f"s3://{shop.bucket}"


def test_unfinished_uploads_are_aborted(shop: Shop) -> None:
    shop.delta("shop.tickets", PEOPLE)
    shop.store.client().create_multipart_upload(Bucket=shop.bucket, Key="delta/tickets/half")
    assert "s3_abort_uploads" in [step["action"] for step in steps(shop.plan(), "shop.tickets")]


def finds_by_a_former_address(shop: Shop, source: str, former: str) -> None:
    """A ticket has the address that only a former state of the source has."""
    shop.delta("shop.tickets", pa.table({"mail": [former, "b@x.example"], "text": ["x", "y"]}))
    shop.jobs = f"INSERT INTO shop.tickets SELECT mail, 'x' AS text FROM {source};"
    shop.write()
    file = shop.base / "pii-tracer.yaml"
    file.write_text(file.read_text().replace("source: shop.people", f"source: {source}"))
    out = shop.base / "p.plan.json"
    called(shop.base, "plan", str(shop.base / "request.yaml"), "--out", str(out))
    assert former not in out.read_text()
    plan = json.loads(out.read_text())
    assert copies(plan)[source]["kind"] == "SOURCE"
    assert copies(plan)["shop.tickets"]["found"]["rows"] == 1
    assert not [g for g in plan["gaps"] if g["kind"] == "former_unread"]


def test_a_source_in_s3_is_read_with_its_former_values(shop: Shop) -> None:
    """The person had another address when the ticket was written; only the source's old version knows it."""
    former = "a.rao@old.example"
    before = PEOPLE.set_column(1, "mail", pa.array([former, "b@x.example", "c@x.example"]))
    place = shop.delta("shop.users", before)
    write_deltalake(place, PEOPLE, mode="overwrite", storage_options=shop.options)
    finds_by_a_former_address(shop, "shop.users", former)


def test_rows_of_others_that_hold_the_person_are_told(shop: Shop) -> None:
    """A friend's ticket quotes the person's address: it is not deleted, so the value stays and is a gap."""
    quoted = pa.table({"uid": pa.array([PERSON, PERSON + 1], pa.int64()), "mail": ["x", "asha.rao@mail.example"]})
    shop.delta("shop.tickets", quoted)
    told = [g for g in shop.plan()["gaps"] if g["kind"] == "others_rows"]
    assert len(told) == 1


@pytest.mark.parametrize("what", ["root", "table", "archive"])
def test_a_table_with_a_place_inside_is_left_alone(shop: Shop, what: str) -> None:
    shop.delta("shop.tickets", PEOPLE)
    shop.put("delta/tickets/inner/x", b"x")
    why = "/delta/tickets/inner is inside its folder"
    if what == "root":
        shop.roots.append(f"s3://{shop.bucket}/delta/tickets/inner")
    elif what == "table":
        shop.delta("shop.tickets/inner", OTHERS)
        shop.tables["shop.inner"] = shop.tables.pop("shop.tickets/inner")
    else:
        place = f"bucket: {shop.bucket}, prefix: delta/tickets/inner/"
        shop.more += f"archives: [{{name: old, of: shop.people, {place}, format: csv}}]\n"
        why = "its folder and the archive `old` share objects"
    plan = shop.plan()
    told = [g for g in plan["gaps"] if g["evidence"].partition(";")[0] == f"s3://{shop.bucket}/delta/tickets"]
    assert [why in gap["reason"] for gap in told if gap["kind"] == "remote_table"] == [True]
    assert "contain the person" in told[0]["reason"]
    assert "shop.tickets" not in copies(plan)


def test_somebodys_files_in_the_folder_are_told(shop: Shop) -> None:
    shop.delta("shop.tickets", PEOPLE)
    shop.put("delta/tickets/notes.txt", b"mine")
    [gap] = [g for g in shop.plan()["gaps"] if g["kind"] == "strange_files"]
    assert gap["evidence"].endswith("/delta/tickets/notes.txt")


def test_a_missing_data_file_is_told(shop: Shop) -> None:
    place = shop.delta("shop.tickets", PEOPLE)
    [name] = DeltaTable(place, storage_options=shop.options).file_uris()
    shop.store.client().delete_object(Bucket=shop.bucket, Key=name.removeprefix(f"s3://{shop.bucket}/"))
    assert "missing_files" in {g["kind"] for g in shop.plan()["gaps"]}


def test_the_inventory_is_whole_where_every_place_is_a_table(shop: Shop) -> None:
    shop.delta("shop.tickets", OTHERS)
    shop.write()
    assert called(shop.base, "inventory") == ExitCode.DONE


def test_carriage_follows_the_lineage_from_a_source_in_s3(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.delta("shop.users", PEOPLE)
    shop.delta("shop.tickets", PEOPLE)
    shop.jobs = FEED.replace("shop.people", "shop.users")
    shop.write()
    text = (shop.base / "pii-tracer.yaml").read_text()
    (shop.base / "pii-tracer.yaml").write_text(text.replace("source: shop.people", "source: shop.users"))
    assert called(shop.base, "carriage", "--format", "json") == ExitCode.DONE
    (subject,) = json.loads(capsys.readouterr().out)["subjects"]
    found = {one["table"]: one["carries"] for one in subject["datasets"]}
    assert found == {"shop.users": "key", "shop.tickets": "key"}


def test_a_bucket_that_locks_is_left_alone(shop: Shop) -> None:
    locked = f"locked-{shop.bucket}"
    shop.store.client().create_bucket(Bucket=locked, ObjectLockEnabledForBucket=True)
    shop.bucket = locked
    place = shop.delta("shop.tickets", PEOPLE)
    assert "Object Lock" in shop.gaps()[place]["reason"]


def test_a_replicated_bucket_is_left_alone(shop: Shop) -> None:
    if shop.store.kind != storeservers.STANDIN:
        return  # versitygw knows no replication
    place = shop.delta("shop.tickets", PEOPLE)
    client, other = shop.store.client(), f"other-{shop.bucket}"
    client.create_bucket(Bucket=other)
    client.put_bucket_versioning(Bucket=other, VersioningConfiguration={"Status": "Enabled"})
    rule = {
        "ID": "all",
        "Status": "Disabled",  # what it has copied is still there
        "Priority": 1,
        "Filter": {"Prefix": "delta/"},
        "DeleteMarkerReplication": {"Status": "Disabled"},
        "Destination": {"Bucket": f"arn:aws:s3:::{other}"},
    }
    rules = {"Role": "arn:aws:iam::123456789012:role/r", "Rules": [rule]}
    client.put_bucket_replication(Bucket=shop.bucket, ReplicationConfiguration=rules)
    assert "is replicated" in shop.gaps()[place]["reason"]


def test_a_shallow_clone_and_its_origin_are_left_alone(shop: Shop) -> None:
    """The clone's log names the origin's files, as Spark writes them."""
    place = shop.delta("shop.tickets", PEOPLE)
    [uri] = DeltaTable(place, storage_options=shop.options).file_uris()
    first = "_delta_log/00000000000000000000.json"
    log = shop.store.client().get_object(Bucket=shop.bucket, Key=f"delta/tickets/{first}")
    actions = [json.loads(line) for line in log["Body"].read().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = uri.replace("s3://", "s3a://")
        if "commitInfo" in action:
            action["commitInfo"] = {"operation": "CLONE", "operationParameters": {"source": f"delta.`{place}`"}}
    shop.put(f"delta/cloned/{first}", "".join(json.dumps(action) + "\n" for action in actions).encode())
    shop.tables["shop.cloned"] = f"s3://{shop.bucket}/delta/cloned"
    found = shop.gaps()
    assert "reads its files" in found[place]["reason"]
    assert "outside of its folder" in found[shop.tables["shop.cloned"]]["reason"]
