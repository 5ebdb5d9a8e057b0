"""Declared Kafka topics: identity, settings, partitions, offsets. What is missing or cannot be reached is a gap.

Datasets are named as OpenLineage names topics: namespace `kafka://host:port` of the first bootstrap server, name of
the topic (https://openlineage.io/docs/spec/naming).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.kafka import KafkaCluster, Topic
from pii_tracer.lake.inventory import InventoryGap, TopicState
from pii_tracer.lake.streams.kafka.topic_reading import (
    TIMEOUT,
    admin_client,
    client_settings,
    code_of,
    result,
)
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind

SETTINGS = (
    "cleanup.policy",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "max.compaction.lag.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.ms",
)
"""Topic settings that decide how long bytes stay (https://kafka.apache.org/documentation/#topicconfigs)."""

BROKER_DELETE_DELAY = "log.segment.delete.delay.ms"
"""How long the files of a deleted topic stay: the broker's own setting, whatever the topic's `file.delete.delay.ms`."""

CHECK_INTERVAL = "log.retention.check.interval.ms"
"""A broker's setting: how often it looks for segments to remove."""

DECIDED_WITHIN = 10.0
"""Seconds that open transactions are given to end: a producer that commits each second is none that holds back."""


def topic_dataset(cluster: KafkaCluster, topic: str) -> DatasetId:
    """The OpenLineage name of a topic."""
    return DatasetId(namespace=f"kafka://{cluster.bootstrap.split(',')[0].strip()}", name=topic)


def discover_topics(estate: Estate, base: Path) -> tuple[tuple[TopicState, ...], tuple[InventoryGap, ...]]:
    """Every declared topic. Gap kinds: `kafka_cluster` (not reached), `missing_topic`, `kafka_topic` (not readable)."""
    topics: list[TopicState] = []
    gaps: list[InventoryGap] = []
    for cluster in estate.kafka:
        try:
            admin = admin_client(client_settings(cluster, base))
            there = set(admin.list_topics(timeout=TIMEOUT).topics)
        except (EstateError, KafkaException) as error:
            why = error.what if isinstance(error, EstateError) else code_of(error)
            gaps += [
                _gap(
                    cluster,
                    topic,
                    GapKind.KAFKA_CLUSTER,
                    "the cluster cannot be reached: what it holds is unknown",
                    why,
                )
                for topic in cluster.topics
            ]
            continue
        for topic in cluster.topics:
            if topic.name not in there:
                gaps.append(
                    _gap(cluster, topic, GapKind.MISSING_TOPIC, "the declared topic does not exist", cluster.name)
                )
                continue
            try:
                topics.append(topic_state(admin, cluster, topic))
            except EstateError as error:
                gaps.append(_gap(cluster, topic, GapKind.KAFKA_TOPIC, "the topic cannot be described", error.what))
    return tuple(sorted(topics, key=lambda t: t.location)), tuple(gaps)


def topic_state(admin: AdminClient, cluster: KafkaCluster, topic: Topic) -> TopicState:
    """One topic as it is now.

    Raises:
        EstateError: it does not exist, or the broker refuses to describe it.
    """
    described = result(
        admin.describe_topics(TopicCollection([topic.name]), request_timeout=TIMEOUT)[topic.name],
        f"the topic {topic.name} cannot be described",
    )
    values, own = topic_settings(admin, topic.name)
    delay = _broker_setting(admin, described.partitions[0].leader.id, BROKER_DELETE_DELAY)
    values |= {BROKER_DELETE_DELAY: delay} if delay is not None else {}
    return TopicState(
        dataset=topic_dataset(cluster, topic.name),
        cluster=cluster.name,
        declared=topic,
        topic_id=str(described.topic_id),
        replicas=max(len(p.replicas) for p in described.partitions),
        settings={name: values[name] for name in sorted({*SETTINGS, BROKER_DELETE_DELAY, *own}) if name in values},
        overrides=own,
        offsets=topic_offsets(admin, topic.name, [p.id for p in described.partitions]),
    )


def absent_replicas(admin: AdminClient, topic: str) -> dict[int, list[int]]:
    """Brokers that should have a partition and are down or lag, by partition; only partitions with such ones.

    Raises:
        EstateError: the broker refuses to describe the topic.
    """
    described = result(
        admin.describe_topics(TopicCollection([topic]), request_timeout=TIMEOUT)[topic],
        f"the topic {topic} cannot be described",
    )
    absent = {p.id: sorted({r.id for r in p.replicas} - {r.id for r in p.isr}) for p in described.partitions}
    return {partition: brokers for partition, brokers in absent.items() if brokers}


def topic_settings(admin: AdminClient, topic: str) -> tuple[dict[str, str], dict[str, str]]:
    """(all values in force, those that are set on the topic itself).

    Raises:
        EstateError: refused.
    """
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries: dict[str, Any] = result(
        admin.describe_configs([resource], request_timeout=TIMEOUT)[resource],
        f"the settings of the topic {topic} cannot be read",
    )
    values = {name: str(entry.value) for name, entry in entries.items() if entry.value is not None}
    own = {
        name: values[name]
        for name, entry in sorted(entries.items())
        if name in values and _source(entry) == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    }
    return values, own


def checked_every(admin: AdminClient) -> float:
    """Seconds after which every broker has looked for segments to remove.

    Raises:
        EstateError: a broker does not tell.
    """
    told = [_broker_setting(admin, broker, CHECK_INTERVAL) for broker in admin.list_topics(timeout=TIMEOUT).brokers]
    seconds = [int(interval) / 1000 for interval in told if interval is not None]
    if not seconds or len(seconds) < len(told):
        raise EstateError(f"a broker does not show its {CHECK_INTERVAL}", todo="let the client describe the brokers")
    return max(seconds)


def _broker_setting(admin: AdminClient, broker: int, name: str) -> str | None:
    """A setting of a broker, None where the client may not see it: a plan that needs it is then blocked."""
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    try:
        entries: dict[str, Any] = result(
            admin.describe_configs([resource], request_timeout=TIMEOUT)[resource], "the broker's settings"
        )
    except EstateError:
        return None
    entry = entries.get(name)
    return str(entry.value) if entry is not None and entry.value is not None else None


def _source(entry: Any) -> int:
    return int(getattr(entry.source, "value", entry.source))


def topic_and_partitions(admin: AdminClient, topic: str, timeout: float = TIMEOUT) -> tuple[str, list[int]]:
    """The id of a topic, which another one of the same name has not, and its partitions, sorted.

    Raises:
        EstateError: there is no such topic, or the broker refuses or does not answer in time.
    """
    answers = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout)
    described = result(answers[topic], f"the topic {topic} cannot be described")
    return str(described.topic_id), sorted(p.id for p in described.partitions)


