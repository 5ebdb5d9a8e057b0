"""Records of a topic as they are copied into another one: counted, sent as they were, compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import (
    KafkaError,
    Message,
    Producer,
)

from pii_tracer.lake.streams.kafka.records import Record


class Moving:
    """Counts while the others' records pass: how many there are, and where each group's offset comes to lie.

    began: the offset of the first record of each partition.
    """

    def __init__(self, committed: Mapping[str, Mapping[int, int]]) -> None:
        self._committed = committed
        self.moved: dict[str, dict[int, int]] = {group: dict.fromkeys(at, 0) for group, at in committed.items()}
        self.began: dict[int, int] = {}
        self.kept = 0
        self.dropped = 0

    def others(self, records: Iterable[tuple[Record, bool]]) -> Iterator[Record]:
        for record, person in records:
            self.began.setdefault(record.partition, record.offset)
            if person:
                self.dropped += 1
                continue
            self.kept += 1
            for group, at in self._committed.items():
                if record.offset < at.get(record.partition, -1):
                    self.moved[group][record.partition] += 1
            yield record


def sent(producer: Producer, topic: str, record: Record, told: Callable[[KafkaError | None, Message], None]) -> bool:
    """Hand a record to the producer as it was; False where its queue is full."""
    try:
        producer.produce(
            topic,
            key=record.key,
            value=record.value,
            partition=record.partition,
            timestamp=record.timestamp,
            headers=list(record.headers),
            on_delivery=told,
        )
    except BufferError:
        return False
    return True


def content(record: Record) -> tuple[Any, ...]:
    return (record.partition, record.timestamp, record.key, record.value, record.headers)
