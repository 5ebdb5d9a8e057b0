"""Places of an object store that a named person waived: looked at again after the run, and waived for those bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pii_tracer.model.errors import ExitCode
from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs
from tests.hdfs.shop import OTHERS, PERSON, csv
from tests.waivers import write_waivers

PICTURE = b"II*\0" + bytes(range(256))


@pytest.fixture
def shop(gcs: Gcs, tmp_path: Path) -> Shop:
    """The person is in `a`; in `b` lies a picture that nobody can read."""
    shop = Shop.of(gcs, tmp_path)
    shop.export("a", "x.csv", csv(OTHERS[0], OTHERS[1], PERSON))
    shop.put("b/scan.tiff", PICTURE)
    shop.write(object_stores=shop.stored("a", "b"))
    return shop


def planned(shop: Shop) -> dict[str, Any]:
    plan: dict[str, Any] = shop.planned()[1]
    return plan


def waive(shop: Shop) -> dict[str, Any]:
    write_waivers(shop.base / "waivers.yaml", planned(shop)["gaps"])
    plan = planned(shop)
    assert plan["complete"]
    return plan


def replace(shop: Shop, key: str, data: bytes) -> None:
    shop.gcs.buckets[BUCKET].objects = [one for one in shop.gcs.buckets[BUCKET].objects if one["name"] != key]
    shop.put(key, data)


def test_a_waived_place_is_looked_at_after_the_run(shop: Shop) -> None:
    waive(shop)
    assert shop.approve() == 0
    replace(shop, "b/scan.tiff", csv(OTHERS[1], PERSON))
    shop.put("b/late.csv", csv(OTHERS[1], PERSON))
    code, result = shop.apply()
    assert code == ExitCode.RESIDUE
    assert {item["file"] for item in result["residue"]} == {"scan.tiff", "late.csv"}


def test_the_bytes_that_were_waived_as_unread_are_an_exception(shop: Shop) -> None:
    waive(shop)
    assert shop.approve() == 0
    code, result = shop.apply()
    assert (code, result["residue"]) == (0, [])
    assert shop.verify() == 0


def test_an_object_without_the_person_leaves_the_waiver(shop: Shop) -> None:
    waive(shop)
    shop.put("b/more.csv", csv(OTHERS[1]))
    assert planned(shop)["complete"]


def test_another_unread_object_makes_the_waiver_void(shop: Shop) -> None:
    for number in range(6):
        shop.put(f"b/s{number}.tiff", PICTURE + bytes([number]))
    waive(shop)
    replace(shop, "b/s5.tiff", PICTURE + b"another")
    assert not planned(shop)["complete"]


def test_a_place_that_nobody_could_read_is_waived_for_everybody(shop: Shop) -> None:
    waive(shop)
    words = (shop.base / "waivers.yaml").read_text()
    shop.key = OTHERS[0][0]
    shop.write(object_stores=shop.stored("a", "b"))
    (shop.base / "waivers.yaml").write_text(words)
    assert planned(shop)["complete"]