def topic_offsets(admin: AdminClient, topic: str, partitions: list[int]) -> tuple[tuple[int, int], ...]:
    """First offset and end of each partition, by its number. Raises `EstateError` when the broker refuses."""
    earliest, latest = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
    first, end = _offsets(admin, topic, partitions, earliest), _offsets(admin, topic, partitions, latest)
    return tuple((first[p], end[p]) for p in sorted(partitions))


def stable_ends(admin: AdminClient, topic: str, partitions: Sequence[int]) -> dict[int, int]:
    """Last stable offset of each partition: a reader of committed records gets nothing from there on, whosever it is.

    Before the end only where a transaction is open (KIP-98). Raises `EstateError` when the broker refuses.
    """
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    return _offsets(admin, topic, partitions, latest, IsolationLevel.READ_COMMITTED)


def undecided(admin: AdminClient, topic: str, partitions: Sequence[int], *, wait: bool = False) -> dict[int, int]:
    """First offset of an open transaction, by partition, where one is before the end that there is now.

    wait: until there is none, `DECIDED_WITHIN` at most. Markers of ended transactions, too, come after the answer to
    their producer. Raises `EstateError` when the broker refuses.
    """
    until = time.monotonic() + DECIDED_WITHIN
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    ends = _offsets(admin, topic, partitions, latest)  # asked for first: what comes meanwhile is none of these
    while True:
        stable = stable_ends(admin, topic, partitions)
        held = {partition: stable[partition] for partition in partitions if stable[partition] < ends[partition]}
        if not held or not wait or time.monotonic() > until:
            return held
        time.sleep(0.2)


def committed_offsets(admin: AdminClient, group: str, topic: str) -> dict[int, int]:
    """Committed offsets of a consumer group in a topic, by partition.

    Raises:
        EstateError: the broker refuses, be it only for a partition: its offset would look as if there were none.
    """
    what = "a consumer group's offsets cannot be read"
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=TIMEOUT)
    found = result(asked[group], what).topic_partitions
    if refused := sorted({tp.error.name() for tp in found if tp.error}):
        raise EstateError(f"{what}: {', '.join(refused)}", todo="check the brokers, then try again")
    return {tp.partition: tp.offset for tp in found if tp.topic == topic and tp.offset >= 0}


def groups_behind(admin: AdminClient, topic: str, last: Mapping[int, int], known: Collection[str] = ()) -> list[str]:
    """Consumer groups that have not read these offsets of a topic yet (by partition): known ones, and all others with
    a committed offset in it. A group that has committed nothing in a partition has read nothing there.

    Raises:
        EstateError: the broker refuses.
    """
    if not last:
        return []
    listed = result(admin.list_consumer_groups(request_timeout=TIMEOUT), "consumer groups cannot be listed")
    behind = []
    for group in sorted({*known, *(g.group_id for g in listed.valid)}):
        committed = committed_offsets(admin, group, topic)
        if (committed or group in known) and any(committed.get(p, 0) <= offset for p, offset in last.items()):
            behind.append(group)
    return behind


def _offsets(
    admin: AdminClient,
    topic: str,
    partitions: Sequence[int],
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[int, int]:
    asked = {TopicPartition(topic, p): spec for p in partitions}
    futures = admin.list_offsets(asked, isolation_level=isolation, request_timeout=TIMEOUT)
    what = f"the offsets of the topic {topic} cannot be read"
    return {place.partition: result(future, what).offset for place, future in futures.items()}


def _gap(cluster: KafkaCluster, topic: Topic, kind: GapKind, reason: str, evidence: str) -> InventoryGap:
    return InventoryGap(dataset=topic_dataset(cluster, topic.name), kind=kind, reason=reason, evidence=evidence)
