"""The Kafka executor on a real broker: what a tombstone leaves, what a forced cleaning removes, what a crash leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from executors.streams.kafka.executor import KafkaExecutor
from executors.streams.kafka.topic_step_base import TopicWork
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from pii_tracer.verify.row_checks import compare
from tests import kafkasupport as ks
from tests.kafkasupport import BY_KEY, BY_VALUE, MAIL, ORDERS, USER, USERS, Broker, World, broker, planned, value
from tests.servers import free_ports

__all__ = ["broker"]

NEEDLES = (MAIL.encode(), USER.encode())


def left_on_disk(broker: Broker, topic: str) -> list[int]:
    data = broker.segments(topic)
    return [data.count(needle) for needle in NEEDLES]


def compacted(broker: Broker, partitions: int = 1) -> str:
    """Users by id: the person twice, between bystanders."""
    topic = broker.topic("users", partitions, cleanup_policy="compact", segment_ms="600000")
    broker.send(topic, *[(f"88000000{n:04}", value(f"88000000{n:04}", f"by{n}@example.org")) for n in range(20)])
    broker.send(topic, (USER, value(USER, MAIL)), ("88000000" + "0003", value("880000000003", "by3-new@example.org")))
    broker.send(topic, (USER, value(USER, MAIL, city="Pune")))
    return topic


def newest(broker: Broker, topic: str) -> dict[bytes, bytes]:
    """Newest value of each key, as a consumer of one's own builds it."""
    own = {"group.id": "t", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "log_level": 0, **own})
    found: dict[bytes, bytes] = {}
    partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    ends = 0
    while ends < len(partitions):
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            ends += 1
        elif message.value() is None:
            found.pop(message.key(), None)
        else:
            found[message.key()] = message.value()
    consumer.close()
    return found


def test_a_tombstone_alone_leaves_every_value_on_disk(broker: Broker) -> None:
    topic = compacted(broker)
    broker.send(topic, (USER, None))
    time.sleep(1.5)  # several passes of the cleaner
    assert left_on_disk(broker, topic)[0] == 2


@pytest.mark.parametrize("partitions", [1, 3])
def test_the_person_leaves_a_compacted_topic_wholly_and_alone(broker: Broker, partitions: int) -> None:
    topic = compacted(broker, partitions)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    before, others = world.look(), newest(broker, topic)
    assert before.bytes.residue
    tombstones, cleaned = world.run()
    assert tombstones.facts == {"tombstones": 1, "rows_deleted": 1}
    assert cleaned.facts["left"] == 0
    assert cleaned.waiting_until is None
    after = world.look()
    assert after.bytes.clean
    assert after.rows.rows_left == 0
    assert before.baseline is not None
    assert after.baseline is not None
    assert compare(before.baseline, after.baseline).equal
    assert newest(broker, topic) == {k: v for k, v in others.items() if k != USER.encode()}
    assert left_on_disk(broker, topic) == [0, 0]
    assert world.is_as_before()


def test_records_under_another_key_are_found_by_their_value(broker: Broker) -> None:
    topic = broker.topic("orders", cleanup_policy="compact")
    broker.send(topic, ("o-1", value(USER, MAIL)), ("o-2", value("1", "x@example.org")), ("o-3", value(USER, MAIL)))
    broker.send(topic, ("o-3", value("2", "y@example.org")))  # the order went over to somebody else
    world = planned(broker, topic, ORDERS, Strategy.TOMBSTONE, BY_VALUE)
    tombstones, _ = world.run()
    assert tombstones.facts["tombstones"] == 1
    assert sorted(newest(broker, topic)) == [b"o-2", b"o-3"]
    assert world.look().bytes.clean
    assert left_on_disk(broker, topic) == [0, 0]


