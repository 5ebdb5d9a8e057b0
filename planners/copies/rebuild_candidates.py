"""A rebuilt table is free of the person only where its statement is a function of what was erased, or never held them.

The statement runs after the copies upstream were erased. What it reads has to be known and looked at: a table that
discovery did not find, or the table itself, could bring the person straight back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pii_tracer.lineage.graph.edges import JobRef
from pii_tracer.model.datasets import DatasetId, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.copies.classification import Recognised
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft, slug


def unproved(found: Recognised, world: World) -> tuple[Gap, ...]:
    """A gap for every rebuild whose inputs are not all known to be without the person by then."""
    looked_at = {i.copy.dataset for i in found.items} | {e.dataset for e in found.examined}
    gaps = []
    for item in found.items:
        why = "; ".join(_against(item, looked_at, world)) if item.copy.strategy is Strategy.REBUILD else ""
        if why:
            gaps.append(
                Gap(
                    id=f"gap-rebuild_unproved-{slug(item.copy.id.removeprefix('c-'))}",
                    dataset=item.copy.dataset,
                    kind=GapKind.REBUILD_UNPROVED,
                    reason=f"its recorded statement rebuilds it, but {why}; the person may reappear",
                    evidence="job " + ", ".join(sorted({j.job for j in _jobs(item, world)})),
                )
            )
    return tuple(gaps)


def _against(item: CopyDraft, looked_at: Collection[DatasetId], world: World) -> Iterator[str]:
    read = sorted({d for job in _jobs(item, world) for d in job.inputs})
    if not read:
        yield "the inputs of the statement are not recorded"
    if item.copy.dataset in read:
        yield "the statement reads the table itself"
    unknown = [world.title_of(d) for d in read if d not in looked_at and d != item.copy.dataset]
    if unknown:
        yield f"the statement reads {', '.join(unknown[:3])}, which was not searched"


def _jobs(item: CopyDraft, world: World) -> list[JobRef]:
    return [job for job in world.graph.jobs_into(item.copy.dataset) if job.sql == item.rebuild_sql]
