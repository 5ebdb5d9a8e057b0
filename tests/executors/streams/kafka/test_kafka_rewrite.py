"""A topic written again without the person, on a real broker: everything of everybody else, through every crash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from executors.streams.kafka.topic_rewrite import Rewriter
from pii_tracer.lake.streams.kafka.records import Record
from pii_tracer.lake.streams.kafka.topic_reading import read_topic
from pii_tracer.lake.streams.kafka.topics import committed_offsets
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.verify.row_checks import compare
from tests.kafkasupport import BY_VALUE, MAIL, ORDERS, PAGES, USER, Broker, World, broker, planned, running, value

__all__ = ["broker"]

SETTINGS = {"cleanup_policy": "delete", "retention_ms": "-1", "segment_ms": "900000"}
FIRST = 1_700_000_000_000


def pages(broker: Broker) -> World:
    """Two partitions; the person is in both, every record has headers and an old timestamp."""
    topic = broker.topic("pages", 2, **SETTINGS)
    for number in range(12):
        user, mail = (USER, MAIL) if number % 4 == 1 else (f"55{number}", f"by{number}@example.org")
        broker.send(
            topic,
            (None, value(user, mail, n=number)),
            partition=number % 2,
            timestamp=FIRST + number,
            headers=[("trace", f"t{number}".encode()), ("empty", None)],
        )
    return planned(broker, topic, PAGES, Strategy.REWRITE_TOPIC, BY_VALUE)


def contents(world: World) -> list[tuple[Any, ...]]:
    records = read_topic(
        {"bootstrap.servers": world.broker.bootstrap, "log_level": 0}, world.state.declared.name, range(2)
    )
    return [(r.partition, r.timestamp, r.key, r.value, r.headers) for r in records]


def others(world: World) -> list[tuple[Any, ...]]:
    return [item for item in contents(world) if USER.encode() not in item[3]]


def topics(broker: Broker, world: World) -> list[str]:
    return [t for t in broker.admin.list_topics(timeout=60).topics if t.startswith(world.state.declared.name)]


def commit(world: World, group: str, offsets: dict[int, int]) -> None:
    consumer = Consumer({"bootstrap.servers": world.broker.bootstrap, "group.id": group, "log_level": 0})
    name = world.state.declared.name
    consumer.assign([TopicPartition(name, p) for p in offsets])
    consumer.commit(offsets=[TopicPartition(name, p, o) for p, o in offsets.items()], asynchronous=False)
    consumer.close()


def unread(world: World, group: str) -> list[bytes]:
    """What a group would read next, from its committed offsets."""
    consumer = Consumer({"bootstrap.servers": world.broker.bootstrap, "group.id": group, "log_level": 0})
    name = world.state.declared.name
    places = consumer.committed([TopicPartition(name, 0), TopicPartition(name, 1)], timeout=60)
    consumer.close()
    start = {place.partition: place.offset for place in places}
    records = read_topic({"bootstrap.servers": world.broker.bootstrap, "log_level": 0}, name, range(2))
    return [r.value or b"" for r in records if r.offset >= start[r.partition] and USER.encode() not in (r.value or b"")]


def test_everybody_else_is_there_again_in_order_and_the_person_is_not(broker: Broker) -> None:
    world = pages(broker)
    before, kept = world.look(), others(world)
    group = f"readers-{world.state.declared.name}"
    commit(world, group, {0: 2, 1: 4})
    expected = unread(world, group)
    (outcome,) = world.run()
    assert outcome.facts["rows_deleted"] == 3
    assert outcome.facts["records_kept"] == outcome.facts["records_in_new_topic"] == 9
    assert contents(world) == kept
    after = world.look()
    assert after.bytes.clean
    assert before.baseline is not None
    assert after.baseline is not None
    assert compare(before.baseline, after.baseline).equal
    assert unread(world, group) == expected
    now = world.now()
    assert now.topic_id != world.state.topic_id
    assert (now.settings, now.overrides) == (world.state.settings, world.state.overrides)
    assert topics(broker, world) == [world.state.declared.name]
    assert MAIL.encode() not in broker.segments(world.state.declared.name)


class Died(BaseException):
    """The process ends here."""


MOMENTS: dict[str, tuple[str, int]] = {
    "copy aside made and empty": ("_produce", 0),
    "copied aside, not compared": ("_compare", 0),
    "compared, old topic not deleted": ("_delete", 0),
    "old topic deleted, none made": ("_create", 1),
    "new topic made and empty": ("_produce", 1),
    "new topic filled, not compared": ("_compare", 1),
    "compared, copy aside not deleted": ("_delete", 1),
    "copy aside deleted, settings not restored": ("_restore", 0),
}


@pytest.mark.parametrize(("method", "call"), MOMENTS.values(), ids=MOMENTS)
def test_a_crash_at_any_moment_loses_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, method: str, call: int
) -> None:
    world = pages(broker)
    kept = others(world)
    group = f"readers-{world.state.declared.name}"
    commit(world, group, {0: 2, 1: 4})
    expected = unread(world, group)
    (step,) = world.steps
    with monkeypatch.context() as dying:
        dying.setattr(Rewriter, method, dies_at(call, getattr(Rewriter, method)))
        with pytest.raises(Died):
            world.executor().run(step, world.copy)
    executor = world.executor()
    assert executor.probe(step, world.copy) is not Progress.DONE
    executor.check(step, world.copy)
    assert executor.run(step, world.copy).facts["rows_deleted"] == 3, "whatever run counted them"
    assert executor.verify(step, world.copy).ok
    assert contents(world) == kept
    assert unread(world, group) == expected
    assert world.now().overrides == world.state.overrides
    assert topics(broker, world) == [world.state.declared.name]


def dies_at(call: int, original: Callable[..., Any]) -> Callable[..., Any]:
    calls = 0

    def wrapped(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call + 1:
            raise Died
        return original(*args, **more)

    return wrapped


def test_a_half_filled_new_topic_is_filled_again(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    world = pages(broker)
    kept = others(world)
    (step,) = world.steps
    with monkeypatch.context() as dying:
        dying.setattr(Rewriter, "_produce", half_the_second_time(Rewriter._produce))
        with pytest.raises(Died):
            world.executor().run(step, world.copy)
    assert 0 < len(contents(world)) < len(kept)
    world.executor().run(step, world.copy)
    assert contents(world) == kept


def half_the_second_time(original: Callable[..., None]) -> Callable[..., None]:
    calls = 0

    def wrapped(self: Rewriter, topic: str, records: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            original(self, topic, records)
            return
        some: list[Record] = list(records)
        original(self, topic, some[: len(some) // 2])
        raise Died

    return wrapped


def test_a_producer_that_still_writes_stops_it_and_loses_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = pages(broker)
    (step,) = world.steps
    before = contents(world)
    original = Rewriter._compare

    def meanwhile(self: Rewriter, *args: Any) -> int:
        count = original(self, *args)
        broker.send(world.state.declared.name, (None, value("559", "late@example.org")), partition=0)
        return count

    with monkeypatch.context() as writing:
        writing.setattr(Rewriter, "_compare", meanwhile)
        with pytest.raises(RunError, match="received records during the copy"):
            world.executor().run(step, world.copy)
    assert [r for r in contents(world) if r in before] == before
    world.executor().run(step, world.copy)
    assert any(b"late@example.org" in item[3] for item in contents(world))


def test_a_producer_on_the_half_filled_new_topic_is_never_dropped(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = pages(broker)
    (step,) = world.steps
    with monkeypatch.context() as dying:
        dying.setattr(Rewriter, "_compare", dies_at(1, Rewriter._compare))
        with pytest.raises(Died):
            world.executor().run(step, world.copy)
    broker.send(world.state.declared.name, (None, value("559", "late@example.org")), partition=0)
    with pytest.raises(RunError, match="before it was complete"):
        world.executor().run(step, world.copy)
    assert any(b"late@example.org" in item[3] for item in contents(world))


def test_a_copy_that_another_plan_left_is_not_passed_over(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pages(broker)
    with monkeypatch.context() as dying:
        dying.setattr(Rewriter, "_compare", dies_at(1, Rewriter._compare))
        with pytest.raises(Died):
            first.executor().run(first.steps[0], first.copy)
    second = planned(broker, first.state.declared.name, PAGES, Strategy.REWRITE_TOPIC, BY_VALUE)
    with pytest.raises(RunError, match="a copy from a different run"):
        second.executor().check(second.steps[0], second.copy)


def test_an_active_consumer_is_refused_before_anything_is_touched(broker: Broker) -> None:
    world = pages(broker)
    name = world.state.declared.name
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"live-{name}", "log_level": 0})
    consumer.subscribe([name])
    while not consumer.assignment():
        consumer.poll(0.2)
    (step,) = world.steps
    with pytest.raises(RunError, match="is active"):
        world.executor().check(step, world.copy)
    consumer.close()
    assert world.now().topic_id == world.state.topic_id


def test_a_partition_that_came_after_the_plan_is_not_lost(broker: Broker) -> None:
    world = pages(broker)
    name = world.state.declared.name
    broker.grow(name, 3)
    broker.send(name, (None, value("559", "late@example.org")), partition=2)
    with pytest.raises(RunError, match="more partitions"):
        world.executor().run(world.steps[0], world.copy)
    assert world.now().topic_id == world.state.topic_id
    assert b"late@example.org" in broker.segments(name)


def test_aborted_records_are_not_carried_over(broker: Broker) -> None:
    world = pages(broker)
    kept = others(world)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t", "log_level": 0})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(world.state.declared.name, value=value("1", "never@example.org"), partition=0)
    producer.flush(20)
    producer.abort_transaction(20)
    before = world.look()
    world.run()
    assert contents(world) == kept
    after = world.look()
    assert before.baseline is not None
    assert after.baseline is not None
    assert compare(before.baseline, after.baseline).equal


def test_some_records_have_a_key_and_some_have_none(broker: Broker) -> None:
    topic = broker.topic("mixed", **SETTINGS)
    for number, key in enumerate([None, "k1", None, "k2", ""]):
        broker.send(topic, (key, value(f"55{number}", f"by{number}@example.org")), (key, value(USER, MAIL)))
    world = planned(broker, topic, ORDERS, Strategy.REWRITE_TOPIC, BY_VALUE)
    before, kept = world.look(), [r for r in read(world) if USER.encode() not in (r.value or b"")]
    world.run()
    assert [(r.key, r.value) for r in read(world)] == [(r.key, r.value) for r in kept]
    assert [r.key for r in kept] == [None, b"k1", None, b"k2", b""]
    after = world.look()
    assert after.bytes.clean
    assert before.baseline is not None
    assert after.baseline is not None
    assert compare(before.baseline, after.baseline).equal


def read(world: World) -> list[Record]:
    client = {"bootstrap.servers": world.broker.bootstrap, "log_level": 0}
    return list(read_topic(client, world.state.declared.name, range(len(world.state.offsets))))


def test_offsets_that_are_refused_by_the_partition_are_not_taken_for_moved(tmp_path: Path) -> None:
    """A coordinator that gets ready refuses each partition in an answer that is no failure as a whole."""
    with running(tmp_path) as fresh:
        world = pages(fresh)
        rewriter = Rewriter(world.executor()._work(world.steps[0], world.copy))
        rewriter._commit("readers", world.state.declared.name, {0: 2, 1: 4})
        assert committed_offsets(fresh.admin, "readers", world.state.declared.name) == {0: 2, 1: 4}
