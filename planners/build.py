"""The plan: a visible sequence of rules from what was found to what will be done. No I/O, no clock, no Spark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from pii_tracer import __version__
from pii_tracer.common.gc_pause import lasting_objects
from pii_tracer.config.estate_file import Estate, Request
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import PlanError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.legal_holds import may_begin_until
from pii_tracer.model.plan import (
    FORMAT_VERSION,
    HELD,
    Copy,
    ErasurePlan,
    Estimate,
    Gap,
    Override,
    Schedule,
    Step,
    Totals,
)
from pii_tracer.model.planned_requests import PlannedRequest
from pii_tracer.model.waivers import MarkKey, Waiver
from planners.chosen_copies_plan import choose
from planners.content_digests import keyed
from planners.copies.archives_and_branches import left_out, spare_references
from planners.copies.backups import with_backups
from planners.copies.classification import Recognised, recognise
from planners.copies.partition_values import known_partitions
from planners.copies.persons_known_by_key_only import are_shown, known_by_key_only
from planners.copies.rebuild_candidates import unproved
from planners.gaps.accepted_gaps import accepted
from planners.gaps.files_left_behind import beyond_engine
from planners.gaps.keys_of_several_columns import not_compared, searched_in_rows
from planners.gaps.owner_tasks import with_tasks
from planners.gaps.persons_of_gaps import seen_persons
from planners.gaps.recomputed_copies import by_owners, recomputed
from planners.gaps.remaining_values import remaining_values
from planners.gaps.running_writers import running_writers, writers_stopped
from planners.gaps.table_descriptions import table_texts
from planners.gaps.unexplained_short_numbers import with_digits
from planners.holds.hold_rules import idle_holds, keep_held
from planners.keys.crypto_shredding import with_keys
from planners.locate.sql.shared_rows import spare_stored
from planners.locate.subject_survey import Survey, World
from planners.schedule.erasure_requests import in_utc, planned_requests
from planners.schedule.step_costs import cost
from planners.schedule.step_dates import Dated, Dates, Retention, date_steps
from planners.schedule.step_order import SUPPRESSION, order
from planners.schedule.weekly_budget import spread, told
from planners.step_drafts import CopyDraft, Draft
from planners.steps import write_steps
from planners.stores.glacier.vaults import whole_deletions
from planners.stores.hdfs.steps import whole_deletions_in_hdfs
from planners.stores.lakefs.repositories import lakefs_copies
from planners.stores.lakefs.steps import lowered_retention
from planners.stores.object_places.steps import whole_versions
from planners.stores.s3.archive_gaps import spare_archives
from planners.stores.s3.archives import bypasses, whole_objects
from planners.stores.s3.lifecycle_expiry import let_lapse, let_refs_lapse
from planners.stores.s3.replication_reappearance import echoes
from planners.stores.s3.table_version_steps import unguarded
from planners.streams.kafka.prefix_deletion import cut_topics
from planners.streams.kafka.topics import topic_copies
from planners.unique_ids import distinct_examined, distinct_gaps

RECHECK_AFTER = timedelta(days=30)
"""From the end of a run to the day when somebody looks whether the persons are back: a month's backfills have run."""


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

    only: copies, tables or places to plan for; empty for all. weekly_budget: most that erasing may cost a week.
    planned_by: who plans; the planner cannot be the only approver in production.
    references: keyed reference per request id. waivers: by gap id. override_reason: why retention is immediate.
    marks: makes the marks of what gaps show.
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
    only: Sequence[str] = ()
    weekly_budget: float | None = None
    marks: MarkKey = field(kw_only=True)


@lasting_objects()
def build_plan(inputs: PlanInputs) -> ErasurePlan:
    """Make the plan.

    Raises:
        PlanError: no request, unknown law, rules that contradict each other, or an override without a reason.
    """
    if inputs.retention is Retention.IMMEDIATE and not inputs.override_reason:
        raise PlanError("`--retention immediate` needs a reason", todo="add `--reason '…'`")
    as_of = in_utc(inputs.as_of)
    requests = planned_requests(inputs.requests, inputs.references, inputs.estate.laws, as_of)
    until = max(r.deadline for r in requests)
    plan = _built(inputs, requests, as_of, until)
    last = may_begin_until(until, plan.totals.finish)  # a run that misses the deadline may last longer than that
    if any(until < hold.from_ <= last for hold in inputs.estate.holds):
        return _built(inputs, requests, as_of, last)
    return plan


