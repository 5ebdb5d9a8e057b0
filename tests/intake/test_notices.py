"""A law wants the person told before the erasure: until the notice has run nothing begins, and can be taken back."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pii_tracer.app.execution.plan_run import start_run
from pii_tracer.app.settings import Settings
from pii_tracer.config.laws import Ground
from pii_tracer.intake.requests import RequestState
from pii_tracer.model.errors import ExitCode, NotApproved, Waiting
from tests.intake.places import NOW, ago, counts, opened, took
from tests.intake.test_states import PERSONS, SAID, called, lake, made

SOURCE = "article: s. 4, url: 'https://club.example/statutes'"
CLUB = f"""\
laws:
  - version: 1
    name: CLUB
    title: Statutes of a club
    checked: 2026-11-27
    rules:
      - since: 2020-01-01
        deadline: {{days: 30, {SOURCE}}}
        notice: {{hours: 48, grounds: [inactivity], text: that the account ends, {SOURCE}}}
"""
HEAD = "id,key,law,received,subject,ground,noticed\n"


@pytest.fixture
def settings(tmp_path: Path, database: str | None) -> Settings:
    return lake(tmp_path, CLUB, database)


def idle(name: str, key: int, noticed: str, law: str = "CLUB") -> str:
    return f"{name},{key},{law},{ago(3)},user,inactivity,{noticed}\n"


def test_a_run_begins_when_the_notice_has_run_and_not_before(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    took(settings, HEAD + idle("R-1", PERSONS[0], ago(1)) + idle("R-2", PERSONS[1], ago(2.5)), given={})
    found, plan = made(settings)
    assert found.written is not None
    assert [one.not_before for one in plan.requests] == [NOW + timedelta(days=1)]
    with_it, ready = made(settings)  # a notice to one puts nobody else off
    assert [(one.id, one.not_before) for one in ready.requests] == [("R-2", NOW - timedelta(days=0.5))]
    with pytest.raises(Waiting, match="nothing may be erased before") as waits:
        start_run(settings, found.written.path, None, [], None)
    assert waits.value.until == NOW + timedelta(days=1)
    assert not (settings.state / "runs").exists()
    assert with_it.written is not None
    with pytest.raises(NotApproved):  # the notice is no reason to wait any more
        start_run(settings, with_it.written.path, None, [], None)
    # who logs in meanwhile keeps her account
    assert called(settings, "requests", "withdraw", "R-1", *SAID) == ExitCode.DONE
    assert called(settings, "apply", str(found.written.path)) == ExitCode.ERROR
    assert "is withdrawn (as agreed)" in capsys.readouterr().err


def test_a_notice_that_nobody_gave_is_not_taken(settings: Settings) -> None:
    rows = HEAD + idle("R-1", PERSONS[0], "") + idle("R-2", PERSONS[1], ago(-1)) + idle("R-3", PERSONS[2], "monday")
    rows += idle("R-4", PERSONS[3], "", law="GDPR") + f"R-5,{PERSONS[4]},CLUB,{ago(3)},user,boredom,\n"
    done = took(settings, rows, given={})
    assert {one.line: one.reason for one in done.refusals} == {
        2: "the law wants the person informed 48 hours before, and `noticed` does not say when",
        3: "`noticed` must not be in the future, because the waiting time begins at this time",
        4: "`noticed` must be a time with a time zone, such as 2026-11-21T10:00:00+05:30",
        6: "`ground` must be one of: request, inactivity",
    }
    assert [one.id for one in opened(settings).requests()] == ["R-4"]  # the GDPR wants no notice


def test_who_asks_for_it_herself_need_not_be_told_any_more(settings: Settings) -> None:
    took(settings, HEAD + idle("R-1", PERSONS[0], ago(1)), given={})
    [waits] = opened(settings).requests()
    assert (waits.ground, waits.noticed) == (Ground.INACTIVITY, NOW - timedelta(days=1))
    asks = f"id,key,law,received,subject\nR-2,{PERSONS[0]},CLUB,{ago(0.5)},user\n"
    assert counts(took(settings, asks, "asks.csv", given={})) == (0, 1, 0, 0, 0)
    # and an idle account of somebody who asked brings no notice back
    assert counts(took(settings, HEAD + idle("R-3", PERSONS[0], ago(0.2)), "more.csv", given={})) == (0, 1, 0, 0, 0)
    [asked] = opened(settings).requests(RequestState.RECEIVED)
    assert (asked.id, asked.ground, asked.noticed, asked.receipts) == ("R-1", Ground.REQUEST, None, 3)
    assert made(settings)[1].not_before is None
