"""The plan: a visible sequence of rules from what was found to what will be done. No I/O, no clock, no Spark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from pii_tracer import __version__
from pii_tracer.config import Estate, Request
from pii_tracer.errors import PlanError
from pii_tracer.model import Strategy
from pii_tracer.plan import (
    FORMAT_VERSION,
    Copy,
    ErasurePlan,
    Estimate,
    Examined,
    Gap,
    Override,
    PlannedRequest,
    Precondition,
    Schedule,
    Step,
    Totals,
    Waiver,
)
from planners.copies import Recognised, recognise
from planners.cost import cost
from planners.drafts import CopyDraft, Draft, slug
from planners.laws import deadline, law
from planners.ordering import order
from planners.schedule import Dated, Dates, Retention, date_steps
from planners.steps import write_steps
from planners.survey import Survey, World


@dataclass(frozen=True)
class Digests:
    """Digests of everything the plan was made from."""

    graph: str
    inventory: str
    policy: str
    subjects: str
    estate: str


@dataclass(frozen=True)
class PlanInputs:
    """All inputs of a plan. The same inputs give the same bytes.

    planned_by: who plans; the planner cannot be the only approver in production.
    references: keyed reference per request id. waivers: by gap id. override_reason: why retention is immediate.
    """

    estate: Estate
    requests: Sequence[Request]
    references: Mapping[str, str]
    surveys: Sequence[Survey]
    world: World
    digests: Digests
    as_of: datetime
    retention: Retention
    planned_by: str = ""
    override_reason: str = ""
    waivers: Mapping[str, Waiver] | None = None


def build_plan(inputs: PlanInputs) -> ErasurePlan:
    """Make the plan.

    Raises:
        PlanError: no request, unknown law, rules that contradict each other, or an override without a reason.
    """
    if not inputs.requests:
        raise PlanError("there is no request to plan for", todo="name at least one request file")
    if inputs.retention is Retention.IMMEDIATE and not inputs.override_reason:
        raise PlanError("immediate retention is an override and needs a reason", todo="add `--reason '…'`")
    requests = _requests(inputs)
    found = _recognised(inputs)
    plan_id = _plan_id(inputs)
    items = write_steps(found.items, plan_id)
    drafts = order(items, _used_key_sets(items), _writers_stopped(inputs))
    due = min(r.deadline for r in requests)
    as_of = _utc(inputs.as_of)
    dated = {r: date_steps(drafts, items, inputs.estate, as_of, due, r) for r in Retention}
    steps = tuple(_step(d, dated[inputs.retention].by_step[d.id], inputs.estate) for d in drafts)
    gaps = tuple(_waived(g, inputs.waivers or {}, as_of) for g in (*found.gaps, *_running_writers(inputs)))
    copies = tuple(item.copy for item in items)
    open_gaps = [g for g in gaps if g.waiver is None]
    blocked = [c for c in copies if c.strategy is Strategy.BLOCKED]
    return ErasurePlan(
        format_version=FORMAT_VERSION,
        plan_id=plan_id,
        tool_version=__version__,
        created_at=as_of,
        estate=inputs.estate.estate,
        planned_by=inputs.planned_by,
        retention=inputs.retention.value,
        overrides=_overrides(inputs),
        requests=requests,
        graph_digest=inputs.digests.graph,
        inventory_digest=inputs.digests.inventory,
        policy_digest=inputs.digests.policy,
        subjects_digest=inputs.digests.subjects,
        estate_digest=inputs.digests.estate,
        complete=not open_gaps,
        applyable=not open_gaps and not blocked and bool(copies),
        gaps=gaps,
        copies=copies,
        examined=found.examined,
        steps=steps,
        schedules=tuple(
            _schedule(dated[r], r, due, sum(s.estimate.cost for s in steps))
            for r in sorted(Retention, key=lambda r: r is not inputs.retention)
        ),
        totals=_totals(copies, steps, gaps, dated[inputs.retention], due, inputs.estate.prices.currency),
    )


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc).replace(microsecond=0)


def _requests(inputs: PlanInputs) -> tuple[PlannedRequest, ...]:
    planned = []
    for request in inputs.requests:
        rule = law(request.law, f"request {request.id}")
        planned.append(
            PlannedRequest(
                id=request.id,
                subject=inputs.references[request.id],
                law=rule.name,
                citation=rule.citation,
                received=_utc(request.received),
                deadline=_utc(deadline(rule, request.received)),
            )
        )
    if len({p.id for p in planned}) != len(planned):
        raise PlanError("two requests have one id", todo="give each request an id of its own")
    return tuple(sorted(planned, key=lambda p: p.id))


def _recognised(inputs: PlanInputs) -> Recognised:
    parts = [recognise(s, inputs.world) for s in inputs.surveys]
    items: dict[str, CopyDraft] = {}
    for item in (i for p in parts for i in p.items):
        if item.copy.id in items:
            raise PlanError(
                f"{item.copy.table or item.copy.location} holds two kinds of subject; plan them one after the other",
                todo="make one plan per kind of subject",
            )
        items[item.copy.id] = item
    held = {i.copy.dataset for i in items.values()}
    examined: dict[str, Examined] = {str(e.dataset): e for p in parts for e in p.examined if e.dataset not in held}
    gaps: dict[str, Gap] = {g.id: g for p in parts for g in p.gaps}
    return Recognised(
        tuple(items.values()),
        tuple(gaps[g] for g in sorted(gaps)),
        tuple(sorted(examined.values(), key=lambda e: e.table or e.dataset.name)),
    )


def _writers_stopped(inputs: PlanInputs) -> tuple[Precondition, ...]:
    """Log clean-up and sweeps at once are safe only without writers; the estate file says whether they are stopped."""
    if inputs.retention is Retention.RETAIN:
        return ()
    return tuple(
        Precondition(kind="writers_stopped", target=writer.job, expected="true") for writer in inputs.estate.writers
    )


def _running_writers(inputs: PlanInputs) -> tuple[Gap, ...]:
    if inputs.retention is Retention.RETAIN:
        return ()
    return tuple(
        Gap(
            id=f"gap-writer_running-{slug(writer.job)}",
            dataset=None,
            kind="writer_running",
            reason=f"the job {writer.job} may write while old files are removed at once, and fill copies again",
            evidence="the estate file, `writers`: not stopped",
        )
        for writer in inputs.estate.writers
        if not writer.stopped
    )


def _used_key_sets(items: Sequence[CopyDraft]) -> list[str]:
    return sorted({t.key_set for i in items if i.copy.match for t in i.copy.match.terms})


def _plan_id(inputs: PlanInputs) -> str:
    facts = {
        "requests": sorted(r.id for r in inputs.requests),
        "as_of": _utc(inputs.as_of).isoformat(),
        "retention": inputs.retention.value,
        "digests": vars(inputs.digests),
    }
    return "plan-" + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def _overrides(inputs: PlanInputs) -> tuple[Override, ...]:
    if inputs.retention is Retention.RETAIN:
        return ()
    return (Override(kind="retention_immediate", reason=inputs.override_reason),)


def _step(draft: Draft, dates: Dates, estate: Estate) -> Step:
    return Step(
        id=draft.id,
        copy_=draft.copy,
        action=draft.action,
        executor=draft.executor,
        parameters=draft.parameters,
        depends_on=draft.after,
        hazards=draft.hazards,
        preconditions=draft.preconditions,
        verification=draft.verification,
        irreversible=draft.irreversible,
        earliest_start=dates.start,
        earliest_finish=dates.finish,
        latest_start=dates.latest_start,
        estimate=Estimate(
            rows=draft.rows,
            files=draft.files,
            bytes=draft.bytes,
            cost=cost(draft, estate.prices),
            currency=estate.prices.currency,
            wait=dates.wait,
        ),
        reason=draft.reason,
    )


def _waived(gap: Gap, waivers: Mapping[str, Waiver], as_of: datetime) -> Gap:
    waiver = waivers.get(gap.id)
    return gap.model_copy(update={"waiver": waiver}) if waiver and waiver.until > as_of else gap


def _schedule(dated: Dated, retention: Retention, due: datetime, total: float) -> Schedule:
    return Schedule(
        retention=retention.value,
        finish=dated.finish,
        deadline=due,
        slack_days=_days(dated.finish, due),
        meets_deadline=dated.finish <= due,
        critical_path=dated.critical_path,
        cost=round(total, 2),
        notes=dated.notes,
    )


def _days(finish: datetime, due: datetime) -> float:
    return round((due - finish).total_seconds() / 86400, 1)


def _totals(
    copies: Sequence[Copy], steps: Sequence[Step], gaps: Sequence[Gap], dated: Dated, due: datetime, currency: str
) -> Totals:
    return Totals(
        copies=sum(c.origin is None for c in copies),
        beyond=sum(c.origin is not None for c in copies),
        steps=len(steps),
        irreversible=sum(s.irreversible for s in steps),
        gaps=sum(g.waiver is None for g in gaps),
        waived=sum(g.waiver is not None for g in gaps),
        finish=dated.finish,
        deadline=due,
        slack_days=_days(dated.finish, due),
        cost=round(sum(s.estimate.cost for s in steps), 2),
        currency=currency,
        critical_path=dated.critical_path,
    )
