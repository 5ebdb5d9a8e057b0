"""Requests from their receipt to their end: by commands, by plans, and by what a run says."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pii_tracer.app.execution.plan_run import start_run
from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.execution.run_outputs import _handed_over
from pii_tracer.app.intake import due_requests_plan, planned_requests
from pii_tracer.app.intake.due_requests_plan import DuePlan, forecast_requests, plan_due
from pii_tracer.app.intake.planned_requests import begin_requests, refuse_withdrawn, settle_requests
from pii_tracer.app.persons_apart.later_findings import FoundSince, FoundThere
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run
from pii_tracer.intake.request_databases.sqlite import FILE
from pii_tracer.intake.requests import RequestState, Stored
from pii_tracer.intake.state_changes import carry_each_over
from pii_tracer.model.errors import ExitCode, PersonsUnknown, Refused, UsageError
from pii_tracer.model.plan import ErasurePlan, PlannedHold
from pii_tracer.proof.requests_tree.request_leaves import REQUESTS, request_leaves
from tests.cli.small import request
from tests.intake.places import NOW, ago, opened, place, took
from tests.leaks import Person, leaks

PERSONS = [4417700101, 4417700102, 4417700103, 4417700104, 4417700105]
SAID = ("--by", "Meera Iyer", "--reason", "as agreed")
HOLD = """\
holds:
  - {id: dispute, kind: legal_hold, datasets: [app.users], requests: [NAMED], basis: order, citation: "1/2026",
     from: 2026-10-01T00:00:00Z, until: indefinite, approver: Meera Iyer}
