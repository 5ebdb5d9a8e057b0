"""Requests whose persons keep some data: what a plan keeps, who is refused, and how everything is asked for again."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.app.intake import due_requests
from pii_tracer.app.intake.due_requests import forecast_requests, plan_due
from pii_tracer.app.intake.planned_requests import begin_requests, refuse_withdrawn
from pii_tracer.app.intake.request_states import narrow_request
from pii_tracer.app.settings import Settings
from pii_tracer.intake.kept_scopes import Scope
from pii_tracer.intake.requests import RequestState, Stored
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import ConfigError, ExitCode, Refused, UsageError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.attestation import exceptions_of
from tests.cli.small import declared
from tests.intake.places import NOW, ago, opened, took
from tests.intake.test_states import HOLD, PERSONS, SAID, asked, called, made, ran, states

KEEP = ("--keep", "app.orders")
ORDERS = Scope(datasets=("app.orders",))


@pytest.fixture
def settings(tmp_path: Path, database: str | None) -> Settings:
    return shop(tmp_path, database)


def shop(base: Path, database: str | None = None) -> Settings:
    """Users, and orders that a job writes from them."""
    subject = "  - name: user\n    source: app.users\n    key: user_id\n"
    store = f"request_store: {database}\n" if database else ""
    tables = {"app.users": "delta", "app.orders": "delta"}
    (base / "pii-tracer.yaml").write_text(declared("w", tables) + subject + store)
    (base / "policy.yaml").write_text("version: 1\n")
    (base / "jobs.sql").write_text("INSERT INTO app.orders SELECT user_id, city FROM app.users;\n")
    (base / "w").mkdir()
    for name in ("users", "orders"):
        write_deltalake(base / "w" / name, pa.table({"user_id": PERSONS, "city": ["Pune"] * len(PERSONS)}))
    return Settings(base / "pii-tracer.yaml", base / "state")


def narrowed(settings: Settings, name: str = "R-1", scope: Scope = ORDERS, asked: datetime = NOW) -> Stored:
    return narrow_request(settings, name, scope, by="Meera", reason="her warranties", asked=asked)


def strategies(plan: ErasurePlan) -> dict[str, Strategy]:
    return {str(copy.table): copy.strategy for copy in plan.copies}


def again(settings: Settings, moment: datetime, name: str = "R-9") -> None:
    """The first person asks for everything."""
    took(settings, f"id,key,received\n{name},{PERSONS[0]},{moment.isoformat()}\n", f"{name}.csv")


def test_who_keeps_data_is_planned_apart_and_everybody_sees_what_stays(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(settings, *PERSONS[:3])
    assert called(settings, "requests", "narrow", "R-1", *KEEP, *SAID) == ExitCode.DONE
    assert "R-1 keeps app.orders; all else is erased" in capsys.readouterr().out
    due = opened(settings).find("R-1").due
    first, plan = made(settings)
    assert (first.requests, first.marked) == (("R-1",), True)
    assert strategies(plan) == {"app.users": Strategy.DELETE_BY_KEY, "app.orders": Strategy.EXEMPT}
    [hold] = plan.holds
    assert (hold.kind, hold.until, hold.copies) == ("own_request", None, ("c-app.orders",))
    assert opened(settings).find("R-1").due == due
    [kept] = exceptions_of(plan, [])
    assert (kept.what, kept.who, "the person's own request" in kept.why) == ("c-app.orders", "the person", True)
    assert first.written is not None
    assert "Meera" not in first.written.path.read_text()
    assert called(settings, "check", str(first.written.path)) == ExitCode.DONE
    told = capsys.readouterr().out
    assert "1 copy not erased until further notice: the person's own request" in told
    assert "own request" in first.written.path.with_suffix("").with_suffix(".md").read_text()
    others, whole = made(settings)
    assert others.requests == ("R-2", "R-3")
    assert (whole.holds, set(strategies(whole).values())) == ((), {Strategy.DELETE_BY_KEY})


def test_a_proved_run_answers_who_keeps_data_for_good(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    narrowed(settings, asked=NOW - timedelta(hours=1))
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    found = opened(settings).find("R-1")
    assert (found.state, found.kept) == (RequestState.ERASED, (ORDERS.hold,))
    again(settings, NOW)
    assert opened(settings).find("R-9").repeats == "R-1"
    assert opened(settings).kept(NOW) == {}, "a new request is for everything"


def test_persons_who_keep_the_same_are_planned_together(settings: Settings) -> None:
    asked(settings, *PERSONS[:4])
    for name in ("R-1", "R-3"):
        narrowed(settings, name)
    narrowed(settings, "R-2", Scope(datasets=("app.orders",), columns=("city",)))
    assert [made(settings)[0].requests for _ in range(3)] == [("R-1", "R-3"), ("R-2",), ("R-4",)]


def test_what_is_kept_until_a_day_is_erased_after_it(settings: Settings) -> None:
    (settings.base / "policy.yaml").write_text("version: 1\nbatches: {every_hours: 24, takes_days: 2}\n")
    end = NOW + timedelta(days=3)
    scope = Scope(datasets=("app.orders",), until=end)
    asked(settings, PERSONS[0])
    narrowed(settings, scope=scope)
    _, plan = made(settings, as_of=NOW)
    assert plan.totals.recheck_on == end
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    found = opened(settings).find("R-1")
    assert (found.state, found.holds) == (RequestState.CARRIED_OVER, (scope.hold,))
    assert plan_due(settings, as_of=NOW + timedelta(days=1)).written is None
    [batch] = forecast_requests(settings, as_of=NOW).batches
    assert (batch.requests, batch.begins >= end) == (("R-1",), True)
    rest, whole = made(settings, as_of=end + timedelta(days=1))
    assert (rest.requests, whole.holds) == (("R-1",), ())


def test_what_was_narrowed_late_counts_for_a_plan_of_before(settings: Settings) -> None:
    """A hold of the estate file that began after the deadline would not."""
    asked(settings, PERSONS[0], days=[60])
    narrowed(settings)
    _, plan = made(settings, as_of=NOW - timedelta(days=40))
    assert strategies(plan)["app.orders"] is Strategy.EXEMPT


def test_a_hold_of_the_estate_file_outlasts_the_answer(settings: Settings) -> None:
    with settings.estate_file.open("a") as file:
        file.write(HOLD.replace("NAMED", "R-1").replace("app.users", "app.orders"))
    asked(settings, PERSONS[0])
    narrowed(settings)
    _, plan = made(settings)
    assert {hold.kind for hold in plan.holds} == {"legal_hold", "own_request"}
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    assert opened(settings).find("R-1").holds == ("dispute",)


def test_the_same_twice_is_once_and_more_is_added(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    first = narrowed(settings)
    assert narrowed(settings, asked=NOW - timedelta(minutes=1)) == first
    assert narrowed(settings, scope=Scope(datasets=(" app.orders ", "app.orders"))) == first
    assert len(opened(settings).narrowings("R-1")) == 1
    more = Scope(datasets=("app.gone",))
    narrowed(settings, scope=more)
    assert [one.scope for one in opened(settings).narrowings("R-1")] == sorted([ORDERS, more], key=lambda s: s.hold)
    _, plan = made(settings, carried_over=False)
    assert [gap.kind for gap in plan.gaps] == ["hold_unmatched"]
    assert states(settings) == {"R-1": "carried_over"}, "a name that is nothing's holds nobody else up"
    assert "hold_unmatched" in opened(settings).find("R-1").reason


def test_a_name_that_could_mean_two_places_holds_nobody_else_up(settings: Settings) -> None:
    write_deltalake(settings.base / "w" / "old" / "w" / "orders", pa.table({"user_id": PERSONS}))
    orders = "      - {name: app.orders, format: delta, location: w/orders}\n"
    old = orders.replace("app.orders", "app.old").replace("w/orders", "w/old/w/orders")
    settings.estate_file.write_text(settings.estate_file.read_text().replace(orders, orders + old))
    with (settings.base / "jobs.sql").open("a") as file:
        file.write("INSERT INTO app.old SELECT user_id FROM app.users;\n")
    asked(settings, *PERSONS[:2])
    narrowed(settings, scope=Scope(datasets=("w/orders",)))
    found, _ = made(settings)
    assert (found.requests, "several places" in found.apart["R-1"]) == (("R-2",), True)


def test_while_a_plan_or_a_run_has_it_a_request_is_not_narrowed(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(settings, PERSONS[0])
    _, plan = made(settings)
    assert called(settings, "requests", "narrow", "R-1", *KEEP, *SAID) == ExitCode.USAGE
    assert f"requests release {plan.plan_id}" in capsys.readouterr().err
    assert called(settings, "requests", "release", plan.plan_id, *SAID) == ExitCode.DONE
    assert called(settings, "requests", "narrow", "R-1", *KEEP, *SAID) == ExitCode.DONE
    with pytest.raises(Refused):
        refuse_withdrawn(settings, plan)
    _, second = made(settings, as_of=NOW + timedelta(hours=1))
    assert called(settings, "requests", "narrow", "R-1", *KEEP, *SAID) == ExitCode.DONE, "it is narrowed so already"
    begin_requests(settings, second, NOW)
    capsys.readouterr()
    assert called(settings, "requests", "narrow", "R-1", "--keep", "app.users", *SAID) == ExitCode.USAGE
    assert "declare a hold" in capsys.readouterr().err
    ran(settings, second)
    assert called(settings, "requests", "narrow", "R-1", *KEEP, *SAID) == ExitCode.USAGE


@pytest.mark.parametrize("widens", [False, True])
def test_a_plan_is_not_bound_to_what_was_narrowed_or_widened_meanwhile(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, widens: bool
) -> None:
    """The plan that was being made would erase what is to be kept, or keep what is to be erased."""
    asked(settings, PERSONS[0])
    if widens:
        narrowed(settings, asked=NOW - timedelta(days=1))
    true = due_requests.plan

    def meanwhile(*given: Any, **options: Any) -> Any:
        written = true(*given, **options)
        again(settings, NOW) if widens else narrowed(settings)
        return written

    monkeypatch.setattr(due_requests, "plan", meanwhile)
    with pytest.raises(UsageError, match="while this plan was made"):
        plan_due(settings)
    assert states(settings) == {"R-1": "received"}


def test_who_asks_for_everything_again_is_erased_completely(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    narrowed(settings, asked=NOW - timedelta(hours=2))
    again(settings, NOW - timedelta(hours=1))
    [one] = opened(settings).narrowings("R-1")
    assert one.lapsed
    with pytest.raises(UsageError, match="asked again after that"):
        narrowed(settings, asked=NOW - timedelta(hours=2))
    _, plan = made(settings)
    assert plan.holds == ()


def test_who_asks_for_everything_while_a_plan_keeps_something_gets_a_new_request(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    narrowed(settings, asked=NOW - timedelta(hours=3))
    _, plan = made(settings)
    again(settings, NOW - timedelta(hours=2))
    begin_requests(settings, plan, NOW - timedelta(hours=1))
    ran(settings, plan)
    [rest] = opened(settings).requests(RequestState.RECEIVED)
    assert (rest.repeats, rest.received) == ("R-1", NOW - timedelta(hours=2))
    assert opened(settings).kept(NOW) == {}


def test_values_and_wrong_words_are_refused(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    asked(settings, PERSONS[0], days=[3])
    key = str(PERSONS[0])
    for words in (
        [*KEEP, "--by", "Meera", "--reason", f"order of {key}"],
        ["--keep", f"app.orders_{key}", *SAID],
        [*KEEP, "--category", "a\nb", *SAID],
        ["--keep", " ", *SAID],
        [*KEEP, "--until", ago(1), *SAID],
        [*KEEP, "--asked", ago(-1), *SAID],
        [*KEEP, "--asked", ago(4), *SAID],
        [*KEEP, "--by", " ", "--reason", "x"],
    ):
        assert called(settings, "requests", "narrow", "R-1", *words) == ExitCode.USAGE, words
    assert called(settings, "requests", "narrow", "R-7", *KEEP, *SAID) == ExitCode.USAGE
    assert key not in "".join(capsys.readouterr())
    assert opened(settings).narrowings("R-1") == ()
    assert called(settings, "requests", "withdraw", "R-1", *SAID) == ExitCode.DONE
    assert called(settings, "requests", "narrow", "R-1", *KEEP, *SAID) == ExitCode.USAGE


def test_what_is_kept_is_shown_with_who_said_so(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    asked(settings, PERSONS[0])
    words = [*KEEP, "--column", "city", "--until", ago(-9), "--asked", ago(0.5), *SAID]
    assert called(settings, "requests", "narrow", "R-1", *words) == ExitCode.DONE
    capsys.readouterr()
    assert called(settings, "requests", "show", "R-1") == ExitCode.DONE
    assert "narrowed by Meera Iyer, keeps app.orders (only city), until" in capsys.readouterr().out
    assert called(settings, "requests", "show", "R-1", "--format", "json") == ExitCode.DONE
    [one] = json.loads(capsys.readouterr().out)["narrowings"]
    assert (one["who"], one["reason"], one["lapsed"]) == ("Meera Iyer", "as agreed", False)
    assert (one["scope"]["datasets"], one["scope"]["columns"]) == (["app.orders"], ["city"])


def test_no_estate_file_has_a_person_s_own_request(tmp_path: Path) -> None:
    settings = shop(tmp_path)
    with settings.estate_file.open("a") as file:
        file.write(HOLD.replace("NAMED", "R-1").replace("legal_hold", "own_request"))
    with pytest.raises(ConfigError, match="requests narrow"):
        settings.estate()
