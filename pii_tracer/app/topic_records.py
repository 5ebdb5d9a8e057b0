"""Topics as planning and verification read them; apart, since only estates with Kafka have its client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.kafka import KafkaCluster, Topic
from pii_tracer.lake.inventory import Inventory, TopicState
from pii_tracer.lake.streams.kafka.record_scan import scan_topic
from pii_tracer.lake.streams.kafka.records import KEY, VALUE, Record, RecordMatcher, Undecodable
from pii_tracer.lake.streams.kafka.schema_lookup import ClusterSchemas
from pii_tracer.lake.streams.kafka.topic_reading import admin_client, client_settings, read_topic
from pii_tracer.lake.streams.kafka.topics import (
    groups_behind,
    stable_ends,
    topic_dataset,
    topic_state,
    undecided,
)
from pii_tracer.model.datasets import DatasetId, Format, JsonAccess, KeyPart, Match
from pii_tracer.model.errors import EstateError, ScanError
from pii_tracer.model.plan import Copy
from pii_tracer.scan.hits import Hit, column_of
from pii_tracer.scan.known_columns import row_columns
from pii_tracer.scan.value_forms import Patterns, build_patterns
from pii_tracer.verify.byte_search import look_past
from pii_tracer.verify.short_numbers import ShortNumbersThen
from pii_tracer.verify.streams.kafka.topic_records import Reading, TopicLook, look_at_topic
from pii_tracer.verify.verdicts import ByteVerdict
from planners.copies.scan_evidence import TopicEvidence
from planners.locate.subject_survey import Survey
from planners.streams.kafka.topics import topic_match


def read_evidence(
    estate: Estate, base: Path, inventory: Inventory, survey: Survey, state: TopicState, numbers: OtherNumbers
) -> TopicEvidence:
    """Read a whole topic at planning. A topic that cannot be read to its end is unread, never clean."""
    cluster = next(c for c in estate.kafka if c.name == state.cluster)
    values = {name: frozenset(v for _, v in keys.values) for name, keys in survey.key_sets.items()}
    match = topic_match(survey, state, inventory) or Match(terms=())
    schemas = ClusterSchemas(cluster, base)
    matcher = RecordMatcher(state.declared, match, values, schemas, keyless=not state.compacted)
    counts = _Counts(matcher, state.declared)
    patterns = numbers.at(build_patterns(survey.key_sets.values()), state.dataset, state.location)
    patterns = patterns.comparing(row_columns(match, Format.KAFKA))
    settings = client_settings(cluster, base)
    try:
        records = read_topic(settings, state.declared.name, range(len(state.offsets)))
        scanned = scan_topic(records, state.declared, len(state.offsets), patterns, schemas, counts.take)
        behind = _behind(settings, state.declared, counts.last)
    except EstateError as error:
        return TopicEvidence(records=0, of_person=0, bytes=0, unread=(error.what,))
    return counts.evidence(tuple(reason for part in scanned for reason in part.unread), behind)


def _behind(settings: dict[str, Any], topic: Topic, last: Mapping[int, int]) -> tuple[str, ...]:
    """Consumer groups that a prefix of the topic could not go for yet. last: the person's last record by partition."""
    if topic.prefix is None:
        return ()
    return tuple(groups_behind(admin_client(settings), topic.name, last, topic.prefix.read_by))


class _Counts:
    """Counts records while they pass. last: offset of the person's last one, by partition that has one."""

    def __init__(self, matcher: RecordMatcher, topic: Topic) -> None:
        self._matcher = matcher
        self._other = tuple(
            f"{name}.$.{path}"
            for name, part in (("key", topic.key), ("value", topic.value))
            for path in (part.other if part else ())
        )
        self._records = self._of_person = self._bytes = 0
        self._strong: set[str] = set()
        self._elsewhere: set[str] = set()
        self._unread: dict[str, int] = {}
        self._newest: dict[int, int] = {}
        self._rolled: dict[int, int] = {}
        self._in: dict[int, int] = {}
        self.last: dict[int, int] = {}

    def take(self, record: Record, hits: tuple[Hit, ...]) -> None:
        self._records += 1
        self._in[record.partition] = self._in.get(record.partition, 0) + 1
        self._newest[record.partition] = max(record.timestamp, self._newest.get(record.partition, 0))
        try:
            person = self._matcher.matches(record)
        except Undecodable as error:
            self._unread[str(error)] = self._unread.get(str(error), 0) + 1
            person = False
        # a short number in a member declared to be something else is no find
        told = [h for h in hits if not (h.weak and h.column in self._other)]
        self._strong |= {h.key_set for h in told if not h.weak}
        if person:
            self._of_person += 1
            self.last[record.partition] = record.offset
            self._bytes += len(record.key or b"") + len(record.value or b"")
        elif told:
            self._elsewhere |= {h.column or h.where for h in told}
        if person or told:
            self._rolled[record.partition] = self._newest[record.partition]

    def evidence(self, unread: tuple[str, ...], behind: tuple[str, ...]) -> TopicEvidence:
        reasons = [f"{reason} ({counted(count, 'record')})" for reason, count in sorted(self._unread.items())]
        return TopicEvidence(
            records=self._records,
            of_person=self._of_person,
            bytes=self._bytes,
            strong=frozenset(self._strong),
            elsewhere=frozenset(self._elsewhere),
            unread=(*reasons, *sorted({r for r in unread if r not in self._unread})),
            newest=max(self._newest.values(), default=None),
            rolled_after=max(self._rolled.values(), default=None),
            until={partition: offset + 1 for partition, offset in self.last.items()},
            beside=sum(self._in[partition] for partition in self.last) - self._of_person,
            behind=behind,
        )


