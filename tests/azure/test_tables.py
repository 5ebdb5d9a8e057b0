"""Delta tables in Azure Storage: which are planned, and which stay a gap that says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.azure.blob_service import BlobService
from tests.azure.dfs_service import DfsService
from tests.azure.lake import Lake
from tests.azure.shared_key import ACCOUNT
from tests.azure.shop import CONTAINER, STORE
from tests.gcs.tables import delta, put_all
from tests.gcs.test_delta import STATEMENTS, steps_of
from tests.hdfs.shop import MAIL, OTHERS, PERSON, USER, parquet
from tests.unitysupport import serving, token

__all__ = ["token"]


def gaps_of(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By what their places end with; those of what was not counted, and of notes about such files, left out."""
    found = (gap for gap in plan["gaps"] if gap["waiver"] is None and gap["kind"] not in ("unreadable", "table_text"))
    return {gap["evidence"].partition(";")[0].rpartition("/")[2]: gap for gap in found}


def test_tables_in_a_data_lake_are_places_of_their_own(azure: BlobService, dfs: DfsService, tmp_path: Path) -> None:
    """Bare files there are written again beside them."""
    shop = Lake.of_account(azure, dfs, tmp_path, hierarchical=True, soft_delete_days=7, page=99)
    delta(shop, "lake/found", [OTHERS[0], PERSON], OTHERS[1:])
    delta(shop, "lake/clean", OTHERS)
    delta(shop, "lake/parts", [PERSON], partition_by=["uid"])
    shop.snapshot(f"lake/found/_delta_log/{0:020}.json")
    delta(shop, "lake/archived", [PERSON])
    delta(shop, "lake/held", [PERSON])
    for name, blob in shop.container.blobs.items():
        if blob.current and name.endswith(".parquet"):
            blob.current.tier = "Archive" if "archived" in name else ""
            blob.lease = "somebody" if "held" in name else None
    shop.export("lake", "a.parquet", parquet(PERSON))
    plan = shop.plan(object_stores=shop.stored("lake"))[1]
    steps = [step for step in plan["steps"] if step["copy"] and step["copy"].endswith("found")]
    actions = [*STATEMENTS[:2], "object_clear_versions", *STATEMENTS[2:], "object_await_purge", "verify_copy"]
    assert [step["action"] for step in steps] == actions, "a snapshot would keep Spark from deleting its file"
    assert steps[3]["depends_on"] == [steps[2]["id"]]
    wait = next(step for step in steps if step["action"] == "object_await_purge")
    assert (wait["parameters"]["everything"], wait["parameters"]["soft_delete_seconds"]) == (True, 7 * 86_400)
    assert "lake/clean" in {item["dataset"]["name"] for item in plan["examined"]}
    gaps = gaps_of(plan)
    notes = [gap["id"] for gap in plan["gaps"] if gap["kind"] == "table_text"]
    assert notes == ["gap-table_text-archived"], "the log has the person, and nobody read whether the file does"
    assert {name: gap["kind"] for name, gap in gaps.items()} == {
        "parts": "object_place",
        "archived": "object_place",
        "held": "object_held",
    }
    assert "object_rewrite" in {step["action"] for step in plan["steps"]}
    assert "object keys contain a value of the person" in gaps["parts"]["reason"]
    assert "its contents are not known for certain" in gaps["archived"]["reason"]
    assert "an active lease" in gaps["held"]["reason"]
    assert USER not in shop.plan_file.read_text()
    assert MAIL not in shop.plan_file.read_text()


