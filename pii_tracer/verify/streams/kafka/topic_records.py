"""Verification of topics: every record from the first offset to the last, decoded and searched, whatever was said.

Whose a record is comes from the scan here (any of the person's values in it), not from the executor's comparison.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pii_tracer.lake.inventory import TopicState
from pii_tracer.lake.streams.kafka.record_scan import scan_topic
from pii_tracer.lake.streams.kafka.records import Record, Schemas
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.plan import Copy
from pii_tracer.scan.hits import FileScan, Hit
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.byte_search import judge
from pii_tracer.verify.streams.kafka.retention_losses import Kept, packed, trail_of
from pii_tracer.verify.verdicts import (
    Baseline,
    ByteVerdict,
    RowVerdict,
    StateBaseline,
    StateRows,
)

_MODULUS = 1 << 256


@dataclass(frozen=True)
class TopicLook:
    """What one reading of a topic showed."""

    bytes: ByteVerdict
    rows: RowVerdict
    baseline: Baseline | None


class Reading:
    """A topic read in two ways, both in the order of partitions and offsets.

    records: every record, those of open and aborted transactions too. committed: those that consumers are given.
    stable: the offset of each partition from which on nothing is decided yet.
    """

    def __init__(self, records: Iterator[Record], committed: Iterator[Record], stable: Mapping[int, int]) -> None:
        self.records = records
        self._committed = committed
        self._stable = stable
        self._next: Record | None = None

    def counts(self, record: Record) -> bool:
        """Whether a record is no aborted one; to be asked in order. What is not decided yet counts."""
        if record.offset >= self._stable[record.partition]:
            return True
        place = (record.partition, record.offset)
        while self._next is None or (self._next.partition, self._next.offset) < place:
            self._next = next(self._committed, None)
            if self._next is None:
                return False
        return (self._next.partition, self._next.offset) == place


def look_at_topic(
    copy: Copy,
    state: TopicState,
    patterns: Patterns,
    schemas: Schemas,
    reading: Reading,
    starts: Callable[[], Sequence[int]],
) -> TopicLook:
    """Search a topic, count the persons' records, and sum up everybody else's.

    The person is searched in every record, for their bytes are there. Everybody else's: of a compacted topic the newest
    record of each key, of one that is written again every record, without those of aborted transactions, which nobody
    is given and nothing needs to keep. Where retention removes the person it removes others too, so there is no
    baseline; where it may remove others meanwhile, the baseline has each of them. Where a prefix is deleted, the
    baseline has the partitions without the person, up to where they ended at planning.

    starts: the first offset of each partition, asked for when all is read.
    """
    people = _People(copy, state, reading)
    files = scan_topic(reading.records, state.declared, len(state.offsets), patterns, schemas, people.take)
    verdict = judge(copy, copy.location, files, frozenset(copy.other_keys))
    rows = RowVerdict(copy_id=copy.id, states=(StateRows(state="current", rows=people.of_person),))
    return TopicLook(verdict, rows, people.baseline(starts))


class _People:
    """Sorts records into the persons' and everybody else's while they pass."""

    def __init__(self, copy: Copy, state: TopicState, reading: Reading) -> None:
        self._copy = copy
        self._state = state
        self._reading = reading
        self._compacted = copy.strategy is Strategy.TOMBSTONE
        self._others = frozenset(copy.other_keys)
        self._kept_below: Sequence[int] | None = copy.facts.get("kept_below")
        self._newest: dict[tuple[int, bytes | None], tuple[bool, int, Kept] | None] = {}
        self._trail = bytearray()
        self._count = 0
        self._sum = 0
        self.of_person = 0

    def take(self, record: Record, hits: tuple[Hit, ...]) -> None:
        person = self._is_person(hits)
        self.of_person += person
        if self._copy.strategy is Strategy.LET_LAPSE or not self._reading.counts(record):
            return
        if self._may_go(record):
            return
        content = _content(record)
        kept = Kept(record.partition, record.offset, record.timestamp, content >> 192)
        if self._compacted:
            self._newest[record.partition, record.key] = None if record.value is None else (person, content, kept)
        elif not person:
            self._count += 1
            self._sum += content
            if self._state.lapses:
                self._trail += packed([kept])

    def baseline(self, starts: Callable[[], Sequence[int]]) -> Baseline | None:
        if self._copy.strategy is Strategy.LET_LAPSE:
            return None
        alive = [entry for entry in self._newest.values() if entry is not None]
        count = self._count + sum(not person for person, *_ in alive)
        total = self._sum + sum(content for person, content, _ in alive if not person)
        persons = sum(person for person, *_ in alive) if self._compacted else self.of_person
        state = StateBaseline(
            state="current", rows_total=count + persons, rows_person=persons, checksum=f"{total % _MODULUS:064x}"
        )
        self._trail += packed(sorted(kept for person, _, kept in alive if not person) if self._state.lapses else ())
        trail = trail_of(self._state, starts(), bytes(self._trail)) if self._state.lapses else None
        return Baseline(copy_id=self._copy.id, states=(state,), trail=trail)

    def _may_go(self, record: Record) -> bool:
        """Whether a prefix that is deleted may take the record, or it came after the plan, from running producers."""
        if self._kept_below is None:
            return False
        return record.partition >= len(self._kept_below) or record.offset >= self._kept_below[record.partition]

    def _is_person(self, hits: tuple[Hit, ...]) -> bool:
        if not hits:
            return False
        one = FileScan(path="", size=0, sha256="", decoded_as="", hits=hits)
        return bool(judge(self._copy, "", (one,), self._others).residue)


def _content(record: Record) -> int:
    """A number for everything of a record but its offset, which compaction and rewriting may change the meaning of."""
    digest = hashlib.sha256(f"{record.partition},{record.timestamp};".encode())
    parts = [record.key, record.value]
    for name, content in record.headers:
        parts += [name.encode(), content]
    for part in parts:
        digest.update(b"-;" if part is None else f"{len(part)};".encode() + part)
    return int.from_bytes(digest.digest(), "big")
