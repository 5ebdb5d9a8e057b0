"""Hazards of Kafka by themselves, as in test_hazards_alone.py: those that other tests of topics show only together."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, TopicPartition

from pii_tracer.model.datasets import Strategy
from tests.executors.streams.kafka.test_kafka import compacted, left_on_disk
from tests.kafkasupport import BY_KEY, BY_VALUE, MAIL, USER, USERS, Broker, broker, planned, value

__all__ = ["broker"]


class Follower:
    """A consumer that keeps the newest value of each key, as a cache or a table of a stream does; at work now and then."""

    def __init__(self, broker: Broker, topic: str, group: str) -> None:
        self._broker, self._topic, self._group = broker, topic, group
        self._next = 0
        self.state: dict[bytes, bytes] = {}

    def read(self, commit: bool) -> None:
        """On to the end. Then it is gone: a client that lives fetches ahead of what it gives."""
        own = {"group.id": self._group, "enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0}
        consumer = Consumer({"bootstrap.servers": self._broker.bootstrap, **own})
        consumer.assign([TopicPartition(self._topic, 0, self._next)])
        while True:
            message = consumer.poll(20)
            assert message is not None
            self._next = message.offset() or self._next
            if message.error():
                break
            key = message.key()
            assert key is not None
            self.state.pop(key, None)
            if (content := message.value()) is not None:
                self.state[key] = content
        if commit:
            consumer.commit(offsets=[TopicPartition(self._topic, 0, self._next)], asynchronous=False)
        consumer.close()


def test_k2_a_tombstone_in_a_topic_that_is_not_compacted(broker: Broker) -> None:
    """It is one more record of the person; they leave with everybody's records of that time, or by a rewrite."""
    topic = broker.topic("pages", cleanup_policy="delete", segment_ms="500")
    broker.send(topic, (USER, value(USER, MAIL)), ("551", value("551", "by@example.org")), (USER, None))
    time.sleep(1.5)  # several passes of the cleaner
    mails, users = left_on_disk(broker, topic)
    assert (mails, users > 1) == (1, True)
    world = planned(broker, topic, USERS, Strategy.REWRITE_TOPIC, BY_KEY, BY_VALUE)
    world.run()
    assert left_on_disk(broker, topic) == [0, 0]
    assert b"by@example.org" in broker.segments(topic)


def test_k3_a_consumer_that_never_saw_the_tombstone(broker: Broker) -> None:
    """It read on after the cleaner had been there. Of a group that Kafka knows the step waits for it."""
    topic = compacted(broker)
    unknown = Follower(broker, topic, f"unknown-{topic}")
    unknown.read(commit=False)
    planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE).run()
    assert left_on_disk(broker, topic) == [0, 0]
    unknown.read(commit=False)
    assert USER.encode() in unknown.state

    topic = compacted(broker)
    known = Follower(broker, topic, f"known-{topic}")
    known.read(commit=True)
    world = planned(broker, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    executor, (tombstone, compact) = world.executor(), world.steps
    executor.run(tombstone, world.copy)
    assert executor.run(compact, world.copy).facts["groups_behind"] == [f"known-{topic}"]
    known.read(commit=True)
    assert USER.encode() not in known.state
    assert executor.run(compact, world.copy).waiting_until is None
    assert left_on_disk(broker, topic) == [0, 0]
