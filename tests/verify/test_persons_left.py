"""Of whom a run left something: nobody who may be one of them is called erased, and nobody else waits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.verify.persons_left import NOBODY, Looked, PersonsLeft, persons_left

EVERYBODY = frozenset(f"subj_{n}" for n in range(6))
PERSONS = st.frozensets(st.sampled_from(sorted(EVERYBODY)))


@st.composite
def places(draw: st.DrawFn) -> tuple[frozenset[str], Looked]:
    """Whose values a place has, and what looks at it show. A search for each person apart may miss some of them; then
    the look for all others finds these. An opaque place shows nothing of what it has."""
    there, opaque = draw(PERSONS), draw(st.sampled_from([False, False, False, True]))
    missed = draw(st.frozensets(st.sampled_from(sorted(there)))) if there and draw(st.booleans()) else frozenset()
    named = there - missed
    return there, Looked(
        place=draw(st.sampled_from("abc")),
        found=bool(there) and not opaque,
        unread=opaque,
        persons=named if not opaque else frozenset(),
        others_clean=bool(named) and named == there and not opaque,
    )


@given(st.lists(places(), max_size=5))
def test_nobody_of_whom_something_may_be_left_is_called_erased(world: list[tuple[frozenset[str], Looked]]) -> None:
    really = frozenset[str]().union(*(there for there, _ in world))
    found = persons_left([look for _, look in world], EVERYBODY)
    assert really <= found.persons <= EVERYBODY
    unsure = any(look.unread or (look.found and not look.others_clean) for _, look in world)
    assert found.persons == (EVERYBODY if unsure else really), "nobody else waits"
    if not unsure:
        assert {p: set(names) for p, names in found.places.items()} == {
            p: {look.place for there, look in world if p in there} for p in really
        }


def test_whoever_is_no_person_of_the_plan_explains_nothing() -> None:
    look = Looked("c1", found=True, persons=frozenset({"subj_other"}), others_clean=True)
    assert persons_left([look], EVERYBODY) == PersonsLeft(EVERYBODY)


def test_without_residue_nothing_is_left_of_anybody() -> None:
    look = Looked("c1", found=False, persons=frozenset({"subj_1"}), others_clean=True)
    assert persons_left([look], EVERYBODY) == NOBODY
