"""OpenLineage events of a Kafka topic, as the Kafka transport sends them: the value of a message is one event.

https://openlineage.io/docs/client/python/configuration#kafka
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pii_tracer.config.kafka import KafkaCluster
from pii_tracer.config.lineage import EventTopic
from pii_tracer.lake.streams.kafka.topic_reading import (
    TIMEOUT,
    admin_client,
    client_settings,
    read_topic,
)
from pii_tracer.lake.streams.kafka.topics import topic_and_partitions, topic_offsets
from pii_tracer.lineage.sources.log_lines import decoded
from pii_tracer.lineage.sources.openlineage.event_fetching import Reading, Unreachable
from pii_tracer.lineage.sources.openlineage.event_parsing import not_an_event
from pii_tracer.model.errors import EstateError


class KafkaSource:
    """A topic from its beginning to where it ended when the reading began. Commits nothing.

    Raises:
        EstateError: the properties file cannot be read, or holds a setting that is refused.
    """

    def __init__(self, topic: EventTopic, base: Path) -> None:
        self._topic = topic
        cluster = KafkaCluster(name="lineage", bootstrap=topic.bootstrap, properties_file=topic.properties_file)
        self._settings = client_settings(cluster, base)
        self._admin = admin_client(self._settings)

    @property
    def name(self) -> str:
        return f"Kafka topic {self._topic.topic} at {self._topic.bootstrap}"

    def events(self, reading: Reading) -> Iterator[dict[str, Any]]:
        """Every message that is an event; the others are rejects."""
        topic = self._topic.topic
        try:
            for record in read_topic(self._settings, topic, self._partitions(reading), committed=True):
                value = decoded(record.value or b"")
                reason = not_an_event(value) if value is not None else "it is not JSON"
                if reason:
                    reading.reject(f"{topic}, partition {record.partition}, offset {record.offset}", reason)
                else:
                    yield value
        except EstateError as error:
            raise Unreachable(error.what) from None

    def _partitions(self, reading: Reading) -> list[int]:
        """All of them. What was gone before it was read once is noted; a topic made anew begins anew."""
        topic = self._topic.topic
        reading.version, partitions = topic_and_partitions(self._admin, topic, TIMEOUT)
        same = reading.before is not None and reading.before.version == reading.version
        done = dict(reading.before.positions) if reading.before is not None and same else {}
        for number, (low, high) in zip(partitions, topic_offsets(self._admin, topic, partitions), strict=True):
            reading.positions[number] = high
            read = done.get(number, 0)
            if low > read:
                reading.lost.append(
                    f"{self.name}: offsets {read} to {low - 1} of partition {number} expired before they were read"
                )
        return partitions
