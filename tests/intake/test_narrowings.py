"""Requests whose persons keep some data: what a plan keeps, who is refused, and how everything is asked for again."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.app.intake import due_requests_plan
from pii_tracer.app.intake.due_requests_plan import plan_due
from pii_tracer.app.intake.planned_requests import begin_requests, refuse_withdrawn
from pii_tracer.app.intake.request_states import narrow_request
from pii_tracer.app.settings import Settings
from pii_tracer.intake.kept_scopes import Wish, hold_of, write_narrowing
from pii_tracer.intake.requests import RequestState, Stored
from pii_tracer.intake.state_changes import carry_each_over
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import ConfigError, ExitCode, PersonsApart, Refused, UsageError
from pii_tracer.model.legal_holds import kept_as_asked, kept_unasked
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.attestation import exceptions_of
from tests.cli.small import declared
from tests.intake.places import NOW, ago, opened, took
from tests.intake.test_states import HOLD, PERSONS, SAID, asked, called, made, ran, states

KEEP = ("--keep", "app.orders")
ORDERS = "app.orders"


@pytest.fixture
def settings(tmp_path: Path, database: str | None) -> Settings:
    return shop(tmp_path, database)


def shop(base: Path, database: str | None = None, persons: Sequence[int] = PERSONS) -> Settings:
    """Users, and orders that a job writes from them."""
    subject = "  - name: user\n    source: app.users\n    key: user_id\n"
    store = f"request_store: {database}\n" if database else ""
    tables = {"app.users": "delta", "app.orders": "delta"}
    (base / "pii-tracer.yaml").write_text(declared("w", tables) + subject + store)
    (base / "policy.yaml").write_text("version: 1\n")
    (base / "jobs.sql").write_text("INSERT INTO app.orders SELECT user_id, city FROM app.users;\n")
    (base / "w").mkdir()
    for name in ("users", "orders"):
        write_deltalake(base / "w" / name, pa.table({"user_id": persons, "city": ["Pune"] * len(persons)}))
    return Settings(base / "pii-tracer.yaml", base / "state")


def narrowed(
    settings: Settings, name: str = "R-1", *keep: str, asked: datetime = NOW, take_back: Sequence[str] = ()
) -> Stored:
    wish = Wish(keep=keep if keep or take_back else (ORDERS,), take_back=tuple(take_back))
    return narrow_request(settings, name, wish, by="Meera", reason="her warranties", asked=asked)


def strategies(plan: ErasurePlan) -> dict[str, Strategy]:
    return {str(copy.table): copy.strategy for copy in plan.copies}


def again(settings: Settings, moment: datetime, name: str = "R-9", key: int = PERSONS[0]) -> None:
    """The first person asks for everything."""
    took(settings, f"id,key,received\n{name},{key},{moment.isoformat()}\n", f"{name}.csv")


def test_who_keeps_data_is_planned_apart_and_everybody_sees_what_stays(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(settings, *PERSONS[:3])
    assert called(settings, "requests", "narrow", "R-1", *KEEP, *SAID) == ExitCode.DONE
    assert "R-1 keeps app.orders; everything else is erased" in capsys.readouterr().out
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
    assert "1 copy not erased without an end date: the person's own request" in told
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
    assert (found.state, found.kept) == (RequestState.ERASED, (hold_of(ORDERS),))
    again(settings, NOW)
    assert opened(settings).find("R-9").repeats == "R-1"
    assert opened(settings).kept() == {}, "a new request is for everything"


def test_persons_who_keep_the_same_are_planned_together(settings: Settings) -> None:
    asked(settings, *PERSONS[:4])
    for name in ("R-1", "R-3"):
        narrowed(settings, name)
    narrowed(settings, "R-2", "app.users")
    assert [made(settings)[0].requests for _ in range(3)] == [("R-1", "R-3"), ("R-2",), ("R-4",)]


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
    assert narrowed(settings, "R-1", " app.orders ", "app.orders") == first
    assert len(opened(settings).narrowings("R-1")) == 1
    narrowed(settings, "R-1", "app.gone")
    assert [one.dataset for one in opened(settings).narrowings("R-1")] == [ORDERS, "app.gone"]
    _, plan = made(settings, carried_over=False)
    assert [gap.kind for gap in plan.gaps] == ["hold_unmatched"]
    assert states(settings) == {"R-1": "carried_over"}, "a name that is nothing's holds nobody else up"
    assert "hold_unmatched" in opened(settings).find("R-1").reason


def test_a_wrong_name_is_taken_back(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    asked(settings, PERSONS[0])
    narrowed(settings, "R-1", "app.gone")
    _, plan = made(settings)
    assert "`pii-tracer requests narrow REQUEST --take-back WRONG_NAME --keep RIGHT_NAME`" in plan.gaps[0].reason
    words = ["--take-back", "app.gone", "--keep", "app.orders", "--asked", NOW.isoformat(), *SAID]
    for _ in range(2):  # sent again
        assert called(settings, "requests", "narrow", "R-1", *words) == ExitCode.DONE
    assert "R-1 keeps app.orders; everything else" in capsys.readouterr().out
    known = opened(settings).narrowings("R-1")
    assert [(n.dataset, n.keeps, n.in_force) for n in known] == [
        ("app.gone", True, False),
        ("app.orders", True, True),
        ("app.gone", False, False),
    ]
    found, plan = made(settings, carried_over=True)
    assert (found.marked, strategies(plan)["app.orders"]) == (True, Strategy.EXEMPT)
    assert called(settings, "requests", "show", "R-1") == ExitCode.DONE
    assert "narrowing withdrawn by Meera Iyer: app.gone" in capsys.readouterr().out
    assert called(settings, "requests", "narrow", "R-1", "--take-back", "app.orders", *SAID) == ExitCode.USAGE
    assert f"requests release {plan.plan_id}" in capsys.readouterr().err
    assert called(settings, "requests", "release", plan.plan_id, *SAID) == ExitCode.DONE
    assert called(settings, "requests", "narrow", "R-1", "--take-back", "app.never", *SAID) == ExitCode.USAGE
    assert called(settings, "requests", "narrow", "R-1", "--take-back", "app.orders", *SAID) == ExitCode.DONE
    narrowed(settings)
    assert list(opened(settings).kept()) == ["R-1"], "it was right after all"


@pytest.mark.parametrize("word", ["withdraw", "refuse"])
def test_what_came_of_an_ended_request_is_not_kept_on(settings: Settings, word: str) -> None:
    asked(settings, PERSONS[0], days=[3])
    narrowed(settings, "R-1", "app.gone")
    assert called(settings, "requests", word, "R-1", *SAID) == ExitCode.DONE
    again(settings, NOW - timedelta(days=1))
    assert opened(settings).kept() == {}


def test_a_part_of_a_dataset_is_not_kept(settings: Settings) -> None:
    asked(settings, *PERSONS[:3])
    narrowed(settings, "R-1", "app.orders.city")
    narrowed(settings, "R-2", "w/orders/day=1")
    for name in ("R-1", "R-2"):
        _, plan = made(settings, carried_over=False)
        assert ("a part of app.orders, and a person can keep only the whole of it" in plan.gaps[0].reason) is True, name
    assert states(settings) == {"R-1": "carried_over", "R-2": "carried_over", "R-3": "received"}


def test_one_person_keeps_so_many_datasets_and_no_more(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    narrowed(settings, "R-1", *(f"app.t{n}" for n in range(20)))
    with pytest.raises(UsageError, match="20 datasets"):
        narrowed(settings, "R-1", "app.more")
    narrowed(settings, "R-1", "app.more", take_back=["app.t0"])


def test_a_dataset_without_her_data_keeps_nothing_and_is_said(settings: Settings) -> None:
    write_deltalake(settings.base / "w" / "other", pa.table({"x": [1]}))
    orders = "      - {name: app.orders, format: delta, location: w/orders}\n"
    settings.estate_file.write_text(
        settings.estate_file.read_text().replace(orders, orders + orders.replace("orders", "other"))
    )
    asked(settings, *PERSONS[:2])
    narrowed(settings, "R-1", "app.other")
    _, plan = made(settings)
    assert [(gap.kind, "this place has no copy of the persons' data" in gap.reason) for gap in plan.gaps] == [
        ("hold_unmatched", True)
    ]
    waiver = {"why": "she is not there", "who": "Meera", "until": ago(-90), "of": plan.gaps[0].seen}
    (settings.base / "waivers.yaml").write_text(json.dumps({plan.gaps[0].id: waiver}))
    found, plan = made(settings, carried_over=True, waivers=settings.base / "waivers.yaml")
    assert (found.marked, opened(settings).find("R-1").kept, plan.holds[0].copies) == (True, (), ())
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    assert opened(settings).find("R-1").kept == ()


def test_who_cannot_be_planned_holds_up_no_other_carried_over_group(settings: Settings) -> None:
    asked(settings, 4417700199, *PERSONS[:3], days=[9, 5, 4, 3])
    narrowed(settings)
    narrowed(settings, "R-2", "app.gone")
    assert made(settings)[0].requests == ("R-2",)
    carry_each_over(opened(settings), {"R-3": "a gap of hers", "R-4": "a gap of hers"}, NOW)
    found, _ = made(settings, carried_over=True)
    assert (found.requests, found.marked, found.apart.keys()) == (("R-3", "R-4"), True, {"R-1", "R-2"})
    found, plan = made(settings, carried_over=True)
    assert (found.requests, found.marked, plan.gaps[0].kind) == (("R-2",), False, "hold_unmatched")


@pytest.mark.parametrize("wish", ["app.users", None])
def test_what_is_asked_for_after_planning_stops_the_plan(
    settings: Settings, wish: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Written into the store past the commands, which refuse it while a plan has the request; or asked for again."""
    asked(settings, PERSONS[0])
    narrowed(settings, asked=NOW - timedelta(days=0.5))
    found, plan = made(settings)
    assert found.written is not None
    if wish:
        with opened(settings).writing() as connection:
            row = ("R-1", wish, 1, NOW.isoformat(), NOW.isoformat(), "Meera", "r")
            write_narrowing(connection, row)
    else:
        again(settings, NOW)
    path = str(found.written.path)
    assert called(settings, "check", path) == ExitCode.POLICY_DENIED
    assert "1 person asks to keep other data now" in capsys.readouterr().out
    words = ["--approver", "asha", "--role", "dpo", "--reason", "r", "--unsigned"]
    assert called(settings, "approve", path, *words) == ExitCode.NOT_APPROVED
    assert f"requests release {plan.plan_id}" in capsys.readouterr().err
    for refused in (lambda: refuse_withdrawn(settings, plan), lambda: begin_requests(settings, plan, NOW)):
        with pytest.raises(Refused, match="narrowed, or widened again"):
            refused()
    assert opened(settings).find("R-1").begun is None


