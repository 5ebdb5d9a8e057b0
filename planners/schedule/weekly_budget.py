"""A weekly budget: what erasing costs is spread over weeks, the most urgent first, and never past a deadline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Prices
from planners.schedule.step_costs import cost
from planners.schedule.step_dates import Dated, writes
from planners.step_drafts import Draft

_WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Spread:
    """begins: by draft id, not before when the work on a copy begins. weeks: what each week of the plan costs."""

    begins: Mapping[str, datetime]
    weeks: Mapping[int, float]


def spread(drafts: Sequence[Draft], dated: Dated, prices: Prices, budget: float) -> Spread:
    """Distribute the copies so that no week costs more than `budget` (in the prices' currency), where that is possible.

    The most urgent goes first: the one that has to begin earliest to meet the deadline. A copy that costs more than a
    whole budget gets a week of its own: it cannot be divided. The deadline goes before the budget: where no week that
    still meets it has room, the cheapest of these weeks is taken, and `told` says so.
    """
    first = _first(drafts)
    costs: dict[str | None, float] = defaultdict(float)
    for draft in drafts:
        costs[draft.copy] += cost(draft, prices, dated.by_step[draft.id].start)
    if not first:
        return Spread({}, {})
    begin = min(dated.by_step[d.id].start for d in first)
    spent: dict[int, float] = {}
    begins: dict[str, datetime] = {}
    for draft in sorted(first, key=lambda d: (dated.by_step[d.id].latest_start, d.id)):
        price, dates = costs[draft.copy], dated.by_step[draft.id]
        if not price:
            continue
        weeks = range(max(0, (dates.latest_start - dates.start) // _WEEK) + 1)
        times = {(dates.start + n * _WEEK - begin) // _WEEK: dates.start + n * _WEEK for n in weeks}
        fits = [week for week in times if not spent.get(week) or spent[week] + price <= budget]
        week = min(fits) if fits else min(times, key=lambda w: (spent[w], w))
        spent[week] = spent.get(week, 0.0) + price
        begins[draft.id] = times[week]
    return Spread(begins, spent)


def _first(drafts: Sequence[Draft]) -> list[Draft]:
    """Where the work on each copy begins."""
    found: dict[str, Draft] = {}
    for draft in drafts:
        if draft.copy and (writes(draft) or draft.executor == "s3"):
            found.setdefault(draft.copy, draft)
    return list(found.values())


def told(made: Spread, budget: float, currency: str) -> tuple[str, ...]:
    """The notes for the schedule."""
    weeks = len(made.weeks)
    copies = counted(len(made.begins), "copy is", "copies are")
    notes = [f"{copies} spread over {weeks} week{'s' if weeks != 1 else ''}, for at most {budget:g} {currency} a week"]
    over = [spent for spent in made.weeks.values() if spent > budget]
    if over:
        notes.append(
            f"to meet the deadline, {counted(len(over), 'week costs', 'weeks cost')} more than the budget: at most "
            f"{max(over):,.2f} {currency}. Raise the budget to this amount, or plan fewer requests together"
        )
    return tuple(notes)