def test_a_second_run_does_nothing(broker: Broker) -> None:
    world = planned(broker, compacted(broker), USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    world.run()
    end = world.now().offsets
    tombstones, cleaned = world.run()
    assert (tombstones.facts["tombstones"], cleaned.facts["rolls"]) == (0, 0)
    assert world.now().offsets == end


class Died(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("moment", ["lowered", "rolled"])
def test_after_a_crash_the_settings_are_restored_and_the_person_goes(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    world = planned(broker, compacted(broker), USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    executor = world.executor()
    tombstone, compact = world.steps
    executor.run(tombstone, world.copy)
    with monkeypatch.context() as dying:
        # a killed process restores nothing
        dying.setattr(TopicWork, "restore", lambda *_: [])
        if moment == "lowered":
            dying.setattr(KafkaExecutor, "_roll_until_gone", lambda *_: (_ for _ in ()).throw(Died()))
        else:
            dying.setattr("executors.streams.kafka.executor.Producer", DiesBeforeAbort)
        with pytest.raises(Died):
            executor.run(compact, world.copy)
    assert world.now().settings["segment.ms"] == "100"
    resumed = world.executor()
    assert resumed.probe(compact, world.copy) is Progress.PARTIAL
    assert resumed.run(compact, world.copy).facts["left"] == 0
    assert resumed.verify(compact, world.copy).ok
    assert world.is_as_before()
    assert left_on_disk(broker, world.state.declared.name) == [0, 0]


def test_after_a_crash_nothing_stays_lowered_while_a_group_is_waited_for(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = compacted(broker)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    executor = world.executor()
    executor.run(world.steps[0], world.copy)
    with monkeypatch.context() as dying:
        dying.setattr(TopicWork, "restore", lambda *_: [])
        dying.setattr(KafkaExecutor, "_roll_until_gone", lambda *_: (_ for _ in ()).throw(Died()))
        with pytest.raises(Died):
            executor.run(world.steps[1], world.copy)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"slow-{topic}", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0)])
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    consumer.close()
    outcome = executor.run(world.steps[1], world.copy)
    assert outcome.facts["groups_behind"] == [f"slow-{topic}"]
    assert world.is_as_before()


class DiesBeforeAbort(Producer):
    """The transaction stays open, as after SIGKILL."""

    def abort_transaction(self, timeout: float = -1) -> None:
        raise Died


def test_what_somebody_else_set_meanwhile_is_left(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    world = planned(broker, compacted(broker), USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    executor = world.executor()
    executor.run(world.steps[0], world.copy)
    original = KafkaExecutor._roll_until_gone

    def meddled(self: KafkaExecutor, work: TopicWork, left: object) -> object:
        work.alter({"segment.ms": "77777"})
        work.alter({"segment.ms": "100"})
        work.alter({"max.compaction.lag.ms": "5000"})
        return original(self, work, left)  # type: ignore[arg-type]

    monkeypatch.setattr(KafkaExecutor, "_roll_until_gone", meddled)
    executor.run(world.steps[1], world.copy)
    assert world.now().settings["max.compaction.lag.ms"] == "5000"
    assert world.now().settings["segment.ms"] == "600000"


def test_a_group_that_has_not_read_the_tombstone_is_waited_for(broker: Broker) -> None:
    topic = compacted(broker)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"slow-{topic}", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    executor = world.executor()
    executor.run(world.steps[0], world.copy)
    held = executor.run(world.steps[1], world.copy)
    assert held.waiting_until is not None
    assert held.facts["groups_behind"] == [f"slow-{topic}"]
    assert world.is_as_before()
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)[1]
    consumer.commit(offsets=[TopicPartition(topic, 0, end)], asynchronous=False)
    consumer.close()
    assert executor.run(world.steps[1], world.copy).waiting_until is None
    assert world.look().bytes.clean


def test_a_tombstone_that_a_cleaning_had_dated_goes_too(broker: Broker) -> None:
    """A cleaner that came between the two steps gave it a day, in its batch's header: lowered settings come too late."""
    topic = compacted(broker)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    tombstone, compact = world.steps
    world.executor().run(tombstone, world.copy)
    others = newest(broker, topic)
    broker.configure(topic, segment_ms="100", min_cleanable_dirty_ratio="0.001")
    until = time.monotonic() + 60
    while MAIL.encode() in broker.segments(topic):
        assert time.monotonic() < until
        broker.send(topic, ("880000000003", others[b"880000000003"]))
        time.sleep(0.5)
    assert USER.encode() in broker.segments(topic)
    broker.configure(topic, segment_ms="600000", min_cleanable_dirty_ratio="0.5")
    cleaned = world.executor(roll=4.0).run(compact, world.copy)
    assert cleaned.facts["left"] == 0
    assert cleaned.facts["tombstones_again"] >= 1  # twice where the broker was slow to clean
    assert left_on_disk(broker, topic) == [0, 0]
    assert newest(broker, topic) == others


def test_somebody_elses_tombstone_is_waited_for_too(broker: Broker) -> None:
    topic = compacted(broker)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    executor = world.executor()
    executor.run(world.steps[0], world.copy)
    end = world.now().offsets[0][1]
    broker.send(topic, ("880000000003", None))  # its lifetime on the topic would end with the person's
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"late-{topic}", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0)])
    consumer.commit(offsets=[TopicPartition(topic, 0, end)], asynchronous=False)
    consumer.close()
    assert executor.run(world.steps[1], world.copy).facts["groups_behind"] == [f"late-{topic}"]


