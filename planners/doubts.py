"""Gaps: what stands against treating the copies as planned. Each blocks until a named person waives it."""

from __future__ import annotations

from pii_tracer.inventory import TableState
from pii_tracer.model import Carries, Strategy
from pii_tracer.plan import Gap
from planners.carriage import Carriage
from planners.drafts import CopyDraft, slug
from planners.evidence import Evidence
from planners.survey import Survey, World, title


def _no_way(state: TableState, item: CopyDraft) -> str:
    if item.carriage and item.carriage.terms:
        return f"rewriting {state.format} folders is not supported yet: rewrite it by its job, then plan again"
    if item.rebuild_sql:
        return f"rebuilding a bare {state.format} folder is not supported yet: run its job after the erasure"
    return "no key to delete by, and no recorded statement writes the whole table"


def doubts(found: Survey, state: TableState, carriage: Carriage, item: CopyDraft) -> list[Gap]:
    """What stands against treating the copy as planned."""
    name = slug(title(state))
    gaps = []
    if item.copy.strategy is Strategy.BLOCKED:
        gaps.append(
            Gap(
                id=f"gap-no_way-{name}",
                dataset=state.dataset,
                kind="cannot_be_proved",
                reason=_no_way(state, item),
                evidence=carriage.reason,
            )
        )
    for column, trace in carriage.terms:
        shared = found.derived[trace.origin, trace.expression].shared
        if shared:
            gaps.append(
                Gap(
                    id=f"gap-shared-{name}-{slug(column)}",
                    dataset=state.dataset,
                    kind="shared_identifier",
                    reason=f"{shared} value(s) of {trace.origin} belong to other people too; their rows would be lost",
                    evidence=f"column {column}, from {trace.origin}",
                )
            )
    return gaps


def missing(found: Survey, world: World) -> list[Gap]:
    """Lineage leads there, and discovery found nothing."""
    known = {s.dataset for s in world.inventory.tables} | {o.dataset for o in world.inventory.objects}
    return [
        Gap(
            id=f"gap-not_found-{slug(dataset.name)}",
            dataset=dataset,
            kind="not_found",
            reason="lineage leads here and discovery found nothing: dropped, renamed, or outside the known roots",
            evidence=carriage.reason,
        )
        for dataset, carriage in found.carriages.items()
        if carriage.carries is not Carries.NONE and dataset not in known
    ]


def open_lineage(world: World) -> list[Gap]:
    """Lineage that is not complete, where it may concern the person and the bytes do not settle it."""
    settled = {s.dataset for s in world.inventory.tables if _clean(world.evidence.get(s.location))}
    gaps: dict[str, Gap] = {}
    for gap in world.graph.gaps:
        if gap.dataset is not None and gap.dataset in settled:
            continue
        gap_id = f"gap-lineage-{slug(str(gap.dataset.name if gap.dataset else gap.kind))}-{slug(gap.kind)}"
        gaps[gap_id] = Gap(id=gap_id, dataset=gap.dataset, kind="lineage", reason=gap.reason, evidence=gap.evidence)
    return list(gaps.values())


def _clean(seen: Evidence | None) -> bool:
    return seen is not None and not seen.found and not seen.unread


def inventory_gaps(world: World) -> list[Gap]:
    return [
        Gap(
            id=f"gap-{slug(g.kind)}-{slug(g.dataset.name if g.dataset else g.evidence)}",
            dataset=g.dataset,
            kind=g.kind,
            reason=g.reason,
            evidence=g.evidence,
        )
        for g in world.inventory.gaps
    ]
