"""The rules about canaries: every pair of what lineage leads one to expect and what the search saw."""

from __future__ import annotations

import pytest

from pii_tracer.config.monitoring.readiness import NO_OWNER, Canary, ReadinessSettings, wrong_readiness
from pii_tracer.readiness.canaries import Arrival, CanaryAnswer, Searched, canary_findings, places_of
from pii_tracer.readiness.findings import FindingKind, Level


@pytest.mark.parametrize(
    ("one", "arrival", "finding"),
    [
        (Searched("t", "o", True, True), Arrival.ARRIVED, None),
        (Searched("t", "o", True, True, unread=True), Arrival.UNREAD, (FindingKind.CANARY_UNREAD, Level.BLOCKING)),
        (Searched("t", "o", True, False), Arrival.MISSING, (FindingKind.CANARY_MISSING, Level.WARNING)),
        (Searched("t", "o", True, False, filtered=True), Arrival.FILTERED, (FindingKind.CANARY_MISSING, Level.NOTE)),
        (Searched("t", "o", True, False, absent=True), Arrival.ABSENT, None),
        (Searched("t", "o", True, False, unread=True), Arrival.UNREAD, (FindingKind.CANARY_UNREAD, Level.BLOCKING)),
        (
            Searched("t", "o", False, True, unread=True),
            Arrival.UNKNOWN,
            (FindingKind.CANARY_UNKNOWN_COPY, Level.BLOCKING),
        ),
        (Searched("t", "o", False, True), Arrival.UNKNOWN, (FindingKind.CANARY_UNKNOWN_COPY, Level.BLOCKING)),
        (Searched("t", "o", False, False, unread=True), Arrival.UNREAD, (FindingKind.CANARY_UNREAD, Level.BLOCKING)),
        (Searched("t", "o", False, False), None, None),
    ],
)
def test_the_answer_for_a_place(
    one: Searched, arrival: Arrival | None, finding: tuple[FindingKind, Level] | None
) -> None:
    places = places_of([one])
    assert [place.arrival for place in places] == ([arrival] if arrival else [])
    found = list(canary_findings([CanaryAnswer("wren", "user", "s", "o", True, places)]))
    assert [(f.kind, f.level) for f in found] == ([finding] if finding else [])


def test_of_a_canary_that_is_gone_nothing_is_called_missing() -> None:
    places = places_of([Searched("t", "o", True, False), Searched("u", "o", False, True)])
    found = canary_findings([CanaryAnswer("wren", "user", "s", "crm", False, places)])
    assert {(f.kind, f.where) for f in found} == {
        (FindingKind.CANARY_NOT_IN_SOURCE, "s"),
        (FindingKind.CANARY_UNKNOWN_COPY, "u"),
    }


def test_the_first_pattern_that_fits_names_the_owner() -> None:
    rules = ReadinessSettings(owners={"lake.sales.Orders": "order team", "lake.sales.*": "sales"})
    assert rules.owner_of("LAKE.sales.orders") == "order team"
    assert rules.owner_of(None, "lake.sales.items") == "sales"
    assert rules.owner_of("lake.hr.staff") == NO_OWNER


def test_a_key_in_clear_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="pattern") as refused:
        Canary(name="wren", subject="user", key="8800112233445")
    assert "8800112233445" not in str([e["msg"] for e in refused.value.errors(include_input=False)])  # type: ignore[attr-defined]


def test_contradictions_are_refused() -> None:
    one = Canary(name="wren", subject="user", key="env:WREN")
    assert wrong_readiness(ReadinessSettings(canaries=(one, one)), {"user"}, set()) == "two canaries have one name"
    assert "does not declare" in str(wrong_readiness(ReadinessSettings(canaries=(one,)), {"staff"}, set()))
    assert "unknown law" in str(wrong_readiness(ReadinessSettings(laws=("LEX",)), set(), {"GDPR"}))
    assert wrong_readiness(ReadinessSettings(canaries=(one,)), {"user"}, set()) is None
