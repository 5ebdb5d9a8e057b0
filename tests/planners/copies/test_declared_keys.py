"""A key that the estate file declares: where it finds nobody and the scan does, the finding stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.model.datasets import Match, MatchTerm
from planners.copies.scan_evidence import Evidence, Place
from planners.gaps.declared_keys import unexplained

KEY = Match(terms=(MatchTerm(column="rider_uuid", key_set="rider.rider_id", type="string"),))
OTHER = Place("f", "rider.rider_id", "rider_no")


def evidence(*places: Place, rows: int | None = 0) -> Evidence:
    return Evidence(2, 2, 9, frozenset(p.key_set for p in places), rows=rows, places=frozenset(places))


@pytest.mark.parametrize("rows", [0, None])
def test_a_key_that_finds_nobody_explains_nothing(rows: int | None) -> None:
    assert unexplained(KEY, evidence(OTHER, rows=rows)) == ("rider_no",)


@pytest.mark.parametrize(
    "seen",
    [
        evidence(OTHER, rows=3),
        evidence(OTHER, Place("old", "rider.rider_id", "RIDER_UUID")),
        evidence(),
    ],
)
def test_rows_that_are_found_now_or_were_formerly_explain_it(seen: Evidence) -> None:
    assert unexplained(KEY, seen) == ()


def test_names_of_partition_folders_are_the_key_only_where_it_names_them() -> None:
    folder = Place("f", "rider.rider_id", None, of_path=True)
    assert unexplained(KEY, evidence(folder), ["Rider_UUID"]) == ()
    assert unexplained(KEY, evidence(folder), ["day"]) == ("places without a column",)


PLACES = st.builds(
    Place,
    file=st.just("f"),
    key_set=st.sampled_from(["rider.rider_id", "rider.phone"]),
    column=st.sampled_from(["rider_uuid", "rider_no", None]),
)


@settings(max_examples=60, deadline=None)
@given(st.frozensets(PLACES, min_size=1, max_size=4), st.sampled_from([None, 0, 2]))
def test_no_declaration_silences_what_the_scan_sees(places: frozenset[Place], rows: int | None) -> None:
    """The slow model: somebody looks at each place in turn."""
    explained = bool(rows)
    for place in places:
        if place.column == "rider_uuid" and place.key_set == "rider.rider_id":
            explained = True
    assert bool(unexplained(KEY, evidence(*places, rows=rows))) is not explained
