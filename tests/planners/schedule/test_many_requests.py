"""One plan for several persons: each has a law and a date, the work is shared, and contradictions are errors."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pii_tracer.config.estate_file import Request
from pii_tracer.lake.formats.delta.vocabulary import DELTA_DELETE_ROWS
from pii_tracer.model.errors import PlanError
from planners.schedule.erasure_requests import planned_requests
from tests.planners.smalllake import NOW, Lake, touched


def request(request_id: str, law: str = "GDPR", key: str = "1234567890", days: int = 0) -> Request:
    return Request.model_validate(
        {"id": request_id, "law": law, "received": NOW + timedelta(days=days), "subject": {"type": "user", "key": key}}
    )


def planned(*requests: Request) -> Any:
    references = {r.id: f"subj_{r.subject.key}" for r in requests}
    return planned_requests(requests, references, (), NOW + timedelta(days=3))


def test_each_request_has_its_own_law_and_deadline() -> None:
    ccpa, gdpr = planned(request("B", "GDPR", "2", days=3), request("A", "CCPA", "1"))
    assert [(r.id, r.law) for r in (ccpa, gdpr)] == [("A", "CCPA"), ("B", "GDPR")]
    assert ccpa.deadline == NOW + timedelta(days=45)
    assert gdpr.deadline == datetime(2026, 12, 24, 10, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ([], "no request"),
        ([request("A", key="1"), request("A", key="2")], "two requests have the id A"),
        ([request("A"), request("B")], "A and B concern the same person$"),
        ([request("A", "CCPA"), request("B", "GDPR")], "A and B concern the same person, under CCPA and GDPR$"),
        ([request("A", "LEX")], "not known"),
        ([request("A"), request("B", key="2", days=4)], "after the time of this plan"),
    ],
)
def test_contradictions_are_errors_and_name_no_key(requests: list[Request], words: str) -> None:
    with pytest.raises(PlanError) as caught:
        planned(*requests)
    assert re.search(words, caught.value.what)
    assert "1234567890" not in str(caught.value)


def test_what_two_persons_share_is_done_once_and_dated_against_the_earliest() -> None:
    one, both = Lake().plan(), Lake().plan(ids=("R", "Q"))
    assert touched(both) == touched(one)
    deletes = [s for s in both.steps if s.action is DELTA_DELETE_ROWS]
    assert len({s.copy_ for s in deletes}) == len(deletes) == 3
    assert both.totals.deadline == min(r.deadline for r in both.requests)
    assert {s.latest_start <= both.totals.deadline for s in both.steps} == {True}