"""


@pytest.fixture
def settings(tmp_path: Path, database: str | None) -> Settings:
    return lake(tmp_path, database=database)


def lake(base: Path, more: str = "", database: str | None = None) -> Settings:
    made = place(base, more, database)
    (base / "w").mkdir()
    (base / "jobs.sql").write_text("")
    write_deltalake(base / "w" / "users", pa.table({"user_id": PERSONS, "city": ["Pune"] * len(PERSONS)}))
    return made


def asked(settings: Settings, *keys: int, days: Sequence[float] = (), law: str = "GDPR") -> None:
    """Requests R-1, R-2… for these keys, so many days ago each."""
    when = list(days) or [float(len(keys) - n + 1) for n in range(len(keys))]
    rows = "".join(f"R-{n},{key},{ago(day)}\n" for n, (key, day) in enumerate(zip(keys, when, strict=True), 1))
    took(settings, f"id,key,received\n{rows}", given={"subject": "user", "law": law})


def called(settings: Settings, *arguments: str) -> int:
    return run([*arguments, "--estate", str(settings.estate_file), "--state", str(settings.state)])


def states(settings: Settings) -> dict[str, str]:
    return {one.id: one.state.value for one in opened(settings).requests()}


def made(settings: Settings, **options: Any) -> tuple[DuePlan, ErasurePlan]:
    found = plan_due(settings, **options)
    assert found.written is not None
    return found, found.written.plan


def test_one_plan_takes_those_that_are_due_first(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    (settings.base / "policy.yaml").write_text("version: 1\nmax_persons: 2\n")
    asked(settings, *PERSONS[:3], days=[1, 9, 5])
    assert called(settings, "plan", "--requests", "--out", str(settings.base / "p.plan.json")) == ExitCode.DONE
    assert "2 requests are planned" in capsys.readouterr().err
    plan = json.loads((settings.base / "p.plan.json").read_text())
    assert [one["id"] for one in plan["requests"]] == ["R-2", "R-3"]
    assert states(settings) == {"R-1": "received", "R-2": "planned", "R-3": "planned"}
    assert called(settings, "plan", "--requests") == ExitCode.DONE
    assert set(states(settings).values()) == {"planned"}
    assert called(settings, "plan", "--requests") == ExitCode.DONE
    assert "no request waits" in capsys.readouterr().err
    assert called(settings, "plan") == called(settings, "plan", "--requests", "r.yaml") == ExitCode.USAGE
    assert called(settings, "plan", "--requests", "--only", "app.users") == ExitCode.USAGE


def test_a_plan_with_more_persons_than_the_policy_s_is_denied(settings: Settings) -> None:
    asked(settings, *PERSONS[:3])
    out = settings.base / "p.plan.json"
    assert called(settings, "plan", "--requests", "--out", str(out)) == ExitCode.DONE
    (settings.base / "policy.yaml").write_text("version: 1\nmax_persons: 2\n")
    assert called(settings, "check", str(out)) == ExitCode.POLICY_DENIED


def test_without_a_store_nothing_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = lake(tmp_path)
    assert called(settings, "plan", "--requests") == ExitCode.DONE
    assert called(settings, "requests", "list") == ExitCode.DONE
    assert "no requests" in capsys.readouterr().out
    assert called(settings, "requests", "show", "R-1") == ExitCode.USAGE
    assert not settings.state.exists()


def test_whom_the_source_does_not_know_is_carried_over_and_holds_nobody_up(settings: Settings) -> None:
    asked(settings, 4417700199, PERSONS[0], 4417700198)
    found, plan = made(settings)
    assert [one.id for one in plan.requests] == list(found.requests) == ["R-2"]
    assert states(settings) == {"R-1": "carried_over", "R-2": "planned", "R-3": "carried_over"}
    assert "no version of the source" in opened(settings).find("R-1").reason
    assert plan_due(settings).written is None
    with pytest.raises(PersonsUnknown) as unknown:
        plan_due(settings, carried_over=True)
    assert unknown.value.requests == ("R-1", "R-3")
    left, _ = made(settings, carried_over=True, source_erased=True)
    assert (left.marked, list(left.apart)) == (False, ["R-1", "R-3"]), "each by itself"


def test_a_plan_that_cannot_be_applied_marks_nothing(settings: Settings) -> None:
    users = "      - {name: app.users, format: delta, location: w/users}\n"
    estate = settings.estate_file.read_text().replace(users, users + users.replace("users", "gone"))
    settings.estate_file.write_text(estate)
    asked(settings, PERSONS[0])
    found, plan = made(settings)
    assert (plan.complete, found.marked, states(settings)) == (False, False, {"R-1": "received"})


@pytest.mark.parametrize("word", ["withdraw", "refuse"])
def test_who_ends_a_planned_request_stops_its_plan(
    settings: Settings, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(settings, *PERSONS[:2])
    out = settings.base / "p.plan.json"
    assert called(settings, "plan", "--requests", "--out", str(out)) == ExitCode.DONE
    words = ["--approver", "asha", "--role", "dpo", "--reason", "r", "--unsigned"]
    assert called(settings, "approve", str(out), *words) == ExitCode.DONE
    assert called(settings, "requests", word, "R-1", *SAID) == ExitCode.DONE
    assert "1 other request waits" in capsys.readouterr().out
    ended = "withdrawn" if word == "withdraw" else "refused"
    assert states(settings) == {"R-1": ended, "R-2": "received"}
    assert called(settings, "apply", str(out)) == ExitCode.ERROR
    told = capsys.readouterr().err
    assert f"must not erase the request R-1, because its state in the request store is {ended} (as agreed)" in told
    with pytest.raises(Refused):  # the very place that every run passes
        start_run(settings, out, None, [], None)
    assert not (settings.state / "runs").exists()
    with pytest.raises(UsageError, match="its sealed value was deleted"):
        opened(settings).key_of("R-1")
    assert called(settings, "requests", word, "R-1", *SAID) == ExitCode.USAGE
    _, again = made(settings)
    assert [one.id for one in again.requests] == ["R-2"]


def test_a_plan_of_before_is_not_applied_beside_a_newer_one(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    _, first = made(settings)
    assert called(settings, "requests", "release", first.plan_id, *SAID) == ExitCode.DONE
    assert states(settings) == {"R-1": "received"}
    with pytest.raises(Refused, match="received"):
        refuse_withdrawn(settings, first)
    _, second = made(settings, as_of=NOW + timedelta(hours=1))
    refuse_withdrawn(settings, second)
    with pytest.raises(Refused, match="planned"):
        refuse_withdrawn(settings, first)
    assert called(settings, "requests", "release", first.plan_id, *SAID) == ExitCode.USAGE


def test_what_has_begun_cannot_be_withdrawn_and_can_be_given_up(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    refuse_withdrawn(settings, plan)
    assert called(settings, "requests", "withdraw", "R-1", *SAID) == ExitCode.USAGE
    assert called(settings, "requests", "release", plan.plan_id, *SAID) == ExitCode.DONE
    assert states(settings) == {"R-1": "carried_over"}
    with pytest.raises(Refused):
        begin_requests(settings, plan, NOW)
    assert plan_due(settings).written is None  # the source may know the person no more: somebody decides
    _, later = made(settings, carried_over=True)
    assert [one.id for one in later.requests] == ["R-1"]


def test_a_request_file_of_the_store_is_not_planned_past_it(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    took(settings, f"id,key,received\nR-9,{PERSONS[0]},{ago(0.5)}\n", "more.csv")
    for name in ("R-1", "R-9"):
        (settings.base / "r.yaml").write_text(request("user", str(PERSONS[0])).replace("R-1", name))
        assert called(settings, "plan", str(settings.base / "r.yaml")) == ExitCode.USAGE
    (settings.base / "r.yaml").write_text(request("user", str(PERSONS[1])).replace("R-1", "OWN"))
    assert called(settings, "plan", str(settings.base / "r.yaml")) == ExitCode.DONE


def test_texts_with_the_person_s_key_are_refused(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    asked(settings, PERSONS[0])
    _, plan = made(settings)
    told = ("--by", "Meera", "--reason", f"account {PERSONS[0]} is in dispute")
    for words in (["withdraw", "R-1"], ["refuse", "R-1"], ["release", plan.plan_id]):
        assert called(settings, "requests", *words, *told) == ExitCode.USAGE
    assert called(settings, "requests", "withdraw", "R-1", "--by", " ", "--reason", "x") == ExitCode.USAGE
    seen = capsys.readouterr()
    assert str(PERSONS[0]) not in seen.out + seen.err
    assert states(settings) == {"R-1": "planned"}


# -- what a run says ---------------------------------------------------------------------------------------------------


def ran(
    settings: Settings,
    plan: ErasurePlan,
    *,
    done: bool = True,
    proved: bool = True,
    unattested: Collection[str] = (),
    found: FoundSince | None = None,
    known: FoundSince | None = None,
    **more: Any,
) -> RunFolder:
    """As `conclude` calls it: a run of this plan came to this. unattested: whom its attestation is not about. found:
    what `verify` found by its end; known: by its begin."""
    folder = RunFolder(settings.state / "runs" / plan.plan_id)
    folder.evidence.mkdir(parents=True, exist_ok=True)
    folder.attestation.write_text("{}")
    asked = [request for request in plan.requests if request.id not in unattested]
    leaves = request_leaves(asked, lambda name: sha256(name.encode()).hexdigest()[:32])
    (folder.evidence / REQUESTS).write_bytes(b"".join(leaf.line() + b"\n" for leaf in leaves))
    info = {"plan_id": plan.plan_id, "plan_digest": "d", "plan_file": "p", "policy_file": "p", "approvals": []}
    info |= {"estate_file": str(settings.estate_file), "trusted": None, "state": str(settings.state)}
    folder.info_file.write_text(json.dumps(info))
    result = {"state": "complete", "residue": [], "unverified": [], "open_requests": [], **more}
    result["attestation"] = "a" if proved else None
    if found is not None:
        folder.result.write_text(json.dumps(result))
        kept = folder.found_file("d").keep(found, settings.key().found_mark)
        stands: Any = SimpleNamespace(
            folder=folder,
            info=SimpleNamespace(result=str(folder.path / "out.json")),
            loaded=SimpleNamespace(plan=plan, digest="d"),
            found=kept if known == found else None,
        )
        _handed_over(stands, result, done=done)
    else:
        settle_requests(folder, plan, result, done=done, at=NOW)
    return folder


def test_whom_the_attestation_is_not_about_is_not_erased(settings: Settings) -> None:
    asked(settings, *PERSONS[:2])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan, unattested=["R-2"])
    assert states(settings) == {"R-1": "erased", "R-2": "carried_over"}
    found = opened(settings).find("R-2")
    assert (found.proof, found.reason) == (None, "the run is done, and its attestation is not about this request")


@pytest.mark.parametrize("several", [False, True])
def test_a_proved_run_answers_its_requests(settings: Settings, several: bool) -> None:
    asked(settings, *PERSONS[: 2 if several else 1])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW - timedelta(hours=1))
    folder = ran(settings, plan)
    [found, *_] = opened(settings).requests(RequestState.ERASED)
    assert found.proof is not None
    assert found.proof.startswith(folder.attestation.relative_to(settings.state).as_posix() + " sha256:")
    assert set(states(settings).values()) == {"erased"}
    refuse_withdrawn(settings, plan)  # who looks at the run again is let in
    ran(settings, plan)
    assert leaks(Person(values=tuple(map(str, PERSONS[:2]))), [settings.state / "requests.sqlite"]) == []
    # the old list again changes nothing; a new receipt is a request that repeats
    took(settings, f"key,received\n{PERSONS[0]},{opened(settings).find('R-1').received.isoformat()}\n", "old.csv")
    assert "received" not in states(settings).values()
    took(settings, f"id,key,received\nR-7,{PERSONS[0]},{ago(0)}\n", "new.csv")
    assert opened(settings).find("R-7").repeats == "R-1"


def test_of_whom_a_run_left_something_is_carried_over_alone(settings: Settings) -> None:
    asked(settings, *PERSONS[:3])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan, state="partial", residue=[1], open_requests=["R-2"])
    assert states(settings) == {"R-1": "erased", "R-2": "carried_over", "R-3": "erased"}
    found = opened(settings).find("R-2")
    assert "something of this person is left" in found.reason
    assert opened(settings).key_of("R-2") == str(PERSONS[1])
    assert plan_due(settings).written is None, "she waits until somebody asks for her"


def test_what_may_be_anybodys_is_found_before_the_requests_are_settled(settings: Settings) -> None:
    """`verify` found it, of a run that is attested: the attestation answers for nobody then."""
    asked(settings, *PERSONS[:2])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan, state="partial", residue=[1])
    assert states(settings) == {"R-1": "carried_over", "R-2": "carried_over"}
    found = opened(settings).find("R-1")
    assert (found.proof, found.reason) == (None, "the run is done, and something of the persons is left in 1 place")


@pytest.mark.parametrize(
    ("open_", "came_to"),
    [(("R-2",), {"R-1": "erased", "R-2": "carried_over"}), ((), {"R-1": "carried_over", "R-2": "carried_over"})],
)
def test_requests_are_settled_by_what_was_found_while_the_run_went_on(
    settings: Settings, open_: tuple[str, ...], came_to: dict[str, str]
) -> None:
    asked(settings, *PERSONS[:2])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    there = FoundThere(at=NOW, residue=({"copy": "c"},), persons=("l",))
    found = FoundSince(at=NOW, plan_digest="d", places={"c": there}, open_requests=open_)
    folder = ran(settings, plan, found=found, known=found.model_copy(update={"at": NOW - timedelta(hours=1)}))
    assert states(settings) == came_to
    told = json.loads((folder.path / "out.json").read_text())
    assert (told["state"], told["residue"], told["open_requests"]) == ("partial", [{"copy": "c"}], list(open_))
    assert told == folder.last_result()


def test_what_the_run_knew_and_looked_at_again_keeps_nobody_open(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    there = FoundThere(at=NOW, residue=({"copy": "c"},), persons=("l",))
    known = FoundSince(at=NOW, plan_digest="d", places={"c": there})
    folder = ran(settings, plan, found=known, known=known)
    assert states(settings) == {"R-1": "erased"}
    assert folder.found_since() is None


def test_what_came_in_after_the_run_began_is_not_answered_by_it(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW - timedelta(hours=2))
    took(settings, f"key,received\n{PERSONS[0]},{ago(1 / 24)}\n", "late.csv")
    ran(settings, plan)
    [late] = opened(settings).requests(RequestState.RECEIVED)
    assert (late.repeats, late.receipts, late.received) == ("R-1", 1, NOW - timedelta(hours=1))
    assert opened(settings).key_of(late.id) == str(PERSONS[0])


@pytest.mark.parametrize(
    ("outcome", "state", "reason"),
    [
        ({"proved": False, "residue": [1, 2]}, "carried_over", "left in 2 places"),
        ({"proved": False, "unverified": [1]}, "carried_over", "1 place could not be verified"),
        ({"proved": False}, "carried_over", "could not be attested"),
        ({"proved": False, "done": False, "state": "waiting"}, "planned", "its run is waiting"),
        (
            {"proved": False, "done": False, "state": "partial", "failed": [{"step": "c-a/01"}]},
            "carried_over",
            "1 step of its run failed, first c-a/01",
        ),
        ({"proved": False, "done": False, "state": "blocked"}, "carried_over", "changed after planning"),
    ],
)
def test_a_run_that_proves_nothing_erases_nobody(
    settings: Settings, outcome: dict[str, Any], state: str, reason: str
) -> None:
    asked(settings, PERSONS[0])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan, **outcome)
    found = opened(settings).find("R-1")
    assert (found.state, found.proof) == (state, None)
    assert reason in found.reason
    refuse_withdrawn(settings, plan)  # it can be gone on with
    ran(settings, plan)
    assert states(settings) == {"R-1": "erased"}


def test_the_requests_of_a_failed_run_wait_for_a_plan_or_for_the_run(settings: Settings) -> None:
    """Both ways lead on: the run goes on, and they are planned again as soon as it waits; or a new plan takes them."""
    (settings.base / "policy.yaml").write_text("version: 1\nbatches: {every_hours: 24, takes_days: 2}\n")
    asked(settings, PERSONS[0])
    _, plan = made(settings, carried_over=False, as_of=NOW)
    begin_requests(settings, plan, NOW)
    failed: dict[str, Any] = {"proved": False, "done": False, "state": "partial", "failed": [{"step": "c-a/01"}]}
    ran(settings, plan, **failed)
    ran(settings, plan, **failed)
    carried = [one for one in opened(settings).changes("R-1") if one.state is RequestState.CARRIED_OVER]
    assert len(carried) == 1, "what did not change is not told again"
    [waits] = forecast_requests(settings, as_of=NOW).unplanned
    assert "`plan --carried-over` plans it" in waits.reason
    ran(settings, plan, proved=False, done=False, state="waiting")
    found = opened(settings).find("R-1")
    assert (found.state, found.plan, found.reason) == (RequestState.PLANNED, plan.plan_id, "its run is waiting")
    refuse_withdrawn(settings, plan)
    ran(settings, plan, **failed)
    _, again = made(settings, carried_over=True)
    assert (again.plan_id != plan.plan_id, [one.id for one in again.requests]) == (True, ["R-1"])
    with pytest.raises(Refused):
        refuse_withdrawn(settings, plan)
    ran(settings, plan, proved=False, done=False, state="waiting")
    assert opened(settings).find("R-1").plan == again.plan_id, "an old run says nothing of another plan's"


def test_a_failed_run_that_goes_on_binds_its_requests_again(settings: Settings) -> None:
    """Nobody withdraws, refuses or plans what is being erased: neither after the failure, nor while the run goes on."""
    asked(settings, *PERSONS[:2])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    failed: dict[str, Any] = {"proved": False, "done": False, "state": "partial", "failed": [{"step": "c-a/01"}]}
    ran(settings, plan, **failed)
    assert called(settings, "requests", "withdraw", "R-1", *SAID) == ExitCode.USAGE
    assert called(settings, "requests", "refuse", "R-1", *SAID) == ExitCode.USAGE
    assert states(settings) == {"R-1": "carried_over", "R-2": "carried_over"}
    begin_requests(settings, plan, NOW)
    assert states(settings) == {"R-1": "planned", "R-2": "planned"}
    assert called(settings, "requests", "withdraw", "R-1", *SAID) == ExitCode.USAGE
    assert plan_due(settings, carried_over=True).written is None
    assert opened(settings).find("R-1").plan == plan.plan_id
    ran(settings, plan)
    assert states(settings) == {"R-1": "erased", "R-2": "erased"}


def test_a_failed_run_can_be_given_up(settings: Settings) -> None:
    asked(settings, *PERSONS[:2])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    ran(settings, plan, proved=False, done=False, state="partial", failed=[{"step": "c-a/01"}])
    assert called(settings, "requests", "release", plan.plan_id, *SAID) == ExitCode.DONE
    with pytest.raises(Refused):
        refuse_withdrawn(settings, plan)
    assert called(settings, "requests", "withdraw", "R-1", *SAID) == ExitCode.DONE
    ran(settings, plan, proved=False, done=False, state="waiting")
    assert states(settings) == {"R-1": "withdrawn", "R-2": "carried_over"}
    assert called(settings, "requests", "release", plan.plan_id, *SAID) == ExitCode.USAGE


def test_no_other_plan_takes_a_request_while_a_run_settles_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run reads of its requests still holds when it writes."""
    settings = lake(tmp_path)
    asked(settings, PERSONS[0])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    tried: list[str] = []

    def meanwhile(result: dict[str, Any]) -> str:
        with closing(sqlite3.connect(settings.state / FILE, timeout=0)) as other:
            try:
                other.execute("UPDATE requests SET plan = 'plan-later'")
            except sqlite3.OperationalError as why:
                tried.append(str(why))
        return "a step failed"

    monkeypatch.setattr(planned_requests, "_stopped", meanwhile)
    ran(settings, plan, proved=False, done=False, state="partial")
    assert tried == ["database is locked"]
    assert opened(settings).find("R-1").reason == "a step failed"


