"""A place in HDFS that was waived, and of whom something came there later."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.model.datasets import Format, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import hdfs_location
from tests.hdfs.shop import Shop
from tests.hdfssupport import Hdfs
from tests.kits.waived_places_kit import Place, estate_with, looked_at_again, persons_apart, persons_apart_in_copy
from tests.verify.conftest import a_copy


def place_in(shop: Shop) -> Place:
    """A folder with a file that stays, since nothing there is listed before."""
    shop.put("b/first.csv", b"mail\nnobody@x.example\n")
    found = shop._places()
    location = hdfs_location(f"{found['roots'][-1]}/b")
    return Place(estate_with(**found), shop.base, location.dataset, GapKind.HDFS_PLACE, str(location))


def test_it_is_looked_at_again(hdfs: Hdfs, tmp_path: Path) -> None:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    looked_at_again(place_in(shop), lambda name, data: shop.put(f"b/{name}", data))


def test_what_is_left_of_one_person_is_hers_alone(hdfs: Hdfs, tmp_path: Path) -> None:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    persons_apart(place_in(shop), lambda name, data: shop.put(f"b/{name}.csv", data))


def test_a_copy_with_something_of_one_person_is_erased_of_the_others(hdfs: Hdfs, tmp_path: Path) -> None:
    shop = Shop(hdfs, tmp_path, hdfs.folder())
    place = place_in(shop)
    copy = a_copy(Format.CSV, place.evidence, match=None, dataset=place.dataset, strategy=Strategy.BLOCKED)
    persons_apart_in_copy(place.estate, shop.base, copy, lambda name, data: shop.put(f"b/{name}.csv", data))
