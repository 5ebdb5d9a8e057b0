"""Recipients: each is told once, of whom it has to erase and no more; and its confirmation stands in the answer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

from pii_tracer.app.execution.plan_run import start_run
from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.proof.request_answers import read_answer, write_answers
from pii_tracer.app.recipients import informing
from pii_tracer.app.recipients.erased_data import Withheld, data_of, erased_by, why_nothing
from pii_tracer.app.recipients.informing import inform
from pii_tracer.app.recipients.notices import notice_of, rows_of
from pii_tracer.app.recipients.recipient_states import Told, read_told, told_recipients
from pii_tracer.app.settings import Settings
from pii_tracer.config.estate_file import load_estate
from pii_tracer.config.passing_on.recipients import How, Recipient
from pii_tracer.intake.state_changes import begin, carry_each_over, plan_them
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_AWAIT_REF
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import KeySet, Strategy
from pii_tracer.model.errors import ConfigError, ExitCode, RunError, UsageError
from pii_tracer.model.plan import ErasurePlan, Exemption
from pii_tracer.proof.request_answers.answer import ToldRecipient
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from pii_tracer.run.journal import Journal, Kind
from reports.run.answer import said_of_recipient
from tests.cli.test_close import OVER, close, ended
from tests.intake.places import NOW, opened
from tests.intake.test_states import PERSONS, asked, called, lake
from tests.leaks import Person, leaks
from tests.review.plans import copy, plan, step
from tests.servers import Json, answering

CRM = "{name: crm, of: [app.users], how: file, folder: out/crm, identifiers: [user.user_id], confirm_days: 14}"
MAIL = "{name: mailer, how: email, folder: out/mail, identifiers: [user.user_id]}"
OTHER = "{name: other, of: [app.payments], how: file, folder: out/other, identifiers: [user.user_id]}"
HOOK = "{name: ads, how: webhook, url: 'URL', token: ADS_TOKEN, identifiers: [user.user_id]}"
TOKEN = "very-secret-token"


class Killed(BaseException):
    """The process dies here."""


def begun(base: Path, *recipients: str, erased: bool = True) -> tuple[Settings, RunFolder]:
    """A run of two requests that was let through the gate."""
    settings = lake(base, "recipients:\n" + "".join(f"  - {one}\n" for one in recipients))
    public = generate(base / "key.pem")
    (base / "trusted.yaml").write_bytes(trusted_yaml([("Ravi", "crm owner", public_pem(public).decode())]))
    (base / "ticket.txt").write_text("done")
    asked(settings, *PERSONS[:2])
    (base / "list.csv").unlink()
    plan = base / "p.plan.json"
    assert called(settings, "plan", "--requests", "--out", str(plan)) == ExitCode.DONE
    words = ["--approver", "Ravi", "--role", "crm owner", "--reason", "r", "--key", str(base / "key.pem")]
    assert called(settings, "approve", str(plan), *words[:-2], "--unsigned") == ExitCode.DONE
    folder = start_run(settings, plan, None, [], None)
    if erased:
        erasing(folder)
    return settings, folder


def erasing(folder: RunFolder, **finished: str) -> None:
    """The run has done the first of its steps that erase. finished: how it ended, if it did."""
    loaded, journal = folder.approved(), Journal.open(folder.journal)
    journal.append(Kind.RUN_STARTED, plan_id=loaded.plan.plan_id, plan_digest=loaded.digest)
    journal.append(Kind.STEP_VERIFIED, step=next(step.id for step in loaded.plan.steps if step.copy_))
    if finished:
        journal.append(Kind.RUN_FINISHED, **finished)


def notices(base: Path) -> list[Path]:
    return sorted(path for path in (base / "out").rglob("*") if path.is_file())


def test_each_is_told_once_and_of_what_it_gets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings, folder = begun(tmp_path, CRM, MAIL, OTHER)
    capsys.readouterr()
    assert called(settings, "inform", folder.path.name) == ExitCode.DONE
    told = capsys.readouterr()
    assert "crm: informed by file" in told.out
    assert "other: not informed: the plan has no copy of what it gets" in told.out
    [notice, letter] = notices(tmp_path)
    assert [path.stat().st_mode & 0o777 for path in (notice, letter)] == [0o600, 0o600]
    said = json.loads(notice.read_text())
    assert {one["request"]: one["identifiers"] for one in said["persons"]} == {
        f"R-{n}": {"user.user_id": [str(key)]} for n, key in enumerate(PERSONS[:2], 1)
    }
    assert f'user.user_id: "{PERSONS[0]}"' in letter.read_text()
    assert (letter.suffix, "Subject: Erasure of personal data" in letter.read_text()) == (".txt", True)
    before = {path: path.read_bytes() for path in notices(tmp_path)}
    assert called(settings, "inform") == ExitCode.DONE
    assert "crm: informed before by file" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in notices(tmp_path)} == before
    assert leaks(Person(tuple(map(str, PERSONS[:2]))), [settings.state]) == [], "values are in the notices alone"
    assert not any(str(key) in told.out + told.err for key in PERSONS)


@pytest.mark.parametrize("moment", ["write_told 1", "write_atomic 1", "sync_folder 1", "write_told 2"])
@pytest.mark.parametrize("late", [False, True])
def test_a_kill_anywhere_tells_nobody_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, late: bool
) -> None:
    """Killed before or after each write, and called again: one notice with one id."""
    settings, folder = begun(tmp_path, CRM)
    name, number = moment.split()
    left, real = [int(number)], getattr(informing, name)

    def deadly(*arguments: object, **more: object) -> object:
        left[0] -= 1
        if left[0] == 0 and not late:
            raise Killed
        found = real(*arguments, **more)
        if left[0] == 0:
            raise Killed
        return found

    with monkeypatch.context() as patched:
        patched.setattr(informing, name, deadly)
        with pytest.raises(Killed):
            [*inform(settings)]
    [done] = inform(settings)
    digest = folder.approved().digest
    told = read_told(folder, "crm", digest)
    assert told is not None
    assert (done.told, told.at is not None) == (told, True)
    [notice] = notices(tmp_path)
    assert json.loads(notice.read_text())["notice"] == told.notice
    assert notice.name.endswith(f"-{told.notice}.json")


def test_a_confirmation_stands_in_the_answer_and_a_missing_one_is_named(tmp_path: Path) -> None:
    settings, folder = begun(tmp_path, CRM, MAIL, OTHER)
    folder.write_info(folder.info().model_copy(update={"trusted": str(tmp_path / "trusted.yaml")}))
    words = ["--run", folder.path.name, "--evidence", str(tmp_path / "ticket.txt"), "--by", "Ravi"]
    words += ["--role", "crm owner", "--said", "erased in the CRM", "--key", str(tmp_path / "key.pem")]

    def confirm(name: str) -> int:
        from pii_tracer.cli.main import run

        return run(["confirm", name, *words, "--state", str(settings.state)])

    assert confirm("crm") == ExitCode.USAGE, "nobody confirms what nobody was told"
    assert [one.how for one in answered(settings, folder)] == ["file", "email"]
    assert {one.told_at for one in answered(settings, folder)} == {None}
    [*inform(settings)]
    assert confirm("other") == confirm("../crm") == ExitCode.USAGE
    assert confirm("crm") == ExitCode.DONE
    crm, mailer = answered(settings, folder)
    assert (crm.confirmed_by, crm.said) == ("Ravi, crm owner", "erased in the CRM")
    assert (mailer.confirmed_at, mailer.told_at is None) == (None, False)
    page = next((settings.state / "runs").rglob("answer-R-1-*.html")).read_text()
    assert "Ravi, crm owner confirmed on" in page
    assert "a text was written to be sent by hand, on" in page
    assert "not confirmed, due by" in page
    confirmed = next(folder.confirmations.glob("*.json"))
    confirmed.write_text(confirmed.read_text().replace("payload", "payl0ad"))
    assert answered(settings, folder)[0].confirmed_at is None, "a word that does not hold is none"


def answered(settings: Settings, folder: RunFolder, request: str = "R-1") -> tuple[ToldRecipient, ...]:
    [signed, _] = write_answers(settings, folder.path.name, request=request)
    return read_answer(signed, (settings.state / "keys" / "attest.pem.pub",)).recipients


def test_what_is_kept_of_a_recipient_is_not_passed_over_when_it_is_broken(tmp_path: Path) -> None:
    settings, folder = begun(tmp_path, CRM)
    [*inform(settings)]
    (folder.path / "recipients" / "crm.json").write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        [*inform(settings)]
    assert len(notices(tmp_path)) == 1


def test_nobody_is_told_of_a_request_that_was_withdrawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings, folder = begun(tmp_path, CRM)
    assert called(settings, "requests", "withdraw", "R-1", "--by", "M", "--reason", "r") == ExitCode.DONE
    ended(folder, **OVER)
    assert close(folder) == ExitCode.USAGE, "the other one is still to be told of"
    capsys.readouterr()
    assert called(settings, "inform", folder.path.name) == ExitCode.DONE
    assert "requests that were withdrawn or refused: R-1" in capsys.readouterr().err
    assert told_of(tmp_path) == ["R-2"]
    assert close(folder) == ExitCode.DONE


def test_a_run_whose_requests_were_all_ended_is_closed_without_a_notice(tmp_path: Path) -> None:
    settings, folder = begun(tmp_path, CRM)
    for name in ("R-1", "R-2"):
        assert called(settings, "requests", "refuse", name, "--by", "M", "--reason", "r") == ExitCode.DONE
    ended(folder, **OVER)
    assert close(folder) == ExitCode.DONE
    assert not (tmp_path / "out").exists()


def told_of(base: Path) -> list[str]:
    [notice] = notices(base)
    return [one["request"] for one in json.loads(notice.read_text())["persons"]]


def moved(settings: Settings, folder: RunFolder, *requests: str) -> None:
    """A later plan has these requests of a run that left something of them."""
    store, made = opened(settings), folder.approved().plan
    begin(store, ["R-1", "R-2"], made.plan_id, NOW)
    carry_each_over(store, dict.fromkeys(requests, "something of this person is left"), NOW)
    plan_them(store, requests, "plan-later", NOW)


@pytest.mark.parametrize("requests", [("R-2",), ("R-1", "R-2")])
def test_what_this_run_erased_is_told_of_a_request_of_a_later_plan(tmp_path: Path, requests: tuple[str, ...]) -> None:
    """In the later plan it is no copy any more: that plan tells nobody of it."""
    settings, folder = begun(tmp_path, CRM)
    moved(settings, folder, *requests)
    ended(folder, **OVER)
    assert close(folder) == ExitCode.USAGE
    [one] = inform(settings)
    assert (one.now, one.ended, told_of(tmp_path)) == (True, (), ["R-1", "R-2"])
    assert close(folder) == ExitCode.DONE


@pytest.mark.parametrize("last", [{}, {"state": "partial"}, {"state": "blocked"}])
def test_a_run_that_never_goes_on_tells_of_what_it_has_erased(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], last: dict[str, str]
) -> None:
    """Of a copy that it began to erase, and of the rest, the later plan tells."""
    settings, folder = begun(tmp_path, CRM, MAIL)
    erasing(folder, **last)
    moved(settings, folder, "R-1", "R-2")
    capsys.readouterr()
    assert called(settings, "inform", folder.path.name) == ExitCode.PARTIAL
    told = capsys.readouterr().out
    assert "crm: not informed: no step can erase part of it yet; inform after the next plan" in told
    assert not (tmp_path / "out").exists()
    journal = Journal.open(folder.journal)
    for one in folder.approved().plan.steps:
        if one.copy_ and one.action is not Action.VERIFY_COPY:
            journal.append(Kind.STEP_VERIFIED, step=one.id)
    if last:
        journal.append(Kind.RUN_FINISHED, **last)
    [crm, _] = inform(settings)
    assert (crm.now, crm.told and crm.told.requests) == (True, ("R-1", "R-2"))


def test_a_recipient_of_what_a_later_plan_has_not_is_told_by_one_of_both(tmp_path: Path) -> None:
    """The run of the first plan failed in one table; the second plan has that table alone."""
    first = plan(copies=[copy("a"), copy("b")])
    of = (str(first.copies[0].table), str(first.copies[1].table))
    crm = Recipient(name="crm", how=How.EMAIL, folder="x", identifiers=("user.email",), of=of)
    everything, second = crm.model_copy(update={"of": ()}), plan(copies=[copy("b")])
    erased = erased_by(*journaled(tmp_path / "j", first, verified=["a/1"]), goes_on=False)
    assert erased == {"a"}
    assert data_of(crm, first, erased) == of[:1]
    assert data_of(crm, second) == of[1:]
    assert (data_of(everything, first, erased), data_of(everything, second)) == (None, ())
    assert why_nothing(everything, first, erased) is Withheld.LATER


def journaled(file: Path, made: ErasurePlan, verified: Sequence[str] = (), **last: str) -> tuple[RunFolder, LoadedPlan]:
    """A run's journal: these steps are verified. last: how it ended."""
    file.mkdir(parents=True)
    folder, loaded = RunFolder(file), LoadedPlan(made, b"", "sha256:1", "p")
    journal = Journal.open(folder.journal)
    journal.append(Kind.RUN_STARTED, plan_digest=loaded.digest)
    for name in verified:
        journal.append(Kind.STEP_VERIFIED, step=name)
    if last:
        journal.append(Kind.RUN_FINISHED, **last)
    return folder, loaded


