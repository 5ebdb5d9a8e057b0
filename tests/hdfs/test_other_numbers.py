"""Another system's numbers in a folder in HDFS."""

from __future__ import annotations

from pathlib import Path

from tests.hdfs.shop import Shop
from tests.hdfssupport import Hdfs
from tests.kits.other_numbers_kit import ROWS, STAY, WRITERS, erased_around, said


def test_the_number_stays_in_its_column_and_the_person_leaves(hdfs: Hdfs, tmp_path: Path) -> None:
    shop, write = Shop(hdfs, tmp_path, hdfs.folder()), WRITERS["csv"]
    shop.no_trash()
    shop.export("out", "a.csv", write(*ROWS))
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    out = {"name": "shop.out", "format": "csv", "location": f"{hdfs.uri}{shop.root}/out"}
    catalogs = {"spark_catalog": {"type": "declared", "tables": [users, out]}}
    kept = write(*STAY)
    erased_around(shop, lambda: shop.read(f"{shop.root}/out/a.csv"), kept, catalogs=catalogs, subjects=said("shop.out"))
