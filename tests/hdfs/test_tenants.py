"""Keys of several columns in a folder in HDFS."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import write_deltalake

from tests.hdfs.shop import Shop
from tests.hdfs.tables import put_all
from tests.hdfssupport import Hdfs
from tests.kits.tenants_kit import BY_KEY, ESTATE, OTHERS, WRITERS, as_table, erased, opened, waived


@pytest.mark.parametrize("kind", ["csv"])
def test_one_person_leaves_and_her_namesake_of_another_tenant_stays(hdfs: Hdfs, tmp_path: Path, kind: str) -> None:
    shop, write = Shop(hdfs, tmp_path, hdfs.folder()), WRITERS[kind]
    shop.no_trash()
    shop.export("out", f"a.{kind}", write(BY_KEY, *OTHERS))
    erased(shop, 1, lambda: (shop.read(f"{shop.root}/out/a.{kind}"),), (write(*OTHERS),))
    shop.put("out/late.csv", write(*OTHERS))
    assert shop.verify() == 0
    shop.put("out/later.csv", write(BY_KEY))
    assert shop.verify() != 0


def test_a_file_without_the_tenant_is_a_gap(hdfs: Hdfs, tmp_path: Path) -> None:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    shop.export("out", "a.csv", WRITERS["csv"](BY_KEY, *OTHERS))
    shop.export("out", "b.csv", b"uid,mail\n7,\n")
    opened(shop)
    _, plan = shop.plan(**ESTATE)
    assert [gap["kind"] for gap in plan["gaps"] if "out" in gap["id"]] == ["hdfs_place", "key_of_several"]


def test_a_table_is_erased_by_the_whole_key_though_no_byte_shows_her(hdfs: Hdfs, tmp_path: Path) -> None:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    opened(shop)
    shop.exports.append("t")
    write_deltalake(shop.base / "made" / "t", as_table(BY_KEY, *OTHERS))
    put_all(shop, shop.base / "made" / "t", "t")
    code, plan = shop.plan(**ESTATE)
    assert (code, waived(plan)) == (0, [])
    copy = next(copy for copy in plan["copies"] if copy["id"] == "c-t")
    assert (copy["strategy"], copy["found"]["rows"], copy["found"]["files_with_person"]) == ("delete_by_key", 1, 0)
    assert "delta_delete_rows" in [step["action"] for step in plan["steps"] if step["copy"] == "c-t"]


def test_the_trash_is_a_gap(hdfs: Hdfs, tmp_path: Path) -> None:
    """No lineage says what its columns are, so that no row there can be compared."""
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    shop.no_trash()
    opened(shop)
    shop.export("out", "a.csv", WRITERS["csv"](BY_KEY, *OTHERS))
    shop.hdfs.put(f"/user/asha/.Trash/Current{shop.root}/out/b.csv", WRITERS["csv"](BY_KEY))
    _, plan = shop.plan(**ESTATE)
    shop.no_trash()
    assert [gap["kind"] for gap in plan["gaps"] if "trash" in gap["id"].lower()] == ["key_of_several"]