def test_a_plan_without_a_step_that_erases_is_passed_on_when_its_run_is_complete(tmp_path: Path) -> None:
    """Only backups, or nothing at all: `close` waits for `inform`, which must not wait for ever."""
    for made in (plan(steps=[], copies=[]), plan(steps=[step("c1/1", action=Action.BACKUP_CONFIRM)])):
        ids, place = [one.id for one in made.steps], tmp_path / str(len(made.steps))
        with pytest.raises(UsageError, match="erased nothing yet"):
            erased_by(*journaled(place, made, ids, state="waiting"), goes_on=True)
        assert erased_by(*journaled(place / "x", made, ids, state="complete"), goes_on=True) is None


@pytest.mark.parametrize(
    "action",
    [Action.S3_RESTORE, Action.VAULT_RETRIEVE, Action.STAGE_KEYS, Action.OBJECT_AWAIT_PURGE, ICEBERG_AWAIT_REF],
)
def test_what_only_prepares_or_waits_has_erased_nothing(tmp_path: Path, action: Action) -> None:
    of = None if action is Action.STAGE_KEYS else "c1"
    made = plan(steps=[step("s", of, action=action), step("e")])
    with pytest.raises(UsageError, match="erased nothing yet"):
        erased_by(*journaled(tmp_path / "a", made, ["s"]), goes_on=True)
    assert erased_by(*journaled(tmp_path / "b", made, ["e"]), goes_on=True) is None


