"""Iceberg tables in S3 that a catalog names, as a plan sees them: their rows of now and of before, and others' rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.app.planning.test_lake_plan import (
    STOPPED,
    copies,
    finds_by_a_former_address,
    store,
)
from tests.app.planning.test_remote import (
    OTHERS,
    PEOPLE,
    PERSON,
    Shop,
)
from tests.storeservers import Store, signed

__all__ = ["signed", "store"]

_numbers = iter(range(1000))


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Shop:
    jobs = "INSERT INTO core.prod.orders SELECT uid, mail FROM shop.people;"
    return Shop(tmp_path, store, f"iceberg-{next(_numbers)}", jobs=jobs, more=STOPPED)


def test_a_derived_table_is_a_copy_with_its_rows(shop: Shop) -> None:
    table = shop.iceberg().create_table("prod.orders", PEOPLE.schema)
    table.append(PEOPLE)
    plan = shop.plan()
    found = copies(plan)["core.prod.orders"]
    assert (found["kind"], found["location"]) == ("DERIVED", f"s3://{shop.bucket}/wh/prod/orders")
    assert found["found"]["rows"] == 1
    assert found["found"]["files_with_person"] >= 1
    assert not [g for g in plan["gaps"] if g["kind"] in ("remote_table", "lineage")]
    table.delete(f"uid = {PERSON}")
    found = copies(shop.plan())["core.prod.orders"]["found"]
    assert found["rows"] == 0, "older snapshots have the person"
    assert found["files_with_person"] >= 1


def test_others_may_commit_meanwhile(store: Store, tmp_path: Path) -> None:
    """Of two commits at once the catalog lets one win; Delta's log in S3 does not (`unguarded_commits`)."""
    jobs = "INSERT INTO core.prod.orders SELECT uid, mail FROM shop.people;"
    shop = Shop(tmp_path, store, f"iceberg-{next(_numbers)}", jobs=jobs)
    shop.iceberg().create_table("prod.orders", PEOPLE.schema).append(PEOPLE)
    plan = shop.plan()
    found = copies(plan)["core.prod.orders"]
    assert not [g for g in plan["gaps"] if g["kind"] == "unguarded_commits"]
    last = [step for step in plan["steps"] if step["copy"] == found["id"]][-2:]
    assert [(step["action"], step["executor"]) for step in last] == [
        ("s3_clear_versions", "s3"),
        ("verify_copy", "verify"),
    ]


def test_a_table_without_the_person_is_no_copy(shop: Shop) -> None:
    shop.iceberg().create_table("prod.orders", PEOPLE.schema).append(OTHERS)
    plan = shop.plan()
    assert "core.prod.orders" not in copies(plan)
    assert "core.prod.orders" in {item["table"] for item in plan["examined"]}


def test_rows_of_others_that_hold_the_person_are_told(shop: Shop) -> None:
    quoted = pa.table({"uid": pa.array([PERSON, PERSON + 1], pa.int64()), "mail": ["x", "asha.rao@mail.example"]})
    shop.iceberg().create_table("prod.orders", PEOPLE.schema).append(quoted)
    assert len([g for g in shop.plan()["gaps"] if g["kind"] == "others_rows"]) == 1


def test_a_source_is_read_with_its_former_values(shop: Shop) -> None:
    """Only an older snapshot of the source knows the address that the ticket was written with."""
    former = "a.rao@old.example"
    users = shop.iceberg().create_table("prod.users", PEOPLE.schema)
    users.append(PEOPLE.set_column(1, "mail", pa.array([former, "b@x.example", "c@x.example"])))
    users.overwrite(PEOPLE)
    finds_by_a_former_address(shop, "core.prod.users", former)