@pytest.mark.parametrize(
    ("committed", "hidden"), [({1: 1}, False), ({}, False), ({1: 2}, True)], ids=["unread", "no offset", "undecided"]
)
def test_a_tombstone_where_the_person_never_was_is_waited_for(
    broker: Broker, committed: dict[int, int], hidden: bool
) -> None:
    topic = broker.topic("users", 2, cleanup_policy="compact", segment_ms="600000")
    broker.send(topic, (USER, value(USER, MAIL)), partition=0)
    broker.send(topic, ("7", value("7", "x@example.org")), ("8", value("8", "y@example.org")), partition=1)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    executor = world.executor()
    executor.run(world.steps[0], world.copy)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0})
    if hidden:
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(topic, key="9", value=value("9", "z@example.org"), partition=1)
        producer.flush(20)
    broker.send(topic, ("7", None), partition=1)
    broker.commit(f"billing-{topic}", topic, {0: 2, **committed})
    outcome = executor.run(world.steps[1], world.copy)
    if hidden:
        producer.abort_transaction(20)
    assert outcome.facts.get("groups_behind") == [f"billing-{topic}"]
    assert world.is_as_before()


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_killed_cleaning_that_had_cleaned_lowers_nothing_before_groups_have_read(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    topic = broker.topic("users", cleanup_policy="compact", segment_ms="600000")
    broker.send(topic, ("7", value("7", "x@example.org")), ("7", None))
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    compact = world.steps[1].model_copy(update={"parameters": {**world.steps[1].parameters, "replicas": replicas}})
    executor = world.executor(followers=0.0)
    executor._work(compact, world.copy).alter(compact.parameters["lowered"])
    broker.commit(f"billing-{topic}", topic, {0: 1})
    altered: list[Mapping[str, str | None]] = []
    with monkeypatch.context() as watched:
        watched.setattr(TopicWork, "alter", around(TopicWork.alter, altered))
        outcomes = [executor.run(compact, world.copy) for _ in range(2)]
    assert not any("delete.retention.ms" in change for change in altered[1:])
    assert [bool(outcome.waiting_until) for outcome in outcomes] == [replicas > 1] * 2
    broker.commit(f"billing-{topic}", topic, {0: 2})
    assert executor.run(compact, world.copy).waiting_until is None
    assert world.is_as_before()


def around(alter: Callable[..., None], told: list[Mapping[str, str | None]]) -> Callable[..., None]:
    def altered(work: TopicWork, changes: Mapping[str, str | None]) -> None:
        told.append(changes)
        alter(work, changes)

    return altered


def test_a_group_is_not_held_to_what_was_aborted(broker: Broker) -> None:
    topic = compacted(broker)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    executor = world.executor()
    executor.run(world.steps[0], world.copy)
    end = world.now().offsets[0][1]
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"idle-{topic}", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0)])
    # it has read every committed record, and commits nothing for the aborted one it is never given
    consumer.commit(offsets=[TopicPartition(topic, 0, end)], asynchronous=False)
    consumer.close()
    hasty = world.executor(whole=0.01, roll=0.0)
    assert "groups_behind" not in hasty.run(world.steps[1], world.copy).facts
    assert world.now().offsets[0][1] > end
    assert executor.run(world.steps[1], world.copy).facts["left"] == 0


