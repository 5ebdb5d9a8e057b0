"""A reading for a terminal, the verdict first."""

from __future__ import annotations

from collections.abc import Iterator

from pii_tracer.common.plurals import counted as many
from pii_tracer.readiness.canaries import Arrival
from pii_tracer.readiness.findings import Finding, Level
from pii_tracer.readiness.readiness_reading import NO_COST, Readiness, counted
from reports.escape import visible
from reports.wording import day, money, number

MOST = 50
"""Findings that the terminal lists; JSON and the page have more."""


def verdict(found: Readiness) -> str:
    """The answer in one line."""
    blocking, unknown = found.of_level(Level.BLOCKING), found.of_level(Level.UNKNOWN)
    owners = ", ".join(sorted({finding.owner for finding in blocking or unknown})[:5])
    if blocking:
        return f"no: {many(len(blocking), 'finding')} would keep a plan incomplete or late ({owners})"
    if unknown:
        return (
            f"unknown: only the search of a plan shows whether {many(len(unknown), 'place')} would keep a plan "
            f"incomplete ({owners}); no other finding would"
        )
    return "yes: a plan made now would be complete and in time, as far as a reading can see"


def render_readiness_text(found: Readiness) -> str:
    """Lines for people; names are shown with their invisible characters escaped."""
    return "".join(f"{visible(line)}\n" for line in _lines(found))


def _lines(found: Readiness) -> Iterator[str]:
    yield verdict(found)
    before = f" (before: {found.trend[-1].score})" if found.trend else ""
    parts = ", ".join(f"{part.name} {part.whole}" for part in found.score.parts)
    yield f"score {found.score.points} of 100{before}: {parts}"
    totals = ", ".join(f"{number(count)} {name}" for name, count in counted(found.tables).items() if count)
    yield f"lineage: {totals or 'no tables'}"
    yield provable_line(found)
    for answer in found.provable.laws:
        yield f"  {answer.law}: deadline {day(answer.deadline)}, {'met' if answer.met else 'missed'}"
    for keeper in found.provable.held:
        yield f"  held: {keeper.where}: {keeper.reason} until {day(keeper.until) if keeper.until else 'nobody knows'}"
    for canary in found.canaries.canaries:
        counts = ", ".join(f"{canary.count(a)} {a.value}" for a in Arrival if canary.count(a))
        yield f"canary {canary.name}: {counts or 'nowhere'}" + ("" if canary.in_source else "; not in its source")
    if not found.canaries.canaries:
        yield "canaries: none declared, so this part of the score is 0"
    if found.canaries.not_looked_at:
        yield f"not searched for canaries: {', '.join(found.canaries.not_looked_at)}"
    yield f"cost: {cost_of(found)}"
    for finding in found.findings[:MOST]:
        yield from _finding(finding)
    if len(found.findings) > MOST:
        yield f"{many(len(found.findings) - MOST, 'more finding')}: use `--format json` to list all of them"


def cost_of(found: Readiness) -> str:
    """What erasing one person costs, or why nobody knows."""
    cost = found.cost
    if cost is None:
        return f"left out; {NO_COST}"
    low, expected, high = (money(amount, cost.currency) for amount in (cost.low, cost.expected, cost.high))
    return f"one person {'at least ' if cost.at_least else ''}{expected}, between {low} and {high}"


def provable_line(found: Readiness) -> str:
    """The earliest provable day, with what decides it."""
    by, on = found.provable.decided_by, found.provable.on
    if by is None:
        return "earliest proof: now; nothing known keeps bytes"
    when = day(on) if on else "never"
    return f"earliest proof: {when}, decided by {by.where}: {by.reason} (owner: {by.owner})"


def _finding(finding: Finding) -> Iterator[str]:
    kind = finding.gap or finding.kind.value
    age = "new" if not finding.age_days else many(finding.age_days, "day")
    yield f"{finding.level.value}: {kind}: {finding.where}: {finding.text} (owner: {finding.owner}; {age})"
    if finding.todo and finding.level is not Level.NOTE:
        yield f"  next: {finding.todo}"
