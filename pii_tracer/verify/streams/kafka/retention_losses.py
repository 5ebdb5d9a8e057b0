"""What a topic's own retention took between two readings of it: no loss of the run's, and said.

Retention takes whole segments off a partition's beginning and moves its first offset. So only what lies before that
offset can have left by it, and only what was old enough; whatever else is not there any more, the run answers for.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from pii_tracer.lake.inventory import TopicState
from pii_tracer.verify.row_checks import compare
from pii_tracer.verify.verdicts import Baseline, Bystanders, TopicTrail

CLOCK_SLACK_MS = 60_000
"""How far the brokers' clocks, by which retention ends, may be in front of ours."""

_PLACE = struct.Struct(">IqqQ")


class Kept(NamedTuple):
    """A record of somebody else. content: the first 64 bits of a hash of all but its offset."""

    partition: int
    offset: int
    timestamp: int
    content: int


def packed(records: Iterable[Kept]) -> bytes:
    """Records as bytes of one length each: topics have millions."""
    return b"".join(_PLACE.pack(*record) for record in records)


def trail_of(state: TopicState, starts: Sequence[int], records: bytes) -> TopicTrail:
    """The trail of a topic. records: `packed`, in the order of partitions and offsets."""
    return TopicTrail(
        topic_id=state.topic_id,
        retention_ms=int(state.settings.get("retention.ms", "-1")),
        retention_bytes=int(state.settings.get("retention.bytes", "-1")),
        starts=tuple(starts),
        records=b64encode(zlib.compress(records)).decode(),
    )


def compare_topic(before: Baseline, after: Baseline, copied_from: Sequence[int] | None, now: datetime) -> Bystanders:
    """What became of everybody else's records, without those that retention took.

    copied_from: where a rewrite began to copy each partition of the old topic, as it told; None where it told nothing,
    or nothing was rewritten. A topic made again is told by its id, and counts its offsets anew.
    """
    found = compare(before, after)
    if found.equal or before.trail is None or after.trail is None:
        return found
    left = _Leaving(before.trail, int(now.timestamp() * 1000))
    if before.trail.topic_id == after.trail.topic_id:
        stayed = left.before(_records(before.trail), after.trail.starts)
    else:
        copied = left.before(_records(before.trail), copied_from or ())
        stayed = left.first(copied, after.trail.starts)
    if not left.lapsed:
        return found
    # what was read, and was taken before the first offsets were asked for, is gone as well
    there = Counter(r.content for r in _records(after.trail) if r.offset >= after.trail.starts[r.partition])
    expected = Counter(r.content for r in stayed)
    lost = max(0, sum(expected.values()) - sum(there.values()))
    return Bystanders(copy_id=before.copy_id, lost=lost, equal=expected == there, lapsed=left.lapsed)


class _Leaving:
    """Takes out what retention may have taken; what it may not have taken stays expected. Counts what it takes out."""

    def __init__(self, trail: TopicTrail, now_ms: int) -> None:
        self._trail = trail
        self._old = now_ms + CLOCK_SLACK_MS - trail.retention_ms
        self.lapsed = 0

    def before(self, records: Iterable[Kept], starts: Sequence[int]) -> list[Kept]:
        """Without what lies before the first offsets."""
        by_size = self._trail.retention_bytes >= 0
        return [
            r
            for r in records
            if r.partition >= len(starts) or not self._takes(r, r.offset < starts[r.partition], by_size)
        ]

    def first(self, records: Iterable[Kept], starts: Sequence[int]) -> list[Kept]:
        """Without the first ones of each partition, as many as a topic that was filled from offset 0 has lost.

        Not by size: a rewrite can make records larger, and then what goes by it is the rewrite's doing.
        """
        at = [0] * len(starts)
        stayed = []
        for record in records:
            at[record.partition] += 1
            if not self._takes(record, at[record.partition] <= starts[record.partition], by_size=False):
                stayed.append(record)
        return stayed

    def _takes(self, record: Kept, ahead: bool, by_size: bool) -> bool:
        aged = self._trail.retention_ms >= 0 and record.timestamp < self._old
        taken = ahead and (aged or by_size)
        self.lapsed += taken
        return taken


def _records(trail: TopicTrail) -> Iterator[Kept]:
    return (Kept(*fields) for fields in _PLACE.iter_unpack(zlib.decompress(b64decode(trail.records))))
