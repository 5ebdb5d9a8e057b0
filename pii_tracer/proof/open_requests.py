"""Requests of a run that stay open, since something of their persons is left: what its attestations say of them.

Each has a leaf in the evidence, under the same root as what is gone, and none among the requests that were answered.
The attestation says how many stay open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pii_tracer.model.actions import SOURCES, Action
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.run.journal import Kind, Record

LEFT_OF = "left_of"
"""Key of the persons' keyed references in what a verification notes in the journal."""
OPEN = "open"
"""Kind of a leaf, and field of the predicate."""


class OpenRequest(Frozen):
    """A request that stays open. subject: keyed reference. place: copy, or what is none, with something of the person;
    as verdicts name it."""

    request: str
    subject: str
    place: str


def open_leaves(still: Iterable[OpenRequest]) -> list[dict[str, Any]]:
    """What the leaves about them say."""
    return [{"kind": OPEN, **item.model_dump()} for item in still]


def open_in(bodies: Iterable[Mapping[str, Any]]) -> frozenset[OpenRequest]:
    """Those that leaves tell of.

    Raises:
        ValueError: a leaf does not have the form that it must have.
    """
    mine = (body for body in bodies if body.get("kind") == OPEN)
    names = OpenRequest.model_fields
    return frozenset(OpenRequest.model_validate({name: body[name] for name in names if name in body}) for body in mine)


def said_of_open(still: Iterable[OpenRequest]) -> dict[str, Any]:
    """The part of the predicate about them; empty without any."""
    count = len({item.request for item in still})
    return {OPEN: {"requests": count}} if count else {}


def wrong_about_open(
    claims: Mapping[str, Any],
    about: Sequence[str],
    bodies: Iterable[Mapping[str, Any]],
    records: Sequence[Record],
    plan: ErasurePlan,
) -> Iterator[str]:
    """What does not hold: the leaves, the journal, the plan and the attestation have to say the same of who stays open.

    claims: the predicate. about: ids of the requests that the attestation is about. bodies: the leaves. records: of
    the journal.
    """
    still = open_in(bodies)
    answered = {request.id: request.subject for request in plan.requests}
    persons = {item.subject for item in still}
    mine = {request for request, subject in answered.items() if subject in persons}
    if mine != {item.request for item in still} or any(answered.get(i.request) != i.subject for i in still):
        yield "the open requests in the leaves differ from the plan's requests for these persons"
    if claims.get(OPEN, {"requests": 0}) != {"requests": len(mine)}:
        yield "the attestation and its leaves do not have the same number of open requests"
    if not mine.isdisjoint(about):
        yield "the attestation lists a request that is still open"
    elif list(about) != [request for request in answered if request not in mine]:
        yield "the attestation does not list all answered requests"
    if not left_in(records) <= persons:
        yield "the journal shows remaining data of a person, but no leaf shows this person's request as open"


def computed_from(plan: ErasurePlan, copy_id: str) -> frozenset[str]:
    """Ids of the copies that a copy is computed from, where its owner computes it again; of others, none."""
    notes = (step for step in plan.steps if step.copy_ == copy_id and step.action is Action.NOTE_FILES)
    return frozenset(str(name) for step in notes for name in step.parameters.get(SOURCES, ()))


def left_in(records: Iterable[Record]) -> frozenset[str]:
    """Keyed references of whom something is left, by the last that each verification noted."""
    return frozenset[str]().union(*_last_noted(records).values())


def left_of_step(records: Iterable[Record], step: str) -> frozenset[str]:
    """Keyed references of whom something is left, by the last that the verification of one copy noted."""
    return _last_noted(records).get(step, frozenset())


def _last_noted(records: Iterable[Record]) -> dict[str, frozenset[str]]:
    last: dict[str, frozenset[str]] = {}
    for record in records:
        facts = record.facts.get("facts")
        if record.kind is Kind.STEP_NOTED and isinstance(facts, dict) and LEFT_OF in facts:
            last[str(record.facts["step"])] = frozenset(map(str, facts[LEFT_OF]))
    return last
