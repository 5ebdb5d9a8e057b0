"""Requests that an earlier run left open: whatever answers them has to look for all values that it knew of the persons.

A run may have erased the source of a person of whom it left something. Nobody but its sealed manifest knows her
further values then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.app.execution.run_folder import RunFolder, all_runs
from pii_tracer.app.persons_apart.later_findings import nobody_knows
from pii_tracer.app.planning.plan_files import manifest_path
from pii_tracer.app.proof.own_attestation import attested_persons
from pii_tracer.app.settings import Settings
from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import PlanError, Refused, ReviewError, UsageError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.model.planned_requests import PlannedRequest
from pii_tracer.proof.evidence_leaves import bodies_in
from pii_tracer.proof.open_requests import OPEN, open_in
from pii_tracer.review import dsse
from pii_tracer.review.sealed_person_values import EstateKey, KeyRing
from planners.copies.persons_known_by_key_only import left_open_gap

if TYPE_CHECKING:
    from planners.copies.match_key_resolution import Keys, Wanted
    from planners.locate.subject_survey import Survey


@dataclass(frozen=True)
class LeftOpen:
    """What a run left open. places: by person (keyed reference), where something of them was found.

    key_sets: what its sealed manifest holds of these persons; None where it is gone or does not open.
    """

    plan_id: str
    places: Mapping[str, tuple[str, ...]]
    key_sets: tuple[KeySet, ...] | None = field(repr=False)

    def known(self, person: str) -> frozenset[str]:
        """The source columns of which it holds a value of a person."""
        return frozenset(s.origin for s in self.key_sets or () if any(who == person for who, _ in s.values))

    def missing_in(self, key_sets: Sequence[KeySet]) -> frozenset[str]:
        """Persons of whom it knows a value that is not in other key sets; all where it cannot be compared."""
        if self.key_sets is None:
            return frozenset(self.places)
        there = {pair for keys in key_sets for pair in keys.values}
        return frozenset(who for keys in self.key_sets for who, value in keys.values if (who, value) not in there)


def left_open(state: Path, key: EstateKey, persons: Collection[str], but: str = "") -> list[LeftOpen]:
    """Of runs that are not closed, what they left open of some persons, and no later run has answered.

    but: the id of a plan whose own run does not count.

    Raises:
        UsageError: nobody can say of whom a run left something.
    """
    found = []
    for folder in all_runs(state):
        if folder.path.name == but or folder.closed_at() or not left_something(folder):
            continue
        places = {who: where for who, where in places_of(folder).items() if who in persons}
        done = answered(state, folder, places)
        places = {who: where for who, where in places.items() if who not in done}
        if places:
            found.append(LeftOpen(folder.path.name, places, _sealed(folder, key, places)))
    return found


def left_something(folder: RunFolder) -> bool:
    """Whether a run left requests open, as its result or its attestation says: the result alone is easily edited. One
    of which nobody knows what was found since may have."""
    result = folder.last_result() or {}
    if result.get("open_requests") or nobody_knows(result):
        return True
    try:
        return OPEN in dsse.unseal(folder.attestation.read_bytes(), ()).statement["predicate"]
    except (OSError, ReviewError, LookupError, TypeError):
        return False


def places_of(folder: RunFolder) -> dict[str, tuple[str, ...]]:
    """By person of whom a run left something, the places that its evidence names.

    Raises:
        UsageError: the evidence is gone, and so is the plan.
    """
    result = folder.last_result() or {}
    open_, everybody = frozenset(result.get("open_requests") or ()), nobody_knows(result)
    found: dict[str, set[str]] = {}
    try:
        for item in open_in(bodies_in((folder.evidence / "leaves.jsonl").read_bytes())):
            found.setdefault(item.subject, set()).add(item.place)
    except (OSError, ValueError):
        found = {}
    if open_ or everybody:  # something may have come back since the run was attested
        for request in _requests_of(folder, known=bool(found) and not everybody):
            if everybody or request.id in open_:
                found.setdefault(request.subject, set())
    return {person: tuple(sorted(places)) for person, places in sorted(found.items())}


def _requests_of(folder: RunFolder, *, known: bool) -> Sequence[PlannedRequest]:
    """known: others than the plan say who stays open, so that the plan may be gone."""
    plan = _plan_of(folder) if known else folder.approved().plan
    return plan.requests if plan else ()


def answered(state: Path, folder: RunFolder, persons: Collection[str]) -> frozenset[str]:
    """Those of some persons whom an attested run of a later plan erased: none where that plan is gone."""
    return frozenset(person for _, erased in _later(state, folder, persons) for person in erased)


def _later(
    state: Path, folder: RunFolder, persons: Collection[str], name: str | None = None
) -> Iterator[tuple[RunFolder, frozenset[str]]]:
    """The runs of later plans whose attestations hold, with those of some persons whom they erased and did not find
    again. name: of one run alone."""
    made, wanted = _plan_of(folder), frozenset(persons)
    for later in all_runs(state) if made is not None else ():
        if later.path.name == folder.path.name or name not in (None, later.path.name):
            continue
        result = later.last_result() or {}
        plan = _plan_of(later) if result.get("attestation") and not _anybodys(result) else None
        if made is None or plan is None or plan.created_at <= made.created_at:
            continue
        if not wanted.isdisjoint(request.subject for request in plan.requests):
            yield later, wanted & attested_persons(later) - places_of(later).keys()


def _anybodys(result: Mapping[str, Any]) -> bool:
    """Whether a run has residue that may be of each of its persons: it erased none of them for certain."""
    return bool(result.get("residue")) and not result.get("open_requests")


def unanswered(state: Path, folder: RunFolder, key: Callable[[], EstateKey]) -> frozenset[str]:
    """Persons whom a run left open and for whom no later run looked by all values that this one knew. That can only be
    seen as long as the sealed manifest of that later run is there."""
    open_ = places_of(folder) if left_something(folder) else {}
    if not open_:
        return frozenset()
    estate_key = key()
    mine = LeftOpen(folder.path.name, open_, _sealed(folder, estate_key, open_))
    rings = [
        (ring, persons) for later, persons in _later(state, folder, open_) if (ring := _ring_of(later, estate_key))
    ]
    looked_for = (persons - mine.missing_in(ring.key_sets) for ring, persons in rings)
    return frozenset(open_) - frozenset[str]().union(*looked_for)


def to_be_closed_before(state: Path, folder: RunFolder) -> list[str]:
    """Runs that left open whom this one erased: that it looked for all that they knew shows its sealed manifest."""
    return [
        earlier.path.name
        for earlier in all_runs(state)
        if left_something(earlier) and _manifest_of(earlier).exists()
        if any(erased for _, erased in _later(state, earlier, places_of(earlier), folder.path.name))
    ]


def _plan_of(folder: RunFolder) -> ErasurePlan | None:
    try:
        return folder.approved().plan
    except (UsageError, ReviewError):
        return None


def _ring_of(folder: RunFolder, key: EstateKey) -> KeyRing | None:
    """What a run's sealed manifest holds; None where it, or the plan, is gone or does not open."""
    plan = _plan_of(folder)
    if plan is None:
        return None
    try:
        return KeyRing.open(_manifest_of(folder), plan.subjects_digest, key)
    except PlanError:
        return None


