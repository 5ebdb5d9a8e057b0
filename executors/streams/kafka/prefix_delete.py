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

from executors.streams.kafka.topic_step_base import (
    LOOK_AGAIN,
    Hindrance,
    PrefixParameters,
    TopicWork,
    away,
    unread,
)
from pii_tracer.lake.streams.kafka.topic_reading import TIMEOUT, result
from pii_tracer.lake.streams.kafka.topics import checked_every
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Outcome

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


class Cut(Frozen):
    """What is about to go from a partition: the offsets from `first` to before `end`, and whose records these are."""

    partition: int
    first: int
    end: int
    persons: int
    others: int


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
        if held := self._held():
            if why := self._hindered(self._ends(held)):
                return self._later(why)
            before, ends = self._rolled(held)
            if why := self._hindered(ends, patience=self._patience):
                return self._later(why)
            self._delete(before, ends)
        waiting = every * 1.2 + int(parameters.lowered[_HARMLESS]) / 1000 * 1.5
        if self.noted() and (absent := self._emptied(waiting)):
            return self._later(away(absent))
        return Outcome(self._gone() | {"restored": work.restore(parameters)})

    def verify(self) -> list[str]:
        """Partitions that begin before the person's last record of planning."""
        starts = [first for first, _ in self._work.state().offsets]
        return [
            f"partition {partition} still starts before offset {offset}"
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
                "records of the person were written to a partition in which the plan deletes nothing: "
                f"{', '.join(map(str, beyond))}",
                where=self._work.where,
                todo="stop the producers of these records, then make a new plan",
            )
        if ahead := sorted(p for p in held if newest[p] > time.time() * 1000):
            raise RunError(
                f"partition {ahead[0]} has a record with a future time stamp, which prevents Kafka from rolling its "
                "segment",
                where=self._work.where,
                todo="run `pii-tracer resume` after that time, or remove `prefix` from the estate file and plan again",
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

    def _hindered(self, ends: Mapping[int, int], patience: float = 0) -> Hindrance | None:
        """Why nothing may go yet: replicas are away, or groups have not read what is before these offsets.

        patience: groups that read along have some time for the newest.
        """
        if absent := self._work.absent_replicas():
            return away(absent)
        until = time.monotonic() + patience
        while (behind := self._behind(ends)) and time.monotonic() < until:
            time.sleep(self._poll)
        return unread(behind) if behind else None

    def _later(self, why: Hindrance) -> Outcome:
        return Outcome(why.facts, self._work.ctx.now() + LOOK_AGAIN, why.words)

    # --- the cut ---

    def _rolled(self, partitions: Collection[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Roll the active segments. Returns the end of each partition before and after.

        Somewhere between the two a new segment begins: whatever is appended while `segment.ms` is lowered, a marker or
        what others write, rolls one that is older.

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
                    return before, ends
        finally:
            work.restore(self._parameters, only=(_ROLLING,))
        raise RunError(
            "a segment could not be rolled, because the step could not write a marker to its partition",
            where=work.where,
            todo="check the brokers and the client's right to write transactions, then run `pii-tracer resume`",
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

    def _delete(self, before: Mapping[int, int], ends: Mapping[int, int]) -> None:
        """Delete everything before `ends`. before: the ends at which segments were rolled.

        Raises:
            RunError: the person came while segments were rolled, perhaps into the new one, which stays on the disk; a
                partition does not begin there afterwards.
        """
        firsts = [first for first, _ in self._work.state().offsets]
        going = Counter[tuple[int, bool]]()
        for record, person in self._work.records():
            if record.offset < ends.get(record.partition, 0):
                going[record.partition, person] += 1
                if person and record.offset >= before[record.partition]:
                    raise RunError(
                        f"records of the person were written to partition {record.partition} while the step rolled "
                        "segments",
                        where=self._work.where,
                        todo="stop the producers of these records, then run `pii-tracer resume`",
                    )
        cuts = [
            Cut(partition=p, first=firsts[p], end=end, persons=going[p, True], others=going[p, False])
            for p, end in sorted(ends.items())
        ]
        # nobody can tell it any more when they are gone
        self._work.note({"cuts": [one.model_dump() for one in cuts]})
        self._work.alter({_HARMLESS: self._parameters.lowered[_HARMLESS]})
        places = [TopicPartition(self._work.topic.name, one.partition, one.end) for one in cuts]
        answers = self._work.admin.delete_records(places, request_timeout=TIMEOUT)
        for place, future in answers.items():
            first = result(future, "records cannot be deleted").low_watermark
            if first < ends[place.partition]:
                raise RunError(
                    f"partition {place.partition} starts at offset {first} after the deletion, which is before the "
                    "planned offset",
                    where=self._work.where,
                    todo="check that all replicas are in sync, then run `pii-tracer resume`",
                )

    def _emptied(self, seconds: float) -> dict[int, list[int]]:
        """Wait until every broker has removed what was cut. Returns replicas that were away meanwhile.

        One that is away deletes nothing, and DeleteRecords does not wait for a broker that is down. When it is back it
        needs the whole time.
        """
        until = time.monotonic() + seconds
        while not (absent := self._work.absent_replicas()) and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _SETTLED))
        return absent

    # --- what went ---

    def noted(self) -> list[Cut]:
        """Every cut that this run of the plan was about to make, in order. Whether it was made they do not say."""
        return [Cut.model_validate(one) for facts in self._work.told() for one in facts.get("cuts", ())]

    def _gone(self) -> dict[str, Any]:
        """Where the partitions were cut, and how many records went, also by a run that was killed behind it.

        A noted cut was made when its partition begins behind it: now, or when it was cut again.
        """
        made: list[Cut] = []
        for one in self.noted():
            made = [cut for cut in made if cut.partition != one.partition or cut.end <= one.first]
            made.append(one)
        starts = [first for first, _ in self._work.state().offsets]
        made = [cut for cut in made if cut.end <= starts[cut.partition]]
        return {
            "cut_at": {str(cut.partition): cut.end for cut in sorted(made, key=lambda c: (c.partition, c.end))},
            "rows_deleted": sum(cut.persons for cut in made),
            "others_deleted": sum(cut.others for cut in made),
        }
