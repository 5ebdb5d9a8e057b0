"""The Kafka executor: tombstones, a forced clean-up with the settings restored, waiting for retention.

A rewrite of a whole topic is in `topic_rewrite`, deleting a prefix in `prefix_delete`. A cleaner never takes the active
segment, and a segment is rolled only when something is appended to it. What is appended here must not be anybody's data
in the end: a transaction that repeats the newest record of one of the person's keys, a tombstone as a rule, is aborted.
Its abort marker rolls the segment and holds no key; the record in front of it is of no effect and goes with the next
cleaning (https://kafka.apache.org/documentation/#design_compactionguarantees; KIP-98 for control records).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import Producer
from pydantic import ValidationError

from executors.streams.kafka.prefix_delete import PrefixCutter
from executors.streams.kafka.topic_rewrite import Rewriter
from executors.streams.kafka.topic_step_base import (
    ANY_SIZE,
    LOOK_AGAIN,
    AwaitParameters,
    CompactParameters,
    Hindrance,
    KafkaContext,
    LoweringParameters,
    PrefixParameters,
    RewriteParameters,
    TopicParameters,
    TopicWork,
    away,
    guarded,
    unread,
)
from pii_tracer.common.plurals import counted
from pii_tracer.lake.streams.kafka.records import Record
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import Check, Outcome, Progress

_MODELS: dict[Action, type[TopicParameters]] = {
    Action.KAFKA_TOMBSTONE: TopicParameters,
    Action.KAFKA_COMPACT: CompactParameters,
    Action.KAFKA_AWAIT_RETENTION: AwaitParameters,
    Action.KAFKA_REWRITE_TOPIC: RewriteParameters,
    Action.KAFKA_DELETE_PREFIX: PrefixParameters,
}

_FLUSH = 30.0
_HARMLESS = "file.delete.delay.ms"
"""Of the settings that are lowered, the one that nobody else's record is the shorter for."""
_TRANSACTION_MS = 20_000

Slot = tuple[int, bytes]
"""A partition and a key in it: compaction knows a key only within its partition."""


@dataclass(frozen=True)
class Patience:
    """Seconds. roll: how long one roll is given to be cleaned; whole: how long one run of the step tries.

    followers: how much longer the settings stay lowered where there are followers, whose cleaners run on their own and
    cannot be seen (each looks every `log.cleaner.backoff.ms`, 15 seconds unless set otherwise).
    """

    roll: float = 60.0
    whole: float = 300.0
    followers: float = 60.0
    poll: float = 0.5


