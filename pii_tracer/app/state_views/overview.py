"""The whole state folder at one glance: the verdict, and everything that somebody has to do something about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from pii_tracer.app.settings import Settings
from pii_tracer.app.state_views.attestation_list import AttestationFolder
from pii_tracer.app.state_views.lineage_hops import LineageFile
from pii_tracer.app.state_views.plan_list import ListedPlan, PlanFolder
from pii_tracer.app.state_views.readiness_trend import ReadingsFolder
from pii_tracer.app.state_views.run_list import RunList, RunProgress
from pii_tracer.app.state_views.untrusted_files import Broken
from pii_tracer.common.plurals import counted


@dataclass(frozen=True)
class Attention:
    """One thing that blocks, or that somebody has to look at. page: which list it is on; key: its own page, if any."""

    page: str
    key: str
    name: str
    text: str


@dataclass(frozen=True)
class Overview:
    """attention: all of it. waiting: plans in order that nobody has approved yet. live: runs that go on now."""

    attention: tuple[Attention, ...]
    waiting: tuple[ListedPlan, ...]
    live: tuple[RunProgress, ...]
    plans: int
    runs: int
    attestations: int
    readings: int
    score: int | None
    read_on: str | None

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.attention:
            return f"{counted(len(self.attention), 'thing')} in the way of erasing persons in time"
        if self.waiting:
            return f"Nothing is in the way; {counted(len(self.waiting), 'plan waits', 'plans wait')} for approval"
        if self.live:
            return f"Nothing is in the way; {counted(len(self.live), 'run')} going on"
        return "Nothing is in the way, as far as this folder shows"

    @property
    def tone(self) -> str:
        """`bad`, `warn` or `good`; good only where a reading says so as well."""
        if self.attention:
            return "bad"
        return "warn" if self.waiting or self.live or self.readings == 0 else "good"


class StateViews:
    """Everything that the pages show of one state folder. plans: further folders with plan files."""

    def __init__(self, settings: Settings, plans: Sequence[Path] = ()) -> None:
        self.state = settings.state
        self.plans = PlanFolder((settings.state / "plans", *plans))
        self.runs = RunList(settings.state)
        self.readings = ReadingsFolder(settings.state)
        self.attestations = AttestationFolder(settings.state)
        self.lineage = LineageFile(settings)

    def overview(self) -> Overview:
        """What the first page shows."""
        plans, broken_plans = self.plans.all(now())
        runs, broken_runs = self.runs.all()
        claims, broken_claims = self.attestations.all()
        trend = self.readings.read()
        begun = {run.plan_id for run in runs}
        open_plans = [plan for plan in plans if plan.summary.plan_id not in begun]
        attention = [Attention("runs", r.key, r.plan_id, r.headline) for r in runs if r.blocked]
        attention += [_blocked(plan) for plan in open_plans if plan.summary.blocked]
        last = None
        if isinstance(trend, Broken):
            attention.append(Attention("readiness", "", "readings", trend.what))
        elif (last := trend.last) is not None and not last.ready:
            text = f"{counted(last.blocking, 'finding')} would keep a plan incomplete or late"
            attention.append(Attention("readiness", "", f"reading {last.number}", text))
        for page, broken in (("runs", broken_runs), ("plans", broken_plans), ("proofs", broken_claims)):
            attention += [Attention(page, one.key, one.name, one.what) for one in broken]
        return Overview(
            attention=tuple(attention),
            waiting=tuple(p for p in open_plans if not p.summary.blocked and not p.approved),
            live=tuple(run for run in runs if run.live),
            plans=len(plans) + len(broken_plans),
            runs=len(runs) + len(broken_runs),
            attestations=len(claims) + len(broken_claims),
            readings=0 if isinstance(trend, Broken) else len(trend.points),
            score=last.score if last else None,
            read_on=last.at if last else None,
        )


def now() -> datetime:
    """The clock that approvals are held against."""
    return datetime.now(timezone.utc)


def _blocked(plan: ListedPlan) -> Attention:
    one = plan.summary
    gaps = f"{counted(one.open_gaps, 'gap')}: " if one.open_gaps else ""
    return Attention("plans", one.key, one.plan_id, gaps + one.headline)
