"""What `verify` found of a run's persons where the run had found nothing: it counts for all that is said later.

`later_findings_file` keeps it beside the run's journal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pii_tracer.app.execution.run_folder import over
from pii_tracer.model.actions import Action
from pii_tracer.model.canonical_json import iso
from pii_tracer.model.datasets import Frozen
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.open_requests import LEFT_OF
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.run.journal import Kind, Record
from pii_tracer.run.run_state import State
from pii_tracer.run.step_progress import BY_VERIFY, track
from pii_tracer.verify.persons_left import PersonsLeft
from pii_tracer.verify.verdicts import Residue, RunVerdict

ANY_PLACE = "(any place)"
"""Stands for every place, copy or not, where the file is gone: a look that leaves nothing unread ends it."""
_NOT_KNOWN = "not known"
Seal = Callable[[bytes], str]
"""Makes a mark of a text with the estate's key."""

Heard = Mapping[str | None, int]
"""By copy, None for what is no copy: how many records the run's journal had when the look there began."""


class FoundThere(Frozen):
    """What is known to be in one place. at: when the look that found it ended. residue: without persons. persons: keyed
    references of those whose it may be."""

    at: datetime
    residue: tuple[dict[str, str], ...]
    persons: tuple[str, ...]

    def and_(self, other: FoundThere) -> FoundThere:
        """Both together: looks that went on at the same time."""
        more = (one for one in other.residue if one not in self.residue)
        persons = tuple(sorted({*self.persons, *other.persons}))
        return FoundThere(at=max(self.at, other.at), residue=(*self.residue, *more), persons=persons)


