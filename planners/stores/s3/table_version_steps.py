"""A table in S3: what its engine deletes there stays as an old version, until that is deleted by its id.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeletingObjectVersions.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import RemotePlace
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from planners.formats.registry import planner_of
from planners.gaps.copy_gap import gap_of
from planners.step_drafts import CopyDraft, Draft, StepWriter
from planners.stores.s3.archives import add_abort


def unguarded(items: Sequence[CopyDraft], estate: Estate) -> tuple[Gap, ...]:
    """Tables in S3 that somebody may write to meanwhile, of formats in which commits can be lost there."""
    if estate.writers and all(writer.stopped for writer in estate.writers):
        return ()
    return tuple(
        gap_of(item, GapKind.UNGUARDED_COMMITS, why, item.copy.location)
        for item in items
        if item.place is not None
        and item.copy.strategy not in (Strategy.BLOCKED, Strategy.EXEMPT)
        and (why := planner_of(item.copy.format).unguarded(estate.spark.conf))
    )


def version_steps(item: CopyDraft, place: RemotePlace, drafts: Sequence[Draft], plan_id: str) -> tuple[Draft, ...]:
    """The steps of a table's engine, and what is left to do in its bucket after them."""
    where: dict[str, Any] = {"bucket": place.location.bucket, "region": place.region, "plan_id": plan_id}
    steps = StepWriter(item.copy, "s3", {})
    steps.drafts += drafts
    steps.add(
        Action.S3_CLEAR_VERSIONS,
        "if the bucket retains versions, objects that the engine deleted or overwrote remain as old versions",
        hazards=("S1",),
        verification="the folder contains only current versions",
        retained=True,
        prefix=place.location.prefix,
        **where,
    )
    add_abort(steps, place.location.prefix, place.uploads, where)
    return tuple(steps.drafts)
