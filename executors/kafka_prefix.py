"""Deleting a prefix: the partitions with the person are emptied up to where a segment was made to end.

DeleteRecords alone moves the first offset and leaves every byte. A broker removes a segment when all of it lies before
that offset and another one follows, so the active segment is rolled first. What rolls it is the marker of an aborted
transaction that never had a record: consumers see nothing of it, and it holds nobody's data. Nothing that a client can
read shows a segment's files, so the broker's own interval is waited for (KIP-107; `UnifiedLog` in Kafka's source).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import Producer, TopicPartition

from executors.kafka_topic import LOOK_AGAIN, PrefixParameters, TopicWork
from pii_tracer.errors import RunError
from pii_tracer.estate.kafka import checked_every
from pii_tracer.estate.kafka_read import TIMEOUT, result
from pii_tracer.protocol import Outcome

_ROLLING = "segment.ms"
_HARMLESS = "file.delete.delay.ms"
"""Nobody's record is the shorter for it. While it is lowered, records are deleted whose files may still be there."""

_SETTLED = 2.0
"""Seconds until every broker follows a setting that was changed."""

_REGISTERED = 1.0
"""Seconds in which the coordinator learns of a transaction's partitions, well before the client would send records."""

_NEVER_SENT = {"transaction.timeout.ms": 20_000, "linger.ms": 15_000}
_ANSWER = 30.0
_ATTEMPTS = 3


