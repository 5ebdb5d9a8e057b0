"""Costs from the estate's price table, per step."""

from __future__ import annotations

from datetime import datetime

from pii_tracer.config.estate_file import Prices
from pii_tracer.model.actions import Action
from pii_tracer.model.timestamps import instant
from planners.formats.registry import spark_executors
from planners.schedule.step_dates import duration
from planners.step_drafts import Draft

_GB = 1_000_000_000
_BATCH = 1000


_MINIMUM_DAYS = {"GLACIER": 90, "DEEP_ARCHIVE": 180}
"""Days that an object is paid for, even when it is deleted sooner (https://aws.amazon.com/s3/pricing/)."""


def cost(draft: Draft, prices: Prices, at: datetime) -> float:
    """Cost of one step that begins then, in the price table's currency, rounded to 1/100."""
    total = exact_cost(draft, prices)
    if draft.action is Action.S3_DELETE_VERSIONS:
        total += sum(
            early_fee(v["storage_class"], v.get("modified"), v.get("size") or 0, prices, at)
            for v in draft.parameters["versions"]
        )
    if draft.action is Action.VAULT_DELETE:
        archives = draft.parameters["archives"]
        total += sum(early_fee("GLACIER", a["created"], a.get("size") or 0, prices, at) for a in archives)
    return round(total, 2)


def exact_cost(draft: Draft, prices: Prices) -> float:
    """As `cost`, not rounded, and without fees for versions that are deleted early."""
    total = 0.0
    if draft.executor == "verify" or draft.executor in spark_executors():
        total += engine_cost(duration(draft).total_seconds(), draft.bytes, prices)
    if draft.action in (Action.S3_RESTORE, Action.VAULT_RETRIEVE):
        total += prices.restore_gb * draft.bytes / _GB
    if draft.action in (Action.S3_REWRITE_ARCHIVE, Action.VAULT_REWRITE):
        total += prices.archive_object * draft.files
    if draft.executor in ("s3", "vault"):
        total += request_cost(draft.files, prices)
    return total


def engine_cost(seconds: float, size: int, prices: Prices) -> float:
    """What an engine costs that works for so long and reads so many bytes."""
    return prices.spark_hour * seconds / 3600 + prices.scanned_gb * size / _GB


def request_cost(requests: int, prices: Prices) -> float:
    """What requests to a store cost, each thousand that was begun."""
    return prices.request_1000 * -(-requests // _BATCH)


def early_fee(storage_class: str, modified: str | None, size: int, prices: Prices, at: datetime) -> float:
    """The fee for deleting a version before its class's minimum stay is over: storage for the days that are left."""
    minimum = _MINIMUM_DAYS.get(storage_class)
    if minimum is None or modified is None:
        return 0.0
    age = (at - instant(modified)).total_seconds() / 86400
    months = max(0.0, minimum - age) / 30
    return prices.storage_gb_month * months * size / _GB