def test_only_the_person_herself_asks_for_everything(settings: Settings) -> None:
    asked(settings, PERSONS[0], days=[3])
    narrowed(settings, asked=NOW - timedelta(hours=3))
    rows = f"id,key,received,ground\nI-1,{PERSONS[0]},{(NOW - timedelta(hours=2)).isoformat()},inactivity\n"
    assert took(settings, rows, "i.csv").widened == {}
    narrowed(settings, "R-1", "app.users", asked=NOW - timedelta(hours=2.5))
    narrowed(settings, "R-1", take_back=["app.users"])
    _, plan = made(settings)
    assert strategies(plan)["app.orders"] is Strategy.EXEMPT
    begin_requests(settings, plan, NOW - timedelta(hours=1))
    ran(settings, plan)
    assert states(settings) == {"R-1": "erased"}


def test_who_widens_a_request_is_told_what_is_kept_no_more(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(settings, PERSONS[0], days=[3])
    narrowed(settings, asked=NOW - timedelta(hours=3))
    (settings.base / "l.csv").write_text(f"id,key,received\nR-9,{PERSONS[0]},{NOW.isoformat()}\n")
    words = ["--subject", "user", "--law", "GDPR", str(settings.base / "l.csv")]
    assert called(settings, "requests", "add", *words) == ExitCode.DONE
    assert "R-1 no longer keeps app.orders, because the person asked to erase everything" in capsys.readouterr().out


def test_what_stays_along_with_what_she_keeps_is_not_answered_as_erased(settings: Settings) -> None:
    """A branch, or a key, of what she keeps: she did not ask for that."""
    asked(settings, PERSONS[0])
    narrowed(settings, asked=NOW - timedelta(hours=1))
    _, plan = made(settings)
    [orders] = [copy for copy in plan.copies if copy.table == ORDERS]
    assert kept_as_asked(plan, orders)
    branch = orders.model_copy(update={"id": "c-app.orders@b", "origin": orders.id})
    holds = tuple(hold.model_copy(update={"copies": (orders.id, branch.id)}) for hold in plan.holds)
    more = plan.model_copy(update={"copies": (*plan.copies, branch), "holds": holds})
    assert kept_unasked(more) == (branch,)
    begin_requests(settings, more, NOW)
    ran(settings, more)
    found = opened(settings).find("R-1")
    assert (found.state, found.holds) == (RequestState.CARRIED_OVER, (hold_of(ORDERS),))
    assert "1 copy of it without being asked for" in found.reason
    assert plan_due(settings).written is None, "it stays until she asks for everything"
    again(settings, NOW)
    found, whole = made(settings)
    assert (found.requests, whole.holds) == (("R-1",), ())


def test_what_was_kept_is_erased_when_she_asks_for_everything_later(settings: Settings) -> None:
    """The source knows her no more: it was erased by the run that kept the rest."""
    asked(settings, *PERSONS[:2], days=[2, 1])
    narrowed(settings, asked=NOW - timedelta(hours=1))
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    rmtree(settings.base / "w" / "users")
    write_deltalake(settings.base / "w" / "users", pa.table({"user_id": PERSONS[1:], "city": ["Pune"] * 4}))
    rows = f"id,key,received,ground\nI-1,{PERSONS[0]},{NOW.isoformat()},inactivity\n"
    took(settings, rows, "i.csv")
    assert plan_due(settings).requests == ("R-2",)
    assert not plan_due(settings).marked
    assert "kept by the hold" in opened(settings).find("I-1").reason, "she keeps it still"
    again(settings, NOW)
    assert opened(settings).kept() == {}
    found, rest = made(settings)
    assert (found.requests, found.marked) == (("I-1",), True)
    assert strategies(rest)["app.orders"] is Strategy.DELETE_BY_KEY


def test_what_a_run_may_have_erased_is_not_kept_after_a_second_plan(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    _, first = made(settings)
    begin_requests(settings, first, NOW)
    ran(settings, first, proved=False)
    _, second = made(settings, carried_over=True, as_of=NOW + timedelta(hours=1))
    assert called(settings, "requests", "release", second.plan_id, *SAID) == ExitCode.DONE
    with pytest.raises(UsageError, match="has begun"):
        narrowed(settings)


def test_a_name_with_her_key_in_any_writing_is_refused(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    key = str(PERSONS[0])
    names = [f"app.t{key}x", b64encode(key.encode()).decode(), sha256(key.encode()).hexdigest(), f"w/user={key}"]
    for name in names:
        with pytest.raises(UsageError, match="contains the person's key"):
            narrowed(settings, "R-1", name)
    assert opened(settings).narrowings("R-1") == ()


def test_a_name_with_another_value_of_hers_is_in_no_plan(tmp_path: Path) -> None:
    settings = shop(tmp_path)
    mails = [f"ada{n}.lovelace@example.org" for n in range(len(PERSONS))]
    users = pa.table({"user_id": PERSONS, "email": mails, "city": ["Pune"] * len(PERSONS)})
    write_deltalake(settings.base / "w" / "users", users, mode="overwrite", schema_mode="overwrite")
    with settings.estate_file.open("a") as file:
        file.write("    identifiers: [{column: email, category: email}]\n")
    asked(settings, *PERSONS[:2])
    narrowed(settings, "R-1", "orders/ada0.lovelace@example.org")
    found, _ = made(settings)
    assert (found.requests, "name of what the person keeps" in found.apart["R-1"]) == (("R-2",), True)
    with pytest.raises(PersonsApart) as refused:
        plan_due(settings, carried_over=True)
    assert "not in the estate file" in str(refused.value.where)


def test_a_name_that_could_mean_two_places_holds_nobody_else_up(settings: Settings) -> None:
    write_deltalake(settings.base / "w" / "old" / "w" / "orders", pa.table({"user_id": PERSONS}))
    orders = "      - {name: app.orders, format: delta, location: w/orders}\n"
    old = orders.replace("app.orders", "app.old").replace("w/orders", "w/old/w/orders")
    settings.estate_file.write_text(settings.estate_file.read_text().replace(orders, orders + old))
    with (settings.base / "jobs.sql").open("a") as file:
        file.write("INSERT INTO app.old SELECT user_id FROM app.users;\n")
    asked(settings, *PERSONS[:2])
    narrowed(settings, "R-1", "w/orders")
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
    true = due_requests_plan.plan

    def meanwhile(*given: Any, **options: Any) -> Any:
        written = true(*given, **options)
        again(settings, NOW) if widens else narrowed(settings)
        return written

    monkeypatch.setattr(due_requests_plan, "plan", meanwhile)
    with pytest.raises(UsageError, match="while this plan was made"):
        plan_due(settings)
    assert states(settings) == {"R-1": "received"}


def test_who_asks_for_everything_again_is_erased_completely(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    narrowed(settings, asked=NOW - timedelta(hours=2))
    again(settings, NOW - timedelta(hours=1))
    [one] = opened(settings).narrowings("R-1")
    assert one.lapsed
    with pytest.raises(UsageError, match="asked again for the erasure"):
        narrowed(settings, asked=NOW - timedelta(hours=2))
    _, plan = made(settings)
    assert plan.holds == ()


def test_a_letter_of_before_the_run_that_comes_in_while_it_lasts_is_a_new_request(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    narrowed(settings, asked=NOW - timedelta(hours=3))
    _, plan = made(settings)
    begin_requests(settings, plan, NOW - timedelta(hours=1))
    again(settings, NOW - timedelta(hours=2))
    refuse_withdrawn(settings, plan)  # what has begun goes on
    ran(settings, plan)
    [rest] = opened(settings).requests(RequestState.RECEIVED)
    assert (rest.repeats, rest.received) == ("R-1", NOW - timedelta(hours=2))
    assert opened(settings).kept() == {}


def test_values_and_wrong_words_are_refused(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    asked(settings, PERSONS[0], days=[3])
    key = str(PERSONS[0])
    for words in (
        [*KEEP, "--by", "Meera", "--reason", f"order of {key}"],
        ["--keep", f"app.orders_{key}", *SAID],
        ["--keep", "a\nb", *SAID],
        ["--keep", " ", *SAID],
        SAID,
        [*KEEP, "--take-back", "app.orders", *SAID],
        [*KEEP, "--column", "city", *SAID],
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
    words = [*KEEP, "--asked", ago(0.5), *SAID]
    assert called(settings, "requests", "narrow", "R-1", *words) == ExitCode.DONE
    capsys.readouterr()
    assert called(settings, "requests", "show", "R-1") == ExitCode.DONE
    assert "narrowed by Meera Iyer, keeps app.orders: as agreed" in capsys.readouterr().out
    assert called(settings, "requests", "show", "R-1", "--format", "json") == ExitCode.DONE
    [one] = json.loads(capsys.readouterr().out)["narrowings"]
    assert (one["who"], one["reason"], one["lapsed"]) == ("Meera Iyer", "as agreed", False)
    assert (one["dataset"], one["hold"]) == ("app.orders", hold_of("app.orders"))


def test_no_estate_file_has_a_person_s_own_request(tmp_path: Path) -> None:
    settings = shop(tmp_path)
    with settings.estate_file.open("a") as file:
        file.write(HOLD.replace("NAMED", "R-1").replace("legal_hold", "own_request"))
    with pytest.raises(ConfigError, match="requests narrow"):
        settings.estate()
