"""What a step of S3 really cost, from what it did and the estate's prices, beside what the plan said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pii_tracer.config.estate_file import Prices
from pii_tracer.model.plan import Estimate

_GB = 1_000_000_000


def cost_fact(facts: Mapping[str, Any], prices: Prices, estimate: Estimate) -> dict[str, Any]:
    """`actual` covers restores, rewritten objects and calls that this attempt made, not what is billed by the month."""
    restores = [facts, facts.get("restored_again", {})]
    calls = sum(len(part.get("request_ids", ())) for part in restores) + facts.get("rewritten", 0)
    actual = sum(prices.restore_gb * part.get("restored_bytes", 0) / _GB for part in restores)
    actual += prices.archive_object * facts.get("rewritten", 0)
    actual += prices.request_1000 * calls / 1000
    return {"actual": round(actual, 4), "estimated": estimate.cost, "currency": prices.currency}
