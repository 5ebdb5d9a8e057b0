"""Keys of several columns in a bucket of Cloud Storage; Azure has the same reader of places, planner and executor."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import write_deltalake

from tests.gcs.shop import BUCKET, Shop
from tests.gcs.tables import Lake, put_all
from tests.gcssupport import Gcs
from tests.kits.tenants_kit import ASHA, BY_KEY, ESTATE, OTHERS, WRITERS, Row, as_table, erased, opened, waived


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "orc", "avro"])
def test_one_person_leaves_and_her_namesake_of_another_tenant_stays(gcs: Gcs, tmp_path: Path, kind: str) -> None:
    """An old generation holds her by the key alone, and another one holds nobody: only the first goes."""
    shop, write = Shop.of(gcs, tmp_path), WRITERS[kind]
    shop.export("out", f"a.{kind}", write(*OTHERS, BY_KEY))
    shop.export("out", f"a.{kind}", write(ASHA, *OTHERS))
    shop.export("out", f"b.{kind}", write(*OTHERS[:1]))
    shop.export("out", f"b.{kind}", write(BY_KEY, *OTHERS))
    plan = erased(shop, 2, lambda: (), ())
    deleted = [step for step in plan["steps"] if step["action"] == "object_delete_versions"]
    assert [len(step["parameters"]["versions"]) for step in deleted] == [1]
    texts = (shop.read(f"out/{name}.{kind}") for name in "ab")
    if kind in ("csv", "json"):
        assert list(texts) == [write(*OTHERS), write(*OTHERS)]


def planned(shop: Shop) -> tuple[list[str], list[str]]:
    """The kinds of gaps that nobody waived, and the places of copies in the bucket."""
    opened(shop)
    _, plan = shop.plan(**ESTATE)
    return [gap["kind"] for gap in plan["gaps"] if gap["id"] in waived(plan)], [
        copy["location"] for copy in plan["copies"] if copy["location"].startswith("gs:")
    ]


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_a_folder_with_her_namesake_alone_holds_nobody(gcs: Gcs, tmp_path: Path, kind: str) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.export("out", f"a.{kind}", WRITERS[kind](*OTHERS))
    assert planned(shop) == ([], [])


def test_an_old_generation_without_the_tenant_is_a_gap(gcs: Gcs, tmp_path: Path) -> None:
    """Whose its rows are nobody knows: it is neither deleted nor clean."""
    shop = Shop.of(gcs, tmp_path)
    shop.export("out", "a.csv", b"uid,mail\n7,\n")
    shop.export("out", "a.csv", WRITERS["csv"](BY_KEY, *OTHERS))
    gaps, found = planned(shop)
    assert gaps == ["key_of_several", "object_place"]
    assert found == []


@pytest.mark.parametrize(("row", "clean"), [(BY_KEY, False), (OTHERS[0], True), (OTHERS[4], True)])
def test_the_verification_finds_her_and_not_her_namesake(gcs: Gcs, tmp_path: Path, row: Row, clean: bool) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.export("out", "a.csv", WRITERS["csv"](BY_KEY, *OTHERS))
    erased(shop, 1, lambda: (shop.read("out/a.csv"),), (WRITERS["csv"](*OTHERS),))
    shop.put("out/late.csv", WRITERS["csv"](row))
    assert (shop.verify() == 0) is clean


def put_table(shop: Shop, folder: str, *rows: Row) -> None:
    write_deltalake(shop.base / "made" / folder, as_table(*rows))
    put_all(shop, shop.base / "made" / folder, folder)


def test_a_table_is_erased_by_the_whole_key_though_no_byte_shows_her(gcs: Gcs, tmp_path: Path) -> None:
    shop = Lake.of(gcs, tmp_path)
    opened(shop)
    shop.exports.append("t")
    put_table(shop, "t", BY_KEY, *OTHERS)
    code, plan = shop.plan(**ESTATE)
    assert (code, waived(plan)) == (0, [])
    (copy,) = (copy for copy in plan["copies"] if copy["location"].startswith("gs:"))
    assert (copy["strategy"], copy["found"]["rows"], copy["found"]["files_with_person"]) == ("delete_by_key", 1, 0)
    actions = [step["action"] for step in plan["steps"] if step["copy"] == copy["id"]]
    assert actions == [
        "delta_delete_rows",
        "delta_purge",
        "delta_vacuum",
        "delta_clean_log",
        "object_clear_versions",
        "verify_copy",
    ]


def test_a_held_object_of_a_table_is_a_gap_though_no_byte_shows_her(gcs: Gcs, tmp_path: Path) -> None:
    """Without a hit the place was taken for one in which nobody is, and the step would have failed half-way."""
    shop = Lake.of(gcs, tmp_path)
    opened(shop)
    shop.exports.append("t")
    put_table(shop, "t", BY_KEY, *OTHERS)
    gcs.buckets[BUCKET].objects[-1]["temporaryHold"] = True
    _, plan = shop.plan(**ESTATE)
    assert [gap["kind"] for gap in plan["gaps"] if gap["id"] in waived(plan)] == ["object_held"]
    assert not [step for step in plan["steps"] if step["action"] == "delta_delete_rows"]
