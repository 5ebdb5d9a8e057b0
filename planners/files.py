"""Bare folders: there is no delete, so the files that hold the person are written again."""

from __future__ import annotations

from pii_tracer.plan import Action
from planners.drafts import CopyDraft, Draft, StepWriter


def folder_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Rewrite the files that hold the person, or the whole folder from its erased source."""
    copy, state = item.copy, item.state
    steps = StepWriter.of_table(copy, "files")
    codec = state.codec if state else None
    if item.rebuild_sql:
        steps.add(
            Action.FILES_REBUILD,
            "no key to delete by: write the folder again from its erased source",
            hazards=("F1", "F2b", "F3"),
            verification="the rows equal the recorded query's",
            sql=item.rebuild_sql,
            format=copy.format.value,
            codec=codec,
        )
    else:
        steps.add(
            Action.FILES_REWRITE,
            "there is no delete: only the files that hold the person are written again, each swapped in whole",
            hazards=("F1", "F2b", "F3"),
            verification="no row of the person is left in any file",
            format=copy.format.value,
            codec=codec,
        )
    return tuple(steps.drafts)
