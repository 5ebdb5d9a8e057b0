"""Two brokers: what no client can read, a follower's segments, is cleaned by the same step (seen on its disk)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from executors.streams.kafka.topic_rewrite import Rewriter
from pii_tracer.lake.streams.kafka.topics import absent_replicas
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import EstateError
from pii_tracer.run.executor_protocol import Progress
from tests.executors.streams.kafka.test_kafka_prefix import (
    cut,
    read,
    readers,
    untouched,
    visits,
)
from tests.kafkasupport import (
    BY_KEY,
    BY_VALUE,
    MAIL,
    USER,
    USERS,
    Broker,
    World,
    follower,
    killed,
    planned,
    running,
    value,
)


@dataclass(frozen=True)
class Pair:
    """The brokers of one cluster; the first leads, and has all that belongs to groups and transactions."""

    first: Broker
    second: Broker

    def on_disk(self, topic: str) -> list[int]:
        return [
            b.segments(topic).count(needle)
            for b in (self.first, self.second)
            for needle in (MAIL.encode(), USER.encode())
        ]

    def until_gone_from_the_first(self, topic: str) -> None:
        """Wait until the first broker's cleaner has removed the person's bytes."""
        end = time.monotonic() + 180
        while any(self.on_disk(topic)[:2]):
            assert time.monotonic() < end, "the first broker still has the person"
            time.sleep(0.2)

    def until_absent(self, topic: str, partitions: list[int]) -> None:
        """Wait until just these partitions' followers are out of sync."""
        end = time.monotonic() + 180
        while self._absent(topic) != partitions:
            assert time.monotonic() < end, "the replicas are not as they should be"
            time.sleep(0.5)

    def _absent(self, topic: str) -> list[int] | None:
        """Until the cluster knows that a broker is dead, clients ask it in vain; those that knew it do so for ever."""
        try:
            return sorted(absent_replicas(AdminClient({"bootstrap.servers": self.first.bootstrap}), topic))
        except EstateError:
            return None

    @contextmanager
    def alone(self, topic: str) -> Iterator[None]:
        """The second broker is dead, and the cluster has noticed; in the end it is back and in sync."""
        with killed(self.second):
            self.until_absent(topic, [0, 1, 2])
            yield
        self.until_absent(topic, [])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running(tmp_path_factory.mktemp("first")) as first:
        first.commit("warm", first.topic("warm"), {0: 0})
        Producer({"bootstrap.servers": first.bootstrap, "transactional.id": "warm"}).init_transactions(60)
        with follower(first, tmp_path_factory.mktemp("second")) as second:
            yield Pair(first, second)


