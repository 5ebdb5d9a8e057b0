"""Partitions whose key is in the catalog alone: no file says whose their rows are, so that nobody calls them clean."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.lake.catalog_only_partitions import PartitionedTable
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import Inventory, InventoryGap
from pii_tracer.lake.stores.hdfs.places import HdfsFile, HdfsKind, HdfsPlace
from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.model.datasets import Column, Format
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import hdfs_location
from pii_tracer.model.plan import ErasurePlan
from planners.copies.scan_evidence import Evidence, HdfsEvidence
from planners.stores.hdfs.places import hdfs_gaps
from tests.planners.smalllake import Lake, dataset, kinds, strategies, touched

CLEAN = Evidence(files=1, files_with_person=0, bytes=1)
FOUND = Evidence(files=1, files_with_person=1, bytes=1, strong=frozenset({"user.uid"}))
BARE = (Column(name="amount", type="bigint"),)


def table(name: str, *elsewhere: str, key: str = "UID", untold: tuple[str, ...] = ()) -> PartitionedTable:
    told = {"keys": (key,), "untold": untold, "elsewhere": elsewhere}
    return PartitionedTable(title=f"prod.{name}", location=f"/w/{name}", dataset=dataset(name), **told)


def lake(*tables: PartitionedTable, seen: Evidence = CLEAN, of: tuple[str, ...] = ("a",), **state: Any) -> Lake:
    """A folder `odd`, to which no lineage leads, with partitions of some tables."""
    told = {"columns": BARE, "partitions_of": tuple(map(dataset, of)), **state}
    return Lake(states={"odd": told}, loose=("odd",), seen={"/w/odd": seen}, partitioned=tables)


@pytest.mark.parametrize("seen", [CLEAN, FOUND])
@pytest.mark.parametrize("place", ["/w/odd", "/w/odd/place1", "/w"])
def test_a_folder_with_such_partitions_is_never_clean_and_never_written(place: str, seen: Evidence) -> None:
    """At, in or around the place. The files have no such column, and the folder passed for clean."""
    plan = lake(table("a", place), seen=seen).plan()
    assert "/w/odd" not in {item.dataset.name for item in plan.examined}
    assert "c-prod.odd" not in touched(plan)
    mine = [gap for gap in plan.gaps if gap.dataset == dataset("odd") and gap.kind == "cannot_be_proved"]
    assert "uid of prod.a" in mine[0].reason
    assert "column=value" not in mine[0].evidence
    files, catalog, texts = map(mine[0].evidence.index, ("delete the files", "drop these partitions", "`table_text`"))
    assert files < catalog < texts
    assert ("c-prod.b" in touched(plan)) is (place != "/w")


def test_a_value_in_the_files_beside_another_one_in_the_catalog_deletes_nothing() -> None:
    """Hive reads the catalog's value: by the one in the files, rows of others would go."""
    state = lake(table("a", "/w/odd"), seen=FOUND, columns=(Column(name="uid", type="bigint"), *BARE))
    plan = state.plan()
    assert strategies(plan)["c-prod.odd"] == "blocked"
    assert kinds(plan) == ["cannot_be_proved"]


def test_of_several_tables_one_is_enough() -> None:
    plan = lake(table("b", "/w/odd", key="day"), table("a", "/w/odd"), of=("a", "b")).plan()
    assert kinds(plan) == ["cannot_be_proved"]
    assert [item.dataset for item in plan.examined] == []


def test_a_tables_own_folder_whose_names_do_not_tell_the_key() -> None:
    """`t/odd/place1` for uid=4711: in the table's folder, and no less unknown."""
    made = Lake(states={"a": {"columns": BARE}}, seen={"/w/a": CLEAN}, partitioned=(table("a", untold=("UID",)),))
    plan = made.plan()
    assert strategies(plan)["c-prod.a"] == "blocked"
    assert kinds(plan) == ["cannot_be_proved"]


def test_other_partition_columns_and_tables_without_persons_do_not_matter() -> None:
    plan = lake(table("a", "/w/odd", key="day"), table("c", "/w/odd")).plan()
    assert kinds(plan) == []
    assert [item.dataset.name for item in plan.examined] == ["/w/odd"]


def hdfs(seen: HdfsEvidence) -> Lake:
    location = hdfs_location("hdfs://nn/odd/place1")
    place = HdfsPlace(location=location, kind=HdfsKind.FOLDER, files=(HdfsFile("/odd/place1/f", 1, 1, 1),))
    return Lake(partitioned=(table("a", str(location)),), hdfs={place: seen})


def test_the_same_in_hdfs() -> None:
    """Where its files can be written again, and where they cannot be read as one table."""
    state = (
        lake()
        ._state("odd")
        .model_copy(
            update={"location": "hdfs://nn/odd/place1", "dataset": hdfs_location("hdfs://nn/odd/place1").dataset}
        )
    )
    bare = HdfsEvidence(files=1, state=state, evidence=CLEAN)
    for seen in (bare, HdfsEvidence(files=1)):
        plan = hdfs(seen).plan()
        assert "cannot_be_proved" in kinds(plan)
        assert [item.dataset.name for item in plan.examined] == []
        assert touched(plan) == {"c-prod.users", "c-prod.a", "c-prod.b"}


