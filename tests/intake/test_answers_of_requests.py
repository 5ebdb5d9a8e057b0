"""Every request of the store has a dated, signed answer, also one that no run is about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

import pytest

from pii_tracer.app.execution.run_folder import folder_of
from pii_tracer.app.intake.planned_requests import begin_requests
from pii_tracer.app.intake.request_states import narrow_request, refuse_request, withdraw_request
from pii_tracer.app.proof.request_answers import read_answer, write_answers
from pii_tracer.app.settings import Settings
from pii_tracer.intake.kept_scopes import Wish, hold_of
from pii_tracer.intake.requests import OPEN
from pii_tracer.intake.state_changes import Said, carry_each_over, release
from pii_tracer.model.errors import ExitCode, UsageError
from pii_tracer.proof.request_answers.answer import Outcome, RequestAnswer, Standing
from tests.intake.places import NOW, opened, took
from tests.intake.test_kept_data_later import applied
from tests.intake.test_states import HOLD, PERSONS, asked, called, lake, made, ran
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
    hold(settings, "indefinite")
    carry_each_over(opened(settings), {"R-1": "kept"}, NOW, ("dispute",))


def held_until(settings: Settings) -> None:
    hold(settings, "2030-01-01T00:00:00Z")
    carry_each_over(opened(settings), {"R-1": "kept"}, NOW, ("dispute",))


def held_before(settings: Settings) -> None:
    hold(settings, "2026-10-02T00:00:00Z")
    carry_each_over(opened(settings), {"R-1": "kept"}, NOW, ("dispute",))


def held_no_more(settings: Settings) -> None:
    hold(settings, "indefinite", "R-8")
    carry_each_over(opened(settings), {"R-1": "kept"}, NOW, ("dispute",))


def hold(settings: Settings, until: str, request: str = "R-2") -> None:
    told = HOLD.replace("NAMED", request).replace("until: indefinite", f"until: {until}")
    settings.estate_file.write_text(settings.estate_file.read_text() + told)


def keeping(settings: Settings) -> None:
    """As she asked by the second receipt, which does not ask for everything."""
    narrow_request(settings, "R-1", Wish(keep=("app.users",)), asked=NOW, by="Meera Iyer", reason="a letter")
    carry_each_over(opened(settings), {"R-1": "kept"}, NOW, (hold_of("app.users"),))


def keeping_no_more(settings: Settings) -> None:
    keeping(settings)
    narrow_request(settings, "R-1", Wish(take_back=("app.users",)), asked=NOW, by="Meera Iyer", reason="a letter")


@pytest.mark.parametrize(
    ("becomes", "standing", "words"),
    [
        (nothing, Standing.NOT_ERASED, "the erasure has not begun"),
        (refused, Standing.NOT_ERASED, "refused on {day}: not a customer of ours; Meera Iyer answers for it"),
        (withdrawn, Standing.NOT_ERASED, "taken back on {day}: she stays; Meera Iyer answers for it"),
        (held, Standing.HELD, "by dispute: order, 1/2026; Meera Iyer answers for it; no end is known"),
        (held_until, Standing.HELD, "Meera Iyer answers for it; until 2030-01-01"),
        (held_before, Standing.NOT_ERASED, "a hold kept it, and has ended"),
        (held_no_more, Standing.NOT_ERASED, "a hold kept it, and has ended"),
        (keeping, Standing.KEPT, "as you asked on {day}"),
        (keeping_no_more, Standing.NOT_ERASED, "a hold kept it, and has ended"),
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
        open_ = opened(settings).find("R-1").state in OPEN
        assert (answer.subject == settings.key().reference("user", str(PERSONS[0]))) is open_
    assert leaks(Person(values=(str(PERSONS[0]),)), [settings.base / "sent"]) == []


def test_a_planned_request_is_answered_by_its_plan_and_not_by_the_newest_run(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    _, plan = made(settings)
    answer, _ = told(settings, "R-1")
    assert (answer.plan_id, len(answer.items)) == (plan.plan_id, len(plan.copies))


BEGAN = f"an erasure began on {NOW:%Y-%m-%d}; what it did is not in this answer"


@pytest.mark.parametrize("state", ["planned", "given up", "planned again", "refused", "withdrawn", "erased"])
@pytest.mark.parametrize("folder", [True, False], ids=["run", "run folder gone"])
def test_no_answer_denies_an_erasure_that_began(tmp_path: Path, state: str, folder: bool) -> None:
    settings = lake(tmp_path)
    asked(settings, PERSONS[0])
    found, plan = made(settings)
    assert found.written is not None
    begin_requests(settings, plan, NOW)
    if state == "erased":
        ran(settings, plan)
        rmtree(folder_of(settings.state, plan.plan_id).path)
    if folder:
        applied(settings, plan, found.written.path)
    if state not in ("erased", "planned"):
        release(opened(settings), plan.plan_id, Said("Meera Iyer", "as agreed", NOW))
    if state == "planned again":
        made(settings, carried_over=True, as_of=NOW + timedelta(minutes=1))
        assert opened(settings).find("R-1").plan != plan.plan_id
    if state in ("refused", "withdrawn"):
        {"refused": refused, "withdrawn": withdrawn}[state](settings)
    answer, page = told(settings, "R-1")
    assert ("has not begun" in page, "all of your data" in page) == (False, False)
    assert answer.outcome is Outcome.NOT_ERASED
    ended = state in ("refused", "withdrawn")
    if folder and not ended:
        assert (answer.plan_id, len(answer.items)) == (plan.plan_id, len(plan.copies))
    else:
        assert (answer.plan_id, answer.items[0].standing, BEGAN in page) == (None, Standing.UNCONFIRMED, True)
        assert [item.who for item in answer.items[1:]] == ["Meera Iyer"] * ended


def test_of_what_is_no_request_there_is_no_reference(settings: Settings) -> None:
    with pytest.raises(UsageError, match="no request of this id"):
        opened(settings).reference_of("R-9")


def test_what_nobody_asked_for_is_not_answered(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    with pytest.raises(UsageError, match="there is no run"):
        list(write_answers(settings, request="R-9", out=settings.base / "sent"))
    assert called(settings, "attest", "answer", "--request", "R-1") == ExitCode.USAGE, "it has no folder"
