"""Two brokers: what no client can read, a follower's segments, is cleaned by the same step (seen on its disk)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pii_tracer.model import Strategy
from tests.kafkasupport import BY_KEY, BY_VALUE, MAIL, USER, USERS, Broker, follower, planned, running, value


@dataclass(frozen=True)
class Pair:
    """The brokers of one cluster."""

    first: Broker
    second: Broker

    def on_disk(self, topic: str) -> list[int]:
        return [
            b.segments(topic).count(needle)
            for b in (self.first, self.second)
            for needle in (MAIL.encode(), USER.encode())
        ]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with (
        running(tmp_path_factory.mktemp("first")) as first,
        follower(first, tmp_path_factory.mktemp("second")) as second,
    ):
        yield Pair(first, second)


def test_followers_are_cleaned_with_their_leader(pair: Pair) -> None:
    topic = pair.first.topic("users", partitions=2, replicas=2, cleanup_policy="compact", segment_ms="600000")
    pair.first.send(topic, *[(f"88000000{n:04}", value(f"88000000{n:04}", "by@example.org")) for n in range(20)])
    pair.first.send(topic, (USER, value(USER, MAIL)), (USER, value(USER, MAIL, visits=2)))
    world = planned(pair.first, topic, USERS, Strategy.TOMBSTONE, BY_KEY, BY_VALUE)
    assert world.state.replicas == 2
    assert all(pair.on_disk(topic))
    world.run()
    assert pair.on_disk(topic) == [0, 0, 0, 0]
    assert world.now().fingerprint() == world.state.fingerprint()
