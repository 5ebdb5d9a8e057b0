"""The gap of one copy: its id names the kind and the copy."""

from __future__ import annotations

from collections.abc import Iterable

from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.step_drafts import CopyDraft, slug, whole_list


def gap_of(item: CopyDraft, kind: GapKind, reason: str, evidence: str, whole: Iterable[object] = ()) -> Gap:
    """A gap of one copy. whole: all that it is about, where reason and evidence show only a part."""
    gap_id, seen = f"gap-{kind}-{slug(item.copy.id.removeprefix('c-'))}", whole_list(reason, whole)
    return Gap(id=gap_id, dataset=item.copy.dataset, kind=kind, reason=reason, evidence=evidence, seen=seen)