def test_a_step_that_is_not_verified_has_erased_nothing(tmp_path: Path) -> None:
    made = plan(steps=[step("e")])
    folder, loaded = journaled(tmp_path / "a", made)
    Journal.open(folder.journal).append(Kind.STEP_RESULT, step="e")
    with pytest.raises(UsageError, match="erased nothing yet"):
        erased_by(folder, loaded, goes_on=True)


@pytest.mark.parametrize("how", ["nothing", "another plan", "blocked"])
def test_nobody_is_told_to_erase_before_the_run_does(tmp_path: Path, how: str) -> None:
    settings, folder = begun(tmp_path, CRM, erased=False)
    if how == "another plan":
        journal = Journal.open(folder.journal)
        journal.append(Kind.RUN_STARTED, plan_digest="sha256:0")
        journal.append(Kind.STEP_VERIFIED, step=next(s.id for s in folder.approved().plan.steps if s.copy_))
    if how == "blocked":
        erasing(folder, state="blocked")
    with pytest.raises(UsageError, match=r"erased nothing yet|the run stopped"):
        [*inform(settings)]
    assert not (tmp_path / "out").exists()


def test_nobody_is_told_to_erase_what_is_kept_here() -> None:
    names = {"user.email": KeySet(name="user.email", origin="o", weak=False, values=(("subj_1", "a@b"),))}
    exempt = {"exemption": Exemption(holds=("h",), until=None)}
    made = plan(
        copies=[
            copy("a"),
            copy("b", strategy=Strategy.EXEMPT, **exempt),
            copy("c", strategy=Strategy.BLOCKED),
        ]
    )
    of = {name: next(one.table for one in made.copies if one.id == name) for name in "abc"}
    everything = Recipient(name="crm", how=How.EMAIL, folder="x", identifiers=("user.email",))
    given = {"of": tuple(str(table) for table in of.values())}
    assert data_of(everything.model_copy(update=given), made) == (of["a"],)
    assert data_of(everything, made) is None, "nobody knows what it has"
    assert data_of(everything, plan(copies=[copy("a")])) == ()
    for name in "bc":
        assert data_of(everything.model_copy(update={"of": (str(of[name]),)}), made) is None
    why = {
        given: why_nothing(everything.model_copy(update={"of": given}), made, None)
        for given in ((), (str(of["b"]),), (str(of["c"]),), ("app.other",))
    }
    assert list(why.values()) == [Withheld.LATER, Withheld.HOLD, Withheld.LATER, Withheld.NO_COPY]
    requests = {one.id for one in made.requests}
    rows, _ = rows_of(everything, made, requests, names)
    told = Told(
        recipient="crm", how=How.EMAIL, plan_digest="d", notice="n", sha256="", requests=(), begun=NOW,
    )  # fmt: skip
    said = notice_of(everything, told, "e", (str(of["a"]),), rows).decode()
    assert f"from us in {of['a']}, and there alone" in said


