"""Transactions that others leave open: what stands behind them is acknowledged, hidden from readers, and never lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from executors.streams.kafka.topic_rewrite import Rewriter
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import RunError
from tests.executors.streams.kafka.test_kafka import newest
from tests.executors.streams.kafka.test_kafka_rewrite import (
    Died,
    contents,
    dies_at,
    others,
    pages,
    topics,
)
from tests.kafkasupport import BY_VALUE, MAIL, ORDERS, USER, Broker, broker, planned, value

__all__ = ["broker"]

ANOTHER = value("1", "x@example.org")
LATE = value("559", "late@example.org")


@contextmanager
def left_open(broker: Broker, topic: str, key: str | None = None) -> Iterator[None]:
    """A producer that died in a transaction, which nobody waits long for; it is aborted at the end."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"t-{topic}", "log_level": 0})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, key=key, value=ANOTHER, partition=0)
    assert producer.flush(20) == 0
    try:
        with pytest.MonkeyPatch.context() as hasty:
            hasty.setattr("pii_tracer.lake.streams.kafka.topics.DECIDED_WITHIN", 0.2)
            yield
    finally:
        producer.abort_transaction(20)


def test_a_rewrite_refuses_to_leave_behind_what_an_open_transaction_hides(broker: Broker) -> None:
    world = pages(broker)
    name = world.state.declared.name
    (step,) = world.steps
    with left_open(broker, name):
        broker.send(name, (None, LATE), partition=0)
        for act in (world.executor().check, world.executor().run):
            with pytest.raises(RunError, match="hides records from offset 6 of partition 0"):
                act(step, world.copy)
        assert topics(broker, world) == [name]
        assert world.now().topic_id == world.state.topic_id


@pytest.mark.slow
def test_when_the_transaction_has_ended_a_rewrite_keeps_what_it_hid(broker: Broker) -> None:
    world = pages(broker)
    name, kept = world.state.declared.name, others(world)
    with left_open(broker, name):
        broker.send(name, (None, LATE), partition=0)
    world.run()
    values = [item[3] for item in kept]
    assert [item[3] for item in contents(world)] == [*values[:6], LATE.encode(), *values[6:]]


def test_a_half_filled_topic_is_not_made_again_while_a_transaction_hides_what_others_wrote(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = pages(broker)
    name = world.state.declared.name
    (step,) = world.steps
    with monkeypatch.context() as dying:
        dying.setattr(Rewriter, "_compare", dies_at(1, Rewriter._compare))
        with pytest.raises(Died):
            world.executor().run(step, world.copy)
    with left_open(broker, name):
        broker.send(name, (None, LATE), partition=0)
        with pytest.raises(RunError, match="open transaction"):
            world.executor().run(step, world.copy)
    assert any(b"late@example.org" in item[3] for item in contents(world))


def test_no_tombstone_falls_on_what_others_wrote_behind_an_open_transaction(broker: Broker) -> None:
    topic = broker.topic("orders", cleanup_policy="compact")
    broker.send(topic, ("o-1", value(USER, MAIL)), ("o-2", value(USER, MAIL)))
    world = planned(broker, topic, ORDERS, Strategy.TOMBSTONE, BY_VALUE)
    with left_open(broker, topic, "o-9"):
        broker.send(topic, ("o-2", ANOTHER))  # the order went over to somebody else
        with pytest.raises(RunError, match="open transaction"):
            world.executor().run(world.steps[0], world.copy)
    world.executor().run(world.steps[0], world.copy)
    assert newest(broker, topic) == {b"o-2": ANOTHER.encode()}
