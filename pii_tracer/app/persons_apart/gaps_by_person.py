"""The gaps of a plan that come from particular persons: with them left out, a plan for the others has none of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pii_tracer.app.persons_apart.values_by_person import ValuesByPerson, whose
from pii_tracer.app.planning.folder_search import scan_estate
from pii_tracer.app.planning.not_keys_check import OtherNumbers
from pii_tracer.app.planning.value_masking import named_in_plan, refuse_telling_plan
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.model.errors import PersonsApart, PlanError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.legal_holds import HoldKind
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.scan.hits import key_set_in
from pii_tracer.scan.value_forms import Patterns
from planners.build import PlanInputs
from planners.copies.scan_evidence import Evidence
from planners.gaps.persons_of_gaps import APART, requests_with_gaps


@dataclass(frozen=True)
class Search:
    """How places are searched again, for each person alone. say: progress, a line each."""

    owners: ValuesByPerson
    numbers: OtherNumbers
    say: Callable[[str], None]


def searched_apart(plan: ErasurePlan, inputs: PlanInputs, search: Search) -> Mapping[str, Evidence]:
    """What is in the places of gaps about persons' values, by location or path of a lone file, with a name for each
    person. Without places that changed since they were searched for all persons, and without those in stores."""
    world = inputs.world
    wanted = {world.searched_at(gap) for gap in plan.gaps if gap.kind in APART}
    tables = tuple(s for s in world.inventory.tables if s.location in wanted and not s.remote)
    lone = tuple(gap for gap in world.inventory.gaps if gap.kind == GapKind.UNKNOWN_FILE and gap.evidence in wanted)
    if not tables and not lone:
        return {}
    alone = world.inventory.model_copy(update={"tables": tables, "gaps": lone})
    found = scan_estate(alone, search.owners.patterns, Readings(), search.say, numbers=search.numbers)
    return {place: seen for place, seen in found.items() if _same_files(seen, world.evidence[place])}


def _same_files(one: Evidence, other: Evidence) -> bool:
    return (one.files, one.files_with_person, one.bytes, one.hashes) == (
        other.files,
        other.files_with_person,
        other.bytes,
        other.hashes,
    )


def with_persons(inputs: PlanInputs, apart: Mapping[str, Evidence]) -> PlanInputs:
    """The inputs with the persons of whom anything is in places of gaps, short numbers included."""
    key_sets = _key_sets(inputs)
    found = {
        place: whose([*seen.strong, *(one.key_set for one in seen.digits)], key_sets) for place, seen in apart.items()
    }
    return replace(inputs, world=replace(inputs.world, whose=found))


def own_gaps(plan: ErasurePlan, inputs: PlanInputs, apart: Mapping[str, Evidence]) -> Mapping[str, tuple[str, ...]]:
    """By request, the kinds of the open gaps that come from its person alone. Empty where some gap comes from nobody in
    particular, and where there is none. apart: as `searched_apart`."""
    seen = {place: _unexplained(place, found, inputs) for place, found in apart.items()}
    own = (hold for hold in inputs.estate.holds if hold.kind is HoldKind.OWN_REQUEST)
    narrowed = {request for hold in own for request in hold.requests}
    return requests_with_gaps(plan.gaps, inputs.surveys, inputs.world, inputs.references, seen, narrowed)


def _unexplained(place: str, found: Evidence, inputs: PlanInputs) -> frozenset[str]:
    """References of the persons whose values are in a place: those that no lineage explains."""
    digits = {(one.key_set, one.place.lower()) for one in inputs.world.digits.get(place, ())}
    short = (
        one.key_set
        for one in found.places
        if one.weak and (key_set_in(one.key_set), (one.column or "").lower()) in digits
    )
    return whose([*found.strong, *short], _key_sets(inputs))


def _key_sets(inputs: PlanInputs) -> frozenset[str]:
    """The names of the persons' key sets."""
    return frozenset(name for survey in inputs.surveys for name in survey.key_sets)


def refuse_telling(plan: ErasurePlan, inputs: PlanInputs, patterns: Patterns, owners: ValuesByPerson | None) -> None:
    """As `refuse_telling_plan`. owners: asked whose values the plan would show; nobody asks where None.

    Raises:
        PersonsApart: it would show values of these persons.
        PlanError: it would show values, and nobody asks of whom.
    """
    try:
        refuse_telling_plan(plan, patterns)
    except PlanError as error:
        named = whose(named_in_plan(plan, owners.patterns), _key_sets(inputs)) if owners else frozenset()
        reason = "a name or a statement in the estate has a value of this person, and a plan would show it"
        mine = {request: reason for request, reference in inputs.references.items() if reference in named}
        if not mine:
            raise
        raise PersonsApart(error.what, where=error.where, todo=error.todo, reasons=mine) from None


def reasons(own: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Why the request store carries these requests over."""
    return {
        request: f"a gap of this person alone ({', '.join(kinds)}): `pii-tracer plan --carried-over` shows it"
        for request, kinds in own.items()
    }