class KafkaExecutor:
    """Executor `kafka`."""

    name = "kafka"

    def __init__(self, ctx: KafkaContext, patience: Patience | None = None) -> None:
        self._ctx = ctx
        self._patience = patience or Patience()

    # --- protocol ---

    def check(self, step: Step, copy: Copy | None) -> None:
        """Raise `RunError` for wrong parameters, a broker that is not reached, or records that cannot be told apart."""
        work = self._work(step, copy)
        if isinstance(work.parameters, RewriteParameters):
            guarded(lambda: Rewriter(work).check())
            return
        guarded(work.refuse_another_topic)

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        """Do the step. What is done already is seen in the topic itself and not done again."""
        work = self._work(step, copy)
        act: Mapping[Action, Callable[[], Outcome]] = {
            Action.KAFKA_TOMBSTONE: lambda: self._tombstone(work),
            Action.KAFKA_COMPACT: lambda: self._compact(work, work.compact),
            Action.KAFKA_AWAIT_RETENTION: lambda: self._await(work),
            Action.KAFKA_REWRITE_TOPIC: lambda: Rewriter(work).run(),
            Action.KAFKA_DELETE_PREFIX: lambda: self._cutter(work).run(),
        }
        return guarded(act[step.action])

    def verify(self, step: Step, copy: Copy | None) -> Check:
        """Read the topic again."""
        work = self._work(step, copy)
        if step.action is Action.KAFKA_TOMBSTONE:
            left = len(guarded(lambda: _live(work)))
            return Check.none_left(left, "key still has", "keys still have", "a newest record of the person")
        if isinstance(work.parameters, RewriteParameters):
            return guarded(lambda: Rewriter(work).verify())
        findings = []
        if left := guarded(lambda: sum(1 for _ in work.of_person())):
            findings.append(f"{counted(left, 'record')} of the person can still be read")
        if isinstance(work.parameters, PrefixParameters):
            findings += guarded(self._cutter(work).verify)
        if isinstance(work.parameters, LoweringParameters) and (changed := guarded(work.lowered_now)):
            findings.append(f"settings are not restored: {', '.join(changed)}")
        return Check(not findings, tuple(findings))

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        """How far the step came: settings that are still lowered are a step that must go on.

        So is a prefix that was cut: when nobody can read the person any more, the files can still be there.
        """
        work = self._work(step, copy)
        if isinstance(work.parameters, PrefixParameters) and self._cutter(work).noted():
            return Progress.PARTIAL
        if self.verify(step, copy).ok:
            return Progress.DONE
        if isinstance(work.parameters, LoweringParameters):
            return Progress.PARTIAL if guarded(work.lowered_now) else Progress.NOT_STARTED
        if isinstance(work.parameters, RewriteParameters):
            return guarded(lambda: Rewriter(work).probe())
        return Progress.NOT_STARTED

    def _cutter(self, work: TopicWork) -> PrefixCutter:
        return PrefixCutter(work, self._patience.roll, self._patience.poll)

    def _work(self, step: Step, copy: Copy | None) -> TopicWork:
        try:
            parameters = _MODELS[step.action].model_validate(step.parameters)
        except (KeyError, ValidationError):
            raise RunError(
                "this version of pii-tracer does not support the step's parameters", todo="make the plan again"
            ) from None
        return TopicWork(self._ctx, step.id, parameters, copy)

    # --- tombstones ---

    def _tombstone(self, work: TopicWork) -> Outcome:
        live = _live(work)
        _entomb(work, live)
        return Outcome({"tombstones": len(live), "rows_deleted": len(live)})

    # --- compaction ---

    def _compact(self, work: TopicWork, parameters: CompactParameters) -> Outcome:
        rolls, again, restored = 0, 0, work.restore(parameters)  # a run that was killed left them lowered
        left = _left(work, set())
        lower = bool(left or (restored and parameters.replicas > 1))  # its followers may not have been cleaned
        if lower and (why := _hindered(work)):
            if not left:  # the next run must know that this one had begun
                work.alter({_HARMLESS: parameters.lowered[_HARMLESS]})
            facts = {"left": len(left), "restored": restored, **why.facts}
            return Outcome(facts, self._ctx.now() + LOOK_AGAIN, why.words)
        try:
            if lower:
                work.alter(dict(parameters.lowered))
                rolls, again, left = self._roll_until_gone(work, left)
            if (lower or restored) and not left:  # cleaned segments leave the disk after this delay
                followers = self._patience.followers if parameters.replicas > 1 else 0
                time.sleep(int(parameters.lowered[_HARMLESS]) / 1000 * 1.5 + followers)
        finally:
            restored = work.restore(parameters)
        facts = {"rolls": rolls, "left": len(left), "restored": restored, "settings": dict(parameters.settings)}
        if again:
            facts |= {"tombstones_again": again}
        if lower and not left and (why := _lost_meanwhile(work, parameters)):
            return Outcome(facts | why.facts, self._ctx.now() + LOOK_AGAIN, why.words)
        return Outcome(facts, waiting_until=self._ctx.now() + LOOK_AGAIN if left else None)

    def _roll_until_gone(self, work: TopicWork, left: dict[Slot, Record]) -> tuple[int, int, dict[Slot, Record]]:
        """Roll and look, until neither records nor tombstones of the keys are left, or patience ends.

        The first cleaning that meets a tombstone writes into its batch when it may go, by `delete.retention.ms` as it
        is then, and no later setting changes that (KIP-534). One that was cleaned before the settings were lowered
        would stay for a day: after a roll that did not remove it, a new one takes its place.

        Returns:
            rolls, tombstones written again, and what is left.
        """
        until = time.monotonic() + self._patience.whole
        known, rolls, again = set(left), 0, 0
        while left and time.monotonic() < until:
            if rolls:
                dated = _entombed(work) & set(left)
                _entomb(work, dated)
                again += len(dated)
            _roll(work, left)
            rolls += 1
            one = min(until, time.monotonic() + self._patience.roll)
            # the aborted records themselves are among what is looked for
            left = _left(work, known)
            while left and time.monotonic() < one:
                began = time.monotonic()
                time.sleep(self._patience.poll)
                left = _left(work, known)
                # a large topic is not read over and over: a pause as long as the reading
                time.sleep(max(0.0, time.monotonic() - began - 2 * self._patience.poll))
        return rolls, again, left

    # --- retention ---

    def _await(self, work: TopicWork) -> Outcome:
        left = sum(1 for _ in work.of_person())
        return Outcome({"left": left}, waiting_until=self._ctx.now() + LOOK_AGAIN if left else None)


def _hindered(work: TopicWork) -> Hindrance | None:
    """Why a cleaning may not begin yet: a follower that is away keeps its bytes, a group misses what is deleted."""
    if absent := work.absent_replicas():
        return away(absent)
    behind = work.groups_behind(_tombstones(work))
    return unread(behind) if behind else None