def _built(inputs: PlanInputs, requests: tuple[PlannedRequest, ...], as_of: datetime, until: datetime) -> ErasurePlan:
    """The plan in which every hold counts that begins up to a moment."""
    due = min(r.deadline for r in requests)
    recognised = with_backups(_recognised(inputs, due), inputs.world, inputs.estate.backups)
    found, holds = keep_held(recognised, inputs.world, inputs.estate.holds, requests, as_of, until)
    found, holds = choose(found, holds, inputs.world, inputs.only)
    if inputs.retention is Retention.RETAIN:
        items = let_refs_lapse(found.items, inputs.estate.maintenance, as_of, due)
        found = replace(found, items=let_lapse(items, as_of, due, _price(inputs.estate, as_of)))
    spared, lossy = spare_references(found.items)
    spared, unrewritable = spare_archives(spared, inputs.world)
    world = inputs.world
    strays = distinct_gaps([*remaining_values(spared, world), *table_texts(spared, world), *world.untaken]).values()
    all_gaps = (*found.gaps, *lossy, *unrewritable, *strays)
    found = replace(found, items=spared, gaps=tuple(sorted(all_gaps, key=lambda g: g.id)))
    plan_id = _plan_id(inputs)
    written = write_steps(found.items, plan_id)
    persons = partial(seen_persons, surveys=inputs.surveys, world=inputs.world, references=inputs.references)
    shown = distinct_gaps(
        [
            *found.gaps,
            *running_writers(inputs.estate, inputs.retention),
            *unguarded(written, inputs.estate),
            *beyond_engine(written, inputs.estate.spark.profile),
            *echoes(written, world),
        ]
    )
    ways = by_owners(written, tuple(shown.values()), world)
    gaps = tuple(
        accepted(g, world, persons(g), inputs.waivers or {}, as_of, inputs.marks)
        for g in map(ways.told, shown.values())
    )
    items, tasks = with_tasks(written if inputs.only else recomputed(written, gaps, ways, world.graph), gaps)
    stopped = writers_stopped(inputs.estate, inputs.retention)
    drafts = order(items, _used_key_sets(items), stopped, _suppressed(inputs, items, plan_id), tasks)
    begins = max((as_of, *(r.not_before for r in requests if r.not_before)))
    dated = {r: _dated(inputs, drafts, items, begins, due, r) for r in Retention}
    steps = tuple(_step(d, dated[inputs.retention].by_step[d.id], inputs.estate, inputs.marks) for d in drafts)
    copies = tuple(item.copy for item in items)
    open_gaps = [g for g in gaps if g.waiver is None]
    strategies = {c.strategy for c in copies}
    return ErasurePlan(
        format_version=FORMAT_VERSION,
        plan_id=plan_id,
        tool_version=__version__,
        created_at=as_of,
        estate=inputs.estate.estate,
        planned_by=inputs.planned_by,
        retention=inputs.retention.value,
        overrides=(
            *_overrides(inputs),
            *bypasses(items),
            *left_out(inputs.world, (*items, *found.origins)),
            *lowered_retention(items),
            *whole_deletions(items),
            *whole_objects(items),
            *cut_topics(items),
            *whole_deletions_in_hdfs(items),
            *whole_versions(items),
            *idle_holds(inputs.estate.holds, requests, as_of, until),
            *(Override(kind="not_keys", reason=item.told) for item in world.not_keys),
            *(searched_in_rows(s) for s in inputs.surveys if s.subject.several_columns),
        ),
        requests=requests,
        graph_digest=inputs.digests.graph,
        inventory_digest=inputs.digests.inventory,
        policy_digest=inputs.digests.policy,
        subjects_digest=inputs.digests.subjects,
        estate_digest=inputs.digests.estate,
        complete=not open_gaps,
        # where everything is held there is nothing to run; that nothing is left of the erased is verified and attested
        applyable=all(g.kind == GapKind.LEFT_OUT for g in open_gaps)
        and Strategy.BLOCKED not in strategies
        and strategies != {Strategy.EXEMPT}
        and are_shown(inputs.surveys, requests, found=bool(copies)),
        gaps=gaps,
        copies=copies,
        examined=with_digits(found.examined, world),
        steps=steps,
        schedules=tuple(
            _schedule(dated[r], r, due, sum(s.estimate.cost for s in steps))
            for r in sorted(Retention, key=lambda r: r is not inputs.retention)
        ),
        totals=_totals(copies, steps, gaps, dated[inputs.retention], due, inputs.estate.prices.currency),
        holds=holds,
        only=tuple(sorted(c.id for c in copies if c.origin is None)) if inputs.only else (),
        not_keys=world.not_keys,
        partitioned=known_partitions(
            world,
            inputs.surveys,
            copies,
            {*(e.dataset for e in found.examined), *(g.dataset for g in gaps if g.dataset)},
            inputs.marks,
        ),
        known_by_key=tuple(sorted(frozenset[str]().union(*(s.keys.key_only for s in inputs.surveys)))),
    )


def _dated(
    inputs: PlanInputs,
    drafts: Sequence[Draft],
    items: Sequence[CopyDraft],
    as_of: datetime,
    due: datetime,
    retention: Retention,
) -> Dated:
    dated = date_steps(drafts, items, inputs.estate, as_of, due, retention)
    if inputs.weekly_budget is None or retention is not Retention.RETAIN:
        return dated
    made = spread(drafts, dated, inputs.estate.prices, inputs.weekly_budget)
    if not made.begins:
        return dated
    dated = date_steps(drafts, items, inputs.estate, as_of, due, retention, made.begins)
    notes = told(made, inputs.weekly_budget, inputs.estate.prices.currency)
    return replace(dated, notes=(*dated.notes, *notes))


