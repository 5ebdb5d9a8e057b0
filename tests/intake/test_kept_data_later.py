"""Data that somebody kept, or that a hold kept, and that is to be erased later: what was known of them is known still."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.app.intake.due_requests import plan_due
from pii_tracer.app.intake.planned_requests import begin_requests
from pii_tracer.app.planning.erasure_plan import plan as plan_by_file
from pii_tracer.app.proof.deletion_log_access import open_log, prune_log
from pii_tracer.app.settings import Settings
from pii_tracer.intake.kept_scopes import hold_of
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import UsageError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.deletions.deletion_log import FILE, DeletionLog
from pii_tracer.proof.deletions.entries import Entry, EntryState
from tests.cli.small import request
from tests.intake.places import NOW, opened, took
from tests.intake.test_narrowings import again, narrowed, shop, strategies
from tests.intake.test_states import HOLD, PERSONS, asked, made, ran, states
from tests.proof.deletion_log.grouped import groups

MAILS = [f"ada{n}.lovelace@example.org" for n in range(len(PERSONS))]
YEARS = timedelta(days=2600)


@pytest.fixture
def settings(tmp_path: Path, database: str | None) -> Settings:
    """Users with mail addresses, their orders, and who gets news, with the address alone."""
    made = shop(tmp_path, database)
    users(made, MAILS)
    write_deltalake(tmp_path / "w" / "news", pa.table({"email": MAILS, "topic": ["x"] * len(MAILS)}))
    estate, orders = made.estate_file.read_text(), "      - {name: app.orders, format: delta, location: w/orders}\n"
    estate = estate.replace(orders, orders + orders.replace("orders", "news"))
    key = "    key: user_id\n"
    estate = estate.replace(key, key + "    identifiers: [{column: email, category: email}]\n")
    made.estate_file.write_text(estate + "deletion_log: {keep_days: 365}\n")
    with (tmp_path / "jobs.sql").open("a") as file:
        file.write("INSERT INTO app.news SELECT email, city FROM app.users;\n")
    return made


def users(settings: Settings, mails: Sequence[str]) -> None:
    place = settings.base / "w" / "users"
    rmtree(place, ignore_errors=True)
    write_deltalake(place, pa.table({"user_id": PERSONS, "email": mails, "city": ["Pune"] * len(mails)}))


def logged(settings: Settings, plan: ErasurePlan, hours: float = 0) -> None:
    """What the run of a plan writes into the deletion log: what is held is exempt, all else is erased."""
    entries = []
    for copy in plan.copies:
        held = copy.strategy is Strategy.EXEMPT
        entries.append(
            Entry(
                request_id=plan.requests[0].id,
                subject=plan.requests[0].subject,
                plan_id=plan.plan_id,
                step_id="" if held else f"{copy.id}/99-verify",
                copy_id=copy.id,
                dataset=str(copy.dataset),
                format=copy.format,
                action=None if held else Action.VERIFY_COPY,
                state=EntryState.EXEMPT if held else EntryState.ERASED,
                run_at=NOW + timedelta(hours=hours),
                tool_version="1",
                evidence="e",
            )
        )
    DeletionLog(settings.state / FILE, settings.estate().estate).append(groups(entries))


def erased_but_for_news(settings: Settings) -> ErasurePlan:
    """She keeps the news and is erased from all else; then she registers again, with another address."""
    asked(settings, PERSONS[0], days=[2])
    narrowed(settings, "R-1", "app.news", asked=NOW - timedelta(hours=1))
    _, plan = made(settings)
    assert strategies(plan)["app.news"] is Strategy.EXEMPT
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    assert opened(settings).find("R-1").kept == (hold_of("app.news"),)
    users(settings, ["countess@example.net", *MAILS[1:]])
    return plan


@pytest.mark.parametrize("log", ["kept", "gone"])
def test_who_comes_back_with_another_address_is_not_called_erased(settings: Settings, log: str) -> None:
    plan = erased_but_for_news(settings)
    if log == "kept":
        logged(settings, plan)
        assert prune_log(settings, NOW + YEARS) is None, "only the log knows what the source has lost"
    again(settings, NOW)
    found = plan_due(settings)
    assert (found.marked, "key_only" in found.apart["R-9"]) == (False, True)
    assert found.written is not None
    [gap] = found.written.plan.gaps
    assert ("app.news" in gap.evidence or "news" in gap.evidence, "R-9" in gap.reason) == (True, True)
    assert ("the deletion log has none of it any more" in gap.reason) is (log == "gone")


def test_what_a_hold_kept_is_not_called_erased_when_it_ends(settings: Settings) -> None:
    base = settings.estate_file.read_text()
    settings.estate_file.write_text(base + HOLD.replace("NAMED", "R-1").replace("app.users", "app.news"))
    asked(settings, PERSONS[0], days=[2])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    assert states(settings) == {"R-1": "carried_over"}
    settings.estate_file.write_text(base)
    users(settings, ["countess@example.net", *MAILS[1:]])
    found = plan_due(settings)
    assert (found.requests, found.marked, "key_only" in found.apart["R-1"]) == (("R-1",), False, True)


def test_the_log_is_pruned_when_what_was_kept_is_erased(settings: Settings) -> None:
    asked(settings, PERSONS[0], days=[2])
    narrowed(settings, asked=NOW - timedelta(hours=1))
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    logged(settings, plan)
    assert prune_log(settings, NOW + YEARS) is None
    again(settings, NOW)
    _, rest = made(settings, as_of=NOW + timedelta(hours=1))
    assert strategies(rest)["app.orders"] is Strategy.DELETE_BY_KEY
    logged(settings, rest, hours=2)
    assert prune_log(settings, NOW + YEARS) is not None
    assert open_log(settings).count() == 0


def test_a_request_file_erases_nothing_that_its_person_keeps(settings: Settings) -> None:
    (settings.base / "own.yaml").write_text(request("user", str(PERSONS[0])).replace("R-1", "OWN"))
    asked(settings, *PERSONS[:2], days=[2, 1])
    narrowed(settings, "R-2", asked=NOW - timedelta(hours=1))
    plan_by_file(settings, [settings.base / "own.yaml"])  # it is another person's data
    narrowed(settings, asked=NOW - timedelta(hours=1))
    with pytest.raises(UsageError, match="the person of the request OWN keeps data by the request R-1"):
        plan_by_file(settings, [settings.base / "own.yaml"])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    logged(settings, plan)
    with pytest.raises(UsageError, match="keeps data by the request R-1"):
        plan_by_file(settings, [settings.base / "own.yaml"])
    again(settings, NOW)
    _, rest = made(settings, as_of=NOW + timedelta(hours=1))
    begin_requests(settings, rest, NOW + timedelta(hours=1))
    ran(settings, rest)
    plan_by_file(settings, [settings.base / "own.yaml"])


def test_a_name_that_was_taken_back_does_not_come_back(settings: Settings) -> None:
    asked(settings, PERSONS[0], days=[2])
    narrowed(settings, asked=NOW - timedelta(hours=5))
    _, plan = made(settings)
    begin_requests(settings, plan, NOW - timedelta(hours=4))
    ran(settings, plan)
    logged(settings, plan, hours=-4)
    untold(settings, "I-1", 3)
    narrowed(settings, "I-1", take_back=["app.orders"], asked=NOW - timedelta(hours=2))
    _, rest = made(settings, as_of=NOW + timedelta(hours=1))
    begin_requests(settings, rest, NOW - timedelta(hours=1))
    ran(settings, rest)
    untold(settings, "I-2", 0)
    assert opened(settings).kept() == {}
    narrowed(settings, "I-2")
    assert list(opened(settings).kept()) == ["I-2"], "she may keep them again"


def untold(settings: Settings, name: str, hours: float) -> None:
    """She is to be erased since she was not seen for long, so many hours ago."""
    moment = (NOW - timedelta(hours=hours)).isoformat()
    took(settings, f"id,key,received,ground\n{name},{PERSONS[0]},{moment},inactivity\n", f"{name}.csv")
