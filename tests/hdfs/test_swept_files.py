"""The sweep of a table's folder in a real HDFS: what it lists, what it leaves, and that nothing goes to a trash."""

from __future__ import annotations

from pathlib import Path

import pytest

from executors.formats.delta import sweep_rules
from executors.sweep import table_folders
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.model.errors import EstateError, RunError
from tests.hdfs.shop import OTHERS, PERSON, USER, Shop
from tests.hdfs.tables import deleted, delta, files_of, put_all
from tests.hdfssupport import Hdfs


@pytest.fixture
def shop(hdfs: Hdfs, tmp_path: Path) -> Shop:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    return shop


def test_what_no_version_needs_goes_past_the_trash_and_somebodys_files_stay(shop: Shop) -> None:
    delta(shop, "t", [PERSON], OTHERS, put=False)
    deleted(shop, "t", USER)
    path = put_all(shop, shop.base / "made" / "t", "t")
    strange = shop.put("t/notes.csv", b"x")
    folder = HdfsPath(shop.hdfs.client(), path)
    found = sweep_rules.due(folder, 0, 0)
    assert (len(found.going), found.strange) == (1, 1)
    table_folders.remove(folder, [*(file.path for file in found.going), f"{folder}/gone.parquet"])
    assert sweep_rules.missing(folder) == []
    kept = [file.rpartition(".")[2] for file in files_of(shop, path) if "_delta_log" not in file]
    assert sorted(kept) == ["csv", "parquet"]
    assert strange in files_of(shop, path)
    assert "user" not in [entry.name for entry in shop.hdfs.client().entries("/")], "nobody has a trash"


def test_empty_partitions_go_the_deepest_first_and_one_that_a_writer_fills_stays(shop: Shop) -> None:
    client = shop.hdfs.client()
    for empty in ("day=1/hour=2", "day=2", "other"):
        shop.hdfs.ask(f"{shop.root}/{empty}", "MKDIRS")
    shop.put("day=3/a.parquet", b"x")
    folder = HdfsPath(client, shop.root)
    found = table_folders.empty_partitions(folder, frozenset())
    assert [path.removeprefix(f"{folder}/") for path in found] == ["day=1/hour=2", "day=1", "day=2"]
    shop.put("day=2/late.parquet", b"x")
    table_folders.remove_partitions(folder, found)
    assert sorted(entry.name for entry in client.entries(shop.root)) == ["day=2", "day=3", "other"]


def test_a_refused_right_is_said_and_a_file_of_another_place_is_none_of_the_tables(shop: Shop) -> None:
    path = shop.put("t/a.parquet", b"x")
    folder = HdfsPath(shop.hdfs.client("somebody"), f"{shop.root}/t")
    with pytest.raises(RunError, match="AccessControlException"):
        table_folders.remove(folder, [f"{folder}/a.parquet"])
    assert files_of(shop, f"{shop.root}/t") == [path]
    for elsewhere in ("s3://bucket/a", "hdfs://another.example/a", f"{folder}/../a"):
        with pytest.raises(EstateError):
            folder.placed(elsewhere)
