"""Another system's numbers in a bucket of Cloud Storage; Azure has the same reader of places, planner and executor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs
from tests.kits.other_numbers_kit import ROWS, STAY, WRITERS, erased_around, said

TABLE = {"name": "shop.out", "location": f"gs://{BUCKET}/out"}


def declared(kind: str, **more: Any) -> dict[str, Any]:
    users = {"name": "shop.users", "format": "parquet", "location": "tables/users"}
    return {"catalogs": {"spark_catalog": {"type": "declared", "tables": [users, {**TABLE, "format": kind}]}}, **more}


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_the_number_stays_in_its_column_and_the_person_leaves(gcs: Gcs, tmp_path: Path, kind: str) -> None:
    shop, write = Shop.of(gcs, tmp_path), WRITERS[kind]
    shop.export("out", f"a.{kind}", write(*ROWS))
    stays = write(*STAY)

    def read() -> bytes:
        return stays if kind == "parquet" else shop.read(f"out/a.{kind}")

    estate = declared(kind, subjects=said("shop.out"))
    plan = erased_around(shop, read, stays, **estate)
    assert [(item["table"], item["copied_from"]) for item in plan["not_keys"]] == [("shop.out", None)]


@pytest.mark.parametrize("kind", ["json"])
def test_without_the_word_the_number_is_never_clean(gcs: Gcs, tmp_path: Path, kind: str) -> None:
    shop = Shop.of(gcs, tmp_path)
    shop.export("out", f"a.{kind}", WRITERS[kind](*ROWS))
    _, plan = shop.plan(**declared(kind))
    assert plan["not_keys"] == []
    shop.approve()
    code, result = shop.apply()
    assert code != 0 or result["residue"]


def test_a_column_of_the_sources_keys_needs_a_named_person(gcs: Gcs, tmp_path: Path) -> None:
    """The values of a folder in a store are compared, too: a word that nobody could check would hide the person."""
    shop = Shop.of(gcs, tmp_path)
    shop.export("out", "a.csv", WRITERS["csv"](*((uid, mail, uid) for uid, mail, _ in ROWS)))
    _, plan = shop.plan(**declared("csv", subjects=said("shop.out")))
    [gap] = [gap for gap in plan["gaps"] if gap["kind"] == "not_keys"]
    assert "at least half" in gap["reason"]
