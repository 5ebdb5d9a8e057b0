"""The gaps of a plan that come from particular persons: with them left out, a plan for the others has none of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pii_tracer.app.persons_apart.values_by_person import ValuesByPerson, whose
from pii_tracer.app.planning.folder_search import scan_estate
from pii_tracer.app.planning.other_numbers import OtherNumbers
from pii_tracer.app.planning.value_masking import named_in_plan, refuse_telling_plan
from pii_tracer.lake.careful_reading import Readings
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.errors import PersonsApart, PlanError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.scan.hits import key_set_in
from pii_tracer.scan.value_forms import Patterns
from planners.build import PlanInputs
from planners.gaps.persons_of_gaps import SEARCHED, requests_with_gaps


@dataclass(frozen=True)
class Search:
    """How places are searched again, for each person alone. say: progress, a line each."""

    owners: ValuesByPerson
    numbers: OtherNumbers
    say: Callable[[str], None]


def own_gaps(plan: ErasurePlan, inputs: PlanInputs, search: Search) -> Mapping[str, tuple[str, ...]]:
    """By request, the kinds of the open gaps that come from its person alone. Empty where some gap comes from nobody in
    particular, and where there is none."""
    wanted = {gap.dataset for gap in plan.gaps if gap.waiver is None and gap.kind in SEARCHED}
    seen = {
        state.dataset: _whose(state, inputs, search)
        for state in inputs.world.inventory.tables
        if state.dataset in wanted and not state.remote
    }
    return requests_with_gaps(plan.gaps, inputs.surveys, inputs.world, inputs.references, seen)


def _whose(state: TableState, inputs: PlanInputs, search: Search) -> frozenset[str]:
    """References of the persons whose values stand in a place: those that no lineage explains."""
    alone = inputs.world.inventory.model_copy(update={"tables": (state,), "gaps": ()})
    found = scan_estate(alone, search.owners.patterns, Readings(), search.say, numbers=search.numbers)[state.location]
    digits = {(one.key_set, one.place.lower()) for one in inputs.world.digits.get(state.location, ())}
    short = (
        place.key_set
        for place in found.places
        if place.weak and (key_set_in(place.key_set), (place.column or "").lower()) in digits
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
