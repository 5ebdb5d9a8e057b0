"""A table in S3: what its engine deletes there stays as an old version, until that is deleted by its id.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeletingObjectVersions.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.inventory import RemotePlace
from pii_tracer.model.actions import Action
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.identities import Strategy
from pii_tracer.model.plan import Gap
from planners.holds.hold_effects import gap_of
from planners.step_drafts import CopyDraft, Draft, StepWriter
from planners.stores.s3.archives import add_abort

_GUARDS = ("spark.delta.logStore.s3a.impl", "spark.delta.logStore.class")
"""Settings with a log store for several clusters: https://docs.delta.io/latest/delta-storage.html#multi-cluster-setup"""


def unguarded(items: Sequence[CopyDraft], estate: Estate) -> tuple[Gap, ...]:
    """Delta tables in S3 that somebody may write to meanwhile: two commits from different clusters can be one, and the
    rows of the other are lost (Delta's page, "Amazon S3"). Iceberg's catalogs let one of two commits win.
    """
    stopped = bool(estate.writers) and all(writer.stopped for writer in estate.writers)
    if stopped or any(name in estate.spark.conf for name in _GUARDS):
        return ()
    return tuple(
        gap_of(
            item,
            GapKind.UNGUARDED_COMMITS,
            "S3 does not keep two clusters from writing the same commit of a Delta table: rows of a job that"
            " commits during the run would be lost. Name the jobs that write to it under `writers` and stop them, or"
            " set a log store for several clusters in `spark.conf` as these jobs do; waive it where nobody writes",
            item.copy.location,
        )
        for item in items
        if item.place is not None
        and item.copy.format is DELTA
        and item.copy.strategy not in (Strategy.BLOCKED, Strategy.EXEMPT)
    )


def version_steps(item: CopyDraft, place: RemotePlace, drafts: Sequence[Draft], plan_id: str) -> tuple[Draft, ...]:
    """The steps of a table's engine, and what is left to do in its bucket after them."""
    where: dict[str, Any] = {"bucket": place.location.bucket, "region": place.region, "plan_id": plan_id}
    steps = StepWriter(item.copy, "s3", {})
    steps.drafts += drafts
    steps.add(
        Action.S3_CLEAR_VERSIONS,
        "what the engine deleted or wrote over stays as an old version where the bucket keeps versions",
        hazards=("S1",),
        verification="below the folder there are current versions only",
        retained=True,
        prefix=place.location.prefix,
        **where,
    )
    add_abort(steps, place.location.prefix, place.uploads, where)
    return tuple(steps.drafts)