def test_a_producer_that_writes_the_person_again_stops_it(broker: Broker) -> None:
    topic = compacted(broker)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    executor = world.executor()
    executor.run(world.steps[0], world.copy)
    broker.send(topic, (USER, value(USER, MAIL)))
    with pytest.raises(RunError, match="to the topic after the tombstones"):
        executor.run(world.steps[1], world.copy)
    assert world.is_as_before()


def test_an_application_that_aborts_leaves_the_person_to_be_deleted(broker: Broker) -> None:
    topic = compacted(broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, key=USER, value=None)
    producer.flush(20)
    producer.abort_transaction(20)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    tombstones, _ = world.run()
    assert tombstones.facts["tombstones"] == 1
    assert left_on_disk(broker, topic) == [0, 0]


def test_a_cleaner_that_is_too_slow_makes_it_wait_not_done(broker: Broker) -> None:
    world = planned(broker, compacted(broker), USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    executor = world.executor(whole=0.0)
    executor.run(world.steps[0], world.copy)
    outcome = executor.run(world.steps[1], world.copy)
    assert outcome.waiting_until is not None
    assert outcome.facts["left"] == 1
    assert not executor.verify(world.steps[1], world.copy).ok
    assert world.is_as_before()


@pytest.mark.parametrize(
    ("declared", "records"),
    [
        (USERS, [("1", "no json at all")]),
        (USERS, [("1", '{"user": [{"id": "1"}, {"id": "2"}]}')]),
    ],
    ids=["not JSON", "several people in one record"],
)
def test_records_that_cannot_be_told_apart_stop_it_before_anything_is_written(
    broker: Broker, declared: dict[str, object], records: list[tuple[str, str]]
) -> None:
    topic = compacted(broker)
    broker.send(topic, *records)
    world = planned(broker, topic, declared, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    end = world.now().offsets
    with pytest.raises(RunError, match="cannot be identified") as caught:
        world.executor().run(world.steps[0], world.copy)
    assert USER not in str(caught.value)
    assert world.now().offsets == end
    assert not world.look().bytes.clean


def test_a_topic_that_was_made_again_is_refused(broker: Broker) -> None:
    topic = compacted(broker)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY)
    broker.admin.delete_topics([topic])[topic].result(20)
    with pytest.raises(RunError):
        world.executor().check(world.steps[0], world.copy)
    other = planned(broker, compacted(broker), USERS, Strategy.TOMBSTONE, BY_KEY)
    wrong = other.steps[0].model_copy(update={"parameters": {**other.steps[0].parameters, "topic_id": "another"}})
    with pytest.raises(RunError, match="recreated after the plan"):
        other.executor().check(wrong, other.copy)


def test_a_broker_that_is_down_is_an_error_and_never_done(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pii_tracer.lake.streams.kafka.topic_reading.TIMEOUT", 1.0)
    monkeypatch.setattr("pii_tracer.lake.streams.kafka.topics.TIMEOUT", 1.0)
    world = planned(broker, compacted(broker), USERS, Strategy.TOMBSTONE, BY_KEY)
    (port,) = free_ports(1)
    down = World(
        broker,
        ks.estate(Broker(f"127.0.0.1:{port}", broker.data, broker.process), world.state.declared.name, USERS),
        world.state,
        world.copy,
        world.steps,
    )
    for act in (down.executor().check, down.executor().run, down.executor().verify, down.executor().probe):
        with pytest.raises(RunError):
            act(world.steps[0], world.copy)


def test_retention_is_waited_for(broker: Broker) -> None:
    topic = broker.topic("visits", cleanup_policy="delete", retention_ms="5000", segment_ms="500")
    broker.send(topic, (None, value(USER, MAIL)))
    world = planned(broker, topic, ks.PAGES, Strategy.LET_LAPSE, BY_VALUE)
    executor = world.executor()
    (step,) = world.steps
    first = executor.run(step, world.copy)
    assert first.waiting_until is not None
    assert not executor.verify(step, world.copy).ok
    until = time.monotonic() + 180
    while executor.run(step, world.copy).waiting_until is not None:
        assert time.monotonic() < until
        time.sleep(0.3)
    assert executor.verify(step, world.copy).ok
    assert world.look().bytes.clean
