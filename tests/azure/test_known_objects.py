"""States of blobs that a scan ledger knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.azure.blob_service import BlobService
from tests.azure.shop import Shop
from tests.kits.known_objects_kit import (
    HER,
    Place,
    counted_in_other_bytes,
    counted_once,
    found_beside_known_bytes,
    found_in_other_bytes,
    kept_though_the_search_stops,
    other_sums_are_found_out,
    read_in_parts,
    read_once,
    replaced_between_two_parts,
    rows_of_an_unread_object_are_not_told,
    unread_as_without_the_ledger,
)
from tests.s3support import estate


@pytest.fixture(params=[True, False], ids=["versions", "no versions"])
def shop(azure: BlobService, tmp_path: Path, request: pytest.FixtureRequest) -> Shop:
    return Shop.on(azure, tmp_path, versioning=request.param)


@pytest.fixture
def place(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    given = estate("http://127.0.0.1:1", object_stores=shop.stored("out"))
    return Place.filled(given, tmp_path, shop.put, monkeypatch)


def test_a_state_is_downloaded_once(place: Place) -> None:
    read_once(place)


def test_a_new_state_is_read(place: Place) -> None:
    found_in_other_bytes(place)


def test_tags_of_a_known_state_are_searched(place: Place, shop: Shop) -> None:
    """Tags change without a new ETag."""

    def change(key: str) -> None:
        current = shop.blob(key).current
        assert current is not None
        current.tags["of"] = HER

    found_beside_known_bytes(place, change)


def test_a_known_state_that_cannot_be_read_is_unverified(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    unread_as_without_the_ledger(place, monkeypatch)


def test_rows_of_a_known_state_are_not_counted_again(place: Place) -> None:
    counted_once(place)


def test_rows_of_a_new_state_are_counted(place: Place) -> None:
    counted_in_other_bytes(place)


def test_sums_of_rows_are_compared_in_the_sample(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    other_sums_are_found_out(place, monkeypatch)


def test_a_part_of_a_known_state_is_read_for_another_person(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_parts(place, monkeypatch)


def test_a_state_that_is_replaced_between_two_parts_is_no_mixture(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced_between_two_parts(place, monkeypatch)


def test_rows_of_a_known_version_that_cannot_be_read_are_not_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of_an_unread_object_are_not_told(place, monkeypatch)


def test_rows_that_were_counted_are_kept_though_the_search_stops(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_though_the_search_stops(place, monkeypatch)
