"""The requests of a plan: each with its law's deadline, and what contradicts itself refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from pii_tracer.config.estate_file import Request
from pii_tracer.config.laws import Law, NotExtended, NoticeMissing, Rules, laws_of
from pii_tracer.model.errors import PlanError
from pii_tracer.model.planned_requests import PlannedRequest


def in_utc(moment: datetime) -> datetime:
    """A moment as plans write it: UTC, to the second."""
    return moment.astimezone(timezone.utc).replace(microsecond=0)


def planned_requests(
    requests: Sequence[Request], references: Mapping[str, str], own: Sequence[Law], as_of: datetime
) -> tuple[PlannedRequest, ...]:
    """The requests with law and deadline of their own, by id; a plan is dated against the earliest.

    references: keyed reference per request id. own: laws of the estate beside those that come along.

    Raises:
        PlanError: none at all, an unknown law, one id twice, one person twice, one received after `as_of`, a longer
            time that the law does not give, or a notice that it wants and nobody gave.
    """
    if not requests:
        raise PlanError("there is no request to plan for", todo="name at least one request file")
    ids = [r.id for r in requests]
    if len(set(ids)) != len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise PlanError(f"two requests have the id {twice}", todo="give each request a different id")
    known = laws_of(own)
    planned: dict[str, PlannedRequest] = {}
    for request in sorted(requests, key=lambda r: r.id):
        rules = _rules(request, known)
        if request.received > as_of:  # its clock would run longer than the law's
            raise PlanError(
                f"`received` is {in_utc(request.received):%Y-%m-%d %H:%M} UTC, which is after the time of this plan",
                where=f"request {request.id}",
                todo="correct `received`, because the deadline depends on it",
            )
        subject = references[request.id]
        if subject in planned:
            first = planned[subject]
            under = f", under {first.law} and {request.law}" if first.law != request.law else ""
            raise PlanError(
                f"the requests {first.id} and {request.id} concern the same person{under}",
                todo="plan the one with the earlier deadline: it erases the person for both",
            )
        planned[subject] = PlannedRequest(
            id=request.id,
            subject=subject,
            law=request.law,
            citation=_citation(request, rules),
            received=in_utc(request.received),
            deadline=in_utc(_due(request, rules, as_of)),
            not_before=_not_before(request, rules, as_of),
            extended=in_utc(request.extended) if request.extended else None,
        )
    return tuple(planned.values())


def _rules(request: Request, laws: Mapping[str, Law]) -> Rules:
    if request.law not in laws:
        raise PlanError(
            f"the law of the request is not known; known laws are {', '.join(sorted(laws))}",
            where=f"request {request.id}",
            todo="correct `law`, or declare it under `laws` of the estate file",
        )
    return laws[request.law].at(request.received)


def _citation(request: Request, rules: Rules) -> str:
    longer = rules.extension.article if request.extended and rules.extension else ""
    return rules.deadline.article + (f"; extended by {longer}" if longer else "")


def _due(request: Request, rules: Rules, as_of: datetime) -> datetime:
    try:
        if request.extended is not None and request.extended > as_of:
            raise NotExtended("the date of the extension is in the future")
        return rules.due(request.received, request.extended)
    except NotExtended as refused:
        raise PlanError(
            f"the deadline cannot be extended: {refused}",
            where=f"request {request.id}, {request.law}",
            todo="correct `extended`, or remove it; run `pii-tracer laws` to see the rule",
        ) from None


def _not_before(request: Request, rules: Rules, as_of: datetime) -> datetime | None:
    if request.noticed is not None and request.noticed > as_of:
        raise PlanError(
            "the date of the notice to the person is in the future",
            where=f"request {request.id}",
            todo="correct `noticed`, because the waiting time begins on this date",
        )
    try:
        waits = rules.not_before(request.ground, request.noticed)
    except NoticeMissing as missing:
        raise PlanError(
            str(missing),
            where=f"request {request.id}, {request.law}",
            todo="inform the person, and write the date in `noticed`; run `pii-tracer laws` to see the rule",
        ) from None
    return in_utc(waits) if waits else None
