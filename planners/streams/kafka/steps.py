"""The steps of one topic, and what they rely on."""

from __future__ import annotations

from collections.abc import Iterable

from pii_tracer.lake.inventory import TopicState
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Strategy,
)
from pii_tracer.model.plan import (
    Precondition,
)
from planners.step_drafts import (
    CopyDraft,
    Draft,
    StepWriter,
)
from planners.streams.kafka.prefix_deletion import (
    prefix_step,
)

LOWERED = {
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
    "max.compaction.lag.ms": "1000",
    "file.delete.delay.ms": "1000",
}
"""Settings under which the cleaner takes a rolled segment at once. The plan holds their old values beside them."""


DELETE_DELAY = "log.segment.delete.delay.ms"
"""A broker's setting: how long the files of a deleted topic stay."""


def preconditions(state: TopicState, strategy: Strategy) -> tuple[Precondition, ...]:
    """The topic is the same, with the settings the plan will restore; for a rewrite its producers are stopped."""
    same = Precondition(kind="topic", target=state.location, expected=state.fingerprint())
    if strategy is not Strategy.REWRITE_TOPIC:
        return (same,)
    return (same, *_stopped(state.declared.producers))


def _stopped(jobs: Iterable[str]) -> list[Precondition]:
    return [Precondition(kind="writers_stopped", target=job, expected="true") for job in jobs]


def topic_steps(item: CopyDraft, state: TopicState, plan_id: str) -> tuple[Draft, ...]:
    """The steps of one topic."""
    base = {
        "cluster": state.cluster,
        "topic": state.declared.name,
        "topic_id": state.topic_id,
        "partitions": len(state.offsets),
        "plan_id": plan_id,
    }
    steps = StepWriter(item.copy, "kafka", base)
    if item.copy.strategy is Strategy.TOMBSTONE:
        _tombstone_steps(steps, state)
    elif item.copy.strategy is Strategy.LET_LAPSE:
        steps.add(
            Action.KAFKA_AWAIT_RETENTION,
            "the topic's own retention removes the person before the deadline",
            hazards=("K2",),
            verification="no record of the person can be read",
            irreversible=False,
            not_before=item.lapse,
        )
    elif state.declared.prefix is not None and item.copy.strategy is Strategy.DELETE_PREFIX:
        prefix_step(steps, item.copy, state, state.declared.prefix)
    else:
        steps.add(
            Action.KAFKA_REWRITE_TOPIC,
            "Kafka cannot delete single records: the step copies the topic without the person, deletes it, and "
            "creates it again under the same name",
            hazards=("K2", "K4"),
            verification="the topic has every other record, unchanged and in order, and none of the person",
            overrides=state.overrides,
            replicas=state.replicas,
            delete_delay_ms=int(state.settings[DELETE_DELAY]),
        )
    return tuple(steps.drafts)


def _tombstone_steps(steps: StepWriter, state: TopicState) -> None:
    steps.add(
        Action.KAFKA_TOMBSTONE,
        "every key whose newest record is the person's gets a tombstone, so that consumers learn of it",
        hazards=("K1",),
        verification="no key's newest record is the person's",
    )
    steps.add(
        Action.KAFKA_COMPACT,
        "the log cleaner skips active segments and retains tombstones: the step lowers settings, rolls segments, and "
        "restores the settings",
        hazards=("K1", "K3", "K4"),
        verification="no record, tombstone or aborted record of the person can be read; the settings are as before",
        lowered=LOWERED,
        settings={name: state.overrides.get(name) for name in LOWERED},
        replicas=state.replicas,
    )
