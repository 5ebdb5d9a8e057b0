"""Every request of the store has a dated, signed answer, also one that no run is about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from pii_tracer.app.intake.request_states import refuse_request, withdraw_request
from pii_tracer.app.proof.request_answers import read_answer, write_answers
from pii_tracer.app.settings import Settings
from pii_tracer.intake.state_changes import carry_each_over
from pii_tracer.model.errors import ExitCode, UsageError
from pii_tracer.proof.request_answers.answer import Outcome, RequestAnswer, Standing
from tests.intake.places import NOW, opened, took
from tests.intake.test_states import PERSONS, asked, called, lake, made
from tests.leaks import Person, leaks


@pytest.fixture
def settings(tmp_path: Path, database: str | None) -> Settings:
    return lake(tmp_path, database=database)


def told(settings: Settings, request: str) -> tuple[RequestAnswer, str]:
    """The answer, whose signature holds, and its page."""
    signed, page = write_answers(settings, request=request, out=settings.base / "sent", now=NOW)
    return read_answer(signed, (settings.state / "keys" / "attest.pem.pub",)), page.read_text()


def nothing(settings: Settings) -> None:
    """It waits."""


def refused(settings: Settings) -> None:
    refuse_request(settings, "R-1", by="Meera Iyer", reason="not a customer of ours")


def withdrawn(settings: Settings) -> None:
    withdraw_request(settings, "R-1", by="Meera Iyer", reason="she stays")


def held(settings: Settings) -> None:
    carry_each_over(opened(settings), {"R-1": "kept"}, NOW, ("dispute",))


@pytest.mark.parametrize(
    ("becomes", "standing", "words"),
    [
        (nothing, Standing.NOT_ERASED, "the erasure has not begun"),
        (refused, Standing.NOT_ERASED, "refused on {day}: not a customer of ours; Meera Iyer answers for it"),
        (withdrawn, Standing.NOT_ERASED, "taken back on {day}: she stays; Meera Iyer answers for it"),
        (held, Standing.HELD, "by dispute; no end is known"),
    ],
)
def test_a_request_that_was_never_planned_is_answered_by_the_store(
    settings: Settings, becomes: Callable[[Settings], None], standing: Standing, words: str
) -> None:
    asked(settings, PERSONS[0])
    took(settings, f"id,key,received\nR-2,{PERSONS[0]},{(NOW - timedelta(hours=1)).isoformat()}\n", "later.csv")
    becomes(settings)
    for name in ("R-1", "R-2"):
        answer, page = told(settings, name)
        assert (answer.request, answer.outcome, answer.plan_id) == ("R-1", Outcome.NOT_ERASED, None)
        assert [item.standing for item in answer.items] == [standing]
        assert words.format(day=f"{NOW:%Y-%m-%d}") in page
    assert leaks(Person(values=(str(PERSONS[0]),)), [settings.base / "sent"]) == []


def test_a_planned_request_is_answered_by_its_plan_and_not_by_the_newest_run(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    _, plan = made(settings)
    answer, _ = told(settings, "R-1")
    assert (answer.plan_id, len(answer.items)) == (plan.plan_id, len(plan.copies))


def test_what_nobody_asked_for_is_not_answered(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    with pytest.raises(UsageError, match="there is no run"):
        list(write_answers(settings, request="R-9", out=settings.base / "sent"))
    assert called(settings, "attest", "answer", "--request", "R-1") == ExitCode.USAGE, "it has no folder"
