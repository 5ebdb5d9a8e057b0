"""The law's longer time: taken once, by when the person was informed; otherwise every deadline stays."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from pii_tracer.app.intake.request_states import extend_request
from pii_tracer.app.settings import Settings
from pii_tracer.model.errors import ExitCode, UsageError
from tests.intake.places import NOW, ago, opened, took
from tests.intake.test_states import PERSONS, SAID, called, lake, made

SOURCE = "article: s. 4, url: 'https://club.example/statutes'"
LAWS = f"""\
laws:
  - version: 1
    name: CLUB
    title: Statutes of a club
    checked: 2026-11-27
    rules:
      - since: 2020-01-01
        deadline: {{days: 30, {SOURCE}}}
        extension: {{days: 20, condition: there are many, {SOURCE}}}
  - version: 1
    name: STRICT
    title: Statutes of a stricter club
    checked: 2026-11-27
    rules:
      - since: 2020-01-01
        deadline: {{days: 40, {SOURCE}}}
"""
HEAD = "id,key,law,received,subject\n"


@pytest.fixture
def settings(tmp_path: Path, database: str | None) -> Settings:
    return lake(tmp_path, LAWS, database)


def informed(days: float) -> tuple[str, ...]:
    return ("--informed", ago(days), *SAID)


def test_the_longer_time_goes_into_the_plan_and_is_seen(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    took(settings, f"{HEAD}R-1,{PERSONS[0]},CLUB,{ago(3)},user\n", given={})
    assert called(settings, "requests", "extend", "R-1", *informed(1)) == ExitCode.DONE
    due = NOW + timedelta(days=47)
    assert capsys.readouterr().out == f"R-1 is due on {due:%Y-%m-%d %H:%M} UTC\n"
    assert [one.due for one in opened(settings).requests()] == [due]
    _, plan = made(settings)
    assert [(one.deadline, one.extended) for one in plan.requests] == [(due, NOW - timedelta(days=1))]
    assert plan.requests[0].citation == "s. 4; extended by s. 4"
    assert called(settings, "requests", "show", "R-1", "--format", "json") == ExitCode.DONE
    shown = json.loads(capsys.readouterr().out)
    assert [(one["law"], one["who"], one["reason"]) for one in shown["extensions"]] == [("CLUB", *SAID[1::2])]


@pytest.mark.parametrize(
    ("law", "received", "when", "words"),
    [
        ("CLUB", 31, 0.5, "the person must be informed between"),  # after the first time ended
        ("CLUB", 3, 4, "the person must be informed between"),  # before the request came in
        ("STRICT", 3, 1, "the law has no longer time"),
        ("CLUB", 3, -1, "is in the future"),
    ],
)
def test_a_deadline_stays_that_the_law_does_not_extend(
    law: str, received: float, when: float, words: str, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    took(settings, f"{HEAD}R-1,{PERSONS[0]},{law},{ago(received)},user\n", given={})
    before = list(opened(settings).requests())
    assert called(settings, "requests", "extend", "R-1", *informed(when)) == ExitCode.USAGE
    assert words in capsys.readouterr().err
    assert list(opened(settings).requests()) == before


def test_it_is_taken_once_and_not_for_who_is_refused(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    took(settings, f"{HEAD}R-1,{PERSONS[0]},CLUB,{ago(3)},user\nR-2,{PERSONS[1]},CLUB,{ago(3)},user\n", given={})
    assert called(settings, "requests", "extend", "R-1", *informed(1)) == ExitCode.DONE
    assert called(settings, "requests", "extend", "R-1", *informed(0.5)) == ExitCode.USAGE
    assert "already used" in capsys.readouterr().err
    assert called(settings, "requests", "refuse", "R-2", *SAID) == ExitCode.DONE
    assert called(settings, "requests", "extend", "R-2", *informed(1)) == ExitCode.USAGE
    assert "R-2 is refused already" in capsys.readouterr().err
    with pytest.raises(UsageError, match="contains the person's key"):
        extend_request(
            settings, "R-1", informed=NOW - timedelta(days=1), by="Meera Iyer", reason=f"of {PERSONS[0]}", now=NOW
        )


def test_the_earliest_deadline_of_all_receipts_counts(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """A request that also came in under a law without a longer time is due by that; a later receipt has its own time."""
    rows = f"R-1,{PERSONS[0]},CLUB,{ago(3)},user\nR-2,{PERSONS[0]},STRICT,{ago(2)},user\n"
    took(settings, HEAD + rows, given={})
    assert called(settings, "requests", "extend", "R-1", *informed(1)) == ExitCode.DONE
    [one] = opened(settings).requests()
    assert (one.law, one.due, one.extended) == ("STRICT", NOW + timedelta(days=38), None)
    assert "the deadline of STRICT" in capsys.readouterr().out
    took(settings, f"{HEAD}R-3,{PERSONS[0]},CLUB,{ago(0.5)},user\n", given={})
    [again] = opened(settings).requests()
    assert (again.law, again.due, again.extended) == ("CLUB", NOW + timedelta(days=29.5), None)
    assert called(settings, "requests", "extend", "R-3", *informed(0.25)) == ExitCode.DONE
    assert [(one.law, one.due) for one in opened(settings).requests()] == [("STRICT", NOW + timedelta(days=38))]


def test_a_law_that_is_declared_no_more_is_named(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    took(settings, f"{HEAD}R-1,{PERSONS[0]},CLUB,{ago(3)},user\n", given={})
    text = settings.estate_file.read_text()
    settings.estate_file.write_text(text.replace("name: CLUB", "name: GUILD"))
    assert called(settings, "requests", "extend", "R-1", *informed(1)) == ExitCode.USAGE
    assert "no law `CLUB` any more" in capsys.readouterr().err
