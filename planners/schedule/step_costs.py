"""Costs from the estate's price table, per step."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

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
    total = 0.0
    if draft.executor == "verify" or draft.executor in spark_executors():
        total += prices.spark_hour * duration(draft).total_seconds() / 3600
        total += prices.scanned_gb * draft.bytes / _GB
    if draft.action in (Action.S3_RESTORE, Action.VAULT_RETRIEVE):
        total += prices.restore_gb * draft.bytes / _GB
    if draft.action in (Action.S3_REWRITE_ARCHIVE, Action.VAULT_REWRITE):
        total += prices.archive_object * draft.files
    if draft.executor in ("s3", "vault"):
        total += prices.request_1000 * -(-draft.files // _BATCH)
    if draft.action is Action.S3_DELETE_VERSIONS:
        total += sum(_early(version, prices, at) for version in draft.parameters["versions"])
    if draft.action is Action.VAULT_DELETE:
        archives = draft.parameters["archives"]
        total += sum(_early({**a, "storage_class": "GLACIER", "modified": a["created"]}, prices, at) for a in archives)
    return round(total, 2)


def _early(version: Mapping[str, Any], prices: Prices, at: datetime) -> float:
    """The fee for deleting a version before its class's minimum stay is over: storage for the days that are left."""
    minimum, modified = _MINIMUM_DAYS.get(version["storage_class"]), version.get("modified")
    if minimum is None or modified is None:
        return 0.0
    age = (at - instant(modified)).total_seconds() / 86400
    months = max(0.0, minimum - age) / 30
    return prices.storage_gb_month * months * (version.get("size") or 0) / _GB