def test_another_notice_has_another_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a webhook may have got already is never another thing under the same id."""
    monkeypatch.setenv("ADS_TOKEN", TOKEN)
    got: list[tuple[str, str, bytes]] = []
    statuses = [400]
    with hook(statuses, got) as url:
        settings, folder = begun(tmp_path, HOOK.replace("URL", url))
        [*inform(settings)]
        ended(folder, **OVER)
        assert called(settings, "requests", "refuse", "R-2", "--by", "M", "--reason", "r") == ExitCode.DONE
        statuses[:] = [200]
        [done] = inform(settings)
    assert done.told is not None
    assert done.told.requests == tuple(row["request"] for row in json.loads(got[-1][2])["persons"]) == ("R-1",)
    assert done.told.sha256 == sha256(got[-1][2]).hexdigest()
    assert len({key for _, key, _ in got}) == len({body for _, _, body in got}) == 2


def test_a_person_without_an_identifier_keeps_nobody_else_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, folder = begun(tmp_path, CRM)
    who = {request.id: request.subject for request in folder.approved().plan.requests}
    sets = (
        KeySet(name="user.user_id", origin="o", weak=False, values=((who["R-1"], "1"),)),
        KeySet(name="user.email", origin="o", weak=False, values=((who["R-1"], "a"), (who["R-2"], "b"))),
    )
    monkeypatch.setattr(informing.KeyRing, "open", lambda *_: SimpleNamespace(key_sets=sets))
    capsys.readouterr()
    assert called(settings, "inform", folder.path.name) == ExitCode.PARTIAL
    assert "not informed of 1 request, first R-2" in capsys.readouterr().out
    [notice] = notices(tmp_path)
    assert [one["request"] for one in json.loads(notice.read_text())["persons"]] == ["R-1"]
    said = {name: [said_of_recipient(one) for one in answered(settings, folder, name)] for name in who}
    assert "a notice was put into its folder" in said["R-1"][0]
    assert "it was not informed of you" in said["R-2"][0]
    assert called(settings, "inform", folder.path.name) == ExitCode.PARTIAL


def test_what_a_killed_call_left_in_a_folder_is_removed(tmp_path: Path) -> None:
    """It has values of the persons; nothing else in the folder is touched."""
    settings, _ = begun(tmp_path, CRM)
    real = os.fsync

    def deadly(handle: int) -> None:
        if "out/crm" in str(Path(f"/proc/self/fd/{handle}").readlink()):
            os._exit(9)
        real(handle)

    child = os.fork()
    if child == 0:
        os.fsync = deadly
        [*inform(settings)]
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    [left] = notices(tmp_path)
    assert (left.suffix, str(PERSONS[0]) in left.read_text()) == (".tmp", True)
    theirs = left.with_name(".theirs.json.1.tmp")
    theirs.write_text("x")
    [done] = inform(settings)
    assert done.now
    assert [path.suffix for path in notices(tmp_path)] == [".tmp", ".json"]
    assert theirs.exists()


def test_an_answer_says_how_a_recipient_was_told_and_goes_on_without_what_is_broken(tmp_path: Path) -> None:
    settings, folder = begun(tmp_path, MAIL, CRM)
    [*inform(settings)]
    file = settings.estate_file
    file.write_text(
        file.read_text().replace(MAIL, HOOK.replace("URL", "https://x.example/").replace("ads,", "mailer,"))
    )
    (folder.path / "recipients" / "crm.json").write_text("{")
    mailer, crm = answered(settings, folder)
    assert said_of_recipient(mailer).startswith("a text was written to be sent by hand, on")
    assert said_of_recipient(crm) == "it is not known whether it was informed"


@contextmanager
def hook(statuses: list[int], got: list[tuple[str, str, bytes]], to: str = "") -> Iterator[str]:
    """A server that gives these statuses, one after the other, and the last one for ever."""

    class Handler(Json):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers["Authorization"], self.headers["Idempotency-Key"], body))
            self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
            if to:
                self.send_header("Location", to)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with answering(Handler) as url:
        yield url


def test_a_webhook_that_is_busy_is_asked_again_with_the_same_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADS_TOKEN", TOKEN)
    got: list[tuple[str, str, bytes]] = []
    paused: list[float] = []
    with hook([503, 429, 204], got) as url:
        settings, folder = begun(tmp_path, HOOK.replace("URL", url))
        [done] = inform(settings, pause=paused.append)
        [again] = inform(settings, pause=paused.append)
    assert done.told is not None
    assert (done.told.problem, again.now, len(got), len(paused)) == (None, False, 3, 2)
    assert {one[:2] for one in got} == {(f"Bearer {TOKEN}", done.told.notice)}
    assert str(PERSONS[0]) in got[-1][2].decode()
    assert leaks(Person((str(PERSONS[0]), TOKEN)), [folder.path]) == []


@pytest.mark.parametrize("status", [307, 401, 500])
def test_a_webhook_that_does_not_take_it_is_named_and_told_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    """A redirection is not followed: the persons' values go to the server that was named, and to no other."""
    monkeypatch.setenv("ADS_TOKEN", TOKEN)
    monkeypatch.setattr("time.sleep", lambda _: None)
    got: list[tuple[str, str, bytes]] = []
    elsewhere: list[tuple[str, str, bytes]] = []
    statuses = [status]
    with hook([200], elsewhere) as other, hook(statuses, got, to=other if status == 307 else "") as url:
        settings, folder = begun(tmp_path, HOOK.replace("URL", url))
        capsys.readouterr()
        [failed] = inform(settings, pause=lambda _: None)
        assert failed.told is not None
        assert (failed.told.at, failed.told.problem) == (None, f"refused: HTTP {status}")
        assert len(got) == (6 if status == 500 else 1), "tried again within a bound"
        statuses[:] = [200]
        assert called(settings, "inform", folder.path.name) == ExitCode.DONE
    assert elsewhere == []
    assert len({key for _, key, _ in got}) == 1
    assert TOKEN not in capsys.readouterr().out


