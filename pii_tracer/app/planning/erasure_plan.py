"""Making an erasure plan: from request files to the plan's files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pii_tracer.app.intake.planned_requests import refuse_stored
from pii_tracer.app.planning.plan_files import read_waivers, refuse_foreign_files, without_effect, write_plan
from pii_tracer.app.progress import SILENT, Shows, with_facts
from pii_tracer.app.settings import Settings, moment
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Request, load_request
from pii_tracer.model.errors import PersonsApart, UsageError
from pii_tracer.model.legal_holds import Hold
from pii_tracer.model.plan import ErasurePlan

if TYPE_CHECKING:
    from pii_tracer.lake.inventory import Inventory
    from pii_tracer.lineage.harvest import Summary


@dataclass(frozen=True)
class WrittenPlan:
    """A plan that was made, and where it lies. idle_waivers: waivers without effect, a line each.

    reasons: with `by_person`, why each request has gaps of its own; then all of them have.
    """

    plan: ErasurePlan
    path: Path
    summary: Summary
    inventory: Inventory
    idle_waivers: tuple[str, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)


def plan(
    settings: Settings,
    requests: Sequence[Path | Request],
    *,
    as_of: datetime | None = None,
    retention: str = "retain",
    reason: str = "",
    planner: str = "",
    policy: Path | None = None,
    waivers: Path | None = None,
    budget: float | None = None,
    source_erased: bool = False,
    only: Sequence[str] = (),
    out: Path | None = None,
    show: Shows = SILENT,
    by_person: bool = False,
    kept: Sequence[Hold] = (),
) -> WrittenPlan:
    """Make the erasure plan for some requests, or files of them; write it with its sealed manifest, Markdown and HTML.

    as_of: the time to plan for; now, if none is given. retention: `retain`, or `immediate` with a reason. planner: who
    plans. waivers: YAML file. budget: most that erasing may cost a week. only: for these copies or datasets alone.
    out: the plan file; in the state folder, if none is given. by_person: find out whose the gaps are, and write no plan
    that some of its persons alone keep from being complete. kept: what persons asked to keep, beside the estate file's
    holds.

    Raises:
        PersonsApart: with `by_person`, such persons, where there are others.
        UsageError: a budget that is none, a name that is none of a plan or taken, or a file with a request that the
            request store has.
        ConfigError: request, policy, estate or waivers cannot be read.
        PlanError: no request, unknown subject or key, contradictions.
        LineageError: a source of lineage cannot be read.
        EstateError: the source cannot be read.
    """
    from pii_tracer.app.persons_apart.gaps_by_person import reasons
    from pii_tracer.app.planning.plan_creation import make_plan
    from planners.schedule.step_dates import Retention

    if out is not None:
        refuse_foreign_files(out)
    if budget is not None and (not math.isfinite(budget) or retention == "immediate"):
        raise UsageError(
            "the budget must be a finite number, and works only with `--retention retain`",
            where="--budget",
            todo="add `--retention retain` and correct `--budget`, or leave out `--budget`",
        )
    loaded = [given if isinstance(given, Request) else load_request(given) for given in requests]
    refuse_stored(settings, [r for r, given in zip(loaded, requests, strict=True) if given is not r])
    _, policy_file = settings.policy(policy)
    waived = read_waivers(waivers) if waivers else {}
    show.stage("plan")
    planned = make_plan(
        settings,
        loaded,
        as_of or moment(None),
        Retention(retention),
        reason,
        planner,
        policy_file,
        waived,
        show.step,
        only,
        budget,
        source_erased=source_erased,
        out=out,
        by_person=by_person,
        kept=kept,
    )
    told = reasons(planned.own_gaps)
    if told and told.keys() < {request.id for request in loaded}:
        raise PersonsApart(
            f"{counted(len(told), 'person has gaps', 'persons have gaps')} that the others do not have",
            todo="plan these persons separately",
            reasons=told,
        )
    path = out or settings.state / "plans" / f"{planned.plan.plan_id}.plan.json"
    with_facts(show).about({"estate": planned.plan.estate, "plan_id": planned.plan.plan_id})
    write_plan(planned.plan, planned.sealed, path, settings.options(policy))
    return WrittenPlan(
        planned.plan, path, planned.summary, planned.inventory, tuple(without_effect(waived, planned.plan)), told
    )
