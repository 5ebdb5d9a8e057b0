"""Which folders of a transactional table of Hive's have the rows of now, by their names alone."""

from __future__ import annotations

import pytest

from pii_tracer.lake.formats.hive_acid.folders import acid_folder, by_partition, partition_of


@pytest.mark.parametrize(
    ("names", "live"),
    [
        (
            "delta_0000001_0000001_0000 delta_0000002_0000002_0000",
            "delta_0000001_0000001_0000 delta_0000002_0000002_0000",
        ),
        (
            "base_0000002 delta_0000001_0000001_0000 delta_0000003_0000003_0000",
            "base_0000002 delta_0000003_0000003_0000",
        ),
        ("base_0000002 base_0000005_v0000017", "base_0000005_v0000017"),
        # a minor compaction, of both kinds of deltas
        ("delta_1_1_0 delta_2_2_0 delta_1_2 delete_delta_2_2_0 delete_delta_1_2", "delta_1_2 delete_delta_1_2"),
        # an update, and statements of one transaction
        ("delta_4_4_0 delta_4_4_1 delete_delta_4_4_1", "delta_4_4_0 delta_4_4_1 delete_delta_4_4_1"),
        ("base_4 delta_4_4_0 delta_5_5_0 delete_delta_3_3_0", "base_4 delta_5_5_0"),
    ],
)
def test_the_newest_base_counts_and_what_came_after_it(names: str, live: str) -> None:
    found = partition_of(names.split())
    assert " ".join(folder.name for folder in found.live) == live
    assert {folder.name for folder in found.old} == set(names.split()) - set(live.split())


@pytest.mark.parametrize(
    "name", ["000000_0", "base_", "delta_1", "_tmp_space.db", "base_1.copy", "day=1", ".hive-staging_1"]
)
def test_other_folders_are_none(name: str) -> None:
    assert acid_folder(name) is None


def test_two_folders_of_the_same_write_ids_are_seen() -> None:
    assert partition_of(["base_3_v0000001", "base_3_v0000002"]).twice
    assert not partition_of(["base_3_v0000001", "delta_4_4_0"]).twice


def test_each_partition_has_a_base_of_its_own() -> None:
    found = by_partition(["day=1/base_3", "day=1/delta_2_2_0", "day=2/delta_2_2_0", "day=2"])
    assert {name: [folder.name for folder in one.live] for name, one in found.items()} == {
        "day=1": ["base_3"],
        "day=2": ["delta_2_2_0"],
    }
    assert not found["day=1"].base_alone
