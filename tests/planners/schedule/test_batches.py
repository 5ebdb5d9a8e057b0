"""Batches keep every deadline that can be kept, and name each that cannot, with the reason."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.config.batches import Batches
from pii_tracer.config.laws import shipped
from planners.schedule.batches import Batch, BatchRule, Waiting, forecast

NOW = datetime(2026, 12, 1, tzinfo=timezone.utc)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
LAWS = {"GDPR": 0.5, "CCPA": 0.3, "LGPD": 0.15, "DPDP": 0.05}


def a_month(a_day: int, seed: int = 7) -> list[Waiting]:
    """Requests of thirty days, at any minute, under several laws."""
    chance = random.Random(seed)
    spans = {name: shipped()[name].at(NOW).deadline for name in LAWS}
    names = chance.choices(list(LAWS), weights=list(LAWS.values()), k=30 * a_day)
    found = []
    for n, name in enumerate(names):
        received = NOW + n // a_day * DAY + timedelta(minutes=chance.randrange(1440))
        found.append(Waiting(f"R-{n}", received, spans[name].after(received)))
    return found


def rule(persons: int, every: int = 24, takes: float = 9, windows: Sequence[str] = ()) -> BatchRule:
    return BatchRule(persons, Batches(every_hours=every, takes_days=takes, windows=tuple(windows)))


def checked(requests: Sequence[Waiting], by: BatchRule) -> tuple[list[Batch], dict[str, str]]:
    """The batches, looked at from outside: each request in one of them, none too early or too full, each late one told
    and no other. Also why each late one is."""
    batches = list(forecast(requests, by, NOW))
    known = {one.id: one for one in requests}
    assert Counter(name for batch in batches for name in batch.requests) == Counter(list(known))
    for before, batch in zip([None, *batches], batches, strict=False):
        assert len(batch.requests) <= by.persons
        assert all(known[name].ready <= batch.begins for name in batch.requests)
        assert before is None or by.span(batch.begins) > by.span(before.begins)
        late = {name for name in batch.requests if known[name].due < batch.begins + by.takes}
        assert {one.id for one in batch.late} == late
    return batches, {one.id: one.reason for batch in batches for one in batch.late}


def test_ten_thousand_a_day_for_a_month_are_all_in_time() -> None:
    """The shortest deadline is of 15 days, a batch takes 9, and there is room for those of a day in a day's batches."""
    requests = a_month(10_000)
    batches, late = checked(requests, rule(2_500, every=6))
    assert late == {}
    assert len(requests) == 300_000
    assert len(batches) < 30 * 4 + 10


def test_what_is_too_much_is_named_and_no_more_than_that() -> None:
    """A tenth more than the batches hold: nobody could have done better, and first come first served would do worse."""
    requests = a_month(110)
    by = rule(25, every=6)
    _, late = checked(requests, by)
    assert len(late) == len(requests) - most_in_time(requests, by)
    assert set(late.values()) <= {
        "every batch that ends in time is full, with 25 persons whose deadlines are not later"
    }
    late_by_arrival, queue = 0, sorted(requests, key=lambda one: one.ready)
    batch = by.begin(NOW)
    while queue:
        ready = [one for one in queue[: by.persons] if one.ready <= batch]
        late_by_arrival += sum(one.due < batch + by.takes for one in ready)
        queue, batch = queue[len(ready) :], by.begin(batch + HOUR)
    assert late_by_arrival >= len(late)


def most_in_time(requests: Sequence[Waiting], by: BatchRule) -> int:
    """How many deadlines can be kept at all, by a search that has nothing in common with the rule: a largest matching
    of requests with places in batches."""
    begins = [by.begin(NOW)]
    while begins[-1] < max(one.due for one in requests):
        begins.append(by.begin(begins[-1] + HOUR))
    graph, kinds = nx.DiGraph(), Counter[tuple[int, int]]()
    for one in requests:
        first, end = bisect_left(begins, one.ready), bisect_right(begins, one.due - by.takes)
        if first < end:
            kinds[first, end] += 1
    for (first, end), many in kinds.items():
        graph.add_edge("source", ("kind", first, end), capacity=many)
        for n in range(first, end):
            graph.add_edge(("kind", first, end), n)
            graph.add_edge(n, "sink", capacity=by.persons)
    return int(nx.maximum_flow_value(graph, "source", "sink")) if graph else 0


HOURS = st.integers(0, 24 * 6)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(HOURS, HOURS, st.none() | HOURS), min_size=1, max_size=25),
    st.integers(1, 3),
    st.sampled_from([1, 6, 24]),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_no_choice_keeps_more_deadlines(
    drawn: list[tuple[int, int, int | None]], persons: int, every: int, takes: float
) -> None:
    requests = [
        Waiting(f"R-{n}", NOW + a * HOUR, NOW + (a + b) * HOUR, None if c is None else NOW + c * HOUR)
        for n, (a, b, c) in enumerate(drawn)
    ]
    by = rule(persons, every, takes)
    _, late = checked(requests, by)
    assert len(requests) - len(late) == most_in_time(requests, by)


@pytest.mark.parametrize(
    ("request_", "by", "reason"),
    [
        (
            Waiting("R", NOW, NOW + 8 * DAY),
            rule(10),
            "a batch takes 9 days, but the law allows 8 from receipt",
        ),
        (
            Waiting("R", NOW + HOUR, NOW + HOUR + 9.5 * DAY),
            rule(10),
            "the first batch after it came in begins on 2026-12-02 00:00 UTC, and ends after the deadline",
        ),
        (
            Waiting("R", NOW, NOW + 10 * DAY, NOW + 2 * DAY),
            rule(10),
            "its notice ran until 2026-12-03 00:00 UTC: no batch after it ends in time",
        ),
    ],
)
def test_a_deadline_that_cannot_be_kept_says_why(request_: Waiting, by: BatchRule, reason: str) -> None:
    assert checked([request_], by)[1] == {"R": reason}


def test_batches_begin_in_their_windows() -> None:
    by = rule(1, every=24, takes=0, windows=["sat 22:00-23:00 Asia/Kolkata"])
    batches, _ = checked([Waiting(f"R-{n}", NOW, NOW + 30 * DAY) for n in range(3)], by)
    assert [batch.begins for batch in batches] == [
        datetime(2026, 12, d, 16, 30, tzinfo=timezone.utc) for d in (5, 12, 19)
    ]