def _price(estate: Estate, at: datetime) -> Callable[[CopyDraft], str]:
    def told(item: CopyDraft) -> str:
        (written,) = write_steps((item,), "")
        return f"{sum(cost(d, estate.prices, at) for d in written.drafts):,.2f} {estate.prices.currency}"

    return told


def _recognised(inputs: PlanInputs, due: datetime) -> Recognised:
    estate = inputs.estate
    parts = [
        with_keys(recognise(s, inputs.world), s, inputs.world, estate.keys, estate.backups) for s in inputs.surveys
    ]
    as_of = in_utc(inputs.as_of)
    parts += [topic_copies(s, inputs.world, estate, as_of, due) for s in inputs.surveys]
    parts += [lakefs_copies(s, inputs.world, as_of, due, inputs.retention) for s in inputs.surveys]
    items: dict[str, CopyDraft] = {}
    for item in (i for p in parts for i in p.items):
        if item.copy.id in items:
            raise PlanError(
                f"{item.copy.table or item.copy.location} has data of two kinds of subject, and a plan erases one",
                todo="make one plan per kind of subject",
            )
        items[item.copy.id] = item
    held = {i.copy.dataset for i in items.values()}
    examined = distinct_examined(e for p in parts for e in p.examined if e.dataset not in held)
    all_gaps = [g for p in parts for g in p.gaps]
    all_gaps += [g for s in inputs.surveys for g in known_by_key_only(s, inputs.world, estate.backups)]
    all_gaps += [g for s in inputs.surveys for g in not_compared(s, inputs.world)]
    spared, several = spare_stored(tuple(items.values()))
    all_gaps += several
    found = Recognised(
        spared,
        (),
        tuple(examined),
        tuple(o for p in parts for o in p.origins),
    )
    gaps = distinct_gaps([*all_gaps, *unproved(found, inputs.world)])
    return replace(found, gaps=tuple(gaps[g] for g in sorted(gaps)))


def _used_key_sets(items: Sequence[CopyDraft]) -> list[str]:
    return sorted({t.key_set for i in items if i.copy.places for t in i.copy.places.terms})


def _suppressed(inputs: PlanInputs, items: Sequence[CopyDraft], plan_id: str) -> dict[str, object]:
    """What loaders and `recheck` will ask for: the key of each kind of person, and whatever copies are matched by."""
    keys = {f"{s.subject.name}.{s.subject.key}" for s in inputs.surveys}
    return {"key_sets": sorted(keys | set(_used_key_sets(items))), "plan_id": plan_id}


def _plan_id(inputs: PlanInputs) -> str:
    facts = {
        "requests": sorted(r.id for r in inputs.requests),
        "as_of": in_utc(inputs.as_of).isoformat(),
        "retention": inputs.retention.value,
        "digests": vars(inputs.digests),
        **({"only": sorted(inputs.only)} if inputs.only else {}),
        **({"weekly_budget": inputs.weekly_budget} if inputs.weekly_budget is not None else {}),
    }
    return "plan-" + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def _overrides(inputs: PlanInputs) -> tuple[Override, ...]:
    if inputs.retention is Retention.RETAIN:
        return ()
    return (Override(kind="retention_immediate", reason=inputs.override_reason),)


def _step(draft: Draft, dates: Dates, estate: Estate, marks: MarkKey) -> Step:
    return Step(
        id=draft.id,
        copy_=draft.copy,
        action=draft.action,
        executor=draft.executor,
        parameters=keyed(
            draft.parameters if draft.action is not Action.SUPPRESS else _with_recheck(draft, dates), marks
        ),
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
            cost=cost(draft, estate.prices, dates.start),
            currency=estate.prices.currency,
            wait=dates.wait,
        ),
        reason=draft.reason,
    )


def _with_recheck(draft: Draft, dates: Dates) -> dict[str, object]:
    return {**draft.parameters, "recheck_on": (dates.finish + RECHECK_AFTER).isoformat()}


def _schedule(dated: Dated, retention: Retention, due: datetime, total: float) -> Schedule:
    return Schedule(
        retention=retention.value,
        finish=dated.finish,
        deadline=due,
        slack_days=_days(dated.finish, due),
        meets_deadline=dated.finish <= due,
        critical_path=dated.critical_path,
        cost=round(total, 2),
        notes=(*dated.notes, *_look_again(dated)),
    )


def _look_again(dated: Dated) -> tuple[str, ...]:
    entry = dated.by_step.get(SUPPRESSION)
    if entry is None:
        return ()
    return (f"run `pii-tracer recheck` on {entry.finish + RECHECK_AFTER:%Y-%m-%d}, to see whether data came back",)


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
        exempt=sum(c.origin is None and c.strategy in HELD for c in copies),
        recheck_on=min((c.exemption.until for c in copies if c.exemption and c.exemption.until), default=None),
    )
