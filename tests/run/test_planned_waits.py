"""Which steps a plan lets begin later, for many plans: as a slow and plain look at each step says."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.model.plan import ErasurePlan, Step
from pii_tracer.run.step_progress import planned_waits
from tests.review.plans import NOW, plan, step

MINUTES = st.integers(-3, 6).map(lambda n: timedelta(minutes=n))


def not_before(one: Step, made: ErasurePlan) -> datetime | None:
    """The date of a step's wait, if it begins later than all that it depends on is finished."""
    finishes = [other.earliest_finish for other in made.steps if other.id in one.depends_on]
    ready = max(finishes, default=made.created_at)
    return one.earliest_start if one.earliest_start > ready else None


@st.composite
def plans(draw: st.DrawFn) -> ErasurePlan:
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 9))):
        before = [one.id for one in steps]
        after = draw(st.lists(st.sampled_from(before), max_size=3, unique=True)) if before else []
        begin = NOW + draw(MINUTES)
        times = {"earliest_start": begin, "earliest_finish": begin + timedelta(minutes=draw(st.integers(0, 4)))}
        steps.append(step(f"s{number}", after=after).model_copy(update=times))
    return plan([]).model_copy(update={"steps": tuple(draw(st.permutations(steps)))})


@given(plans())
def test_a_wait_is_planned_where_a_step_begins_after_all_before_it(made: ErasurePlan) -> None:
    slow = {one.id: date for one in made.steps if (date := not_before(one, made)) is not None}
    assert planned_waits(made) == slow
