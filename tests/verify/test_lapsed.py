"""What a topic's own retention takes is no loss of the run's; whatever else is missing is. Without and with a broker."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from executors.streams.kafka.topic_rewrite import Rewriter
from pii_tracer.app.execution.verify_step import VerifyExecutor
from pii_tracer.app.verification import Verification
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.run.executor_protocol import Outcome
from pii_tracer.verify.streams.kafka.retention_losses import (
    CLOCK_SLACK_MS,
    Kept,
    compare_topic,
    packed,
    trail_of,
)
from pii_tracer.verify.verdicts import Baseline, Bystanders, StateBaseline
from tests.executors.streams.kafka.test_kafka_rewrite import Died, dies_at
from tests.kafkasupport import BY_VALUE, KEYS, MAIL, ORDERS, USER, Broker, World, broker, planned, value
from tests.planners.copies.test_kafka import topic
from tests.waivers import MARKS

__all__ = ["broker"]

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=timezone.utc)
DAY = 86_400_000
AGED = int(NOW.timestamp() * 1000) - 8 * DAY
FRESH = int(NOW.timestamp() * 1000) - 6 * DAY
BY_AGE = {"cleanup.policy": "delete", "retention.ms": str(7 * DAY)}
BY_SIZE = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "1000"}


def baseline(records: Sequence[Kept], starts: Sequence[int] = (0,), made: str = "id-1", **changes: Any) -> Baseline:
    settings = changes.get("settings", BY_AGE)
    state = topic({"value": {"format": "string"}}, settings).model_copy(update={"topic_id": made})
    summed = f"{sum(r.content for r in records):064x}"
    rows = StateBaseline(state="current", rows_total=len(records), rows_person=0, checksum=summed)
    return Baseline(copy_id="c", states=(rows,), trail=trail_of(state, starts, packed(records)))


def records(*timestamps: int, first: int = 0, partition: int = 0) -> list[Kept]:
    return [Kept(partition, first + n, at, 1000 * partition + first + n) for n, at in enumerate(timestamps)]


def again(kept: Sequence[Kept]) -> list[Kept]:
    """Records in a topic that was made again: their offsets begin at 0."""
    return [record._replace(offset=number) for number, record in enumerate(kept)]


def told(before: Baseline, after: Baseline, copied_from: Sequence[int] | None = None) -> tuple[int, bool, int]:
    found = compare_topic(before, after, copied_from, NOW)
    return found.lost, found.equal, found.lapsed


FOUR = records(AGED, AGED, AGED, FRESH)


def test_in_the_same_topic_what_lies_before_its_first_offset_may_have_lapsed() -> None:
    assert told(baseline(FOUR), baseline(FOUR[2:], [2])) == (0, True, 2)
    # read, and taken before the first offset was asked for
    assert told(baseline(FOUR), baseline(FOUR[1:], [2])) == (0, True, 2)


@pytest.mark.parametrize(
    ("there", "starts", "expected"),
    [
        (FOUR[2:], [0], (2, False, 0)),
        ([FOUR[0], *FOUR[2:]], [0], (1, False, 0)),
        (FOUR[3:], [2], (1, False, 2)),
        ([FOUR[2]], [2], (1, False, 2)),
        ([FOUR[2]._replace(content=77), FOUR[3]], [2], (0, False, 2)),
        ([], [4], (1, False, 3)),
    ],
    ids=["the start is where it was", "in the middle", "behind the start", "the last", "changed", "too young"],
)
def test_every_other_loss_is_one(there: list[Kept], starts: list[int], expected: tuple[int, bool, int]) -> None:
    assert told(baseline(FOUR), baseline(there, starts)) == expected


def test_the_brokers_clock_may_be_a_little_in_front() -> None:
    limit = int(NOW.timestamp() * 1000) - 7 * DAY + CLOCK_SLACK_MS
    assert told(baseline(records(limit - 1)), baseline([], [1])) == (0, True, 1)
    assert told(baseline(records(limit)), baseline([], [1])) == (1, False, 0)


def test_a_topic_made_again_counts_from_where_it_was_copied_and_from_its_own_start() -> None:
    before = baseline(FOUR)
    # one left the old topic before it was copied, another one the new topic, in which the first copied has offset 0
    assert told(before, baseline(again(FOUR[1:])[1:], [1], made="id-2"), [1]) == (0, True, 2)
    assert told(before, baseline(again(FOUR[1:]), [0], made="id-2"), [1]) == (0, True, 1)
    assert told(before, baseline(again(FOUR)[2:], [2], made="id-2"), [0]) == (0, True, 2)


@pytest.mark.parametrize(
    ("there", "starts", "copied_from", "expected"),
    [
        (again(FOUR[1:]), [0], [0], (1, False, 0)),
        (again(FOUR[1:]), [0], None, (1, False, 0)),
        (again(FOUR[2:]), [0], [1], (1, False, 1)),
        (again(FOUR[1:])[:2], [0], [1], (1, False, 1)),
        ([], [0], [4], (1, False, 3)),
        ([], [4], [0], (1, False, 3)),
    ],
    ids=["passed over", "nothing told", "more than told", "the last", "too young before", "too young after"],
)
def test_what_a_rewrite_lost_is_lost(
    there: list[Kept], starts: list[int], copied_from: list[int] | None, expected: tuple[int, bool, int]
) -> None:
    assert told(baseline(FOUR), baseline(there, starts, made="id-2"), copied_from) == expected


def test_size_excuses_young_records_but_not_behind_a_rewrite_that_may_have_made_them_larger() -> None:
    young = records(FRESH, FRESH)
    before = baseline(young, settings=BY_SIZE)
    assert told(before, baseline(young[1:], [1], settings=BY_SIZE)) == (0, True, 1)
    assert told(before, baseline(again(young[1:]), [0], made="id-2", settings=BY_SIZE), [1]) == (0, True, 1)
    assert told(before, baseline(again(young)[1:], [1], made="id-2", settings=BY_SIZE), [0]) == (1, False, 0)


@given(
    ages=st.lists(st.lists(st.sampled_from([AGED, FRESH]), max_size=6), min_size=2, max_size=2),
    taken=st.lists(st.integers(0, 6), min_size=2, max_size=2),
    also=st.sets(st.tuples(st.integers(0, 1), st.integers(0, 5))),
)
def test_what_is_missing_is_lapsed_or_lost_and_never_neither(
    ages: list[list[int]], taken: list[int], also: set[tuple[int, int]]
) -> None:
    """taken: where the partitions begin now. also: what somebody took besides."""
    all_of = [r for p, times in enumerate(ages) for r in records(*times, partition=p)]
    there = [r for r in all_of if r.offset >= taken[r.partition] and (r.partition, r.offset) not in also]
    lost, equal, lapsed = told(baseline(all_of, [0, 0]), baseline(there, taken))
    assert lost + lapsed == len(all_of) - len(there)
    assert lapsed == sum(r.timestamp == AGED and r.offset < taken[r.partition] for r in all_of)
    assert equal is (lost == 0)


# --- a real broker, whose retention is at work ---


SOON = (12, 60, 240)
"""Seconds in which records lapse. Of these, a test takes the first in which the machine does what comes before."""


def aging(broker: Broker, policy: str, seconds: int, apart: int = 0) -> World:
    """Two days of retention; three records of others get beyond them in some seconds. apart: their partition."""
    kept = {"cleanup_policy": policy, "retention_ms": str(2 * DAY), "segment_ms": "3600000"}
    name = broker.topic("aging", 1 + apart, **kept)
    now = int(time.time() * 1000)
    aged = now - 2 * DAY + 1000 * seconds
    old = [("a", value("551", "a@example.org")), ("b", value("552", "b@example.org")), ("a", value("553", "a"))]
    broker.send(name, *old, timestamp=aged, partition=apart)
    broker.send(name, ("c", value("554", "c@example.org")), ("d", value(USER, MAIL)), timestamp=now, partition=0)
    broker.send(name, ("e", value("555", "e@example.org")), timestamp=now, partition=0)
    strategy = Strategy.TOMBSTONE if policy != "delete" else Strategy.REWRITE_TOPIC
    return planned(broker, name, ORDERS, strategy, BY_VALUE)


class Aged(NamedTuple):
    """Such a topic, what was read of it before the three records lapsed, and what a run before that came to."""

    world: World
    before: Baseline
    outcome: Outcome | None = None


def read_in_time(broker: Broker, policy: str) -> Aged:
    for seconds in SOON:
        world = aging(broker, policy, seconds)
        before = world.look().baseline
        assert before is not None
        assert before.trail is not None
        if not any(before.trail.starts):
            return Aged(world, before)
    pytest.fail("the records lapsed before they were read")


def copied_in_time(broker: Broker) -> Aged:
    """A topic that was written anew before its three records lapsed."""
    for seconds in SOON:
        world = aging(broker, "delete", seconds, apart=1)
        before = world.look().baseline
        (outcome,) = world.run()
        assert before is not None
        if outcome.facts["copied_from"] == [0, 0]:
            return Aged(world, before, outcome)
    pytest.fail("the records lapsed before they were copied")


DEATHS = {
    "before the old topic is deleted": ("_delete", 0),
    "when it is deleted": ("_create", 1),
    "in the new topic": ("_compare", 1),
    "when all is deleted": ("_restore", 0),
}


@pytest.fixture(scope="module")
def aged(broker: Broker) -> Mapping[str, Aged]:
    """A topic for each test, made before any waits: all records lapse at once."""
    rewritten = ("before a rewrite", *DEATHS)
    return {
        "compacted": read_in_time(broker, "compact,delete"),
        "from the new topic": copied_in_time(broker),
        **{name: read_in_time(broker, "delete") for name in rewritten},
    }


def lapses(world: World, partition: int = 0) -> None:
    until = time.monotonic() + 60 + max(SOON)
    while world.now().offsets[partition][0] < 3:
        assert time.monotonic() < until, "the broker's retention does not come"
        time.sleep(0.3)


def compared(before: Baseline | None, world: World, facts: Sequence[Mapping[str, Any]] = ()) -> Bystanders:
    after = world.look().baseline
    assert before is not None
    assert after is not None
    told = [f["copied_from"] for f in facts if "copied_from" in f]
    return compare_topic(before, after, told[-1] if told else None, datetime.now(timezone.utc))


def test_records_that_lapse_before_a_rewrite_are_told_and_not_lost(aged: Mapping[str, Aged], tmp_path: Path) -> None:
    world, before, _ = aged["before a rewrite"]
    lapses(world)
    (outcome,) = world.run()
    verification = Verification(
        plan=cast(ErasurePlan, SimpleNamespace(steps=world.steps, not_keys=())),
        estate=world.estate,
        base=Path(),
        keys=KEYS,
        marks=MARKS,
        spark=lambda: pytest.fail("topics need no Spark"),
        now=lambda: datetime.now(timezone.utc),
        told=lambda step: [outcome.facts] if step == world.steps[0].id else [],
        # as the run keeps it
        baselines={world.copy.id: Baseline.model_validate_json(before.model_dump_json())},
    )
    verify = VerifyExecutor(verification, tmp_path)
    facts = verify.run(world.steps[0], world.copy).facts
    assert (facts["bystander_rows_lost"], facts["left_by_retention"]) == (0, 3)
    assert verify.verify(world.steps[0], world.copy).ok
    assert outcome.facts["copied_from"] == [3]
    found = compared(before, world, [outcome.facts])
    assert (found.lost, found.equal, found.lapsed) == (0, True, 3)
    # and the same without what the rewrite told, or with one record less, is a loss
    assert compared(before, world).lost == 3
    delete_first(world)
    assert compared(before, world, [outcome.facts]).lost == 1


def delete_first(world: World) -> None:
    place = TopicPartition(world.state.declared.name, 0, world.now().offsets[0][0] + 1)
    world.broker.admin.delete_records([place])[place].result(20)


@pytest.mark.parametrize("death", DEATHS)
def test_a_rewrite_that_dies_has_told_where_it_copied_from(
    aged: Mapping[str, Aged], monkeypatch: pytest.MonkeyPatch, death: str
) -> None:
    method, call = DEATHS[death]
    world, before, _ = aged[death]
    lapses(world)
    with monkeypatch.context() as dying:
        dying.setattr(Rewriter, method, dies_at(call, getattr(Rewriter, method)))
        with pytest.raises(Died):
            world.executor().run(world.steps[0], world.copy)
    (outcome,) = world.run()
    found = compared(before, world, [*world.notes, outcome.facts])
    assert (found.lost, found.equal, found.lapsed) == (0, True, 3)
    delete_first(world)
    assert compared(before, world, [*world.notes, outcome.facts]).lost == 1


def test_records_that_lapse_from_the_new_topic_are_told_and_not_lost(aged: Mapping[str, Aged]) -> None:
    world, before, outcome = aged["from the new topic"]
    assert outcome is not None
    lapses(world, 1)
    found = compared(before, world, [outcome.facts])
    assert (found.lost, found.equal, found.lapsed) == (0, True, 3)


def test_records_that_lapse_while_a_topic_is_compacted_are_told_and_not_lost(aged: Mapping[str, Aged]) -> None:
    world, before, _ = aged["compacted"]
    assert before.states[0].rows_other == 4  # an older record of a key that has a newer one is nobody's loss
    lapses(world)
    world.run()
    found = compared(before, world)
    assert (found.lost, found.equal, found.lapsed) == (0, True, 2)
    delete_all = TopicPartition(world.state.declared.name, 0, world.now().offsets[0][1])
    world.broker.admin.delete_records([delete_all])[delete_all].result(20)
    assert (compared(before, world).lost, compared(before, world).lapsed) == (2, 2)