def test_whom_a_hold_keeps_is_carried_over_until_it_ends(tmp_path: Path) -> None:
    settings = lake(tmp_path)
    asked(settings, PERSONS[0])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    keeps = PlannedHold(
        id="dispute", kind="legal_hold", basis="o", citation="c", from_=NOW, until=None, approver="m", copies=("c",)
    )
    ran(settings, plan.model_copy(update={"holds": (keeps,)}))
    found = opened(settings).find("R-1")
    assert (found.state, found.holds) == (RequestState.CARRIED_OVER, ("dispute",))
    estate = settings.estate_file.read_text()
    settings.estate_file.write_text(estate + HOLD.replace("NAMED", "R-1"))
    assert plan_due(settings).written is None
    settings.estate_file.write_text(estate)
    _, again = made(settings)
    assert [one.id for one in again.requests] == ["R-1"]


def test_of_whom_something_was_found_is_not_said_to_be_held(tmp_path: Path) -> None:
    """Nor is one of whom the attestation does not speak: nobody knows that all else of them is erased."""
    settings = lake(tmp_path)
    asked(settings, *PERSONS[:3])
    _, plan = made(settings)
    begin_requests(settings, plan, NOW)
    keeps = PlannedHold(
        id="dispute", kind="legal_hold", basis="o", citation="c", from_=NOW, until=None, approver="m", copies=("c",)
    )
    ran(settings, plan.model_copy(update={"holds": (keeps,)}), open_requests=["R-2"], unattested=["R-3"])
    store = opened(settings)
    assert {one.id: one.holds for one in store.requests()} == {"R-1": ("dispute",), "R-2": (), "R-3": ()}
    assert set(states(settings).values()) == {"carried_over"}
    assert "attestation is not about" in store.find("R-3").reason
    (settings.base / "policy.yaml").write_text("version: 1\nbatches: {every_hours: 24, takes_days: 2}\n")
    estate = settings.estate_file.read_text()
    settings.estate_file.write_text(estate + HOLD.replace("NAMED", "R-1, R-2, R-3"))
    found = forecast_requests(settings, as_of=NOW)
    assert {one.id: one.held for one in found.unplanned} == {"R-1": True, "R-2": False, "R-3": False}
    assert found.misses


