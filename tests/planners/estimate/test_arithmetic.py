"""Sums over a stream against a model that keeps lists; and what must not become cheaper or slower."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.listing.listed_place import ListedFile, ListedPlace, PlaceKind
from pii_tracer.model.estimate import Amounts
from planners.estimate.arithmetic import Asked, Sums, sum_up
from tests.planners.estimate.places import TAG, Made, Totals, asked, brute, listing

sizes = st.one_of(st.integers(0, 1000), st.integers(0, 10**10))
plain = st.tuples(sizes, st.booleans()).map(lambda told: ListedFile(*told))
stored = st.tuples(
    sizes,
    st.booleans(),
    st.booleans(),
    st.sampled_from(["", "STANDARD", "GLACIER", "DEEP_ARCHIVE"]),
    st.sampled_from([None, "2026-11-01T00:00:00+00:00", "2020-01-01T00:00:00+00:00"]),
).map(lambda told: ListedFile(*told))


def made(kind: PlaceKind, files: st.SearchStrategy[ListedFile], **more: Any) -> st.SearchStrategy[Made]:
    listed = st.lists(files, max_size=5).map(tuple)
    return st.builds(Made, st.just(kind), listed, **{name: st.just(value) for name, value in more.items()})


def warm(place: Made) -> Made:
    """Objects in the class that this model restores, and in no other cold one."""
    files = [
        f._replace(storage_class="GLACIER") if f.storage_class == "DEEP_ARCHIVE" and f.live else f for f in place.files
    ]
    return replace(place, files=tuple(files))


estates = st.lists(
    st.one_of(
        made(PlaceKind.FOLDER, plain),
        made(PlaceKind.SEARCHED, plain),
        made(PlaceKind.HDFS_FOLDER, plain),
        made(PlaceKind.TABLE, plain, format=DELTA),
        made(PlaceKind.TABLE, plain, format=ICEBERG),
        made(PlaceKind.TABLE, plain, format=ICEBERG, references=(TAG, TAG.model_copy(update={"name": "q"}))),
        made(PlaceKind.BUCKET_TABLE, stored, format=DELTA),
        made(PlaceKind.OBJECTS, stored),
        made(PlaceKind.ARCHIVE, stored).map(warm),
    ),
    max_size=4,
)
questions = st.builds(
    asked,
    persons=st.integers(1, 10**6),
    executors=st.integers(1, 1000),
    touched=st.one_of(st.floats(0.001, 1), st.just(1.0)),
    rate=st.floats(1e4, 1e9),
)


def agrees(found: Amounts, wanted: Totals) -> None:
    assert found.work_seconds == pytest.approx(wanted.seconds, rel=1e-6, abs=0.01)
    assert found.wall_seconds == pytest.approx(wanted.wall, rel=1e-6, abs=0.01)
    assert found.cost == pytest.approx(wanted.cost, rel=1e-6, abs=0.02)
    assert (found.bytes_read, found.bytes_written) == (wanted.read, wanted.written)
    assert found.requests == wanted.requests


def total(places: list[Made], question: Asked) -> Sums:
    return sum_up(listing(places), question)


@settings(max_examples=60)
@given(estates, questions)
def test_the_stream_sums_up_to_what_lists_give(places: list[Made], question: Asked) -> None:
    cases = total(places, question).total.frozen()
    agrees(cases.high, brute(places, question, 1.0))
    agrees(cases.expected, brute(places, question, question.touched_by_all))
    searched = brute([replace(p, kind=PlaceKind.SEARCHED) for p in places], question, 1.0)
    assert cases.low.work_seconds == pytest.approx(searched.seconds, rel=1e-6, abs=0.01)
    assert cases.low.bytes_read == searched.read == sum(f.size for p in places for f in p.files)
    assert cases.low.bytes_written == 0


def no_less(more: Amounts, less: Amounts, *names: str) -> None:
    for name in names:
        assert getattr(more, name) >= getattr(less, name) * (1 - 1e-9) - 0.011, name


@settings(max_examples=25)
@given(estates, questions)
def test_no_case_is_below_the_one_before(places: list[Made], question: Asked) -> None:
    cases = total(places, question).total.frozen()
    no_less(cases.expected, cases.low, *Amounts.model_fields)
    no_less(cases.high, cases.expected, *Amounts.model_fields)
    for case in (cases.low, cases.expected, cases.high):
        no_less(case, Amounts(wall_seconds=case.work_seconds / question.executors), "wall_seconds")
        assert case.wall_seconds <= case.work_seconds + 0.01


@settings(max_examples=25)
@given(estates, questions, st.data())
def test_more_files_are_never_cheaper(places: list[Made], question: Asked, data: st.DataObject) -> None:
    before = total(places, question).total.frozen()
    if places and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(places) - 1))
        file = data.draw(stored if places[at].kind is PlaceKind.ARCHIVE else plain)
        places = [*places[:at], warm(replace(places[at], files=(*places[at].files, file))), *places[at + 1 :]]
    else:
        places = [*places, Made(PlaceKind.FOLDER, (data.draw(plain),))]
    after = total(places, question).total.frozen()
    for name in ("low", "expected", "high"):
        no_less(getattr(after, name), getattr(before, name), *Amounts.model_fields)


@settings(max_examples=25)
@given(estates, questions, st.integers(0, 1000), st.integers(0, 10**6))
def test_more_executors_are_never_slower_and_more_persons_never_cheaper(
    places: list[Made], question: Asked, executors: int, persons: int
) -> None:
    before = total(places, question).total.frozen()
    faster = total(places, replace(question, executors=question.executors + executors)).total.frozen()
    dearer = total(places, replace(question, persons=question.persons + persons)).total.frozen()
    for name in ("low", "expected", "high"):
        no_less(getattr(before, name), getattr(faster, name), "wall_seconds")
        assert getattr(faster, name).work_seconds == getattr(before, name).work_seconds
        assert getattr(faster, name).cost == getattr(before, name).cost
        no_less(getattr(dearer, name), getattr(before, name), *Amounts.model_fields)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=12), st.integers(1, 8))
def test_wall_time_is_no_more_than_a_real_schedule(files: list[int], executors: int) -> None:
    """The longest first, each to who is free: no schedule of undivided files is faster than the bound."""
    question = asked(executors=executors)
    loads = [0.0] * executors
    for size in sorted(files, reverse=True):
        at = loads.index(min(loads))
        loads[at] += 0.004 + size / question.rate
    place = Made(PlaceKind.SEARCHED, tuple(map(ListedFile, files)))
    assert total([place], question).total.frozen().low.wall_seconds <= max(loads) + 0.01


def test_what_many_persons_touch_grows_to_everything() -> None:
    assert asked(touched=0.01).touched_by_all == pytest.approx(0.01)
    assert asked(persons=2, touched=0.5).touched_by_all == pytest.approx(0.75)
    assert asked(persons=100, touched=0.01).touched_by_all == pytest.approx(1 - 0.99**100)
    assert asked(persons=10**9, touched=0.01).touched_by_all == 1.0
    assert asked(touched=1.0).touched_by_all == 1.0


def test_the_dearest_places_are_named_and_no_others() -> None:
    places = [Made(PlaceKind.FOLDER, (ListedFile(size),), name=f"p{size}") for size in (3, 900, 50, 10**9, 7)]
    sums = sum_up(listing(places), replace(asked(), dearest=2))
    assert [place.name for place in sums.dearest] == ["p1000000000", "p900"]
    assert sums.places == 5
    assert sum_up(listing(places), replace(asked(), dearest=0)).dearest == ()


def test_of_places_alike_the_first_are_named() -> None:
    places = [Made(PlaceKind.FOLDER, (ListedFile(5, data),), name="same") for data in (True, False, True, True)]
    sums = sum_up(listing(places), replace(asked(), dearest=2))
    assert [(place.name, place.cases.high.work_seconds > 60) for place in sums.dearest] == [("same", True)] * 2
    assert sums.places == 4


def test_files_are_read_as_a_stream() -> None:
    """A place's files are gone when the next place comes: what passes is not kept."""
    passed = []

    def files() -> Any:
        for size in range(1000):
            passed.append(size)
            yield ListedFile(size)

    def places() -> Any:
        for number in range(3):
            assert len(passed) == 1000 * number
            yield ListedPlace("p", "p", PlaceKind.FOLDER, files())

    kept = listing([])
    kept.places = places()
    assert sum_up(kept, asked()).files == 3000
