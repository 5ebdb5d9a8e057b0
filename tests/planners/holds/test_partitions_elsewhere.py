"""A hold on a table keeps its partitions outside of its folder, whatever else has their files."""

from __future__ import annotations

import pytest

from pii_tracer.lake.catalog_only_partitions import PartitionedTable
from pii_tracer.model.datasets import DatasetId, Format
from tests.planners.smalllake import Lake, archive, dataset, hold, strategies

S3 = DatasetId(namespace="s3://lake", name="t")


def table(title: str, *elsewhere: str) -> PartitionedTable:
    return PartitionedTable(title=title, location="s3://lake/t", dataset=S3, elsewhere=elsewhere)


@pytest.mark.parametrize("place", ["/w/a", "/w/a/day=1", "/w/a/x/y"])
@pytest.mark.parametrize("name", ["CORE.t", "s3://lake/t", "lake/t"])
def test_a_table_at_or_around_a_partition_is_kept(place: str, name: str) -> None:
    bare = {"a": {"format": Format.PARQUET}}
    lake = Lake(states=bare, partitioned=(table("core.t", "/elsewhere", place), table("core.u", "/w/b")))
    assert strategies(lake.plan(hold(name)))["c-prod.a"] == "exempt"
    assert strategies(lake.plan())["c-prod.a"] == "delete_by_key"


def test_a_copy_in_the_partitions_folder_is_kept_and_a_neighbour_is_not() -> None:
    lake = Lake(partitioned=(table("core.t", "/w"),))
    assert set(strategies(lake.plan(hold("core.t"))).values()) == {"exempt"}
    beside = Lake(partitioned=(table("core.u", "/w/a2", "/w/ab"),))
    assert strategies(beside.plan(hold("core.u")))["c-prod.a"] == "delete_by_key"


def test_each_table_that_names_a_place_keeps_it() -> None:
    lake = Lake(partitioned=(table("core.t", "/w/a"), table("core.u", "/w/a")))
    for name in ("core.t", "core.u"):
        plan = lake.plan(hold(name))
        assert strategies(plan)["c-prod.a"] == "exempt"
        assert strategies(plan)["c-prod.b"] == "delete_by_key"


@pytest.mark.parametrize(("place", "kept"), [("s3://b/p/day=1", True), ("s3://b/pq", True), ("s3://b/q", False)])
def test_an_archive_with_the_files_is_kept(place: str, kept: bool) -> None:
    """Keys of an archive begin with its prefix, which may end in the middle of a name."""
    lake = Lake(objects=(archive(dataset=dataset("p")),), partitioned=(table("core.t", place),))
    assert (strategies(lake.plan(hold("core.t")))["c-b-p"] == "exempt") is kept