def test_a_failure_is_told_by_the_exit_code_and_a_token_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    got: list[tuple[str, str, bytes]] = []
    with hook([400], got) as url:
        settings, folder = begun(tmp_path, HOOK.replace("URL", url), CRM)
        capsys.readouterr()
        assert called(settings, "inform", folder.path.name) == ExitCode.PARTIAL
        told = capsys.readouterr().out
        assert "ads: not informed: the variable ADS_TOKEN with its token is not set" in told
        assert "crm: informed by file" in told, "one that fails keeps no other waiting"
        assert got == []
        monkeypatch.setenv("ADS_TOKEN", TOKEN)
        assert called(settings, "inform", folder.path.name) == ExitCode.PARTIAL
    assert "ads: not informed: refused: HTTP 400" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (HOOK.replace("URL", "http://ads.example/x"), "https://"),
        (HOOK.replace("URL", "https://user:pw@ads.example/x"), "must not contain a user or password"),
        (HOOK.replace("URL", "http://127.0.0.1.ads.example/"), "https://"),
        (CRM.replace("folder: out/crm, ", ""), "needs `folder`"),
        (CRM.replace("user.user_id", "user.city"), "user.city, which is no SUBJECT.COLUMN"),
        (f"{CRM}\n  - {CRM.replace('crm,', 'CRM,', 1)}", "two recipients have the name CRM"),
        (CRM.replace("name: crm", "name: ../crm"), "name"),
    ],
)
def test_recipients_that_cannot_be_told_safely_are_refused(tmp_path: Path, wrong: str, why: str) -> None:
    settings = lake(tmp_path, f"recipients:\n  - {wrong}\n")
    with pytest.raises(ConfigError, match=why.replace(".", r"\.")):
        load_estate(settings.estate_file)