def test_persons_whom_a_hold_names_are_planned_apart(tmp_path: Path) -> None:
    settings = lake(tmp_path, HOLD.replace("NAMED", "R-1, R-9"))
    asked(settings, *PERSONS[:3])
    took(settings, f"id,key,received\nR-9,{PERSONS[1]},{ago(0.5)}\n", "more.csv")
    first = plan_due(settings)
    assert first.requests == ("R-1",)
    assert "the hold dispute names R-9, another receipt of it: name R-2" in first.set_aside["R-2"]
    asked_for: list[Stored] = list(opened(settings).requests(RequestState.RECEIVED))
    assert {one.id for one in asked_for} >= {"R-2", "R-3"}


def test_lists_and_requests_are_shown_without_values(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    file = settings.base / "today.csv"
    file.write_text(f"ticket;customer_no;city\nR-1;{PERSONS[0]};Pune\nR-2;;Goa\n")
    words = ["--subject", "user", "--law", "GDPR", "--received", ago(60), "--delimiter", ";", "--verified", "login"]
    words += ["--column", "key=customer_no", "--column", "id=ticket", "--ignore-other-columns"]
    assert called(settings, "requests", "add", str(file), *words) == ExitCode.PARTIAL
    told = capsys.readouterr()
    assert "1 added, 0 joined" in told.out
    assert f"{file}, line 3: not taken: `key` is empty" in told.err
    assert called(settings, "requests", "add", str(file), *words, "--format", "json") == ExitCode.PARTIAL
    [done] = json.loads(capsys.readouterr().out)
    assert (done["known"], done["refusals"]) == (1, [{"line": 3, "reason": "`key` is empty"}])

    assert called(settings, "requests", "list") == ExitCode.DONE
    assert "overdue" in capsys.readouterr().out
    assert called(settings, "requests", "list", "--in-state", "erased", "--format", "json") == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["requests"] == []
    assert called(settings, "requests", "list", "--due-before", ago(0), "--format", "json") == ExitCode.DONE
    listed = json.loads(capsys.readouterr().out)
    assert (listed["counts"]["received"], listed["requests"][0]["id"]) == (1, "R-1")

    assert called(settings, "requests", "show", "R-1") == ExitCode.DONE
    shown = capsys.readouterr().out
    assert "login" in shown
    assert "line 2, as R-1" in shown
    assert called(settings, "requests", "refuse", "R-1", *SAID) == ExitCode.DONE
    assert "its stored identifier was deleted" in capsys.readouterr().out
    assert called(settings, "requests", "show", "R-1", "--format", "json") == ExitCode.DONE
    history = json.loads(capsys.readouterr().out)
    assert [change["state"] for change in history["changes"]] == ["refused"]
    assert str(PERSONS[0]) not in shown + json.dumps([listed, history, done])
    assert called(settings, "requests", "add", str(file), "--column", "key") == ExitCode.USAGE


@pytest.mark.parametrize("ended", ["withdraw", "refuse"])
def test_an_old_line_does_not_undo_what_was_decided(settings: Settings, ended: str) -> None:
    line = f"key,received\n{PERSONS[0]},{ago(3)}\n"
    took(settings, line)
    [one] = opened(settings).requests()
    assert called(settings, "requests", ended, one.id, *SAID) == ExitCode.DONE
    assert took(settings, line).known == 1
    [again] = took(settings, line + "\n", "export.csv").refusals  # in another file it may be a new request
    assert "withdrawn or refused" in again.reason
    assert took(settings, f"id,key,received\nNEW,{PERSONS[0]},{ago(3)}\n", "new.csv").added == 1


def test_the_policy_says_when_a_batch_is_made_and_who_is_in_it(
    settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whom no plan can be in time for has the places that are left: by the due date alone she would take the place of
    one whose deadline can be kept. Each deadline is 45 days, in every month, and no midnight comes meanwhile."""
    monkeypatch.setattr(due_requests_plan, "moment", lambda _: NOW)
    now = ("--as-of", NOW.isoformat())
    batches = "batches: {every_hours: 24, takes_days: 9}\n"
    (settings.base / "policy.yaml").write_text(f"version: 1\nmax_persons: 2\nallow_late: true\n{batches}")
    midnight = NOW.replace(hour=0, minute=0, second=0)
    asked(settings, *PERSONS[:4], days=[43, 35, 30, 29], law="CCPA")
    assert called(settings, "requests", "forecast", *now) == ExitCode.PARTIAL
    told = capsys.readouterr().out
    assert "a batch takes 9 days" not in told
    assert "R-1, due" in told
    assert "4 requests wait; missing the deadline: 1" in told
    found, plan = made(settings)
    assert ([one.id for one in plan.requests], found.marked) == (["R-2", "R-3"], True)
    assert called(settings, "plan", "--requests", *now) == ExitCode.DONE
    assert "the policy does not allow a plan now: the next batch begins on" in capsys.readouterr().err
    next_batch = plan_due(settings).next_batch
    assert next_batch == midnight + timedelta(days=1)
    assert plan_due(settings, as_of=next_batch - timedelta(seconds=20)).next_batch == next_batch
    _, tomorrow = made(settings, as_of=next_batch)
    assert [one.id for one in tomorrow.requests] == ["R-1", "R-4"]


def test_the_forecast_names_whoever_waits_and_is_in_no_batch(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each request that waits is in a batch, or is named with the reason. Held data breaks no deadline."""
    now = ("--as-of", NOW.isoformat())
    (settings.base / "policy.yaml").write_text("version: 1\nbatches: {every_hours: 24, takes_days: 2}\n")
    asked(settings, *PERSONS[:4])
    estate = settings.estate_file.read_text()
    settings.estate_file.write_text(estate + HOLD.replace("NAMED", "R-1"))
    store = opened(settings)
    carry_each_over(store, {"R-1": "data is kept by the hold dispute; all else is erased"}, NOW, ["dispute"])
    carry_each_over(store, {"R-2": "data is kept by the hold gone; all else is erased"}, NOW, ["gone"])
    found = forecast_requests(settings, as_of=NOW)
    assert [name for batch in found.batches for name in batch.requests] == ["R-2", "R-3", "R-4"]
    assert [(one.id, one.held) for one in found.unplanned] == [("R-1", True)]
    assert called(settings, "requests", "forecast", *now) == ExitCode.DONE
    assert "R-1, due" in capsys.readouterr().out

    carry_each_over(store, {"R-3": "the run is done, and left data"}, NOW)
    assert called(settings, "requests", "forecast", *now) == ExitCode.PARTIAL
    told = capsys.readouterr().out
    assert "waits: the run is done, and left data: `plan --carried-over` plans it" in told
    assert "2 requests wait; missing the deadline: 0; without a batch: 2" in told
    assert called(settings, "requests", "forecast", *now, "--format", "json") == ExitCode.PARTIAL
    assert [one["id"] for one in json.loads(capsys.readouterr().out)["unplanned"]] == ["R-1", "R-3"]

    ends = (NOW + timedelta(days=3)).isoformat()
    settings.estate_file.write_text(estate + HOLD.replace("NAMED", "R-1").replace("indefinite", ends))
    [first, second] = forecast_requests(settings, as_of=NOW).batches
    assert (first.requests, second.requests) == (("R-2", "R-4"), ("R-1",))
    assert second.begins >= NOW + timedelta(days=3)


def test_the_forecast_names_whom_the_estate_file_no_longer_lets_be_planned(settings: Settings) -> None:
    asked(settings, PERSONS[0])
    (settings.base / "policy.yaml").write_text("version: 1\nbatches: {every_hours: 24, takes_days: 2}\n")
    estate = settings.estate_file.read_text()
    settings.estate_file.write_text(estate.replace("name: user", "name: customer"))
    found = forecast_requests(settings, as_of=NOW)
    assert (found.batches, found.misses) == ((), True)
    assert "no subject `user` any more" in found.unplanned[0].reason
