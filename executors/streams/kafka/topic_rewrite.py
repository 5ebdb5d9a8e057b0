"""A topic written again without the person: copied aside, deleted, made again under its name, filled, compared.

How far a run came stands in Kafka itself, so that a crash between any two lines loses nothing: the topic's id tells
the old topic from the new one, and the copy aside is complete, compared record by record, before the old one goes.
Offsets of consumer groups are kept as their offsets in the copy aside, since a broker drops them with the topic.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import zip_longest
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from executors.streams.kafka.record_copying import Moving, content, sent
from executors.streams.kafka.topic_step_base import (
    ANY_SIZE,
    LOOK_AGAIN,
    RewriteParameters,
    TopicWork,
    away,
)
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lake.streams.kafka.records import Record
from pii_tracer.lake.streams.kafka.topic_reading import TIMEOUT, read_topic, result
from pii_tracer.lake.streams.kafka.topics import topic_settings
from pii_tracer.model.errors import EstateError, RunError
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

_LIFTED = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": "1000000000",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.difference.max.ms": str(2**63 - 1),
}
"""What would let records lapse or be refused that the old topic has taken; each as far as the brokers know it.

Records are not compressed as their producers did it, and a topic's limits can be narrower than when it took them.
"""

_TOLD = ("rows_deleted", "records_kept", "groups", "copied_from")
"""Facts of the copying that are kept in the journal before the old topic goes."""

_SEEN_WITHIN = 60.0
_FLUSH = 120.0


class Phase(StrEnum):
    """Where a rewrite stands. old: nothing deleted yet. none: only the copy aside. new: being filled. done: no copy."""

    OLD = "old"
    NONE = "none"
    NEW = "new"
    DONE = "done"


class Rewriter:
    """One KAFKA_REWRITE_TOPIC step."""

    def __init__(self, work: TopicWork) -> None:
        if not isinstance(work.parameters, RewriteParameters):
            raise RunError("the step is not a rewrite of a topic", where=work.where, todo="make the plan again")
        self._work = work
        self._parameters: RewriteParameters = work.parameters
        self._name = work.topic.name
        tag = hashlib.sha256(f"{work.parameters.plan_id}\0{work.parameters.topic_id}".encode()).hexdigest()[:8]
        self._copies = f"{self._name[:220]}.pii-tracer-"
        self._aside = f"{self._copies}{tag}"

    # --- protocol ---

    def check(self) -> None:
        """Raise `RunError` if a consumer or transaction is active, or the topic is neither the planned one nor ours."""
        phase = self.phase()
        if phase is not Phase.DONE:
            self._groups(self._name)
            if phase is Phase.OLD:
                self._refuse_anothers_copy()
                self._work.refuse_undecided()
        elif any(True for _ in self._work.of_person()):
            raise RunError(
                "the topic was recreated after the plan was made", where=self._work.where, todo="make a new plan"
            )

    def run(self) -> Outcome:
        """Go on from where it stands, to the end."""
        phase = self.phase()
        facts: dict[str, Any] = {**self._noted(phase), "begun_at": phase.value}
        if phase is Phase.OLD:
            self._work.refuse_another_topic()  # a partition that is not copied would be lost
            if absent := self._work.absent_replicas():
                return self._later(absent, facts)
            try:
                facts |= self._copy_aside()
            except (RunError, EstateError, KafkaException):
                self._drop_aside()  # the old topic has everything; others' records shall not lie in a second place
                raise
            if absent := self._work.absent_replicas():
                self._drop_aside()  # as after a failure: it is copied again
                return self._later(absent, {})
            # nobody can tell it any more when the old topic is gone
            self._work.note({name: facts[name] for name in _TOLD})
            self._delete(self._name)
        if phase is Phase.NEW:
            self._refuse_foreign()
            self._delete(self._name)
        if phase is not Phase.DONE:
            self._create(self._name, like=self._aside)
            facts |= self._fill()
            for group in self._groups(self._aside):
                self._commit(group, self._name, self._work.committed(group, self._aside))
            self._delete(self._aside)
        self._restore()
        # the files of a deleted topic leave the disk after this delay
        time.sleep(self._parameters.delete_delay_ms / 1000 * 1.2)
        absent = self._work.absent_replicas()
        return self._later(absent, facts) if absent else Outcome(facts)

    def _noted(self, phase: Phase) -> dict[str, Any]:
        """What a run that was killed behind its copying had counted."""
        if phase is Phase.OLD:
            return {}
        told = [facts for facts in self._work.told() if facts.keys() >= set(_TOLD)]
        return {name: told[-1][name] for name in _TOLD} if told else {}

    def _later(self, absent: Mapping[int, list[int]], facts: dict[str, Any]) -> Outcome:
        """A broker that is away has the old topic on its disk, and deletes it only when it is back."""
        why = away(absent)
        return Outcome(facts | why.facts, self._work.ctx.now() + LOOK_AGAIN, why.words)

    def verify(self) -> Check:
        """The new topic is there with its settings and without the person, the copy aside is gone."""
        if self.phase() is not Phase.DONE:
            return Check(False, ("the topic is only partly rewritten",))
        findings = []
        if self._own_settings() != self._parameters.overrides:
            findings.append("the settings differ from the old topic")
        if any(True for _ in self._work.of_person()):
            findings.append("records of the person can be read")
        return Check(not findings, tuple(findings))

    def probe(self) -> Progress:
        """How far the step came."""
        return Progress.NOT_STARTED if self.phase() is Phase.OLD else Progress.PARTIAL

    def phase(self) -> Phase:
        """Where it stands, seen in Kafka.

        Raises:
            RunError: neither the topic nor a copy of it exists.
        """
        there = self._topics()
        if self._name not in there:
            if self._aside not in there:
                raise RunError("the topic does not exist any more", where=self._work.where, todo="make a new plan")
            return Phase.NONE
        if self._work.state().topic_id == self._parameters.topic_id:
            return Phase.OLD
        return Phase.NEW if self._aside in there else Phase.DONE

    # --- copy aside ---

    def _refuse_anothers_copy(self) -> None:
        """What another plan's rewrite left may be all that there is of what it has not yet filled in again."""
        for topic in sorted(self._topics() - {self._aside}):
            if topic.startswith(self._copies):
                raise RunError(
                    "the topic still has a copy from a different run, which did not end",
                    where=topic,
                    todo="resume that run. If it did not delete the topic, you can delete the copy instead",
                )

    def _copy_aside(self) -> dict[str, Any]:
        if self._aside in self._topics():  # an attempt that was cut off; the old topic still has everything
            self._delete(self._aside)
        self._work.refuse_undecided()
        ends = self._ends()
        moving = Moving({group: self._work.committed(group) for group in self._groups(self._name)})
        self._create(self._aside, like=self._name)
        self._produce(self._aside, moving.others(self._work.records(committed=True)))
        others = (record for record, person in self._work.records(committed=True) if not person)
        self._compare(others, self._read(self._aside))
        for group, offsets in moving.moved.items():
            self._commit(group, self._aside, offsets)
        starts = self._refuse_more_than(ends)
        return {
            "rows_deleted": moving.dropped,
            "records_kept": moving.kept,
            "groups": len(moving.moved),
            # retention may go on while all is read; nothing was passed over by reading
            "copied_from": [min(start, moving.began.get(p, start)) for p, start in enumerate(starts)],
        }

    def _drop_aside(self) -> None:
        """Remove what a failure left; where that fails too, the next attempt does it and the first failure is told."""
        with suppress(RunError, EstateError, KafkaException):
            if self._aside in self._topics():
                self._delete(self._aside)

    def _refuse_more_than(self, ends: list[int]) -> list[int]:
        """What was copied and compared is everything: nothing came, and no transaction hid anything.

        Returns the first offset of each partition.
        """
        self._work.refuse_undecided()
        offsets = self._work.state().offsets
        if [end for _, end in offsets] != ends:
            raise RunError(
                "the topic received records during the copy", where=self._work.where, todo="stop its producers"
            )
        return [first for first, _ in offsets]

    # --- the new topic ---

    def _fill(self) -> dict[str, Any]:
        self._produce(self._name, self._read(self._aside))
        return {"records_in_new_topic": self._compare(self._read(self._aside), self._read(self._name))}

    def _refuse_foreign(self) -> None:
        """A half filled new topic is made again, unless somebody else has written to it already."""
        self._work.refuse_undecided()
        for partition in range(self._parameters.partitions):
            aside = self._read(self._aside, partition)
            for record in self._read(self._name, partition):
                expected = next(aside, None)
                if expected is None or content(expected) != content(record):
                    raise RunError(
                        "somebody wrote to the new topic before it was complete",
                        where=self._work.where,
                        todo=(
                            "stop the topic's producers, delete the new topic, and check that the producers send "
                            "their records again"
                        ),
                    )

    def _restore(self) -> None:
        own = self._own_settings()
        wanted = self._parameters.overrides
        changes: dict[str, str | None] = {n: wanted.get(n) for n in {*own, *wanted} if own.get(n) != wanted.get(n)}
        if changes:
            self._work.alter(changes)

    def _own_settings(self) -> dict[str, str]:
        return topic_settings(self._work.admin, self._name)[1]

    # --- Kafka ---

    def _topics(self) -> set[str]:
        return set(self._work.admin.list_topics(timeout=TIMEOUT).topics)

    def _ends(self) -> list[int]:
        return [end for _, end in self._work.state().offsets]

    def _read(self, topic: str, partition: int | None = None) -> Iterator[Record]:
        which = range(self._parameters.partitions) if partition is None else [partition]
        return read_topic(self._work.settings, topic, which, committed=True)

    def _create(self, topic: str, like: str) -> None:
        """A topic with the old one's settings, in which nothing lapses or is refused while it is filled."""
        known = topic_settings(self._work.admin, like)[0]
        config = {**self._parameters.overrides, **{name: value for name, value in _LIFTED.items() if name in known}}
        new = NewTopic(topic, self._parameters.partitions, self._parameters.replicas, config=config)
        futures = self._work.admin.create_topics([new], request_timeout=TIMEOUT)
        result(futures[topic], f"the topic {topic} cannot be created")
        self._await(topic, there=True)

    def _delete(self, topic: str) -> None:
        futures = self._work.admin.delete_topics([topic], request_timeout=TIMEOUT)
        result(futures[topic], f"the topic {topic} cannot be deleted")
        self._await(topic, there=False)

    def _await(self, topic: str, *, there: bool) -> None:
        until = time.monotonic() + _SEEN_WITHIN
        while (topic in self._topics()) is not there:
            if time.monotonic() > until:
                raise RunError(f"the brokers do not agree on topic {topic}", todo="run `pii-tracer resume`")
            time.sleep(0.2)

    def _produce(self, topic: str, records: Iterable[Record]) -> None:
        failed: list[str] = []
        producer = Producer(self._work.settings | {"enable.idempotence": True} | ANY_SIZE)

        def told(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error.name())

        for record in records:
            if record.timestamp <= 0:
                raise RunError(
                    "a record has no timestamp to keep", where=self._work.where, todo="waive the gap of the topic"
                )
            while not sent(producer, topic, record, told):
                producer.poll(0.5)
            producer.poll(0)
        if producer.flush(_FLUSH) or failed:
            raise RunError(
                f"the broker rejected records: {', '.join(sorted(set(failed))) or 'no answer'}",
                where=self._work.where,
                todo="check the brokers and the client's right to write, then run `pii-tracer resume`",
            )

    def _compare(self, expected: Iterable[Record], found: Iterable[Record]) -> int:
        """Every record equal and in its place.

        Raises:
            RunError: otherwise; nothing has been deleted on the ground of it.
        """
        count = 0
        for one, other in zip_longest(expected, found):
            if one is None or other is None or content(one) != content(other):
                raise RunError(
                    "the copy of the topic differs from the topic", where=self._work.where, todo="stop its producers"
                )
            count += 1
        return count

    # --- consumer groups ---

    def _groups(self, topic: str) -> list[str]:
        """Groups with committed offsets in a topic.

        Raises:
            RunError: one that reads the topic is active; its offsets could not be moved.
        """
        admin = self._work.admin
        listed = result(admin.list_consumer_groups(request_timeout=TIMEOUT), "consumer groups cannot be listed").valid
        names = sorted(group.group_id for group in listed)
        found = []
        for name, future in (admin.describe_consumer_groups(names, request_timeout=TIMEOUT) if names else {}).items():
            group = result(future, "a consumer group cannot be described")
            reads = any(p.topic == topic for m in group.members if m.assignment for p in m.assignment.topic_partitions)
            committed = self._work.committed(name, topic)
            if reads or (committed and group.state not in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)):
                raise RunError(
                    "a consumer group of the topic is active",
                    where=self._work.where,
                    todo="stop the consumer group, then run `pii-tracer resume`",
                )
            if committed:
                found.append(name)
        return found

    def _commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit a group's offsets.

        A coordinator that gets ready refuses each partition in an answer that is no failure as a whole.

        Raises:
            RunError: it still does so when its time is up.
        """
        moved = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, p, o) for p, o in sorted(offsets.items())])
        until = time.monotonic() + TIMEOUT
        while True:
            futures = self._work.admin.alter_consumer_group_offsets([moved], request_timeout=TIMEOUT)
            answer = result(futures[group], "a consumer group's offsets cannot be moved")
            refused = sorted({place.error.name() for place in answer.topic_partitions if place.error})
            if not refused:
                return
            if time.monotonic() > until:
                raise RunError(
                    f"a consumer group's offsets cannot be moved: {', '.join(refused)}",
                    where=self._work.where,
                    todo="check the brokers, then run `pii-tracer resume`",
                )
            time.sleep(0.2)