def look(estate: Estate, base: Path, copy: Copy, patterns: Patterns) -> TopicLook:
    """Read a copy that is a topic, from its beginning to its end.

    Raises:
        EstateError, ScanError: it cannot be read, or the estate file does not declare it any more.
    """
    cluster, topic = _declared(estate, copy.dataset)
    settings = client_settings(cluster, base)
    admin = admin_client(settings)
    state = topic_state(admin, cluster, topic)
    partitions = range(len(state.offsets))

    def starts() -> list[int]:
        return [first for first, _ in topic_state(admin, cluster, topic).offsets]

    undecided(admin, topic.name, partitions, wait=True)  # what stays open is counted as it stands
    stable = stable_ends(admin, topic.name, partitions)
    records = read_topic(settings, topic.name, partitions)
    with closing(read_topic(settings, topic.name, partitions, committed=True)) as committed:
        reading = Reading(records, committed, stable)
        schemas = ClusterSchemas(cluster, base)
        patterns = patterns.comparing(row_columns(copy.match, Format.KAFKA))
        return look_at_topic(copy, state, patterns, schemas, reading, starts)


def state_of(estate: Estate, base: Path, copy: Copy) -> TopicState:
    """A copy that is a topic, as it is now: read nothing of it but its id, settings and offsets.

    Raises:
        EstateError, ScanError: as `look`.
    """
    cluster, topic = _declared(estate, copy.dataset)
    return topic_state(admin_client(client_settings(cluster, base)), cluster, topic)


def look_elsewhere(
    estate: Estate,
    base: Path,
    dataset: DatasetId,
    patterns: Patterns,
    *,
    named: bool = False,
    short: ShortNumbersThen | None = None,
) -> ByteVerdict:
    """A topic that was examined and is no copy, looked at again. named, short: as in `look_past`, the latter in the
    fields that are declared."""
    name = f"(no copy) {dataset.name}"
    root = f"{dataset.namespace}/{dataset.name}"
    try:
        cluster, topic = _declared(estate, dataset)
        partitions = _partitions(base, cluster, topic)
        records = read_topic(client_settings(cluster, base), topic.name, range(partitions))
        scanned = scan_topic(records, topic, partitions, patterns, ClusterSchemas(cluster, base))
    except (EstateError, ScanError) as error:
        return ByteVerdict(copy_id=name, root=root, files=(), unverified=(error.what,))
    fields = _declared_fields(topic)
    found = (scan.model_copy(update={"hits": tuple(_counted(scan.hits, fields))}) for scan in scanned)
    return look_past(name, root, found, named=named, short=short)


def _counted(hits: Iterable[Hit], fields: frozenset[str]) -> Iterator[Hit]:
    yield from (hit for hit in hits if not hit.weak or column_of(hit, fields))


def _declared_fields(topic: Topic) -> frozenset[str]:
    """Where the estate file says that a column of the topic's table stands, as hits call it."""
    return frozenset(
        KeyPart(column=part, access=(JsonAccess(path=path),) if path else (), type="string").label()
        for part, declared in ((KEY, topic.key), (VALUE, topic.value))
        for path in (declared.places() if declared else {})
    )


def _partitions(base: Path, cluster: KafkaCluster, topic: Topic) -> int:
    return len(topic_state(admin_client(client_settings(cluster, base)), cluster, topic).offsets)


def _declared(estate: Estate, dataset: DatasetId) -> tuple[KafkaCluster, Topic]:
    for cluster in estate.kafka:
        for topic in cluster.topics:
            if topic_dataset(cluster, topic.name) == dataset:
                return cluster, topic
    where = f"{dataset.namespace}/{dataset.name}"
    raise ScanError("the estate file does not declare the topic any more", where=where, todo="put it back")
