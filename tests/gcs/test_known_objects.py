"""Generations of Cloud Storage that a scan ledger knows."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.gcs.shop import BUCKET, Shop
from tests.gcssupport import Gcs
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
def place(gcs: Gcs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Place:
    shop = Shop.of(gcs, tmp_path, versioning=request.param)
    given = estate("http://127.0.0.1:1", object_stores=shop.stored("out"))
    return Place.filled(given, tmp_path, partial(gcs.put, BUCKET), monkeypatch)


def test_a_generation_is_downloaded_once(place: Place) -> None:
    read_once(place)


def test_a_new_generation_is_read(place: Place) -> None:
    found_in_other_bytes(place)


def test_metadata_of_a_known_generation_is_searched(place: Place, gcs: Gcs) -> None:
    def change(key: str) -> None:
        found = gcs.one(gcs.buckets[BUCKET], key, None)
        found["metadata"] = {"of": HER}
        found["metageneration"] = str(int(found["metageneration"]) + 1)

    found_beside_known_bytes(place, change)


def test_a_known_generation_that_cannot_be_read_is_unverified(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    unread_as_without_the_ledger(place, monkeypatch)


def test_rows_of_a_known_generation_are_not_counted_again(place: Place) -> None:
    counted_once(place)


def test_rows_of_a_new_generation_are_counted(place: Place) -> None:
    counted_in_other_bytes(place)


def test_sums_of_rows_are_compared_in_the_sample(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    other_sums_are_found_out(place, monkeypatch)


def test_a_part_of_a_known_generation_is_read_for_another_person(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_parts(place, monkeypatch)


def test_a_generation_that_is_replaced_between_two_parts_is_no_mixture(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced_between_two_parts(place, monkeypatch)


def test_rows_of_a_known_generation_that_cannot_be_read_are_not_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of_an_unread_object_are_not_told(place, monkeypatch)


def test_rows_that_were_counted_are_kept_though_the_search_stops(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_though_the_search_stops(place, monkeypatch)
