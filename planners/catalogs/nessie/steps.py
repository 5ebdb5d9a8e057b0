"""Iceberg tables under Nessie: erased on every branch and tag, and only then is a file removed (hazard C2).

https://projectnessie.org/guides/tables/iceberg/, https://projectnessie.org/nessie-latest/gc/. Nessie sets `gc.enabled`
to false, so that no engine removes what another reference still reads; what that leaves is removed here, by what all
references together reach.
"""

from __future__ import annotations

from typing import Any

from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_REF,
)
from planners.formats.iceberg import steps as iceberg
from planners.step_drafts import CopyDraft, Draft, StepWriter

EXECUTOR = "nessie"


def table_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Delete on the branch that names the table, forget snapshots on every reference, remove what none reaches."""
    steps = StepWriter(item.copy, EXECUTOR, _base(item))
    iceberg.delete_rows(steps, item)
    iceberg.rewrite_manifests(steps)
    steps.add(
        ICEBERG_EXPIRE_SNAPSHOTS,
        "on every branch and tag, older snapshots still reference the person's files; this step expires these "
        "snapshots in the metadata only, and moves tags to a commit without them",
        hazards=("I1", "I4", "C2"),
        verification="each branch and tag references its current snapshot only",
        retained=True,
    )
    steps.add(
        ICEBERG_REMOVE_ORPHANS,
        "no engine removes files under Nessie, and old commits stay readable while their files exist",
        hazards=("I6", "C2"),
        verification="a branch or tag references every file in the folder, and the plan knows each of them",
    )
    return tuple(steps.drafts)


def ref_steps(item: CopyDraft, kind: str, name: str) -> tuple[Draft, ...]:
    """A branch is erased in place, a tag through a branch to whose head it is then moved; other rows stay."""
    steps = StepWriter(item.copy, EXECUTOR, _base(item))
    steps.add(
        ICEBERG_REWRITE_REF,
        f"the {kind} references files that contain the person, independently of other references",
        hazards=("I3", "C2"),
        verification=f"the {kind} contains no row of the person, and all its other rows",
        ref=name,
        kind=kind,
    )
    return tuple(steps.drafts)


def _base(item: CopyDraft) -> dict[str, Any]:
    """Name, place, and the references that were known at planning: one more stops the run."""
    state = item.state
    own = [f"{state.nessie.kind.value} {state.nessie.ref}"] if state and state.nessie else []
    references = sorted([*own, *(f"{ref.kind.value} {ref.name}" for ref in (state.refs if state else ()))])
    return {"table": item.copy.table, "location": item.copy.location, "references": references}
