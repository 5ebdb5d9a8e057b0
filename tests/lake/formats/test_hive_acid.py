"""Which folders of a transactional table of Hive's have the rows of now, by their names alone."""

from __future__ import annotations

from typing import Any

import pytest

from pii_tracer.lake.formats.hive_acid.folders import acid_folder, by_partition, partition_of, partition_values
from pii_tracer.lake.formats.hive_acid.metastore_notes import AcidNotes, Settled
from pii_tracer.lake.formats.hive_acid.table_files import TableFiles
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from pii_tracer.model.datasets import Column
from pii_tracer.verify.formats.hive_acid.table_reader import chosen


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


OPEN = "open, or was aborted"
DELTAS = "delta_1_1_0/bucket_00000 delta_2_2_0/bucket_00000"


def test_values_of_partitions_are_decoded_once() -> None:
    assert dict(partition_values("day=x%2Fmail/part=50%2525/who=__HIVE_DEFAULT_PARTITION__")) == {
        "day": "x/mail",
        "part": "50%25",
        "who": None,
    }
    assert list(partition_values("")) == []


def test_the_verifier_chooses_the_same_folders_by_the_names_as_they_lie() -> None:
    names = ["base_2", "base_5_v0000017", "delta_6_6_0", "delta_7_7_0", "delta_6_7", "delete_delta_5_5_0"]
    files = [f"hdfs://nn/t/day=x%2Fmail/{name}/bucket_00000" for name in names]
    now = chosen(files, "hdfs://nn/t/", old=False)
    assert {name: [folder.name for folder in found.values()] for name, found in now.items()} == {
        "day=x%2Fmail": ["base_5_v0000017", "delta_6_7"]
    }
    assert chosen(files, "hdfs://nn/t/", old=True)["day=x%2Fmail"].keys() == set(files)


DAY = Column(name="day", type="string")


def obstacle(names: str, **notes: Any) -> str | None:
    """What stands against a table with these files."""
    root = HdfsPath(WebHdfs("hdfs://nn", NameNodes(("http://nn:9870",)), "lake"), "/t")
    settled = Settled(**({"write_ids_upto": 9, "transactions_upto": 99} | notes.pop("settled", {})))
    told = {"catalog": "hms", "database": "core", "table": "t", "location": "hdfs://nn/t", "columns": ()}
    told |= {"partition_columns": (), "settled": settled}
    return TableFiles(root, dict.fromkeys(names.split(), (1, 0))).obstacle(AcidNotes(**(told | notes)))


@pytest.mark.parametrize(
    ("names", "notes", "why"),
    [
        ("base_3/bucket_00000 base_3/_orc_acid_version delta_4_4_0/bucket_00001_0", {}, None),
        ("base_3/bucket_00000 000000_0", {}, "from before it was transactional"),
        ("delta_4_4/bucket_00000_flush_length", {}, "from before it was transactional"),
        ("base_3/deeper/bucket_00000", {}, "from before it was transactional"),
        ("day=1/base_3/bucket_00000", {}, "belongs to no partition"),
        ("day=1/base_3/bucket_00000", {"partition_columns": (DAY,), "partitions": ("day=1",)}, None),
        (
            "day=2/base_3/bucket_00000",
            {"partition_columns": (DAY,), "partitions": ("day=1",)},
            "belongs to no partition",
        ),
        ("base_3_v01/bucket_00000 base_3_v02/bucket_00000", {}, "a compaction is running"),
        ("base_3/bucket_00000 delta_4_6/bucket_00000", {"settled": {"write_ids": (5,)}}, OPEN),
        ("base_6/bucket_00000 delta_4_6/bucket_00000", {"settled": {"write_ids": (5,)}}, None),
        # a base that Hive does not read
        ("base_5/bucket_00000 base_9/bucket_00000", {"settled": {"write_ids": (9,)}}, OPEN),
        ("base_5/bucket_00000 base_9/bucket_00000", {"settled": {"write_ids": (5,)}}, None),
        ("base_9/bucket_00000 base_9/_metadata_acid", {"settled": {"write_ids": (9,)}}, None),
        # what was begun after the metastore was asked
        ("base_10/bucket_00000", {}, OPEN),
        ("base_10/bucket_00000 base_10/_metadata_acid", {}, OPEN),
        ("base_9/bucket_00000 delta_10_10_0/bucket_00000", {}, OPEN),
        ("base_9_v0000100/bucket_00000", {}, OPEN),
        # a compaction that is at work, or was aborted
        ("base_9_v0000042/bucket_00000", {"settled": {"write_ids": (9,)}}, None),
        ("base_9_v0000042/bucket_00000", {"settled": {"transactions": (42,)}}, OPEN),
        (f"{DELTAS} delta_1_2_v0000042/bucket_00000", {"settled": {"transactions": (42,)}}, OPEN),
        (f"{DELTAS} delta_1_2_v0000042/bucket_00000", {"settled": {"transactions": (41,)}}, None),
        ("base_6/bucket_00000", {"recycles": True}, "hive.repl.cm.enabled"),
    ],
)
def test_what_is_not_clear_stands_against_a_table(names: str, notes: dict[str, Any], why: str | None) -> None:
    found = obstacle(names, **notes)
    assert (found is None) if why is None else (found is not None and why in found)