def test_a_word_of_before_the_notice_confirms_nothing(tmp_path: Path) -> None:
    settings, folder = begun(tmp_path, CRM)
    folder.write_info(folder.info().model_copy(update={"trusted": str(tmp_path / "trusted.yaml")}))
    [*inform(settings)]
    words = ["confirm", "crm", "--run", folder.path.name, "--evidence", str(tmp_path / "ticket.txt"), "--by", "Ravi"]
    words += ["--role", "crm owner", "--said", "erased", "--key", str(tmp_path / "key.pem")]
    from pii_tracer.cli.main import run

    assert run([*words, "--state", str(settings.state)]) == ExitCode.DONE
    loaded, recipients = folder.approved(), settings.estate().recipients
    told = read_told(folder, "crm", loaded.digest)
    assert told is not None
    assert told.at is not None
    later = told.model_copy(update={"at": told.at + timedelta(days=1)})
    (folder.path / "recipients" / "crm.json").write_text(later.model_dump_json())
    now = told.at + timedelta(days=2)
    [(one, _)] = told_recipients(folder, loaded.plan, loaded.digest, recipients, now)
    assert one.confirmed_at is None


def test_a_run_is_not_closed_before_its_recipients_were_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`close` destroys the values that a notice needs."""
    settings, folder = begun(tmp_path, CRM, OTHER)
    ended(folder, **OVER)
    assert close(folder) == ExitCode.USAGE
    assert "the recipient crm was not informed" in capsys.readouterr().err
    [*inform(settings)]
    assert close(folder) == ExitCode.DONE
    assert [one.now for one in inform(settings)] == [False, False], "who was told needs no values any more"


@pytest.mark.parametrize("name", ["crm", "CRM"])
def test_a_backup_and_a_recipient_have_names_of_their_own(tmp_path: Path, name: str) -> None:
    """`confirm` takes either by its name: a word about the one would be signed as one about the other."""
    backup = f"backups:\n  - {{name: {name}, of: [app.users], owner: Ravi, location: vault, due_days: 5}}\n"
    settings = lake(tmp_path, f"{backup}recipients:\n  - {CRM}\n")
    with pytest.raises(ConfigError, match="a backup and a recipient have the name crm"):
        load_estate(settings.estate_file)


def test_a_proxy_reads_nothing_that_is_not_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADS_TOKEN", TOKEN)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    seen: list[tuple[str, str, bytes]] = []
    got: list[tuple[str, str, bytes]] = []
    with hook([200], seen) as proxy, hook([200], got) as url:
        for name in ("http_proxy", "all_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy)
        settings, _ = begun(tmp_path, HOOK.replace("URL", url))
        [done] = inform(settings, pause=lambda _: None)
    assert (seen, len(got), done.now) == ([], 1, True)


def test_a_webhook_that_took_it_is_told_once_whatever_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADS_TOKEN", TOKEN)
    got: list[bytes] = []

    class Long(Json):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "70000")
            self.end_headers()
            self.wfile.write(b"x" * 70000)

    with answering(Long) as url:
        settings, _ = begun(tmp_path, HOOK.replace("URL", url))
        [done], [again] = inform(settings), inform(settings)
    assert (done.now, again.now, len(got)) == (True, False, 1)
