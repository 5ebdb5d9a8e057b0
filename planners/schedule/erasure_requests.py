"""The requests of a plan: each with its law's deadline, and what contradicts itself refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from pii_tracer.config.estate_file import Request
from pii_tracer.model.errors import PlanError
from pii_tracer.model.plan import PlannedRequest
from planners.schedule.legal_deadlines import deadline, law


def in_utc(moment: datetime) -> datetime:
    """A moment as plans write it: UTC, to the second."""
    return moment.astimezone(timezone.utc).replace(microsecond=0)


def planned_requests(
    requests: Sequence[Request], references: Mapping[str, str], as_of: datetime
) -> tuple[PlannedRequest, ...]:
    """The requests with law and deadline of their own, by id; a plan is dated against the earliest.

    references: keyed reference per request id.

    Raises:
        PlanError: none at all, an unknown law, one id twice, one person twice, or one received after `as_of`.
    """
    if not requests:
        raise PlanError("there is no request to plan for", todo="name at least one request file")
    ids = [r.id for r in requests]
    if len(set(ids)) != len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise PlanError(f"two requests have the id {twice}", todo="give each request an id of its own")
    planned: dict[str, PlannedRequest] = {}
    for request in sorted(requests, key=lambda r: r.id):
        rule = law(request.law, f"request {request.id}")
        if request.received > as_of:  # its clock would run longer than the law's
            raise PlanError(
                f"it was received on {in_utc(request.received):%Y-%m-%d %H:%M} UTC, after the moment of this plan",
                where=f"request {request.id}",
                todo="correct `received`: the deadline is counted from it",
            )
        subject = references[request.id]
        if subject in planned:
            first = planned[subject]
            laws = f", under {first.law} and {rule.name}" if first.law != rule.name else ""
            raise PlanError(
                f"the requests {first.id} and {request.id} are about the same person{laws}",
                todo="plan the one with the earlier deadline: it erases the person for both",
            )
        planned[subject] = PlannedRequest(
            id=request.id,
            subject=subject,
            law=rule.name,
            citation=rule.citation,
            received=in_utc(request.received),
            deadline=in_utc(deadline(rule, request.received)),
        )
    return tuple(planned.values())
