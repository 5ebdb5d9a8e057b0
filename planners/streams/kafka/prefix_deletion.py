"""Topics of which the owner lets everybody's oldest records go: the partitions with the person are emptied.

DeleteRecords moves a partition's first offset and nothing else. The broker removes a segment when all of it lies before
that offset and another segment follows it, so that a cut behind the person's last record leaves its bytes until the
records behind it in the same segment have gone as well, and no client sees where a segment ends. What can be known is
where one ends that was made to end: so the active segment is rolled, and all before that goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

from pii_tracer.config.kafka import Prefix
from pii_tracer.lake.inventory import TopicState
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.plan import Copy, Override
from planners.copies.scan_evidence import TopicEvidence
from planners.step_drafts import CopyDraft, StepWriter

LOWERED = {"segment.ms": "100", "file.delete.delay.ms": "1000"}
"""Settings under which a marker rolls the active segment, and a removed one leaves the disk soon."""

CLOCK_SLACK = timedelta(hours=1)
"""A record further in the future than this keeps its segment from being rolled until then."""


def cut(prefix: Prefix, seen: TopicEvidence, late: str, as_of: datetime) -> tuple[Strategy, str]:
    """What is done with a topic whose prefix may go, and why. late: what is wrong with waiting."""
    newest = datetime.fromtimestamp((seen.newest or 0) / 1000, timezone.utc)
    if newest > as_of + CLOCK_SLACK:
        return Strategy.BLOCKED, (
            f"retention {late}, and a record with a future time stamp prevents Kafka from rolling its segment"
        )
    reason = (
        f"retention {late}: the step deletes all records then in partition {', '.join(map(str, sorted(seen.until)))}, "
        f"after {', '.join(prefix.read_by)} read them. At planning, {seen.beside} of these belonged to other people"
    )
    return Strategy.DELETE_PREFIX, reason + (f"; not read yet by: {', '.join(seen.behind)}" if seen.behind else "")


def prefix_facts(state: TopicState, seen: TopicEvidence) -> dict[str, Any]:
    """For the step and for the verifier. until: one past the person's last record, by partition.

    kept_below: for each partition the offset below which everybody else's records must stay; 0 where all may go.
    """
    return {
        "until": {str(partition): seen.until[partition] for partition in sorted(seen.until)},
        "kept_below": [0 if p in seen.until else end for p, (_, end) in enumerate(state.offsets)],
    }


def prefix_step(steps: StepWriter, copy: Copy, state: TopicState, prefix: Prefix) -> None:
    """The one step: groups, settings lowered, segments rolled, records deleted, settings restored."""
    steps.add(
        Action.KAFKA_DELETE_PREFIX,
        "the owner accepts the deletion of the oldest records: the step rolls the segments with the person, and "
        "deletes all records up to there",
        hazards=("K2", "K3", "K4", "K5"),
        verification=(
            "no record of the person can be read, partitions without the person are complete, and settings are as "
            "before"
        ),
        until=copy.facts["until"],
        read_by=list(prefix.read_by),
        lowered=LOWERED,
        settings={name: state.overrides.get(name) for name in LOWERED},
    )


def cut_topics(items: Iterable[CopyDraft]) -> tuple[Override, ...]:
    """Topics in which everybody's oldest records are deleted, for reviewers."""
    found = {
        f"{item.topic.location}: {item.topic.declared.prefix.reason}"
        for item in items
        if item.topic is not None
        and item.topic.declared.prefix is not None
        and item.copy.strategy is Strategy.DELETE_PREFIX
    }
    return tuple(Override(kind="kafka_delete_prefix", reason=reason) for reason in sorted(found))
