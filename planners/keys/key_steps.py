"""The steps of key tables, and of copies that are unreadable once a key is destroyed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pii_tracer.model.actions import Action
from planners.step_drafts import (
    CopyDraft,
    Draft,
    StepWriter,
)

KMS_WINDOW_DAYS = 7
"""The shortest that KMS takes (https://docs.aws.amazon.com/kms/latest/APIReference/API_ScheduleKeyDeletion.html)."""


def key_steps(item: CopyDraft, rows: Sequence[Draft]) -> tuple[Draft, ...]:
    """The steps of a key table: its row leaves as from any table, and then no reader may remember it."""
    steps = StepWriter.of_table(item.copy, "shred")
    steps.drafts += rows
    steps.add(
        Action.KEY_AWAIT_CACHES,
        "a reader that cached the key can use it until its cache expires: the step is not complete before the "
        "longest cache lifetime is over",
        hazards=("X1",),
        verification="the key table has no key of the person, and the longest cache lifetime since then is over",
        irreversible=False,
        keys=item.copy.facts["keys"],
        cache_seconds=item.copy.facts["cache_seconds"],
    )
    own = item.copy.facts.get("own_kms_keys")
    return _kms_steps(item, own, steps.drafts) if own else tuple(steps.drafts)


def _kms_steps(item: CopyDraft, own: dict[str, Any], before: Sequence[Draft]) -> tuple[Draft, ...]:
    """The person's own KMS key goes last: what it wrapped may be remembered where nobody looked."""
    steps = StepWriter(item.copy, "kms", own | {"window_days": KMS_WINDOW_DAYS})
    steps.drafts += before
    steps.add(
        Action.KMS_SCHEDULE_DELETION,
        "KMS cannot delete a key at once: the step schedules the deletion, replicas first",
        hazards=("X2",),
        verification="KMS says that the keys and their replicas are pending deletion",
    )
    steps.add(
        Action.KMS_AWAIT_DELETION,
        "a pending deletion is not a deletion: anybody with the right can cancel it until the last day",
        hazards=("X2",),
        verification="KMS does not know the keys any more",
        irreversible=False,
    )
    return tuple(steps.drafts)


def unreadable_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """The steps of a copy whose key is destroyed: nothing is written, reading is tried."""
    if item.state is None or item.copy.in_objects:  # objects: their bytes are looked at by the verification
        return ()
    steps = StepWriter.of_table(item.copy, "shred")
    steps.add(
        Action.KEY_TRY_TO_READ,
        "the ciphertext is not deleted, so the step tries to decrypt it",
        hazards=("X1",),
        verification="the key table has no key of the person, and the cells of all other people can be decrypted",
        irreversible=False,
        keys=item.copy.facts["keys"],
        key_terms=item.copy.facts["key_terms"],
        encrypted=item.copy.facts["encrypted"],
    )
    return tuple(steps.drafts)