def test_engines_have_no_access_to_a_flat_account_with_soft_delete(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    shop = Lake.of_account(azure, dfs, tmp_path, soft_delete_days=7, page=99)
    delta(shop, "t", [OTHERS[0], PERSON])
    plan = shop.plan()[1]
    assert steps_of(plan, "t") == []
    assert "turn soft delete off" in gaps_of(plan)["t"]["reason"]


@pytest.mark.usefixtures("token")
def test_tables_that_the_estate_file_or_unity_catalog_names(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    """In whatever spelling; one of a container that nobody declared is a gap, and so is a shallow clone."""
    shop = Lake.of_account(azure, dfs, tmp_path, versioning=True, page=99)
    delta(shop, "uc/people", [OTHERS[0], PERSON], known=False)
    delta(shop, "uc/seen", [OTHERS[1], PERSON], known=False)
    origin = delta(shop, "origin", [OTHERS[0], PERSON])
    clone = delta(shop, "clone", [OTHERS[0], PERSON], known=False, put=False)
    log, theirs = clone / "_delta_log" / f"{0:020}.json", next(origin.glob("*.parquet")).name
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = f"abfs://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/origin/{theirs}"
    log.write_text("\n".join(map(json.dumps, lines)))
    put_all(shop, clone, "clone")
    (tmp_path / "jobs.sql").write_text("CREATE TABLE main.sales.seen AS SELECT uid, mail FROM shop.people;\n")
    columns = [{"name": name, "type_text": "string"} for name in ("uid", "mail")]
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    blob = f"wasbs://{CONTAINER}@{ACCOUNT}.blob.core.windows.net"
    people = {"name": "shop.people", "format": "delta", "location": f"{blob}/uc/people"}
    with serving() as unity:
        unity.table("main.sales.seen", f"{STORE}/uc/seen", columns=columns)
        far = STORE.replace(f"{CONTAINER}@", "elsewhere@")
        unity.table("main.sales.far", f"{far}/t", columns=columns)
        source = {"name": "user", "source": "shop.people", "key": "uid"}
        plan = shop.plan(
            catalogs={
                "spark_catalog": {"type": "declared", "tables": [users, people]},
                "uc": {"type": "unity", "uri": unity.uri},
            },
            subjects=[source | {"identifiers": [{"column": "mail", "category": "email"}]}],
            lineage={"sql": ["jobs.sql"]},
            roots=[],
            holds=[],
            object_stores=shop.stored("origin", "clone"),
        )[1]
    assert {copy["table"]: copy["found"]["rows"] for copy in plan["copies"]} == {"shop.people": 1, "main.sales.seen": 1}
    assert steps_of(plan, "people") == [*STATEMENTS, "verify_copy"], "a flat account without soft delete keeps nothing"
    gaps = gaps_of(plan)
    assert "/clone reads its files, as a shallow clone does" in gaps["origin"]["reason"]
    assert "it reads files" in gaps["clone"]["reason"]
    assert (gaps["t"]["kind"], gaps["t"]["evidence"]) == ("remote_table", f"{far}/t")


@pytest.mark.usefixtures("token")
def test_files_of_a_table_that_are_not_its_rows_are_searched_and_never_written_again(
    azure: BlobService, dfs: DfsService, tmp_path: Path
) -> None:
    """A catalog calls their table a materialized view, or an Iceberg table. Each file looks like one of plain rows.

    One lies in no place of the estate file, one in a place with other files, and one was registered as ORC.
    """
    shop = Lake.of_account(azure, dfs, tmp_path, versioning=True, page=99)
    for folder in ("uc/view", "lake/day=1", "lake/day=2", "uc/orc"):
        shop.put(f"{folder}/a.parquet", parquet(OTHERS[0], PERSON))
    columns = [{"name": name, "type_text": "string"} for name in ("uid", "mail")]
    shop.exports = ["uc/view", "lake", "uc/orc"]
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    with serving() as unity:
        unity.table("main.sales.view", f"{STORE}/uc/view", table_type="MATERIALIZED_VIEW", columns=columns)
        unity.table("main.sales.inner", f"{STORE}/lake/day=1", "ICEBERG", columns=columns)
        unity.table("main.sales.orc", f"{STORE}/uc/orc", "ORC", columns=columns)
        unity.table("main.sales.far", f"{STORE.replace('shop@', 'other@')}/t", "ICEBERG", columns=columns)
        catalogs = {
            "spark_catalog": {"type": "declared", "tables": [users]},
            "uc": {"type": "unity", "uri": unity.uri},
        }
        plan = shop.plan(catalogs=catalogs, object_stores=shop.stored("lake"))[1]
    assert {copy["location"] for copy in plan["copies"]} == {str(tmp_path / "tables" / "users")}
    reasons = {
        gap["evidence"]: gap["reason"] for gap in plan["gaps"] if gap["kind"] in ("object_place", "remote_table")
    }
    why = {
        f"{STORE}/uc/view": "the catalog's table main.sales.view is in this place, and its files are not plain rows",
        f"{STORE}/lake": "the catalog's table main.sales.inner is in this place, and its files are not plain rows",
        f"{STORE}/uc/orc": "its catalog says that its files are orc, and they are parquet",
        f"{STORE.replace('shop@', 'other@')}/t": "the estate file does not declare its bucket or container",
    }
    assert {place: reason in reasons.get(place, "") for place, reason in why.items()} == dict.fromkeys(why, True)
    assert reasons.keys() == why.keys()
