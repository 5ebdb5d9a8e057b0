"""Where a prefix of a topic is deleted, the partitions without the person stay as they were planned for. No broker."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.lake.streams.kafka.records import Record
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.plan import Copy
from pii_tracer.verify.row_checks import compare
from pii_tracer.verify.streams.kafka.topic_records import Reading, _People
from pii_tracer.verify.verdicts import Baseline
from tests.planners.copies.test_kafka import topic

FOR_EVER = {"cleanup.policy": "delete", "retention.ms": "-1"}


def seen(kept_below: Sequence[int], records: Sequence[Record]) -> Baseline:
    """What the verifier keeps of the records."""
    facts = {"kept_below": list(kept_below)}
    copy = cast("Copy", SimpleNamespace(id="c", strategy=Strategy.DELETE_PREFIX, other_keys=(), facts=facts))
    reading = Reading(iter(records), iter(records), dict.fromkeys(range(4), 0))
    people = _People(copy, topic({"value": {"format": "string"}}, FOR_EVER), reading)
    for record in records:
        people.take(record, ())
    found = people.baseline(lambda: [0, 0, 0])
    assert found is not None
    return found


def made(partition: int, offset: int) -> Record:
    return Record(partition, offset, 1, None, f"{partition}/{offset}".encode(), ())


@given(
    ends=st.lists(st.integers(0, 4), min_size=3, max_size=3),
    cut=st.sets(st.integers(0, 2)),
    more=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    gone=st.sets(st.tuples(st.integers(0, 2), st.integers(0, 3))),
)
def test_only_what_had_to_stay_is_a_loss(ends: list[int], cut: set[int], more: list[int], gone: Any) -> None:
    """more: what producers wrote since, in a new partition, too. gone: what somebody took from partitions not cut."""
    before = [made(p, n) for p, end in enumerate(ends) for n in range(end)]
    kept_below = [0 if p in cut else end for p, end in enumerate(ends)]
    later = [made(p, n) for p, end in enumerate([*ends, 0]) for n in range(end, end + more[p])]
    stayed = [r for r in before if r.partition not in cut and (r.partition, r.offset) not in gone]
    lost = sum(r.partition not in cut and (r.partition, r.offset) in gone for r in before)
    there = sorted([*stayed, *later], key=lambda r: (r.partition, r.offset))
    found = compare(seen(kept_below, before), seen(kept_below, there))
    assert (found.lost, found.equal) == (lost, lost == 0)