class PrefixCutter:
    """One KAFKA_DELETE_PREFIX step. patience: seconds that consumer groups are given for what came while it rolled."""

    def __init__(self, work: TopicWork, patience: float, poll: float) -> None:
        self._work = work
        self._parameters = work.parameters_as(PrefixParameters, "the step deletes no prefix")
        self._patience = patience
        self._poll = poll

    def run(self) -> Outcome:
        """Cut every planned partition in which the person can be read; wait until the files of what was cut are gone.

        Raises:
            RunError: the person is where the plan cuts nothing, a transaction is open, a segment cannot be rolled.
        """
        work, parameters = self._work, self._parameters
        every = checked_every(work.admin)
        work.restore(parameters, only=(_ROLLING,))  # a run that was killed left it lowered
        facts: dict[str, Any] = {"cut_at": {}, "rows_deleted": 0, "others_deleted": 0}
        if held := self._held():
            if behind := self._behind(self._ends(held)):
                return self._later(behind)
            ends = self._rolled(held)
            if behind := self._behind_at_last(ends):
                return self._later(behind)
            facts = self._delete(ends)
        if _HARMLESS in work.lowered_now() or held:
            time.sleep(every * 1.2 + int(parameters.lowered[_HARMLESS]) / 1000 * 1.5)
        return Outcome(facts | {"restored": work.restore(parameters)})

    def verify(self) -> list[str]:
        """Partitions that begin before the person's last record of planning."""
        starts = [first for first, _ in self._work.state().offsets]
        return [
            f"partition {partition} still begins before offset {offset}"
            for partition, offset in sorted(self._parameters.until.items())
            if starts[partition] < offset
        ]

    # --- what goes ---

    def _held(self) -> tuple[int, ...]:
        """Partitions in which a record of the person can be read.

        Raises:
            RunError: one of them is not in the plan, or has a record from the future, whose segment no marker rolls.
        """
        held: set[int] = set()
        newest: dict[int, int] = {}
        for record, person in self._work.records():
            newest[record.partition] = max(record.timestamp, newest.get(record.partition, 0))
            if person:
                held.add(record.partition)
        if beyond := sorted(held - set(self._parameters.until)):
            raise RunError(
                f"the person was written to partition(s) {', '.join(map(str, beyond))}, which the plan does not cut",
                where=self._work.where,
                todo="stop what writes the person, then make a new plan",
            )
        if ahead := sorted(p for p in held if newest[p] > time.time() * 1000):
            raise RunError(
                f"partition {ahead[0]} has a record from the future, which keeps its segment from being rolled",
                where=self._work.where,
                todo="resume when its time has come, or take `prefix` out of the estate file and plan again",
            )
        return tuple(sorted(held))

    def _ends(self, partitions: Collection[int]) -> dict[int, int]:
        offsets = self._work.state().offsets
        return {partition: offsets[partition][1] for partition in partitions}

    # --- who must have read it ---

    def _behind(self, ends: Mapping[int, int]) -> list[str]:
        """Consumer groups that have not read every committed record before these offsets.

        Raises:
            RunError: an open transaction hides records from them.
        """
        self._work.refuse_undecided()
        last = {
            record.partition: record.offset
            for record, _ in self._work.records(committed=True)
            if record.offset < ends.get(record.partition, 0)
        }
        return self._work.groups_behind(last, self._parameters.read_by)

    def _behind_at_last(self, ends: Mapping[int, int]) -> list[str]:
        """As `_behind`, directly before the records go: groups that read along have some time for the newest."""
        until = time.monotonic() + self._patience
        while (behind := self._behind(ends)) and time.monotonic() < until:
            time.sleep(self._poll)
        return behind

    def _later(self, behind: list[str]) -> Outcome:
        return Outcome({"groups_behind": behind}, waiting_until=self._work.ctx.now() + LOOK_AGAIN)

    # --- the cut ---

    def _rolled(self, partitions: Collection[int]) -> dict[int, int]:
        """Roll the active segments. Returns the end of each partition, at or behind the end of the rolled segment.

        Whatever is appended while `segment.ms` is lowered rolls the segment, a marker or what others write.

        Raises:
            RunError: nothing could be appended to a partition.
        """
        work = self._work
        try:
            work.alter({_ROLLING: self._parameters.lowered[_ROLLING]})
            time.sleep(_SETTLED)
            before = self._ends(partitions)
            for _ in range(_ATTEMPTS):
                self._mark(partitions)
                ends = self._ends(partitions)
                if all(ends[partition] > before[partition] for partition in partitions):
                    return ends
        finally:
            work.restore(self._parameters, only=(_ROLLING,))
        raise RunError(
            "a segment could not be rolled: no marker came into its partition",
            where=work.where,
            todo="check the brokers and the client's right to write transactions, then `pii-tracer resume`",
        )

    def _mark(self, partitions: Collection[int]) -> None:
        """Abort a transaction without records: its markers, and nothing else, come into the partitions."""
        identity = {"transactional.id": self._work.transactional_id}
        producer = Producer(self._work.settings | identity | _NEVER_SENT)
        producer.init_transactions(_ANSWER)
        producer.begin_transaction()
        try:
            for partition in partitions:
                producer.produce(self._work.topic.name, partition=partition)
            time.sleep(_REGISTERED)
        finally:
            producer.abort_transaction(_ANSWER)  # what was not sent is dropped
        # the markers come after the answer; who begins under the same name waits for them
        Producer(self._work.settings | identity).init_transactions(_ANSWER)

    def _delete(self, ends: Mapping[int, int]) -> dict[str, Any]:
        """Delete everything before these offsets. Raises `RunError` when a partition does not begin there then."""
        going = Counter(
            person for record, person in self._work.records() if record.offset < ends.get(record.partition, 0)
        )
        facts = {"cut_at": {str(p): ends[p] for p in sorted(ends)}}
        # nobody can tell it any more when they are gone
        self._work.note(facts | {"persons": going[True], "others": going[False]})
        self._work.alter({_HARMLESS: self._parameters.lowered[_HARMLESS]})
        places = [TopicPartition(self._work.topic.name, p, offset) for p, offset in sorted(ends.items())]
        answers = self._work.admin.delete_records(places, request_timeout=TIMEOUT)
        for place, future in answers.items():
            first = result(future, "records cannot be deleted").low_watermark
            if first < ends[place.partition]:
                raise RunError(
                    f"partition {place.partition} begins at offset {first} after the deletion, before what was cut",
                    where=self._work.where,
                    todo="check that all replicas are in sync, then `pii-tracer resume`",
                )
        return facts | {"rows_deleted": going[True], "others_deleted": going[False]}
