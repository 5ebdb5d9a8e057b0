"""What the Kafka steps share: their parameters as typed models, a topic with the persons told apart, its settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from pii_tracer.config.estate_file import Estate
from pii_tracer.config.kafka import KafkaCluster, Topic
from pii_tracer.lake.inventory import TopicState
from pii_tracer.lake.streams.kafka.records import Record, RecordMatcher, Undecodable
from pii_tracer.lake.streams.kafka.schema_lookup import ClusterSchemas
from pii_tracer.lake.streams.kafka.topic_reading import (
    TIMEOUT,
    admin_client,
    client_settings,
    code_of,
    read_topic,
    result,
)
from pii_tracer.lake.streams.kafka.topics import (
    absent_replicas,
    committed_offsets,
    groups_behind,
    topic_settings,
    topic_state,
    undecided,
)
from pii_tracer.model.datasets import Frozen, KeySet, Strategy
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.model.plan import Copy

ANY_SIZE = {"message.max.bytes": 1_000_000_000}
"""The client's own limit, its largest. It counts a record uncompressed, so that what a topic holds can be far above
the topic's `max.message.bytes`, which counts batches as they are stored; the brokers judge by that one."""

LOOK_AGAIN = timedelta(minutes=10)
"""When a step that waits looks again."""

T = TypeVar("T")


class KeySource(Protocol):
    """Gives key sets by name (a `sealed.KeyRing`)."""

    def key_set(self, name: str) -> KeySet: ...


class KafkaContext(Protocol):
    """What the Kafka executor needs of the execution context."""

    @property
    def estate(self) -> Estate: ...

    @property
    def base(self) -> Path: ...

    @property
    def keyring(self) -> KeySource: ...

    @property
    def now(self) -> Callable[[], datetime]: ...

    @property
    def note(self) -> Callable[[str, Mapping[str, Any]], None]: ...

    @property
    def told(self) -> Callable[[str], Sequence[Mapping[str, Any]]]: ...


class TopicParameters(Frozen):
    """KAFKA_TOMBSTONE, and what all steps on a topic are told. topic_id: as it was at planning."""

    cluster: str
    topic: str
    topic_id: str
    partitions: int
    plan_id: str


class LoweringParameters(TopicParameters):
    """Steps that lower settings. lowered: values meanwhile. settings: values to restore, None for the cluster's."""

    lowered: dict[str, str]
    settings: dict[str, str | None]


class CompactParameters(LoweringParameters):
    """KAFKA_COMPACT. replicas: of each partition."""

    replicas: int


class PrefixParameters(LoweringParameters):
    """KAFKA_DELETE_PREFIX. until: one past the person's last record at planning, by partition: no other may be cut.

    read_by: consumer groups that must have read what goes.
    """

    until: dict[int, int]
    read_by: tuple[str, ...]


class AwaitParameters(TopicParameters):
    """KAFKA_AWAIT_RETENTION."""


class RewriteParameters(TopicParameters):
    """KAFKA_REWRITE_TOPIC. overrides: settings of the topic itself, which the new one gets.

    replicas: of each partition. delete_delay_ms: how long the segments of a deleted topic stay on disk.
    """

    overrides: dict[str, str]
    replicas: int
    delete_delay_ms: int


P = TypeVar("P", bound=TopicParameters)


