"""What laws say: the files that come along, an estate's own, and the notice that a plan waits for."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pii_tracer.cli.main import run
from pii_tracer.config.laws import Ground, Law, NotExtended, laws_of, longest_log, shipped
from pii_tracer.model.errors import PlanError
from pii_tracer.review.plan_consistency import contradiction
from tests.planners.smalllake import NOW as PLANNED
from tests.planners.smalllake import Lake

NOW = datetime(2027, 6, 1, 10, tzinfo=timezone.utc)
SOURCE = {"article": "Club statutes, s. 4", "url": "https://club.example/statutes"}
NOTICE = {"hours": 72, "grounds": ["request"], "text": "that the membership ends", **SOURCE}


def own(**rules: Any) -> dict[str, Any]:
    since = {"since": "2020-01-01", "deadline": {"days": 10, **SOURCE}, **rules}
    return {"version": 1, "name": "CLUB", "title": "Statutes of a club", "checked": "2026-11-27", "rules": [since]}


def test_every_law_that_comes_along_is_read_and_has_its_sources() -> None:
    assert sorted(shipped()) == ["CCPA", "DELETE-ACT", "DPDP", "GDPR", "LGPD", "UK-GDPR"]
    assert all(rules.tell for law in shipped().values() for rules in law.rules)


def test_the_rules_of_the_day_of_receipt_count() -> None:
    dpdp = shipped()["DPDP"]
    assert dpdp.at(datetime(2027, 5, 12, 23, tzinfo=timezone.utc)).notice is None
    notice = dpdp.at(datetime(2027, 5, 13, tzinfo=timezone.utc)).notice
    assert notice is not None
    assert (notice.hours, notice.grounds) == (48, (Ground.INACTIVITY,))
    uk = shipped()["UK-GDPR"]
    assert "12A" not in uk.at(datetime(2026, 2, 4, 23, tzinfo=timezone.utc)).deadline.article
    assert "12A" in uk.at(datetime(2026, 2, 5, tzinfo=timezone.utc)).deadline.article


def test_who_asked_is_not_told_first_and_who_was_idle_is() -> None:
    rules = shipped()["DPDP"].at(NOW)
    assert rules.not_before(Ground.REQUEST, None) is None
    assert rules.not_before(Ground.INACTIVITY, NOW) == NOW + timedelta(hours=48)
    with pytest.raises(Exception, match="48 hours before, and `noticed` does not say when"):
        rules.not_before(Ground.INACTIVITY, None)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (own(deadline={"days": 10, "months": 1, **SOURCE}), "exactly one of `days` and `months` is needed"),
        (own(deadline=SOURCE), "exactly one of `days` and `months` is needed"),
        (own(deadline={"days": 10, "article": "s. 4"}), "url"),
        (own(notice={**NOTICE, "grounds": []}), "grounds"),
        ({**own(), "rules": [*own()["rules"] * 2]}, "must begin after"),
        ({**own(), "name": "CLUB; DROP"}, "name"),
    ],
)
def test_a_law_without_a_source_or_with_two_times_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Law.model_validate(wrong)


def test_a_log_whose_law_nobody_knows_is_kept_as_the_strictest_law_says() -> None:
    club = Law.model_validate(own(keep_log={"days": 4000, **SOURCE}))
    assert longest_log(shipped()) == timedelta(days=731)
    assert longest_log(laws_of([club])) == timedelta(days=4000)


def test_an_estate_has_laws_of_its_own_and_none_in_place_of_another() -> None:
    plan = Lake().plan(laws=[own()], law="CLUB")
    assert [(r.law, r.citation, r.deadline - r.received) for r in plan.requests] == [
        ("CLUB", "Club statutes, s. 4", timedelta(days=10))
    ]
    with pytest.raises(ValidationError, match="the law GDPR is there already"):
        Lake().plan(laws=[{**own(), "name": "GDPR"}])


def test_no_step_begins_before_the_notice_has_run() -> None:
    """Without the rule the first step could begin at once."""
    at_once, noticed = Lake().plan(), PLANNED - timedelta(hours=2)
    assert min(step.earliest_start for step in at_once.steps) == at_once.created_at
    plan = Lake().plan(laws=[own(notice=NOTICE)], law="CLUB", noticed=noticed)
    begins = noticed + timedelta(hours=72)
    assert plan.not_before == begins
    assert min(step.earliest_start for step in plan.steps) == begins
    assert contradiction(plan) is None
    told = [one.model_copy(update={"not_before": begins}) for one in at_once.requests]
    assert (
        contradiction(at_once.model_copy(update={"requests": tuple(told)}))
        == "a step begins before the notice to a person has run"
    )


@pytest.mark.parametrize(("noticed", "words"), [(None, "does not say when"), (timedelta(hours=1), "in the future")])
def test_a_notice_that_nobody_gave_yet_blocks_the_plan(noticed: timedelta | None, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        Lake().plan(laws=[own(notice=NOTICE)], law="CLUB", noticed=PLANNED + noticed if noticed else None)


def test_a_longer_time_is_the_laws_and_begins_where_the_first_one_ends() -> None:
    received = datetime(2027, 1, 31, 10, tzinfo=timezone.utc)
    rules, told = shipped()["GDPR"].at(received), datetime(2027, 2, 28, 10, tzinfo=timezone.utc)
    assert rules.due(received) == told
    assert rules.due(received, told) == datetime(2027, 4, 28, 10, tzinfo=timezone.utc)
    for wrong in (told + timedelta(seconds=1), received - timedelta(seconds=1)):
        with pytest.raises(NotExtended, match="between 2027-01-31 and 2027-02-28"):
            rules.due(received, wrong)
    with pytest.raises(NotExtended, match="no longer time"):
        shipped()["LGPD"].at(received).due(received, received)


def test_a_request_file_takes_the_longer_time() -> None:
    longer = {"days": 20, "condition": "there are many", **SOURCE}
    told = PLANNED
    [one] = Lake().plan(laws=[own(extension=longer)], law="CLUB", extended=told).requests
    assert (one.deadline - one.received, one.extended) == (timedelta(days=30), told)
    for laws, when in (([own()], told), ([own(extension=longer)], PLANNED + timedelta(hours=1))):
        with pytest.raises(PlanError, match="the deadline cannot be extended"):
            Lake().plan(laws=laws, law="CLUB", extended=when)


def test_laws_are_shown_with_their_sources(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nowhere = ["--estate", str(tmp_path / "none.yaml")]
    assert run(["laws", "DPDP", "--received", "2027-06-01T00:00:00Z", *nowhere]) == 0
    told = capsys.readouterr().out
    assert "notice: 48 hours before an erasure (inactivity)" in told
    assert "rule 8(2)" in told
    assert run(["laws", *nowhere]) == 0
    assert capsys.readouterr().out.count("deadline: ") == 6
    assert run(["laws", "LEX", *nowhere]) == 2
    assert "no law `LEX`" in capsys.readouterr().err