def test_followers_are_cleaned_with_their_leader(pair: Pair) -> None:
    topic = pair.first.topic("users", partitions=2, on=(2, 1), cleanup_policy="compact", segment_ms="600000")
    pair.first.send(topic, *[(f"88000000{n:04}", value(f"88000000{n:04}", "by@example.org")) for n in range(20)])
    pair.first.send(topic, (USER, value(USER, MAIL)), (USER, value(USER, MAIL, visits=2)))
    world = planned(pair.first, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    assert world.state.replicas == 2
    assert all(pair.on_disk(topic))
    world.run()
    assert pair.on_disk(topic) == [0, 0, 0, 0]
    assert world.is_as_before()


@pytest.mark.nightly
def test_a_cleaning_is_not_over_before_a_follower_that_was_away_was_cleaned(pair: Pair) -> None:
    topic = pair.first.topic("users", 3, (1, 2), cleanup_policy="compact", segment_ms="600000")
    pair.first.send(topic, ("880000000001", value("880000000001", "by@example.org")), (USER, value(USER, MAIL)))
    world = planned(pair.first, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    executor, (tombstone, compact) = world.executor(), world.steps
    executor.run(tombstone, world.copy)
    with pair.alone(topic):
        held = executor.run(compact, world.copy)
        assert held.waiting_until is not None
        assert held.facts["absent_replicas"] == {"0": [2], "1": [2], "2": [2]}
        assert "on broker 2" in held.waits_for
    assert executor.probe(compact, world.copy) is not Progress.DONE
    assert executor.run(compact, world.copy).waiting_until is None
    assert executor.verify(compact, world.copy).ok
    assert pair.on_disk(topic) == [0, 0, 0, 0]
    assert world.is_as_before()


def shared(pair: Pair) -> tuple[str, World]:
    """A topic of both brokers, and its world; the person is on both disks."""
    topic = visits(pair.first, (1, 2))
    world = cut(pair.first, topic, readers(pair.first, topic))
    assert world.state.replicas == 2
    assert all(pair.on_disk(topic))
    return topic, world


def test_no_segment_of_either_broker_holds_the_person_after_a_prefix_went(pair: Pair) -> None:
    topic, world = shared(pair)
    kept = [r for r in read(world) if r.partition == 1]
    world.run()
    assert pair.on_disk(topic) == [0, 0, 0, 0]
    assert read(world) == kept
    assert world.is_as_before()


def test_with_a_follower_away_nothing_of_a_prefix_goes_until_it_is_back(pair: Pair) -> None:
    topic, world = shared(pair)
    with pair.alone(topic):
        held = world.executor().run(world.steps[0], world.copy)
        assert held.waiting_until is not None
        assert held.facts["absent_replicas"] == {"0": [2], "1": [2], "2": [2]}
        assert "on broker 2" in held.waits_for
        assert untouched(world)
    world.run()
    assert pair.on_disk(topic) == [0, 0, 0, 0]


def test_a_follower_that_is_lost_at_the_cut_keeps_the_step_open(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """DeleteRecords is answered without a broker that is down; its disk still has everything."""
    topic, world = shared(pair)
    (step,) = world.steps
    original = AdminClient.delete_records
    with monkeypatch.context() as losing, ExitStack() as dead:

        def meanwhile(self: AdminClient, *asked: Any, **more: Any) -> Any:
            dead.enter_context(pair.alone(topic))
            return original(self, *asked, **more)

        losing.setattr(AdminClient, "delete_records", meanwhile)
        held = world.executor().run(step, world.copy)
        pair.until_gone_from_the_first(topic)
        assert all(pair.on_disk(topic)[2:]), "who is dead deletes nothing"
        assert held.waiting_until is not None
        assert held.facts["absent_replicas"] == {"0": [2], "1": [2], "2": [2]}
    assert world.executor().probe(step, world.copy) is Progress.PARTIAL
    outcome = world.executor().run(step, world.copy)
    assert outcome.waiting_until is None
    assert (outcome.facts["rows_deleted"], outcome.facts["others_deleted"]) == (4, 6)
    assert pair.on_disk(topic) == [0, 0, 0, 0]
    assert world.executor().verify(step, world.copy).ok


def pages(pair: Pair) -> tuple[str, World]:
    """A topic of both brokers that is to be written again, and its world; the person is on both disks."""
    topic = pair.first.topic("clicks", 3, (1, 2), cleanup_policy="delete", retention_ms="-1")
    pair.first.send(topic, *[(None, value(f"88000000{n:04}", "by@example.org")) for n in range(20)])
    pair.first.send(topic, (None, value(USER, MAIL)), (None, value(USER, MAIL, visits=2)))
    world = planned(pair.first, topic, USERS, Strategy.REWRITE_TOPIC, BY_VALUE)
    assert all(pair.on_disk(topic))
    return topic, world


def test_a_topic_is_not_written_again_while_a_follower_is_away(pair: Pair) -> None:
    topic, world = pages(pair)
    (step,) = world.steps
    with pair.alone(topic):
        held = world.executor().run(step, world.copy)
        assert held.waiting_until is not None
        assert "on broker 2" in held.waits_for
        assert world.now().topic_id == world.state.topic_id
    (outcome,) = world.run()
    assert outcome.facts["rows_deleted"] == 2
    assert pair.on_disk(topic) == [0, 0, 0, 0]


@pytest.mark.nightly
def test_a_follower_that_is_lost_while_a_topic_is_copied_is_waited_for(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old topic would stay on its disk until it is back; so it stays whole, and is copied again then."""
    topic, world = pages(pair)
    (step,) = world.steps
    original = Rewriter._copy_aside
    with monkeypatch.context() as losing, ExitStack() as dead:

        def meanwhile(self: Rewriter) -> dict[str, Any]:
            facts = original(self)
            dead.enter_context(pair.alone(topic))
            return facts

        losing.setattr(Rewriter, "_copy_aside", meanwhile)
        held = world.executor().run(step, world.copy)
        assert held.waiting_until is not None
        assert world.now().topic_id == world.state.topic_id
    world.run()
    assert pair.on_disk(topic) == [0, 0, 0, 0]
