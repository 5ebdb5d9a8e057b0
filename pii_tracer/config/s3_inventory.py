"""The estate file's part about object storage that is more than a name: S3 Inventory reports."""

from __future__ import annotations

from pydantic import Field

from pii_tracer.model.datasets import Frozen


class InventoryReports(Frozen):
    """Where S3 Inventory writes its reports about an archive's bucket (all versions, with the optional fields).

    location: `s3://bucket/prefix/source-bucket/configuration/`, the folder of the dated folders. max_age_hours: an
    older report is not used and the bucket is listed; what came after a report is found by the verification.
    """

    location: str = Field(pattern=r"^s3://[^/]+/.+/$")
    max_age_hours: float = Field(default=48, gt=0)
