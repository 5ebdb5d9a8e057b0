"""A lakeFS repository that nobody could read at planning, and of whom something is there now that it can be read."""

from __future__ import annotations

import pytest

from pii_tracer.lake.stores.lakefs.repository_discovery import repository_dataset
from pii_tracer.model.datasets import Format, Strategy
from pii_tracer.model.gap_kinds import GapKind
from tests.kits.waived_places_kit import FIRST, Place, csv, persons_apart, persons_apart_in_copy
from tests.lakefs.shop import Shop
from tests.verify.conftest import a_copy


@pytest.fixture
def place(shop: Shop) -> Place:
    estate = shop.estate()
    server = estate.lakefs[0]
    return Place(estate, shop.base, repository_dataset(server, server.repositories[0]), GapKind.LAKEFS_REPOSITORY)


def put(shop: Shop, name: str, data: bytes) -> None:
    shop.lakefs.put(shop.repo, "main", f"exports/{name}.csv", data)


def test_it_is_looked_at_again_once_it_can_be_read(shop: Shop, place: Place) -> None:
    """It was passed by: nothing had asked whether it could be read again."""
    assert place.files_found() == set()
    put(shop, "later", csv(FIRST))
    assert place.files_found()


def test_what_nobody_can_read_now_either_is_as_it_was_waived(
    shop: Shop, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(shop, "later", csv(FIRST))
    monkeypatch.setenv("LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY", "another")
    assert place.files_found() == set()


def test_what_is_left_of_one_person_is_hers_alone(shop: Shop, place: Place) -> None:
    persons_apart(place, lambda name, data: put(shop, name, data))


def test_a_copy_with_something_of_one_person_is_erased_of_the_others(shop: Shop, place: Place) -> None:
    at = f"{place.dataset.namespace}/{place.dataset.name}"
    copy = a_copy(Format.CSV, at, match=None, dataset=place.dataset, strategy=Strategy.REWRITE_BRANCHES)
    persons_apart_in_copy(place.estate, shop.base, copy, lambda name, data: put(shop, name, data))
