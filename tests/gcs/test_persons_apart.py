"""A place in Cloud Storage that was waived, and of whom something came there later."""

from __future__ import annotations

from pathlib import Path

import pytest

from pii_tracer.model.datasets import Format, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import object_location
from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs
from tests.kits.waived_places_kit import Place, estate_with, looked_at_again, persons_apart, persons_apart_in_copy
from tests.verify.conftest import a_copy


@pytest.fixture
def shop(gcs: Gcs, tmp_path: Path) -> Shop:
    return Shop.of(gcs, tmp_path)


def place_in(shop: Shop) -> Place:
    location = object_location(f"gs://{BUCKET}/b")
    return Place(
        estate_with(object_stores=shop.stored("b")), shop.base, location.dataset, GapKind.OBJECT_PLACE, str(location)
    )


def test_it_is_looked_at_again(shop: Shop) -> None:
    looked_at_again(place_in(shop), lambda name, data: shop.put(f"b/{name}", data))


def test_what_is_left_of_one_person_is_hers_alone(shop: Shop) -> None:
    persons_apart(place_in(shop), lambda name, data: shop.put(f"b/{name}.csv", data))


def test_a_copy_with_something_of_one_person_is_erased_of_the_others(shop: Shop) -> None:
    place = place_in(shop)
    copy = a_copy(Format.CSV, place.evidence, match=None, dataset=place.dataset, strategy=Strategy.BLOCKED)
    persons_apart_in_copy(place.estate, shop.base, copy, lambda name, data: shop.put(f"b/{name}.csv", data))
