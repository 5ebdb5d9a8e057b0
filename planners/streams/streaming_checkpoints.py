"""Checkpoints of streaming queries: state that holds the person is its owner's to end (F5)."""

from __future__ import annotations

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import Carries
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Examined, Gap
from pii_tracer.scan.hits import STATE
from planners.copies.scan_evidence import Evidence
from planners.step_drafts import slug


def streaming_state(state: TableState, seen: Evidence | None) -> Gap | Examined:
    """A gap where the person is in the state, or where that cannot be told: no statement deletes a row of it."""
    same_digits = seen is not None and STATE in seen.weak  # elsewhere in a checkpoint, digits are settings and times
    if seen and not (seen.strong or same_digits or seen.unread):
        reason = (
            "a streaming query's checkpoint; all its files were decoded and contain none of the person's values "
            f"({counted(seen.files, 'file')})"
        )
        return Examined(dataset=state.dataset, table=None, carries=Carries.NONE, reason=reason)
    found = ", ".join(sorted(seen.strong)) if seen else ""
    same = "its rows contain the same digits" if same_digits else ""
    unread = "; ".join(seen.unread[:3]) if seen else "not scanned"
    return Gap(
        id=f"gap-streaming_state-{slug(state.location)}",
        dataset=state.dataset,
        kind=GapKind.STREAMING_STATE,
        reason=(
            "the state of a streaming query contains or may contain the person, and no statement deletes rows from "
            "this state. Ask its owner to wait until the watermark drops the state. Or ask the owner to start the "
            "query with a new checkpoint after the erasure, and to remove this checkpoint"
        ),
        evidence=f"found: {found}" if found else same or unread,
    )
