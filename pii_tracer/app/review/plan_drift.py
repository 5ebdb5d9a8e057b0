"""A plan's preconditions, compared with the world."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pii_tracer.app.settings import Settings
from pii_tracer.common.plurals import counted
from pii_tracer.review.drift import DriftItem
from pii_tracer.review.plan_file import load_plan


def drift_of(settings: Settings, plan_file: Path) -> list[DriftItem]:
    """Every precondition of a plan that the world does not meet, the estate file's own first.

    Raises:
        ReviewError: the plan cannot be read.
        EstateError: the estate cannot be looked at.
    """
    from pii_tracer.app.planning.plan_creation import take_inventory
    from pii_tracer.config.estate_file import file_digest
    from pii_tracer.review.drift import compare

    plan = load_plan(plan_file).plan
    estate = settings.estate()
    stopped = {writer.job: writer.stopped for writer in estate.writers}
    items = compare(plan, take_inventory(estate, settings.base, lambda _: None), stopped)
    if (found := file_digest(settings.estate_file)) != plan.estate_digest:
        items.insert(0, DriftItem(None, "estate_file", str(settings.estate_file), plan.estate_digest, found, hard=True))
    return items


def drift_verdict(items: Sequence[DriftItem]) -> str:
    """What differences mean for a run, in one line."""
    stops = sum(item.hard for item in items)
    if not items:
        return "no drift"
    if not stops:
        return f"{counted(len(items), 'difference')}, none of which stops a run: the plan can be applied as it is"
    blocking = counted(stops, "of which stops", "of which stop")
    return f"{counted(len(items), 'difference')}, {blocking} a run: make a new plan"
