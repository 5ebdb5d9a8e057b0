"""Data that somebody kept, or that a hold kept, and that is to be erased later: what was known of them is known still."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pii_tracer.app.execution.run_folder import RunInfo, folder_of
from pii_tracer.app.intake.due_requests_plan import plan_due
from pii_tracer.app.intake.planned_requests import begin_requests, refuse_withdrawn
from pii_tracer.app.planning.erasure_plan import plan as plan_by_file
from pii_tracer.app.planning.plan_files import key_sets_at_hand
from pii_tracer.app.proof.deletion_log_access import open_log, prune_log
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run
from pii_tracer.intake.kept_scopes import hold_of
from pii_tracer.intake.requests import RequestState
from pii_tracer.intake.state_changes import Said, release
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import ExitCode, Refused, UsageError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.deletions.deletion_log import FILE, DeletionLog
from pii_tracer.proof.deletions.entries import Entry, EntryState, Selection
from pii_tracer.review.plan_file import load_plan
from pii_tracer.review.policy_rules import why_unapplyable
from pii_tracer.verify.verdicts import ByteVerdict, RunVerdict, with_since
from tests.cli.small import request as request_file
from tests.intake.places import NOW, opened, took
from tests.intake.test_narrowings import again, narrowed, shop, strategies
from tests.intake.test_states import HOLD, PERSONS, asked, called, made, ran, states
from tests.proof.deletion_log.grouped import groups

MAILS = [f"ada{n}.lovelace@example.org" for n in range(len(PERSONS))]
YEARS = timedelta(days=2600)
APPROVER = ("--approver", "asha", "--role", "dpo", "--reason", "r", "--unsigned")


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


def logged(
    settings: Settings,
    plan: ErasurePlan,
    hours: float = 0,
    *,
    persons: int = 1,
    whose: int = 0,
    state: EntryState = EntryState.ERASED,
) -> None:
    """What the run of a plan writes into the deletion log: what is held is exempt, all else is erased. persons: so many
    of the plan's, from this one on (whose). state: of what is not held."""
    entries = []
    for request, copy in product(plan.requests[whose : whose + persons], plan.copies):
        held = copy.strategy is Strategy.EXEMPT
        entries.append(
            Entry(
                request_id=request.id,
                subject=request.subject,
                plan_id=plan.plan_id,
                step_id="" if held else f"{copy.id}/99-verify",
                copy_id=copy.id,
                dataset=str(copy.dataset),
                format=copy.format,
                action=None if held else Action.VERIFY_COPY,
                state=EntryState.EXEMPT if held else state,
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
    assert ("the deletion log does not contain it any more" in gap.reason) is (log == "gone")


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
    (settings.base / "own.yaml").write_text(request_file("user", str(PERSONS[0])).replace("R-1", "OWN"))
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


def test_pruning_names_the_request_that_stops_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = shop(tmp_path)
    settings.estate_file.write_text(settings.estate_file.read_text() + "deletion_log: {keep_days: 365}\n")
    asked(settings, PERSONS[0], days=[2])
    narrowed(settings, asked=NOW - timedelta(hours=1))
    _, plan = made(settings)
    logged(settings, plan)
    for moment, told in ((NOW + timedelta(days=300), False), (NOW + YEARS, True)):
        assert called(settings, "log", "prune", "--as-of", moment.isoformat()) == ExitCode.DONE
        assert ("the rows of the request R-1 stay" in capsys.readouterr().err) is told


@pytest.mark.parametrize("since", ["narrowed", "erased"])
def test_a_plan_of_a_request_file_erases_nothing_that_its_person_keeps_since(
    tmp_path: Path, since: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = shop(tmp_path)
    (tmp_path / "own.yaml").write_text(request_file("user", str(PERSONS[0])).replace("R-1", "OWN"))
    path = str(tmp_path / "o.plan.json")
    assert called(settings, "plan", str(tmp_path / "own.yaml"), "--out", path) == ExitCode.DONE
    asked(settings, *PERSONS[:2], days=[3, 2])
    narrowed(settings, "R-2", asked=NOW - timedelta(hours=1))  # it is another person's data
    assert called(settings, "check", path) == called(settings, "approve", path, *APPROVER) == ExitCode.DONE
    narrowed(settings, asked=NOW - timedelta(hours=1))
    if since == "erased":
        _, plan = made(settings)
        begin_requests(settings, plan, NOW)
        ran(settings, plan)
    capsys.readouterr()
    assert called(settings, "check", path) == ExitCode.POLICY_DENIED
    assert "1 person asks to keep other data now" in capsys.readouterr().out
    assert called(settings, "approve", path, *APPROVER) == ExitCode.NOT_APPROVED
    assert called(settings, "apply", path) == ExitCode.ERROR
    assert "the person of the request OWN keeps data by the request R-1" in capsys.readouterr().err
    assert PERSONS[0] in DeltaTable(str(tmp_path / "w" / "orders")).to_pyarrow_table().column("user_id").to_pylist()
    loaded = load_plan(Path(path)).plan
    values = partial(key_sets_at_hand, settings, loaded, Path(path))
    with pytest.raises(Refused, match="keeps data by the request R-1"):
        begin_requests(settings, loaded, NOW, values)


def test_a_run_that_has_touched_data_is_gone_on_with(tmp_path: Path) -> None:
    settings = shop(tmp_path)
    (tmp_path / "own.yaml").write_text(request_file("user", str(PERSONS[0])).replace("R-1", "OWN"))
    plan = plan_by_file(settings, [tmp_path / "own.yaml"], out=tmp_path / "o.plan.json").plan
    values = partial(key_sets_at_hand, settings, plan, tmp_path / "o.plan.json")
    asked(settings, PERSONS[0])
    narrowed(settings)
    with pytest.raises(Refused):
        refuse_withdrawn(settings, plan, values)
    journal = folder_of(settings.state, plan.plan_id).journal
    journal.parent.mkdir(parents=True)
    journal.touch()
    refuse_withdrawn(settings, plan, values)


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


def test_who_asks_for_everything_when_nothing_is_left_is_answered_by_a_proved_search(
    tmp_path: Path, database: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = shop(tmp_path, database)
    empty, path = nothing_left(settings)
    assert called(settings, "check", path) == ExitCode.DONE
    assert called(settings, "approve", path, *APPROVER) == ExitCode.DONE
    assert called(settings, "apply", path) == ExitCode.DONE
    assert "not verified" not in capsys.readouterr().out
    answered = opened(settings).find("R-9")
    assert (answered.state, answered.kept, answered.proof is not None) == (RequestState.ERASED, (), True)
    [row] = open_log(settings).entries(Selection(plan=empty.plan_id))
    assert (row.request_id, row.state, row.subject) == ("R-9", EntryState.ERASED, empty.requests[0].subject)
    folder = settings.state / "runs" / empty.plan_id
    key = str(settings.state / "keys" / "attest.pem.pub")
    assert run(["attest", "verify", str(folder / "attestation.json"), "--key", key]) == ExitCode.DONE
    state = ("--state", str(settings.state))
    assert run(["attest", "certificate", empty.plan_id, *state]) == ExitCode.DONE
    page = (folder / "certificate.html").read_text()
    assert ("nothing was left to erase" in page, "Where it was erased" in page) == (True, False)
    assert called(settings, "attest", "answer", "--request", "R-9") == ExitCode.DONE, "the store knows its run"
    assert "nothing more of your data was found" in next(folder.rglob("answer-*.html")).read_text()
    scope = next(folder.rglob("scope.jsonl")).read_text()
    assert ("(no copy) app.orders/" in scope, "(no copy) app.users/" in scope) == (True, True)


@pytest.mark.parametrize("key", [103, 1003, 123403, 12345603, 4417700103])
@pytest.mark.parametrize("table", ["users", "orders"])
def test_a_person_who_came_back_is_not_called_erased_however_short_the_key_is(
    tmp_path: Path, key: int, table: str
) -> None:
    settings = shop(tmp_path, persons=[key, key + 1, key + 2])
    _, path = nothing_left(settings, key)
    place = settings.base / "w" / table
    write_deltalake(place, pa.table({"user_id": [key], "city": ["Pune"]}), mode="append")
    assert called(settings, "approve", path, *APPROVER) == ExitCode.DONE
    assert called(settings, "apply", path) != ExitCode.DONE
    found = opened(settings).find("R-9")
    assert (found.state, "something of the persons is left" in found.reason) == (RequestState.CARRIED_OVER, True)
    assert called(settings, "verify", path) == ExitCode.RESIDUE
    [row] = open_log(settings).entries(Selection(request="R-9"))
    assert (row.state, row.dataset) == (EntryState.DEFERRED, "")


def nothing_left(settings: Settings, key: int = PERSONS[0]) -> tuple[ErasurePlan, str]:
    """A run erased her but for her orders, which the shop's own retention took; then she asks for everything."""
    asked(settings, key, days=[3])
    narrowed(settings, asked=NOW - timedelta(hours=1))
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    logged(settings, plan)
    for name in ("users", "orders"):
        without(settings, name)
    again(settings, NOW, key=key)
    found, empty = made(settings)
    assert (found.requests, found.marked, empty.copies, empty.complete) == (("R-9",), True, (), True)
    assert found.written is not None
    return empty, str(found.written.path)


def test_where_nothing_is_left_every_place_has_to_be_read() -> None:
    unread = [ByteVerdict(copy_id="(no copy) app.users", root="r", files=(), unverified=("a.parquet: damaged",))]
    assert with_since(RunVerdict(copies=()), unread, no_copies=True).unverified
    assert not with_since(RunVerdict(copies=()), unread).unverified


@pytest.mark.parametrize("log", ["blocked", "deferred", "shared", "gone"])
def test_a_run_that_does_not_show_whose_rows_it_erased_proves_no_key(tmp_path: Path, log: str) -> None:
    settings = shop(tmp_path)
    asked(settings, *PERSONS[:2], days=[3, 2])
    for name in ("R-1", "R-2"):
        narrowed(settings, name, asked=NOW - timedelta(hours=1))
    found, plan = made(settings)
    assert found.requests == ("R-1", "R-2")
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    if log == "shared":
        logged(settings, plan, persons=2)
    elif log != "gone":
        logged(settings, plan, state=EntryState(log))
    for name in ("users", "orders"):
        without(settings, name, 2)
    again(settings, NOW)
    found, empty = made(settings)
    assert (found.marked, empty.copies, empty.applyable) == (False, (), False)
    assert "does not show that the key is right" in found.apart["R-9"]
    assert "does not show that the key is right" in opened(settings).find("R-9").reason


def test_who_is_shown_by_the_log_does_not_wait_for_who_is_not(tmp_path: Path) -> None:
    settings = shop(tmp_path)
    asked(settings, *PERSONS[:2], days=[3, 2])
    for name in ("R-1", "R-2"):
        narrowed(settings, name, asked=NOW - timedelta(hours=1))
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    logged(settings, plan, whose=1)
    for name in ("users", "orders"):
        without(settings, name, 2)
    again(settings, NOW - timedelta(minutes=2), "R-8")
    again(settings, NOW, key=PERSONS[1])
    found, empty = made(settings)
    assert (found.requests, found.marked, list(found.apart)) == (("R-9",), True, ["R-8"])
    assert (empty.copies, empty.applyable) == ((), True)


@pytest.mark.parametrize("option", [False, True], ids=["by the store", "--source-erased"])
def test_what_is_found_of_one_person_shows_no_other_s_key(tmp_path: Path, option: bool) -> None:
    settings = shop(tmp_path)
    asked(settings, *PERSONS[:2], days=[3, 2])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW - timedelta(hours=3))
    ran(settings, plan)
    without(settings, "users", 2)
    rows = DeltaTable(str(tmp_path / "w" / "orders")).to_pyarrow_table()
    rmtree(tmp_path / "w" / "orders")
    write_deltalake(tmp_path / "w" / "orders", pa.concat_tables([rows.slice(0, 1), rows.slice(2)]))
    for name, key in (("R-7", PERSONS[1]), ("R-8", PERSONS[0])):
        again(settings, NOW - timedelta(minutes=5), name, key=key)
    out = str(tmp_path / "b.plan.json")
    for name, key in (("A", PERSONS[0]), ("B", PERSONS[1])):
        (tmp_path / f"{name}.yaml").write_text(request_file("user", str(key)).replace("R-1", name))
    files = [str(tmp_path / f"{name}.yaml") for name in "AB"]
    assert called(settings, "plan", *files, "--source-erased", "--out", out) == ExitCode.DONE
    both = load_plan(Path(out)).plan
    assert (both.complete, both.applyable, len(both.copies)) == (True, False, 1)
    assert "make a plan for each alone" in why_unapplyable(both)
    found, left = made(settings, source_erased=option)
    assert (found.requests, found.marked, [copy.table for copy in left.copies]) == (("R-8",), True, ["app.orders"])
    assert "does not show that the key is right" in found.apart["R-7"]


@pytest.mark.parametrize("known", ["both", "one", "earlier version"])
def test_persons_of_one_plan_are_shown_by_it_where_the_source_knew_them(tmp_path: Path, known: str) -> None:
    settings = shop(tmp_path)
    asked(settings, *PERSONS[:2], days=[3, 2])
    for name in ("R-1", "R-2"):
        narrowed(settings, name, asked=NOW - timedelta(hours=1))
    found, plan = made(settings)
    assert plan.known_by_key == ()
    begin_requests(settings, plan, NOW)
    ran(settings, plan)
    logged(settings, plan, persons=2)
    assert found.written is not None
    by_key = {"both": (), "one": ("R-1",), "earlier version": None}[known]
    applied(settings, plan.model_copy(update={"known_by_key": by_key}), found.written.path)
    for name in ("users", "orders"):
        without(settings, name, 2)
    again(settings, NOW - timedelta(minutes=2), "R-8")
    again(settings, NOW, key=PERSONS[1])
    found, empty = made(settings)
    assert (empty.copies, empty.known_by_key) == ((), {"both": ("R-8", "R-9"), "one": ("R-9",)}.get(known, ("R-9",)))
    shown = {"both": ("R-8", "R-9"), "one": ("R-9",), "earlier version": ()}[known]
    assert (found.requests if found.marked else (), empty.applyable) == (shown, bool(shown))
    assert set(found.apart) == {"R-8", "R-9"} - set(shown)


def applied(settings: Settings, plan: ErasurePlan, file: Path) -> None:
    """What a run keeps of its plan."""
    file.write_bytes(plan.to_bytes())
    paths = {"plan_file": str(file), "estate_file": str(settings.estate_file), "policy_file": "p", "trusted": None}
    info = RunInfo(
        plan_id=plan.plan_id, plan_digest=load_plan(file).digest, approvals=(), state=str(settings.state), **paths
    )
    folder_of(settings.state, plan.plan_id).write_info(info)


@pytest.mark.parametrize("log", ["shows it", "shows nothing"])
def test_who_was_erased_and_asks_again_is_answered_by_a_proved_search(
    tmp_path: Path, database: str | None, log: str
) -> None:
    """The source knows her no more. Who was never there is carried over, and holds nobody up."""
    settings = shop(tmp_path, database)
    erased_and_asks_again(settings, ("users", "orders"), log == "shows it")
    took(settings, f"id,key,received\nR-7,4417700199,{NOW.isoformat()}\nR-8,{PERSONS[2]},{NOW.isoformat()}\n", "b.csv")
    found, plan = made(settings)
    if log == "shows it":
        assert (found.requests, found.marked, plan.known_by_key, plan.copies) == (("R-9",), True, ("R-9",), ())
        found, plan = made(settings)
    else:
        assert "does not show that the key is right" in found.apart["R-9"]
    assert (found.requests, found.marked, plan.known_by_key) == (("R-8",), True, ())
    assert "no version of the source" in opened(settings).find("R-7").reason


@pytest.mark.parametrize("rest", ["orders", "nothing"])
def test_whom_a_run_erased_from_the_source_before_it_was_given_up_is_planned_again(tmp_path: Path, rest: str) -> None:
    settings = shop(tmp_path)
    asked(settings, PERSONS[0], days=[3])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW - timedelta(hours=3))
    ran(settings, plan, proved=False, done=False, failed=[{"step": "s", "reason": "r", "next": "n"}])
    release(opened(settings), plan.plan_id, Said("asha", "it does not end", NOW))
    for name in ("users", "orders") if rest == "nothing" else ("users",):
        without(settings, name)
    found, again = made(settings, carried_over=True)
    assert (found.marked, [copy.table for copy in again.copies]) == (
        (True, ["app.orders"]) if rest == "orders" else (False, [])
    )
    assert ("does not show that the key is right" in found.apart.get("R-1", "")) is (rest == "nothing")


def test_who_asks_again_waits_where_her_address_would_have_to_be_searched_for(settings: Settings) -> None:
    erased_and_asks_again(settings, ("users", "orders", "news"), True)
    found, plan = made(settings)
    assert ([gap.kind for gap in plan.gaps], found.marked) == (["key_only"], False)
    assert "key_only" in opened(settings).find("R-9").reason


def erased_and_asks_again(settings: Settings, tables: Sequence[str], shown: bool) -> None:
    asked(settings, PERSONS[0], days=[3])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW - timedelta(hours=3))
    ran(settings, plan)
    assert opened(settings).find("R-1").kept == ()
    if shown:
        logged(settings, plan, hours=-2)
    for name in tables:
        without(settings, name)
    again(settings, NOW - timedelta(minutes=9))


def test_a_log_that_was_pruned_may_have_had_more_persons_of_a_plan(settings: Settings) -> None:
    asked(settings, *PERSONS[:2], days=[3, 2])
    _, plan = made(settings)
    logged(settings, plan, hours=-2)
    log = open_log(settings)
    assert log.has_one_person(plan.plan_id)
    logged(settings, plan, whose=1)
    assert not log.has_one_person(plan.plan_id)
    assert log.prune(NOW - timedelta(hours=1), NOW)
    assert not log.has_one_person(plan.plan_id)


def test_of_a_key_that_nobody_knows_no_plan_attests_anything(settings: Settings) -> None:
    took(settings, f"id,key,received\nR-1,4417700199,{NOW.isoformat()}\n")
    found, plan = made(settings, source_erased=True)
    assert (found.marked, plan.applyable, plan.copies) == (False, False, ())


def without(settings: Settings, name: str, persons: int = 1) -> None:
    """Nothing of the first persons is in a table any more, nor in a file of it."""
    place = settings.base / "w" / name
    rows = DeltaTable(str(place)).to_pyarrow_table().slice(persons)
    rmtree(place)
    write_deltalake(place, rows)