def test_a_key_that_is_added_up_is_nobodys() -> None:
    made = lake(table("a", "/w/odd"))
    made.copies = {"a": Subtype.AGGREGATION, "b": Subtype.IDENTITY}
    assert "uid of" not in " ".join(gap.reason for gap in made.plan().gaps)


@pytest.mark.parametrize(
    ("kind", "seen", "place", "blocked"),
    [
        (DELTA, FOUND, "/w/a/x", True),
        (DELTA, FOUND, "/w/a", True),
        (DELTA, FOUND, "/w/a/", True),
        (DELTA, FOUND, "/w/ab", False),
        (DELTA, CLEAN, "/w/a/x", False),
        (Format.PARQUET, FOUND, "/w/a/x", False),
    ],
)
def test_an_engine_does_not_clean_up_around_partitions_of_others(
    kind: Format, seen: Evidence, place: str, blocked: bool
) -> None:
    """A vacuum removes what the log does not name: everybody's rows of that partition."""
    made = Lake(states={"a": {"format": kind}}, seen={"/w/a": seen}, partitioned=(table("b", place, key="day"),))
    plan = made.plan()
    assert (strategies(plan).get("c-prod.a") == "blocked") is blocked
    assert kinds(plan) == (["shared_files"] if blocked else [])


def test_a_table_may_have_its_own_partitions_in_its_folder() -> None:
    own = table("a", "/w/a/x", key="day")
    assert kinds(Lake(partitioned=(own,)).plan()) == []


def test_a_key_in_the_name_of_a_partitions_folder_is_told_to_nobody() -> None:
    """The plan was refused, because the gap's dataset has the folder's name."""
    location = hdfs_location("hdfs://nn/odd/cust=4417700102")
    place = HdfsPlace(location=location, kind=HdfsKind.FOLDER, files=(HdfsFile(f"{location.path}/f", 1, 1, 1),))
    told = InventoryGap(dataset=location.dataset, kind=GapKind.HDFS_PLACE, reason="x", evidence=str(location))
    shown = {str(location): "hdfs://nn/odd/cust=***"}
    inventory = Inventory(tables=(), hdfs=(place,))
    for seen in ({}, {str(location): HdfsEvidence(files=1, telling=1)}):
        (found,) = hdfs_gaps([told], shown, inventory, seen)
        assert "4417700102" not in found.model_dump_json()
        assert "hdfs://nn/odd/cust=***" in found.evidence


def test_the_plan_records_where_the_catalog_alone_has_values() -> None:
    """A verification compares it with the catalogs of its day, and a later hold asks for tables with partitions."""
    apart, inside = table("a", "/w/odd", key="Day"), table("b", key="day", untold=("day",))
    plan = lake(apart, inside, table("c", key="day")).plan()
    rows = {one.names[0]: [(item.dataset, item.columns) for item in one.untold] for one in plan.partitioned or ()}
    assert rows == {"prod.a": [(dataset("odd"), ("day",))], "prod.b": [(dataset("b"), ("day",))]}
    assert [one.elsewhere for one in plan.partitioned or ()] == [True, False]
    assert plan.partitioned
    assert "/w/a" in plan.partitioned[0].names
    assert ErasurePlan.model_validate_json(plan.to_bytes()).partitioned == plan.partitioned


def test_the_plan_records_columns_without_a_key_and_a_table_that_two_catalogs_name_once() -> None:
    """An entry overwrote the other one, and a verification took what it told for new."""
    plan = lake(table("a", "/w/odd", key="Day"), table("a", "/w/odd", key="night", untold=("night",))).plan()
    (one,) = plan.partitioned or ()
    assert {rows.dataset: rows.columns for rows in one.untold}[dataset("odd")] == ("day", "night")
    assert (one.no_keys, one.left) == (("day", "night"), None)
    (one,) = lake(table("a", "/w/odd"), table("a", "/w/odd", key="Day")).plan().partitioned or ()
    assert one.no_keys == ("day",)


@pytest.mark.parametrize("told", [{"clone_of": "/w/a"}, {"same_files_as": "/w/a"}])
def test_a_copy_of_the_files_of_such_a_table_is_not_clean_either(told: dict[str, str]) -> None:
    """The files of `odd` are those of `a`, of which the catalog alone has the key; or `odd` is the table with it."""
    for where in ("a", "odd"):
        made = Lake(
            states={"odd": {"columns": BARE, **told}},
            loose=("odd",),
            seen={"/w/odd": CLEAN},
            partitioned=(table(where, untold=("uid",)),),
        )
        plan = made.plan()
        assert "/w/odd" not in {item.dataset.name for item in plan.examined}
        assert dataset("odd") in {gap.dataset for gap in plan.gaps if gap.kind == "cannot_be_proved"}
