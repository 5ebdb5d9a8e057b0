"""A weekly budget spreads archives over windows, the most urgent first, and says when the deadline is lost by it."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.config.estate_file import Prices
from pii_tracer.lake.inventory import ObjectSet
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.plan import ErasurePlan
from planners.schedule.step_costs import cost
from planners.schedule.step_dates import Dated, Dates, Retention
from planners.schedule.weekly_budget import spread, told
from planners.step_drafts import Draft
from tests.planners.smalllake import NOW, Lake, archive

PRICES = Prices(archive_object=10.0)


def rewrite(name: str, files: int) -> Draft:
    return Draft(
        id=f"{name}/1",
        copy=name,
        action=Action.S3_REWRITE_ARCHIVE,
        executor="s3",
        parameters={},
        hazards=(),
        irreversible=False,
        verification="",
        reason="",
        files=files,
    )


def dated(latest: dict[str, int]) -> Dated:
    steps = {f"{n}/1": Dates(NOW, NOW, NOW + timedelta(days=days), 0) for n, days in latest.items()}
    return Dated(steps, NOW, (), ())


def weeks(drafts: list[Draft], latest: dict[str, int], budget: float) -> dict[str, int]:
    found = spread(drafts, dated(latest), PRICES, budget).begins
    return {name.removesuffix("/1"): (at - NOW).days // 7 for name, at in found.items()}


def test_the_most_urgent_goes_first_and_small_ones_fill_a_week() -> None:
    drafts = [rewrite("a", 6), rewrite("b", 6), rewrite("c", 3)]
    assert weeks(drafts, {"a": 20, "b": 10, "c": 30}, 100) == {"b": 0, "a": 1, "c": 0}
    assert weeks(drafts, {"a": 20, "b": 10, "c": 30}, 1000) == {"a": 0, "b": 0, "c": 0}


def test_what_costs_more_than_a_budget_gets_a_week_of_its_own() -> None:
    assert weeks([rewrite("a", 50), rewrite("b", 1)], {"a": 7, "b": 8}, 100) == {"a": 0, "b": 1}
    assert weeks([rewrite("a", 5), rewrite("b", 5)], {"a": 7, "b": 8}, 0) == {"a": 0, "b": 1}


def test_the_deadline_goes_before_the_budget_and_that_is_said() -> None:
    drafts = [rewrite("a", 5), rewrite("b", 5), rewrite("c", 2)]
    latest = {"a": 1, "b": 2, "c": 9}
    assert weeks(drafts, latest, 60) == {"a": 0, "b": 0, "c": 1}
    made = spread(drafts, dated(latest), PRICES, 60)
    assert made.weeks == {0: 100.0, 1: 20.0}
    assert "Raise the budget" in told(made, 60, "INR")[-1]
    assert "100.00 INR" in told(made, 60, "INR")[-1]
    assert len(told(spread(drafts, dated(latest), PRICES, 120), 120, "INR")) == 1


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 200))
def test_no_week_is_dearer_than_the_budget_but_for_a_single_archive(files: list[int], budget: int) -> None:
    drafts = [rewrite(f"a{n}", count) for n, count in enumerate(files)]
    found = spread(drafts, dated({f"a{n}": 7 * len(files) for n in range(len(files))}), PRICES, budget).begins
    assert set(found) == {d.id for d in drafts}
    for week in set(found.values()):
        prices = [cost(d, PRICES, NOW) for d in drafts if found[d.id] == week]
        assert sum(prices) <= budget or len(prices) == 1


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 40)), min_size=1, max_size=12), st.integers(1, 200))
def test_nothing_begins_after_its_latest_start(copies: list[tuple[int, int]], budget: int) -> None:
    drafts = [rewrite(f"a{n}", files) for n, (files, _) in enumerate(copies)]
    made = spread(drafts, dated({f"a{n}": days for n, (_, days) in enumerate(copies)}), PRICES, budget)
    for n, (_, days) in enumerate(copies):
        assert NOW <= made.begins[f"a{n}/1"] <= NOW + timedelta(days=days)
    assert sum(made.weeks.values()) == sum(cost(d, PRICES, NOW) for d in drafts)


def lake() -> Lake:
    def at(prefix: str) -> ObjectSet:
        return archive(prefix=prefix, dataset=DatasetId(namespace="s3://b", name=prefix))

    return Lake(objects=(at("p"), at("q")))


def begins(plan: ErasurePlan) -> list[datetime]:
    return sorted(s.earliest_start for s in plan.steps if s.action is Action.S3_REWRITE_ARCHIVE)


def test_a_plan_is_dated_by_its_budget() -> None:
    free = lake().plan(retention=Retention.RETAIN)
    tight = lake().plan(retention=Retention.RETAIN, weekly_budget=0.0, prices=PRICES)
    one, other = begins(free)
    assert one == other
    assert begins(tight) == [one, one + timedelta(days=7)]
    (schedule,) = [s for s in tight.schedules if s.retention == "retain"]
    assert schedule.notes[0] == "2 copies are spread over 2 weeks, for at most 0 INR a week"
    assert tight.plan_id != free.plan_id
    immediate = lake().plan(weekly_budget=0.0, prices=PRICES)
    assert len(set(begins(immediate))) == 1


def test_what_costs_nothing_waits_for_no_budget() -> None:
    made = lake().plan(retention=Retention.RETAIN, weekly_budget=0.0, prices=PRICES)
    plain = lake().plan(retention=Retention.RETAIN, prices=PRICES)
    table = [[s.earliest_start for s in p.steps if s.executor == "delta"] for p in (made, plain)]
    assert table[0] == table[1]


def test_tables_wait_too() -> None:
    prices = Prices(spark_hour=60.0)
    free = Lake().plan(retention=Retention.RETAIN, prices=prices)
    tight = Lake().plan(retention=Retention.RETAIN, prices=prices, weekly_budget=8.0)
    first = [sorted(min(s.earliest_start for s in p.steps if s.copy_ == c.id) for c in p.copies) for p in (free, tight)]
    assert (first[0][-1] - first[0][0]).days == 0
    assert [(later - first[1][0]).days // 7 for later in first[1]] == [0, 1, 2]
    assert all(s.meets_deadline for s in tight.schedules)
