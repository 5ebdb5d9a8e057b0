"""The person in somebody else's row of a folder in HDFS."""

from __future__ import annotations

from pathlib import Path

from tests.hdfs.shop import Shop
from tests.hdfssupport import Hdfs
from tests.kits.mentioned_by_others_kit import told_before_the_run


def test_rows_of_others_that_keep_the_person_are_a_gap(hdfs: Hdfs, tmp_path: Path) -> None:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    told_before_the_run(shop, "parquet")
