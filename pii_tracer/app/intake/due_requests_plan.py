"""One plan for the requests that are due first, out of the request store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pii_tracer.app.intake.request_store import existing_store
from pii_tracer.app.planning.erasure_plan import WrittenPlan, plan
from pii_tracer.app.settings import Settings, moment
from pii_tracer.config.estate_file import Estate, Request
from pii_tracer.config.laws import Law, NoticeMissing, laws_of
from pii_tracer.config.subjects import SubjectRef
from pii_tracer.intake.kept_scopes import Narrowing, holds_of, own_holds
from pii_tracer.intake.request_store import RequestStore
from pii_tracer.intake.requests import RequestState, Stored
from pii_tracer.intake.state_changes import carry_each_over, plan_them
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import PersonsApart, PersonsUnknown, UsageError
from pii_tracer.model.legal_holds import own_holds_in
from planners.schedule.batches import Batch, BatchRule, Waiting, forecast

_CARRIED = "`plan --carried-over` plans it, and nothing else does"
_UNKNOWN = "no version of the source contains the person's key"
_ALL_KEPT = "all that is there is kept by the hold {}"
_NOT_SHOWN = (
    "nothing of the person is found, and the deletion log does not show that the key is right. No run of it erased"
    " this person alone from a source, or has a plan, still there, that found the key in the source. Compare the key"
    " with the person's, answer by hand, and then end the request by `pii-tracer requests refuse`"
)
MOST_PERSONS = 1_000
"""Persons of one plan, where the policy does not say how many (`max_persons`)."""


@dataclass(frozen=True)
class DuePlan:
    """What came of planning. written: the plan, or None where no request waits for one. marked: whether its requests
    are planned by it; those of a plan that cannot be applied still wait. set_aside: requests that wait, and why.
    next_batch: when the policy lets the next plan be made, where it lets none be made now. apart: requests that this
    call carried over, since the source does not know the person or a gap is hers alone; with the reason.
    """

    written: WrittenPlan | None
    requests: tuple[str, ...] = ()
    marked: bool = False
    set_aside: Mapping[str, str] = field(default_factory=dict)
    next_batch: datetime | None = None
    apart: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Unplanned:
    """A request that waits, and that no batch takes by itself. held: a hold keeps the person's data beyond the
    deadline, which is none for them."""

    id: str
    due: datetime
    reason: str
    held: bool = False


@dataclass(frozen=True)
class Forecast:
    """The batches to come, and the requests that are in none of them."""

    batches: tuple[Batch, ...] = ()
    unplanned: tuple[Unplanned, ...] = ()

    @property
    def misses(self) -> bool:
        """Whether a deadline is missed where nobody does anything about it."""
        return any(batch.late for batch in self.batches) or any(not one.held for one in self.unplanned)


def plan_due(
    settings: Settings,
    *,
    as_of: datetime | None = None,
    policy: Path | None = None,
    carried_over: bool = False,
    **options: Any,
) -> DuePlan:
    """Make one plan for the requests that are due first, as many as the policy lets into one, when it lets one be made.

    Persons whom the source does not know, and those from whom alone a gap comes, are carried over, and the plan is made
    without them. Where all of its persons have gaps of their own, the plan is written and shows these; so is one that
    has nothing to erase. carried_over: for requests that were carried over, and nobody else: where some of them cannot
    be planned, the next ones are. options: as of `plan`.

    Raises:
        UsageError: as `plan`; a plan of some copies only; or a request was planned or ended meanwhile.
        RequestError: the store cannot be used.
        PersonsUnknown, PersonsApart: with `carried_over`, nobody can be planned.
        ConfigError, PlanError, LineageError, EstateError: as `plan`.
    """
    if options.get("only"):
        raise UsageError(
            "a plan with --only does not erase a person completely",
            where="--only",
            todo="leave out `--only`, or name request files",
        )
    store = existing_store(settings)
    if store is None:
        return DuePlan(None)
    as_of, estate = as_of or moment(None), settings.estate()
    rule, most = batch_rule(settings, policy), settings.policy(policy)[0].max_persons or MOST_PERSONS
    if rule and not carried_over:
        most -= store.planned_since(rule.span(as_of))
        begins = rule.opening(as_of) if most > 0 else rule.begin(as_of + timedelta.resolution)
        if begins > as_of:
            return DuePlan(None, next_batch=begins)
    apart: dict[str, str] = {}
    erased_before: set[str] = set()
    shown: DuePlan | None = None
    raised: PersonsUnknown | PersonsApart | None = None
    while True:
        choice = _Choice(estate, store, as_of, carried_over, apart, erased_before)
        chosen = choice.first(most, in_time=as_of + rule.takes if rule else None)
        if not chosen:
            if shown is None and raised is not None:
                raise raised
            return replace(shown or DuePlan(None), set_aside=choice.aside, apart=apart)
        names = tuple(request.id for request in chosen)
        asked = [_asked(*pair) for pair in zip(chosen, store.keys_of(names), strict=True)]
        holds = own_holds(choice.kept_of(names), as_of)
        gone = choice.is_erased_from_source(chosen[0]) or bool(options.get("source_erased"))
        told = options | {"source_erased": gone}
        held: tuple[str, ...] = ()
        try:
            written = plan(settings, asked, as_of=as_of, policy=policy, by_person=True, kept=holds, **told)
        except (PersonsUnknown, PersonsApart) as some:
            if isinstance(some, PersonsUnknown):  # whom a run erased, or began to, is looked for by the key
                worked_on = (one.id for one in chosen if one.repeats or one.first_begun)
                erased_before.update({*some.requests}.intersection(worked_on))
                alone = dict.fromkeys((name for name in some.requests if name not in erased_before), _UNKNOWN)
            reasons: Mapping[str, str] = alone if isinstance(some, PersonsUnknown) else some.reasons
            raised = some if carried_over and len(reasons) == len(names) else raised
        else:
            made, reasons = written.plan, written.reasons
            own, kept = own_holds_in(made), own_holds_in(made, of_copies=True)
            done = DuePlan(written, names, made.complete and made.applyable, choice.aside, apart={**apart, **reasons})
            if done.marked:
                plan_them(store, names, made.plan_id, moment(None), own, kept)
                return done
            if made.complete and gone and made.known_by_key and len(names) > 1:
                most = 1  # the log, or what is found, shows the key of one of them, and maybe not those of the others
                continue
            if made.complete and (kept or gone) and all(copy.strategy is Strategy.EXEMPT for copy in made.copies):
                held = tuple(hold.id for hold in made.holds if hold.copies)
                reasons = dict.fromkeys(names, _ALL_KEPT.format(", ".join(held)) if made.copies else _NOT_SHOWN)
            elif not carried_over or len(reasons) < len(names):
                carry_each_over(store, reasons, moment(None))
                return done
            shown = done
        carry_each_over(store, reasons, moment(None), held)
        apart.update(reasons)


def batch_rule(settings: Settings, policy: Path | None = None) -> BatchRule | None:
    """What the policy says of batches; None where a plan can be made at any time.

    Raises:
        ConfigError: the policy cannot be read.
    """
    found = settings.policy(policy)[0]
    return BatchRule(found.max_persons or MOST_PERSONS, found.batches) if found.batches else None


def forecast_requests(settings: Settings, *, policy: Path | None = None, as_of: datetime | None = None) -> Forecast:
    """The batches that the requests which wait now will be planned in, and the deadlines that these cannot keep; and
    the requests that wait and that `plan_due` takes into none.

    Raises:
        UsageError: the policy says nothing of batches.
        RequestError, ConfigError: store or policy cannot be read.
    """
    rule = batch_rule(settings, policy)
    if rule is None:
        raise UsageError("the policy has no rule for batches", where="policy", todo="add `batches` to the policy")
    store = existing_store(settings)
    if store is None:
        return Forecast()
    as_of = as_of or moment(None)
    choice = _Choice(settings.estate(), store, as_of, False, ())
    found = [choice.foreseen(one) for one in store.requests(RequestState.RECEIVED, RequestState.CARRIED_OVER)]
    waiting = [one for one in found if isinstance(one, Waiting)]
    return Forecast(tuple(forecast(waiting, rule, as_of)), tuple(one for one in found if isinstance(one, Unplanned)))


def _not_before(request: Stored, laws: Mapping[str, Law]) -> datetime | None:
    return laws[request.law].at(request.received).not_before(request.ground, request.noticed)


def _asked(request: Stored, key: str) -> Request:
    subject = SubjectRef(type=request.kind, key=key)
    return Request(
        id=request.id,
        law=request.law,
        received=request.received,
        subject=subject,
        ground=request.ground,
        noticed=request.noticed,
        extended=request.extended,
    )


class _Choice:
    """Which requests go into one plan. What a hold keeps for some persons, or what these asked to keep, cannot be
    planned together with others, nor can who was in a run before be with whom the source still knows. apart: in no plan
    of this call. erased_before: of persons whom a run erased, and whom the source knows no more."""

    def __init__(
        self,
        estate: Estate,
        store: RequestStore,
        as_of: datetime,
        carried_over: bool,
        apart: Collection[str],
        erased_before: Collection[str] = (),
    ) -> None:
        self._store, self._as_of, self._carried_over, self._apart = store, as_of, carried_over, apart
        self._subjects = {subject.name for subject in estate.subjects}
        self._holds = [hold for hold in estate.holds if hold.ends is None or hold.ends > as_of]
        self._aliases = store.aliases(frozenset(name for hold in self._holds for name in hold.requests))
        self._laws = laws_of(estate.laws)
        self._kept, self._rest = store.kept(), store.erased_but_for_kept().union(erased_before)
        self.aside: dict[str, str] = {}

    def kept_of(self, requests: Iterable[str]) -> dict[str, tuple[Narrowing, ...]]:
        """By request, what its person asked to keep."""
        return {name: self._kept[name] for name in requests if name in self._kept}

    def first(self, most: int, in_time: datetime | None = None) -> list[Stored]:
        """At most so many, those that are due first. in_time: when the plan will be done; those that are due earlier
        come behind those that it can be in time for."""
        chosen: list[Stored] = []
        late: list[Stored] = []
        for request in self._waiting():
            if in_time and request.due < in_time:
                late += [request] if len(late) < most else []
            elif not chosen or self._group(request) == self._group(chosen[0]):
                chosen.append(request)
            if len(chosen) == most:
                return chosen
        first = (chosen or late)[:1]
        alike = [request for request in late if first and self._group(request) == self._group(first[0])]
        return [*chosen, *alike][:most]

    def _group(self, request: Stored) -> tuple[object, ...]:
        """Those of one plan are alike: a hold on one, or a notice to one that still runs, puts nobody else off."""
        waits = _not_before(request, self._laws)
        held = {hold.id for hold in self._holds if request.id in hold.requests}
        held |= holds_of(self._kept.get(request.id, ()))
        waits_still = waits is not None and waits > self._as_of
        return request.state, frozenset(held), waits_still, self.is_erased_from_source(request)

    def is_erased_from_source(self, request: Stored) -> bool:
        """Whether a run erased the person, maybe except for what is kept: the source may know her key no more."""
        return request.id in self._rest

    def _waiting(self) -> Iterator[Stored]:
        states = (
            [RequestState.CARRIED_OVER] if self._carried_over else [RequestState.RECEIVED, RequestState.CARRIED_OVER]
        )
        for request in self._store.requests(*states):
            why = self._why_not(request)
            if why is None and request.received > self._as_of:
                why = "it was received after the time that is planned for"
            if why is None:
                yield request
            elif why:
                self.aside[request.id] = why

    def _why_not(self, request: Stored) -> str | None:
        """Why a request is in no plan today; empty where its own reason says so."""
        if request.id in self._apart:
            return ""
        if request.state is RequestState.CARRIED_OVER and not self._carried_over and not self._is_free(request):
            return ""
        if request.kind not in self._subjects:
            return f"the estate file declares no subject `{request.kind}` any more"
        if request.law not in self._laws:
            return f"the estate file declares no law `{request.law}` any more"
        try:
            _not_before(request, self._laws)
        except NoticeMissing as missing:
            return str(missing)
        for name in self._aliases.get(request.id, ()):
            holds = ", ".join(hold.id for hold in self._holds if name in hold.requests)
            return f"the hold {holds} names {name}, another receipt of it: name {request.id} in the hold"
        return None

    def foreseen(self, request: Stored) -> Waiting | Unplanned:
        """When a batch can take a request, or why none does."""
        carried = request.state is RequestState.CARRIED_OVER
        free_from = None
        if carried and not self._is_free(request):
            free_from = self._free_from(request)
            if free_from is None or free_from >= request.due:
                reason, held = request.reason, bool(request.holds)
                return Unplanned(request.id, request.due, reason if held else f"{reason}: {_CARRIED}", held)
        elif why := self._why_not(request):
            return Unplanned(request.id, request.due, why)
        if free_from:
            return Waiting(request.id, request.received, request.due, free_from, carried, "the hold on its data")
        not_before = _not_before(request, self._laws)
        return Waiting(request.id, request.received, request.due, not_before, carried)

    def _free_from(self, request: Stored) -> datetime | None:
        """When the last hold ends that keeps the person's data; None where none does, or none of them has an end."""
        ends = [until for name, until in self._active(request) if name in request.holds]
        known = [at for at in ends if at is not None]
        return max(known) if known and len(known) == len(ends) else None

    def _is_free(self, request: Stored) -> bool:
        """Whether holds kept the person, and none of them does any more."""
        return bool(request.holds) and set(request.holds).isdisjoint(name for name, _ in self._active(request))

    def _active(self, request: Stored) -> Iterator[tuple[str, datetime | None]]:
        """The holds that still keep something, of the estate file and of the person, with their ends."""
        yield from ((hold.id, hold.ends) for hold in self._holds)
        yield from ((one.hold, None) for one in self._kept.get(request.id, ()))