def _lost_meanwhile(work: TopicWork, parameters: CompactParameters) -> Hindrance | None:
    """Followers that were away at the end of a cleaning; then a setting stays lowered, so that it is done again."""
    if parameters.replicas == 1:
        return None
    work.alter({_HARMLESS: parameters.lowered[_HARMLESS]})
    if absent := work.absent_replicas():
        return away(absent)
    work.restore(parameters)
    return None


def _live(work: TopicWork) -> set[Slot]:
    """Slots whose newest record is the person's and no tombstone. A tombstone that was never committed is none.

    Raises:
        RunError: an open transaction hides newer records, under which a tombstone would delete what others wrote.
    """
    work.refuse_undecided()
    live: set[Slot] = set()
    for record, person in work.records(committed=True):
        if record.key is None:
            raise RunError("a record has no key, so no tombstone can delete it", where=work.where, todo="plan again")
        (live.add if person and record.value is not None else live.discard)((record.partition, record.key))
    return live


def _entombed(work: TopicWork) -> set[Slot]:
    """Slots whose newest committed record is a tombstone.

    Raises:
        RunError: an open transaction hides newer records, which another tombstone would delete.
    """
    work.refuse_undecided()
    newest = {(record.partition, record.key): record.value for record, _ in work.records(committed=True) if record.key}
    return {slot for slot, value in newest.items() if value is None}


def _entomb(work: TopicWork, slots: Collection[Slot]) -> None:
    """Write a tombstone to each slot. Raises `RunError` when one was not taken."""
    if not slots:
        return
    producer = Producer(work.settings | {"enable.idempotence": True})
    failed: list[str] = []
    for partition, key in sorted(slots):
        producer.produce(
            work.topic.name,
            key=key,
            value=None,
            partition=partition,
            on_delivery=lambda error, _: failed.append(error.name()) if error else None,
        )
    left = producer.flush(_FLUSH)
    if failed or left:
        codes = ", ".join(sorted(set(failed))) or "no answer"
        raise RunError(
            f"{counted(len(failed) + left, 'tombstone was', 'tombstones were')} not accepted: {codes}",
            where=work.where,
            todo="check the brokers and the client's right to write, then run `pii-tracer resume`",
        )


def _left(work: TopicWork, known: set[Slot]) -> dict[Slot, Record]:
    """Slots with any record of the person, or with a tombstone where the slot is known; with their newest record.

    Raises:
        RunError: a newest record is the person's: a producer wrote them again after the tombstones.
    """
    newest: dict[Slot, Record] = {}
    live: set[Slot] = set()
    for record, person in work.records():
        if record.key is None:
            continue
        slot = (record.partition, record.key)
        if person or slot in newest or (slot in known and record.value is None):
            newest[slot] = record
        (live.add if person and record.value is not None else live.discard)(slot)
    if live and _live(work):
        raise RunError(
            "records of the person were written to the topic after the tombstones",
            where=work.where,
            todo="stop its producers, then make a new plan",
        )
    return newest


def _tombstones(work: TopicWork) -> dict[int, int]:
    """Offset of the last tombstone, anybody's, in each partition: settings are lowered for the whole topic.

    Aborted ones reach no consumer's offset. Whether one behind the beginning of an open transaction does is not known
    yet, so it counts.
    """
    held = work.undecided()
    last = {record.partition: record.offset for record, _ in work.records(committed=True) if record.value is None}
    if held:
        for record, _ in work.records():
            if record.value is None and record.offset >= held.get(record.partition, record.offset + 1):
                last[record.partition] = record.offset
    return last


def _roll(work: TopicWork, left: Mapping[Slot, Record]) -> None:
    """Append an aborted repetition of one key's newest record to each partition; its marker rolls the segment.

    A consumer that reads uncommitted records sees what it has seen already: a tombstone of the person's key, or what
    somebody else wrote under the key since.
    """
    producer = Producer(
        work.settings
        | {"transactional.id": work.transactional_id, "transaction.timeout.ms": _TRANSACTION_MS, "linger.ms": 0}
        | ANY_SIZE
    )
    producer.init_transactions(_FLUSH)
    producer.begin_transaction()
    try:
        for partition, newest in {slot[0]: left[slot] for slot in sorted(left)}.items():
            producer.produce(
                work.topic.name,
                key=newest.key,
                value=newest.value,
                headers=list(newest.headers),
                partition=partition,
            )
        producer.flush(_FLUSH)
        # the marker rolls a segment whose first record is older than segment.ms
        time.sleep(int(work.compact.lowered["segment.ms"]) / 1000 * 2.5)
    finally:
        producer.abort_transaction(_FLUSH)
