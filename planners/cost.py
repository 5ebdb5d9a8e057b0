"""Costs from the estate's price table, per step."""

from __future__ import annotations

from pii_tracer.config import Prices
from pii_tracer.plan import Action
from planners.drafts import Draft
from planners.schedule import duration

_GB = 1_000_000_000
_SPARK = {"iceberg", "delta", "hudi", "verify"}
_BATCH = 1000


def cost(draft: Draft, prices: Prices) -> float:
    """Cost of one step in the price table's currency, rounded to 1/100."""
    total = 0.0
    if draft.executor in _SPARK:
        total += prices.spark_hour * duration(draft).total_seconds() / 3600
        total += prices.scanned_gb * draft.bytes / _GB
    if draft.action is Action.S3_RESTORE:
        total += prices.restore_gb * draft.bytes / _GB
    if draft.action is Action.S3_REWRITE_ARCHIVE:
        total += prices.archive_object * draft.files
    if draft.executor == "s3":
        total += prices.request_1000 * -(-draft.files // _BATCH)
    return round(total, 2)
