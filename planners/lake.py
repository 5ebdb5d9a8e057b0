"""A table in S3: what its engine deletes there stays as an old version, until that is deleted by its id.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeletingObjectVersions.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pii_tracer.actions import Action
from pii_tracer.inventory import RemotePlace
from planners.archives import add_abort
from planners.drafts import CopyDraft, Draft, StepWriter


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
        without=[],
        **where,
    )
    add_abort(steps, place.location.prefix, place.uploads, where)
    return tuple(steps.drafts)