@dataclass
class TopicWork:
    """One step's topic. Values of persons live in `matcher` only."""

    ctx: KafkaContext
    step_id: str
    parameters: TopicParameters
    copy: Copy | None = field(repr=False)

    @cached_property
    def _declared(self) -> tuple[KafkaCluster, Topic]:
        for cluster in self.ctx.estate.kafka:
            for topic in cluster.topics:
                if (cluster.name, topic.name) == (self.parameters.cluster, self.parameters.topic):
                    return cluster, topic
        raise RunError("the estate file does not declare the topic any more", where=self.where, todo="plan again")

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.parameters.cluster}/{self.parameters.topic}"

    @property
    def topic(self) -> Topic:
        """The topic as the estate file declares it."""
        return self._declared[1]

    @property
    def lowering(self) -> LoweringParameters:
        """The parameters of a step that lowers settings.

        Raises:
            RunError: the step is another one.
        """
        return self.parameters_as(LoweringParameters, "the step lowers no settings")

    @property
    def compact(self) -> CompactParameters:
        """The parameters of a compaction.

        Raises:
            RunError: the step is another one.
        """
        return self.parameters_as(CompactParameters, "the step is not a compaction")

    def parameters_as(self, kind: type[P], otherwise: str) -> P:
        """The parameters, of a kind. otherwise: what is wrong where the step has others.

        Raises:
            RunError: it has.
        """
        if not isinstance(self.parameters, kind):
            raise RunError(otherwise, where=self.where, todo="make the plan again")
        return self.parameters

    @cached_property
    def settings(self) -> dict[str, Any]:
        """librdkafka settings of the cluster."""
        return client_settings(self._declared[0], self.ctx.base)

    @cached_property
    def admin(self) -> AdminClient:
        """One admin client for the step."""
        return admin_client(self.settings)

    @cached_property
    def matcher(self) -> RecordMatcher:
        """Tells the persons' records apart.

        Raises:
            RunError: the plan has no match for the copy, or a key set is empty.
        """
        match = self.copy.match if self.copy else None
        if self.copy is None or match is None or not match.terms:
            raise RunError(
                "the plan does not name the fields that find the records of this topic", todo="make the plan again"
            )
        names = {term.key_set for term in match.terms}
        values = {n: frozenset(v for _, v in self.ctx.keyring.key_set(n).values) for n in names}
        if not all(values.values()):
            raise RunError("a key set of the match is empty", todo="make the plan again")
        keyless = self.copy.strategy is not Strategy.TOMBSTONE
        schemas = ClusterSchemas(self._declared[0], self.ctx.base)
        return RecordMatcher(self.topic, match, values, schemas, keyless=keyless)

    def state(self) -> TopicState:
        """The topic as it is now. Raises `EstateError` when it is not there."""
        return topic_state(self.admin, self._declared[0], self.topic)

    def note(self, facts: Mapping[str, Any]) -> None:
        """Have facts in the journal before the step has ended."""
        self.ctx.note(self.step_id, facts)

    def told(self) -> Sequence[Mapping[str, Any]]:
        """All facts of the step that are in the journal, notes and answers, in order."""
        return self.ctx.told(self.step_id)

    def refuse_another_topic(self) -> None:
        """Raise `RunError` when the topic is not the one that was planned for: made again, or with more partitions."""
        state = self.state()
        if state.topic_id != self.parameters.topic_id:
            raise RunError("the topic was recreated after the plan was made", where=self.where, todo="make a new plan")
        if len(state.offsets) != self.parameters.partitions:
            raise RunError("the topic has more partitions than planned", where=self.where, todo="make a new plan")
        _ = self.matcher

    def records(self, *, committed: bool = False) -> Iterator[tuple[Record, bool]]:
        """Every record, and whether it is the person's.

        Raises:
            RunError: one is not encoded as declared: it can be anybody's.
        """
        partitions = range(self.parameters.partitions)
        for record in read_topic(self.settings, self.topic.name, partitions, committed=committed):
            try:
                yield record, self.matcher.matches(record)
            except Undecodable as error:
                raise RunError(
                    f"a record cannot be identified: {error}",
                    where=f"{self.where}, partition {record.partition}, offset {record.offset}",
                    todo="correct the topic's declaration in the estate file, or its records, then plan again",
                ) from None

    def of_person(self) -> Iterator[Record]:
        """Records of the persons, tombstones with their key included."""
        return (record for record, person in self.records() if person)

    # --- transactions ---

    @property
    def transactional_id(self) -> str:
        """The plan's and the copy's: a transaction that a crash left open is fenced and aborted first."""
        name = hashlib.sha256(f"{self.parameters.plan_id}\0{self.where}".encode()).hexdigest()[:32]
        return f"pii-tracer-{name}"

    def refuse_undecided(self) -> None:
        """Wait until every record that there is now is committed or aborted.

        A reader of committed records stops at the first offset of an open transaction, and what others had
        acknowledged behind it looks as if it were not there.

        Raises:
            RunError: a transaction stays open.
        """
        for partition, offset in self.undecided(wait=True).items():
            raise RunError(
                f"an open transaction hides records from offset {offset} of partition {partition}",
                where=self.where,
                todo="end or abort the transaction (kafka-transactions.sh abort), then run `pii-tracer resume`",
            )

    def undecided(self, *, wait: bool = False) -> dict[int, int]:
        """As `estate.kafka.undecided`, of this topic."""
        return undecided(self.admin, self.topic.name, range(self.parameters.partitions), wait=wait)

    # --- settings ---

    def alter(self, changes: Mapping[str, str | None]) -> None:
        """Set settings on the topic; None removes its own value, so that the cluster's holds again."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            if value is not None
            else ConfigEntry(name, "", incremental_operation=AlterConfigOpType.DELETE)
            for name, value in sorted(changes.items())
        ]
        resource = ConfigResource(ResourceType.TOPIC, self.topic.name, incremental_configs=entries)
        futures = self.admin.incremental_alter_configs([resource], request_timeout=TIMEOUT)
        result(futures[resource], "the topic's settings cannot be changed")

    def lowered_now(self) -> tuple[str, ...]:
        """Settings that still have the value this step lowers them to, and had another before."""
        step = self.lowering
        own = topic_settings(self.admin, self.topic.name)[1]
        return tuple(n for n, v in sorted(step.lowered.items()) if own.get(n) == v and step.settings.get(n) != v)

    def restore(self, step: LoweringParameters, only: Collection[str] | None = None) -> list[str]:
        """Give lowered settings their planned values back; what somebody else set meanwhile is left as it is."""
        names = [name for name in self.lowered_now() if only is None or name in only]
        if names:
            self.alter({name: step.settings.get(name) for name in names})
        return names

    # --- consumers and replicas ---

    def groups_behind(self, last: Mapping[int, int], known: Collection[str] = ()) -> list[str]:
        """As `estate.kafka.groups_behind`, of this topic.

        Tombstones that are cleaned away at once never reach such groups, and they keep what was deleted (hazard K3).
        """
        return groups_behind(self.admin, self.topic.name, last, known)

    def absent_replicas(self) -> dict[int, list[int]]:
        """As `estate.kafka.absent_replicas`, of this topic.

        By a client of its own: one that knew a broker before it died goes on asking it, and gets no answer.
        """
        return absent_replicas(admin_client(self.settings), self.topic.name)

    def committed(self, group: str, topic: str | None = None) -> dict[int, int]:
        """As `estate.kafka.committed_offsets`, in this topic."""
        return committed_offsets(self.admin, group, topic or self.topic.name)


@dataclass(frozen=True)
class Hindrance:
    """Why a step waits: facts for the journal, words for people."""

    facts: dict[str, Any]
    words: str


def away(absent: Mapping[int, Collection[int]]) -> Hindrance:
    """Replicas that are waited for."""
    brokers = sorted({broker for found in absent.values() for broker in found})
    partitions = ", ".join(map(str, sorted(absent)))
    return Hindrance(
        {"absent_replicas": {str(partition): list(found) for partition, found in sorted(absent.items())}},
        f"replicas are not in sync, so their copies on disk are not cleaned: partition {partitions} on broker"
        f" {', '.join(map(str, brokers))}",
    )


def unread(behind: Sequence[str]) -> Hindrance:
    """Consumer groups that are waited for."""
    words = f"not read by {', '.join(behind)}: these groups would lose records that are deleted before they read them"
    return Hindrance({"groups_behind": list(behind)}, words)


def guarded(act: Callable[[], T]) -> T:
    """Run an act; failures of Kafka become `RunError`s that name their code only.

    Raises:
        RunError: whatever went wrong.
    """
    try:
        return act()
    except KafkaException as error:
        raise RunError(
            f"Kafka refused: {code_of(error)}",
            todo="check the brokers and the client's rights, then run `pii-tracer resume`",
        ) from None
    except EstateError as error:
        raise RunError(error.what, where=error.where, todo=error.todo) from None