class FoundSince(Frozen):
    """places: by place as verdicts name it, what was found and no later look has seen gone. open_requests: of those
    whose it may be, unless these are all: then the run itself is open. of_copies: by copy, keyed references of persons
    of whom any look found something since the journal heard of it. number: how often the file was written. seal: of
    all else.
    """

    at: datetime
    plan_digest: str
    places: dict[str, FoundThere] = {}
    open_requests: tuple[str, ...] = ()
    of_copies: dict[str, tuple[str, ...]] = {}
    number: int = 0
    seal: str = ""

    def sealed(self, seal: Seal) -> FoundSince:
        """With its seal."""
        bare = self.model_copy(update={"seal": ""})
        return bare.model_copy(update={"seal": seal(bare.model_dump_json().encode())})

    @property
    def residue(self) -> tuple[dict[str, str], ...]:
        """Of all places."""
        return tuple(one for there in self.places.values() for one in there.residue)

    def in_result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """The final object of the run, with what was found since. It names open requests only where the run has done
        all else: otherwise nobody can say of the others that they are erased."""
        if not self.places:
            return dict(result)
        before = list(result.get("residue") or ())
        known = [{name: told for name, told in one.items() if name != "foreseen"} for one in before]
        more = [one for one in self.residue if one not in known]
        named = {*(result.get("open_requests") or ()), *self.open_requests}
        still = sorted(named) if self.open_requests and over(result) else []
        state = State.PARTIAL.value if result.get("state") == State.COMPLETE else result.get("state")
        return {**result, "state": state, "residue": [*before, *more], "open_requests": still}

    def notes(self, plan: ErasurePlan) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the journal is told of it: as the verification of the copy would note it, by its step."""
        for step in plan.steps:
            if step.action is Action.VERIFY_COPY and step.copy_ in self.of_copies:
                yield step.id, {LEFT_OF: list(self.of_copies[step.copy_]), **BY_VERIFY, "at": iso(self.at)}


def found_by(
    loaded: LoadedPlan,
    records: Sequence[Record],
    verdict: RunVerdict,
    left: PersonsLeft,
    before: FoundSince | None,
    began: datetime,
    at: datetime,
    heard: Heard,
) -> FoundSince | None:
    """What is known after a look where the run of a plan had found nothing; None where no look found anything.

    A copy that the run had not verified before the look at it began may hold the persons. So may what is no copy, until
    the run is complete. What was found before stays, unless it was there before this look began and the look read its
    place as a whole and found nothing. began, at: when the look began and ended.
    """
    if not records:
        return before  # nobody can say how far the run is
    plan, everybody = loaded.plan, {request.subject for request in loaded.plan.requests}
    copies, done = {copy.id for copy in plan.copies}, _done(plan, records)
    clean = {place for place, seq in done.items() if seq < heard.get(place, 0)}
    residue = [r for r in verdict.residue if (r.copy_id if r.copy_id in copies else None) in clean]
    whose = {place: tuple(sorted(_persons_at(place, left, everybody))) for place in {r.copy_id for r in residue}}
    places = {
        place: FoundThere(at=at, residue=tuple(_told(r for r in residue if r.copy_id == place)), persons=persons)
        for place, persons in whose.items()
    }
    of_copies = {name: persons for name, persons in whose.items() if name in copies}
    gone = _clean(verdict, _verified_copies(plan))
    for place, there in (before.places if before else {}).items():
        if there.at >= began:
            places[place] = there.and_(places[place]) if place in places else there
        elif place not in places and place not in gone:
            places[place] = there
    for name, known in (before.of_copies if before else {}).items():
        of_copies[name] = tuple(sorted({*known, *of_copies.get(name, ())}))
    if not places and not of_copies:
        return None
    persons = {person for there in places.values() for person in there.persons}
    return FoundSince(
        at=at,
        plan_digest=loaded.digest,
        places=dict(sorted(places.items())),
        open_requests=tuple(sorted(r.id for r in plan.requests if r.subject in persons)) if persons < everybody else (),
        of_copies=dict(sorted(of_copies.items())),
    )


def unknown(loaded: LoadedPlan, began: datetime) -> FoundSince:
    """What is known where the file is gone: each copy that is verified, and any other place, may have been found to
    hold anybody, before a look that began then."""
    everybody = tuple(sorted({request.subject for request in loaded.plan.requests}))
    at, copies = began - timedelta(microseconds=1), sorted(_verified_copies(loaded.plan))
    nothing = {"file": _NOT_KNOWN, "where": _NOT_KNOWN, "form": _NOT_KNOWN}
    places = {
        place: FoundThere(at=at, residue=({"copy": place, **nothing},), persons=everybody)
        for place in (ANY_PLACE, *copies)
    }
    return FoundSince(at=at, plan_digest=loaded.digest, places=places, of_copies=dict.fromkeys(copies, everybody))


def nobody_knows(result: Mapping[str, Any]) -> bool:
    """Whether what was found since a run is lost, and no look has shown since what was left, by its final object."""
    return any(isinstance(one, Mapping) and one.get("where") == _NOT_KNOWN for one in result.get("residue") or ())


def overtaken(plan: ErasurePlan, records: Sequence[Record], verdict: RunVerdict, heard: Heard) -> frozenset[str | None]:
    """Where something was found by a look that began before the run was done there: it may have seen what the run
    erased meanwhile. By copy, None for what is no copy."""
    copies, done = {copy.id for copy in plan.copies}, _done(plan, records)
    found = {r.copy_id if r.copy_id in copies else None for r in verdict.residue}
    return frozenset(place for place in found if done.get(place, -1) >= heard.get(place, 0))


def _done(plan: ErasurePlan, records: Sequence[Record]) -> dict[str | None, int]:
    """By copy, None for what is no copy, the record of the run that says that nothing is left there."""
    tracks = track(records)
    done: dict[str | None, int] = {}
    for step in plan.steps:
        last = tracks[step.id].last if step.id in tracks and tracks[step.id].verified else None
        if step.action is Action.VERIFY_COPY and step.copy_ and last is not None:
            done[step.copy_] = last.seq
    for record in records:
        if record.kind is Kind.RUN_FINISHED and record.facts.get("state") == State.COMPLETE:
            done[None] = record.seq
    return done


def _verified_copies(plan: ErasurePlan) -> frozenset[str]:
    return frozenset(step.copy_ for step in plan.steps if step.action is Action.VERIFY_COPY and step.copy_)


def _clean(verdict: RunVerdict, copies: Collection[str]) -> frozenset[str]:
    """Places that were read as a whole, with nothing found. Two places may have one name: then both. copies: those that
    a look at everything has to tell of."""
    names = {one.copy_id for one in verdict.copies if one.bytes is not None or one.rows is not None}
    whole = {ANY_PLACE} if names.issuperset(copies) and not verdict.unverified else set()
    return frozenset((names - {one.copy_id for one in verdict.copies if one.residue or one.unverified}) | whole)


def _persons_at(place: str, left: PersonsLeft, everybody: Collection[str]) -> frozenset[str]:
    named = frozenset(person for person, places in left.places.items() if place in places)
    return named or frozenset(everybody)


def _told(residue: Iterable[Residue]) -> Iterator[dict[str, str]]:
    yield from (dict(pairs) for pairs in sorted({tuple(sorted(one.as_json().items())) for one in residue}))