def _manifest_of(folder: RunFolder) -> Path:
    return manifest_path(Path(folder.recorded().plan_file))


def _sealed(folder: RunFolder, key: EstateKey, persons: Collection[str]) -> tuple[KeySet, ...] | None:
    ring = _ring_of(folder, key)
    return None if ring is None else tuple(_only(keys, persons) for keys in ring.key_sets)


def _only(keys: KeySet, persons: Collection[str]) -> KeySet:
    return keys.model_copy(update={"values": tuple(pair for pair in keys.values if pair[0] in persons)})


def with_values_of_then(keys: Keys, wanted: Sequence[Wanted], before: Sequence[LeftOpen]) -> Keys:
    """The keys with what earlier runs knew of the persons whom they left open.

    These are former values: where somebody else has one today, it is looked for in nobody's name.
    """
    base, former = dict(keys.base), dict(keys.former)
    by_reference = {person.reference: person.request for person in wanted}
    known: set[str] = set()
    for run in before:
        for told in run.key_sets or ():
            if told.expression is not None or told.origin not in base:
                continue
            pairs = {pair for pair in told.values if pair[0] in by_reference} - {*base[told.origin]}
            base[told.origin] = tuple(sorted({*base[told.origin], *pairs}))
            former[told.origin] = former.get(told.origin, frozenset()) | pairs
            if told.origin != keys.subject.key:
                known |= {by_reference[reference] for reference, _ in told.values if reference in by_reference}
    return replace(keys, base=base, former=former, key_only=keys.key_only - known)


def with_unsearched(found: Survey, wanted: Sequence[Wanted], before: Sequence[LeftOpen]) -> Survey:
    """The survey with the requests for which it does not look for all that earlier runs knew."""
    requests = {person.reference: person.request for person in wanted}
    places: dict[str, set[str]] = {}
    for run in before:
        for who in run.missing_in(tuple(found.key_sets.values())) & requests.keys():
            places.setdefault(requests[who], set()).update(run.places[who])
    unsearched = {request: tuple(sorted(where)) for request, where in sorted(places.items())}
    return replace(found, keys=replace(found.keys, unsearched=unsearched))


def known_by(before: Sequence[LeftOpen]) -> dict[tuple[str, str], frozenset[str]]:
    """By person (reference) and plan, the source columns of which values of then are known."""
    return {(person, run.plan_id): run.known(person) for run in before for person in run.places}


def expressions_of_then(before: Sequence[LeftOpen]) -> set[tuple[str, str]]:
    """By source column, what earlier runs computed of the values: lineage may know no such column any more."""
    sets = (keys for run in before for keys in run.key_sets or () if keys.values)
    return {(keys.origin, keys.expression) for keys in sets if keys.expression is not None}


def refuse_unsearched(settings: Settings, plan: ErasurePlan, ring: KeyRing) -> None:
    """A run is not begun that would call a person erased without having looked for what an earlier run found.

    Raises:
        Refused: the plan does not know all values that the earlier run knew, and no gap of it says so.
        UsageError: nobody can say of whom an earlier run left something.
    """
    subjects = {request.subject: request.id for request in plan.requests}
    for run in left_open(settings.state, settings.key(), subjects, but=plan.plan_id):
        missing = run.missing_in(ring.key_sets)
        if run.key_sets is None:
            named = {gap.id for gap in plan.gaps}
            missing = frozenset(who for who in missing if left_open_gap(subjects[who]) not in named)
        if missing:
            raise Refused(
                f"the run {run.plan_id} left the request {subjects[min(missing)]} open, and this plan does not "
                "search for all values of the person that were known then",
                where=plan.plan_id,
                todo="plan again; if the error remains, search the places with `pii-tracer verify` and the plan of "
                "that run",
            )
