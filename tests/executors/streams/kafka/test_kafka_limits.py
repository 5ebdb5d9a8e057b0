"""A topic has taken records that it would refuse today; a rewrite carries them over, and its limits are as before."""

from __future__ import annotations

import json
import time

import pytest
from confluent_kafka import KafkaError, Producer

from executors.streams.kafka.topic_rewrite import Rewriter
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import RunError
from tests.executors.streams.kafka.test_kafka_rewrite import (
    Died,
    contents,
    dies_at,
    topics,
)
from tests.kafkasupport import BY_VALUE, MAIL, PAGES, USER, Broker, World, broker, planned, value

__all__ = ["broker"]

DAY_MS = 86_400_000
ENDLESS = str(2**63 - 1)
LARGE = json.dumps({"user": {"id": "551"}, "text": "a" * 1_500_000})
SMALL = value("551", "by@example.org")
NOT_YET = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_TIMESTAMP)
KINDS = ["large", "compressed", "old", "future"]


def send(broker: Broker, topic: str, kind: str) -> None:
    """A record of somebody else in partition 0."""
    own: dict[str, object] = {"message.max.bytes": 5_000_000}
    if kind == "compressed":
        own["compression.type"] = "zstd"
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, **own})
    days = {"old": -400, "future": 400}.get(kind, 0)
    end = time.monotonic() + 60
    while True:
        failed: list[KafkaError] = []
        producer.produce(
            topic,
            value=SMALL if days else LARGE,
            partition=0,
            timestamp=int(time.time() * 1000) + days * DAY_MS,
            on_delivery=lambda error, _, told=failed: error and told.append(error),
        )
        assert producer.flush(60) == 0
        if not failed:
            return
        # the controller has confirmed the limit just set; the broker follows a moment later
        assert failed[0].code() in NOT_YET, failed
        assert time.monotonic() < end, failed


def limited(broker: Broker, *kinds: str) -> World:
    """Records of others that came before, or beside, the topic's limits, and one of the person."""
    topic = broker.topic(
        "limits", 2, cleanup_policy="delete", retention_ms="-1", message_timestamp_after_max_ms=ENDLESS
    )
    if "large" in kinds:
        broker.configure(topic, max_message_bytes="3000000")
    for kind in kinds:
        send(broker, topic, kind)
    broker.configure(topic, message_timestamp_after_max_ms="60000", message_timestamp_before_max_ms=str(DAY_MS))
    broker.send(topic, (None, value(USER, MAIL)), partition=1)
    return planned(broker, topic, PAGES, Strategy.REWRITE_TOPIC, BY_VALUE)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_topic_would_refuse_today_is_copied(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    world = limited(broker, kind)
    monkeypatch.setattr(Rewriter, "_delete", dies_at(0, Rewriter._delete))
    with pytest.raises(Died):  # copied aside and compared, the old topic about to go
        world.executor().run(world.steps[0], world.copy)


@pytest.mark.slow
def test_the_new_topic_has_all_of_it_and_the_limits_of_the_old_one(broker: Broker) -> None:
    world = limited(broker, *KINDS)
    kept = [item for item in contents(world) if USER.encode() not in item[3]]
    world.run()
    assert len(kept) == len(KINDS)
    assert contents(world) == kept
    assert world.now().overrides == world.state.overrides
    assert topics(broker, world) == [world.state.declared.name]


def test_a_copy_that_failed_leaves_no_second_topic(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    world = limited(broker, "large")
    monkeypatch.setattr("executors.streams.kafka.topic_rewrite.ANY_SIZE", {"message.max.bytes": 1_000_000})
    with pytest.raises(RunError, match="MSG_SIZE_TOO_LARGE"):
        world.executor().run(world.steps[0], world.copy)
    assert topics(broker, world) == [world.state.declared.name]
    assert world.now().topic_id == world.state.topic_id
