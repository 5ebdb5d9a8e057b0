"""What `verify` finds where a run had found nothing counts for all that is said of the run later."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.app.execution.plan_run import _taken_over
from pii_tracer.app.execution.run_folder import RunFolder, choose_run, over
from pii_tracer.app.execution.run_outputs import _handed_over
from pii_tracer.app.execution.run_verification import noted_of
from pii_tracer.app.persons_apart import requests_left_open
from pii_tracer.app.persons_apart.later_findings import (
    ANY_PLACE,
    FoundSince,
    FoundThere,
    Seal,
    found_by,
    overtaken,
)
from pii_tracer.app.persons_apart.later_findings_file import FILE, KEPT, FoundFile
from pii_tracer.app.persons_apart.requests_left_open import answered, left_something, places_of, refuse_unsearched
from pii_tracer.app.plan_verification import Looks, PlanVerification, RunJournal, _keep
from pii_tracer.app.planning.plan_files import manifest_path
from pii_tracer.app.verification import Verification
from pii_tracer.cli.main import run as run_command
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import ExitCode, Refused
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.proof.open_requests import left_of_step
from pii_tracer.review.plan_file import LoadedPlan, load_plan
from pii_tracer.review.sealed_person_values import EstateKey, KeyRing
from pii_tracer.run.journal import Journal, Kind, Record
from pii_tracer.run.step_progress import track
from pii_tracer.verify.persons_left import PersonsLeft
from pii_tracer.verify.verdicts import ByteVerdict, CopyVerdict, Residue, RunVerdict
from tests.cli.test_close import OVER, begun, close, ended
from tests.verify.test_computed_again import NOW, folder, record, run

__all__ = ["begun", "folder", "run"]

EVERYBODY = PersonsLeft(frozenset({"l"}))


def seen(*places: str) -> RunVerdict:
    """A look that found something in these places, and was at all copies."""
    residue = {name: (Residue(copy_id=name, file="a", where="data", form="text"),) for name in places}
    looks = (ByteVerdict(copy_id=name, root="", files=(), residue=of) for name, of in residue.items())
    return RunVerdict(copies=tuple(CopyVerdict(copy_id=look.copy_id, bytes=look) for look in looks))


def unread(*places: str) -> RunVerdict:
    """A look that could read nothing."""
    looks = (ByteVerdict(copy_id=name, root="", files=(), unverified=("no answer",)) for name in places)
    return RunVerdict(copies=tuple(CopyVerdict(copy_id=look.copy_id, bytes=look) for look in looks))


def file_of(folder: RunFolder) -> FoundFile:
    return folder.found_file(folder.approved().digest)


def mark(folder: RunFolder) -> Seal:
    return folder.settings().key().found_mark


def keep(folder: RunFolder, found: FoundSince | None) -> None:
    file_of(folder).keep(found, mark(folder))


def look(
    folder: RunFolder, verdict: RunVerdict, *, began: int, ended: int, left: PersonsLeft = EVERYBODY
) -> FoundSince | None:
    """What is known after a look of these minutes."""
    loaded, records = folder.approved(), Journal.open(folder.journal).records
    first, last = NOW + timedelta(minutes=began), NOW + timedelta(minutes=ended)
    return found_by(loaded, records, verdict, left, folder.found_since(), first, last, heard_at(loaded, records))


def heard_at(loaded: LoadedPlan, records: Sequence[Record]) -> dict[str | None, int]:
    """All looks began when the journal had these records."""
    return dict.fromkeys([None, *(copy.id for copy in loaded.plan.copies)], len(records))


def found(folder: RunFolder, *places: str, gone: Sequence[str] = ()) -> FoundSince | None:
    """After a look that came behind all others. gone: places that it saw without the persons."""
    before = folder.found_since()
    minute = 2 + (int((before.at - NOW).total_seconds()) // 60 if before else 0)
    clean = tuple(CopyVerdict(copy_id=n, bytes=ByteVerdict(copy_id=n, root="", files=())) for n in gone)
    verdict = RunVerdict(copies=(*seen(*places).copies, *clean))
    return look(folder, verdict, began=minute - 1, ended=minute)


def test_what_is_found_after_the_end_keeps_the_values_until_a_look_finds_nothing(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(begun, **OVER)
    copy = begun.approved().plan.copies[0]
    for place, gone in ((copy.id, ()), ("(new) late", [copy.id])):
        keep(begun, found(begun, place, gone=gone))
        result = begun.last_result() or {}
        assert (result["state"], [one["copy"] for one in result["residue"]]) == ("partial", [place])
        assert not over(result)
        assert close(begun) == ExitCode.USAGE
        assert "not over" in capsys.readouterr().err
    assert "ABCDE" not in (begun.path / FILE).read_text()
    keep(begun, found(begun))
    assert not over(begun.last_result() or {}), "nobody looked there"
    keep(begun, found(begun, gone=["(new) late"]))
    assert begun.last_result() == {**OVER, "attestation": "a"}
    kept = begun.found_since()
    assert kept is not None
    assert kept.of_copies.keys() == {copy.id}, "the journal has still to hear that it was there in between"
    assert close(begun) == 0


def test_what_a_run_has_still_to_erase_is_no_finding(begun: RunFolder) -> None:
    copy = begun.approved().plan.copies[0]
    assert found(begun, copy.id, "(new) late") is None
    journal, loaded = Journal.open(begun.journal), begun.approved()
    journal.append(Kind.RUN_STARTED, plan_id=loaded.plan.plan_id, plan_digest=loaded.digest)
    look = next(s for s in loaded.plan.steps if s.action is Action.VERIFY_COPY and s.copy_ == copy.id)
    journal.append(Kind.STEP_VERIFIED, step=look.id)
    late = found(begun, copy.id, "(new) late")
    assert late is not None
    assert [one["copy"] for one in late.residue] == [copy.id]


def test_what_a_look_saw_before_the_run_verified_the_copy_is_no_finding(begun: RunFolder) -> None:
    """Nor what is no copy, of a look that began before the run was complete: both may have been erased meanwhile."""
    loaded = begun.approved()
    copy, other = loaded.plan.copies[:2]
    journal = Journal.open(begun.journal)
    journal.append(Kind.RUN_STARTED, plan_id=loaded.plan.plan_id, plan_digest=loaded.digest)
    heard = heard_at(loaded, journal.records)
    for step in loaded.plan.steps:
        journal.append(Kind.STEP_VERIFIED, step=step.id)
    journal.append(Kind.RUN_FINISHED, state="complete")
    verdict, records = seen(copy.id, other.id, "(new) late"), journal.records

    def found_there(**later: int) -> set[str]:
        at = heard | {{"copy": copy.id, "beside": None}[name]: number for name, number in later.items()}
        late = found_by(loaded, records, verdict, EVERYBODY, None, NOW, NOW, at)
        again = overtaken(loaded.plan, records, verdict, at)
        kept = set(late.places) if late else set()
        assert {"(new) late" if name is None else name for name in again} | kept == {copy.id, other.id, "(new) late"}
        return kept

    assert found_there() == set()
    assert found_there(copy=len(records)) == {copy.id}
    assert found_there(beside=len(records)) == {"(new) late"}
    assert found_there(beside=len(records) - 1) == set()
    assert overtaken(loaded.plan, records, seen(), heard) == frozenset(), "nothing was found"
    assert overtaken(loaded.plan, records[:1], verdict, heard) == frozenset(), "the run is not done there"


def test_where_the_run_erased_meanwhile_verify_looks_again(begun: RunFolder) -> None:
    """The look at a copy found the person, and the run erased and verified the copy before the look ended."""
    loaded, settings = begun.approved(), begun.settings()
    copy = next(c for c in loaded.plan.copies if c.table == "prod.mails").model_copy(update={"match": None})
    plan = loaded.plan.model_copy(update={"copies": (copy,)})
    keys = KeyRing.open(manifest_path(Path(begun.info().plan_file)), plan.subjects_digest, settings.key()).key_sets
    file = Path(copy.location) / "part-0.parquet"
    journal = Journal.open(begun.journal)
    journal.append(Kind.RUN_STARTED, plan_id=plan.plan_id, plan_digest=loaded.digest)
    step = next(s for s in plan.steps if s.action is Action.VERIFY_COPY and s.copy_ == copy.id)

    class Overtaken(Verification):
        def look(self, copy: Copy) -> CopyVerdict:
            verdict = super().look(copy)
            if step.id not in track(journal.records):
                pq.write_table(pq.read_table(file).slice(0, 1), file)
                journal.append(Kind.STEP_VERIFIED, step=step.id)
            return verdict

    def looks() -> Looks:
        verification = Overtaken(
            plan,
            settings.estate(),
            settings.base,
            keys,
            settings.key().marks,
            lambda: pytest.fail("Spark"),
            lambda: NOW,
        )
        return Looks(verification, RunJournal(settings, loaded))

    first = looks()
    assert first.look(copy).residue
    assert first.overtaken() == {copy.id}
    first.look_again(first.overtaken())
    assert (first.overtaken(), first.verdict.residue) == (frozenset(), ())
    pq.write_table(pa.table({"who": [4417700102], "mail": ["b2@x.example"]}), file)
    later = looks()
    later.look(copy)
    assert (bool(later.verdict.residue), later.overtaken()) == (True, frozenset()), "it is back"


def test_a_file_of_another_plan_says_nothing(begun: RunFolder) -> None:
    ended(begun, **OVER)
    copy = begun.approved().plan.copies[0]
    late = found(begun, copy.id)
    assert late is not None
    (begun.path / FILE).write_text(late.model_copy(update={"plan_digest": "sha256:other"}).model_dump_json())
    assert begun.last_result() == {**OVER, "attestation": "a"}


def test_whose_alone_it_is_stays_open_alone(begun: RunFolder) -> None:
    """As after a run: the others' answers stand, and the next plan takes over what is known of the one."""
    ended(begun, **OVER)
    loaded = begun.approved()
    (asked,) = loaded.plan.requests
    both = loaded.plan.model_copy(
        update={"requests": (asked, asked.model_copy(update={"id": "R-9", "subject": "other"}))}
    )
    copy = both.copies[0]
    left = PersonsLeft(frozenset({asked.subject}), {asked.subject: (copy.id,)})
    records = Journal.open(begun.journal).records
    of = LoadedPlan(both, b"", loaded.digest, "p")
    late = found_by(of, records, seen(copy.id), left, None, NOW, NOW, heard_at(of, records))
    assert late is not None
    assert (late.open_requests, late.of_copies) == ((asked.id,), {copy.id: (asked.subject,)})
    assert not left_something(begun)
    keep(begun, late)
    assert left_something(begun)
    assert places_of(begun) == {asked.subject: ()}


@pytest.mark.parametrize(
    "result",
    [
        {"state": "waiting", "waiting_until": "2027-01-01T00:00:00Z"},
        {"state": "partial", "failed": [{"step": "s"}]},
        {"state": "partial", "never_started": ["s"]},
        {"state": "blocked", "drift": [{}]},
        {"state": "partial", "residue": [{"copy": "c-anybodys"}], "open_requests": []},
    ],
)
def test_what_is_found_of_one_person_ends_no_run_that_has_more_to_do(begun: RunFolder, result: dict[str, Any]) -> None:
    begun.result.write_text(json.dumps({**OVER, **result}))
    assert choose_run(begun.state, None, unfinished=True).path == begun.path
    late = FoundThere(at=NOW, residue=({"copy": "c"},), persons=("l",))
    digest = begun.approved().digest
    keep(begun, FoundSince(at=NOW, plan_digest=digest, places={"c": late}, open_requests=("R-9",)))
    told = begun.last_result() or {}
    assert (told["state"], told["open_requests"]) == (result["state"], [])
    assert {"copy": "c"} in told["residue"]
    assert choose_run(begun.state, None, unfinished=True).path == begun.path


@pytest.mark.parametrize("open_", ["failed", "never_started", "waiting_until"])
def test_open_requests_end_no_run_with_open_steps(open_: str) -> None:
    assert over({"state": "partial", "open_requests": ["R-9"]})
    assert not over({"state": "partial", "open_requests": ["R-9"], open_: ["s"]})


@pytest.mark.parametrize("foreseen", [{}, {"foreseen": []}, {"foreseen": ["gap-1"]}])
def test_a_place_that_the_run_found_too_counts_once(foreseen: dict[str, list[str]]) -> None:
    one = {"copy": "c", "file": "a", "where": "data", "form": "text"}
    late = FoundSince(at=NOW, plan_digest="", places={"c": FoundThere(at=NOW, residue=(one,), persons=("l",))})
    told = late.in_result({"state": "partial", "residue": [{**one, **foreseen}], "open_requests": []})
    assert told["residue"] == [{**one, **foreseen}]
    other = late.in_result({"state": "partial", "residue": [{**one, "file": "b", **foreseen}], "open_requests": []})
    assert [item["file"] for item in other["residue"]] == ["b", "a"]


def test_the_journal_hears_it_as_of_a_look_of_the_run_and_a_note_of_files_is_void(
    run: tuple[Copy, ErasurePlan, list[Record]],
) -> None:
    copy, made, records = run
    late = FoundSince(at=NOW, plan_digest="", of_copies={"c-src": ("l",)})
    ((step, facts),) = late.notes(made)
    of = next(one for one in made.steps if one.id == step)
    heard = [*records, record(99, Kind.STEP_NOTED, of, json.loads(json.dumps(facts)))]
    again: Any = noted_of(heard, made, copy)
    assert again.erased_since
    assert left_of_step(heard, step) == {"l"}


def test_a_look_that_reads_nothing_withdraws_nothing(begun: RunFolder) -> None:
    ended(begun, **OVER)
    copy = begun.approved().plan.copies[0]
    keep(begun, found(begun, copy.id, "(new) late"))
    kept = look(begun, unread(copy.id, "(new) late"), began=5, ended=6)
    assert kept is not None
    assert kept.places.keys() == {copy.id, "(new) late"}
    loaded = begun.approved()
    nobodys = found_by(loaded, (), seen(), EVERYBODY, begun.found_since(), NOW, NOW, {})
    assert nobodys == begun.found_since(), "without its journal nothing is known of the run"


def test_what_another_look_found_meanwhile_stays(begun: RunFolder) -> None:
    ended(begun, **OVER)
    copy = begun.approved().plan.copies[0]
    keep(begun, look(begun, seen(copy.id), began=4, ended=5))
    clean = RunVerdict(copies=(CopyVerdict(copy_id=copy.id, bytes=ByteVerdict(copy_id=copy.id, root="", files=())),))
    older = look(begun, clean, began=5, ended=9)
    assert older is not None
    assert older.places.keys() == {copy.id}
    keep(begun, older)
    later = look(begun, clean, began=10, ended=11)
    assert later is not None
    assert not later.places


def test_a_run_that_went_on_and_was_killed_has_ended_once(begun: RunFolder) -> None:
    ended(begun, **OVER)
    journal, loaded = Journal.open(begun.journal), begun.approved()
    keep(begun, found(begun, "(new) late"))
    journal.append(Kind.RUN_STARTED, plan_id=loaded.plan.plan_id, plan_digest=loaded.digest)
    late = found(begun, "(new) late", "(new) later")
    assert late is not None
    assert late.places.keys() == {"(new) late", "(new) later"}


@pytest.mark.parametrize("how", ["cut", "unknown field", "no file"])
def test_what_cannot_be_read_refuses_all_that_is_said_of_the_run(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    ended(begun, **OVER)
    copy = begun.approved().plan.copies[0]
    keep(begun, found(begun, copy.id))
    file = begun.path / FILE
    text = file.read_text()
    file.unlink()
    if how == "no file":
        file.mkdir()
    else:
        file.write_text(text[:50] if how == "cut" else json.dumps(json.loads(text) | {"later_field": 1}))
    state = begun.info().state
    for command in (
        ["close", begun.path.name],
        ["attest", "certificate"],
        ["attest", "answer", begun.path.name, "--all", "--estate", str(tmp_path / "pii-tracer.yaml")],
    ):
        assert run_command([*command, "--state", state]) != 0, command
        told = capsys.readouterr().err
        assert "cannot be read" in told, (command, told)
        assert "pii-tracer verify" in told
    assert (tmp_path / "p.subjects.sealed").exists()
    assert run_command(["status", begun.path.name, "--state", state]) in (0, 1)
    assert "cannot be read" in capsys.readouterr().out
    with pytest.raises(Refused):
        file_of(begun).change(lambda _: None, mark(begun))


def test_anybodys_residue_answers_no_earlier_run(begun: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a person whose it is for certain, too: the run itself is open then."""
    ended(begun, **OVER)
    plan = begun.approved().plan
    (asked,) = plan.requests
    mine = FoundThere(at=NOW, residue=({"copy": "c"},), persons=(asked.subject,))
    late = FoundSince(at=NOW, plan_digest=begun.approved().digest, places={"c": mine})
    assert late.in_result({"state": "partial", "open_requests": ["R-9"]})["open_requests"] == []
    earlier = begun.path.with_name("earlier")
    shutil.copytree(begun.path, earlier)
    before = RunFolder(earlier)
    of_then = plan.model_copy(update={"created_at": plan.created_at - timedelta(days=1)})
    monkeypatch.setattr(requests_left_open, "_plan_of", lambda run: of_then if run.path == earlier else plan)
    assert answered(begun.state, before, {asked.subject}) == {asked.subject}
    keep(begun, late)
    assert answered(begun.state, before, {asked.subject}) == frozenset()


def test_what_cannot_be_kept_is_told_as_unverified(begun: RunFolder) -> None:
    ended(begun, **OVER)
    loaded = begun.approved()
    assert _keep(begun.settings(), loaded, NOW, lambda before: before) is None
    (begun.path / ".found.lock").unlink()
    (begun.path / ".found.lock").mkdir()
    why = _keep(begun.settings(), loaded, NOW, lambda before: before)
    told = PlanVerification(loaded.plan, RunVerdict(copies=()), unkept=why)
    assert told.exit_code == ExitCode.PARTIAL
    assert (told.as_json()["state"], told.as_json()["unverified"]) == ("partial", [why])
    assert "verify again" in str(why)


def test_a_run_whose_record_cannot_be_read_is_not_one_that_has_not_begun(begun: RunFolder) -> None:
    loaded, settings = begun.approved(), begun.settings()
    ended(begun, **OVER)
    text = begun.info_file.read_text()
    for damaged in ("{", text.replace("plan_digest", "digest_of_plan"), None):
        begun.info_file.unlink()
        if damaged is not None:
            begun.info_file.write_text(damaged)
        why = _keep(settings, loaded, NOW, lambda _: pytest.fail("of which run?"))
        assert why is not None
        assert str(begun.info_file) in why
        assert "verify again" in why
    shutil.rmtree(begun.path)
    assert _keep(settings, loaded, NOW, lambda _: pytest.fail("there is none")) is None
    assert not begun.path.exists()


def kept(folder: RunFolder) -> None:
    """A run of this version, which ended: its journal says that what is found since is kept."""
    journal, loaded = Journal.open(folder.journal), folder.approved()
    journal.append(Kind.RUN_STARTED, plan_id=loaded.plan.plan_id, plan_digest=loaded.digest, **KEPT)
    journal.append(Kind.STEP_INTENT, step=loaded.plan.steps[0].id)
    keep(folder, None)
    ended(folder, **OVER)


@pytest.mark.parametrize("how", ["removed", "with its journal", "edited", "its seal cut off", "by another key"])
def test_one_that_was_removed_or_edited_is_noticed(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    kept(begun)
    assert begun.last_result() == {**OVER, "attestation": "a"}
    copy = begun.approved().plan.copies[0]
    keep(begun, found(begun, copy.id))
    file = begun.path / FILE
    told = json.loads(file.read_bytes())
    if how in ("removed", "with its journal"):
        file.unlink()
    elif how == "by another key":
        file_of(begun).keep(None, EstateKey(bytes(64)).found_mark)
    else:
        changed = {"places": {}, "of_copies": {}} if how == "edited" else {"places": {}, "of_copies": {}, "seal": ""}
        file.write_text(json.dumps(told | changed))
    if how == "with its journal":
        begun.journal.unlink()
    state = begun.info().state
    for command in (
        ["close", begun.path.name],
        ["attest", "certificate"],
        ["attest", "answer", begun.path.name, "--all", "--estate", str(tmp_path / "pii-tracer.yaml")],
        ["resume", begun.path.name],
    ):
        capsys.readouterr()
        assert run_command([*command, "--state", state]) != 0, command
        if how != "with its journal":
            assert "found of the run's persons" in capsys.readouterr().err, command
    assert (tmp_path / "p.subjects.sealed").exists()


def keep_look(folder: RunFolder, verdict: RunVerdict, began: datetime) -> None:
    loaded, records = folder.approved(), Journal.open(folder.journal).records

    def after(before: FoundSince | None) -> FoundSince | None:
        return found_by(loaded, records, verdict, EVERYBODY, before, began, began, heard_at(loaded, records))

    assert _keep(folder.settings(), loaded, began, after) is None


def test_after_one_was_removed_only_a_look_that_reads_everything_lets_anything_be_said(begun: RunFolder) -> None:
    kept(begun)
    (begun.path / FILE).unlink()
    loaded, began = begun.approved(), NOW + timedelta(minutes=5)
    copies = {s.copy_: s for s in loaded.plan.steps if s.action is Action.VERIFY_COPY and s.copy_}
    looks = {n: CopyVerdict(copy_id=n, bytes=ByteVerdict(copy_id=n, root="", files=())) for n in copies}
    first = sorted(copies)[0]
    some = RunVerdict(copies=tuple(look for name, look in looks.items() if name != first))
    keep_look(begun, some, began)
    assert not over(begun.last_result() or {}), "nobody looked at one of them"
    assert close(begun) == ExitCode.USAGE
    later = began + timedelta(days=3650)
    keep_look(begun, RunVerdict(copies=tuple(looks.values())), later)
    assert begun.last_result() == {**OVER, "attestation": "a"}
    since = begun.found_since()
    assert since is not None
    assert since.of_copies.keys() == copies.keys(), "the journal has still to hear that anything may have been there"
    assert close(begun) == 0


def test_a_look_at_a_run_of_an_earlier_version_keeps_what_it_finds(begun: RunFolder) -> None:
    """Its journal says nothing of the file, so there may be none, and one without a seal."""
    ended(begun, **OVER)
    assert begun.found_since() is None
    late = found(begun, begun.approved().plan.copies[0].id)
    assert late is not None
    (begun.path / FILE).write_text(late.model_dump_json(exclude={"seal"}))
    assert not over(begun.last_result() or {})


def clean_looks(folder: RunFolder) -> tuple[CopyVerdict, ...]:
    """At every copy that is verified, with nothing found."""
    copies = {s.copy_ for s in folder.approved().plan.steps if s.action is Action.VERIFY_COPY and s.copy_}
    return tuple(CopyVerdict(copy_id=n, bytes=ByteVerdict(copy_id=n, root="", files=())) for n in sorted(copies))


def test_after_one_was_removed_a_place_beside_the_copies_may_hold_anybody_until_all_was_read(begun: RunFolder) -> None:
    """What was removed may have told of any place, and not of copies alone."""
    kept(begun)
    keep(begun, found(begun, "(new) late"))
    (begun.path / FILE).unlink()
    began = NOW + timedelta(days=3650)
    keep_look(begun, RunVerdict(copies=(*clean_looks(begun), *unread("(new) late").copies)), began)
    told = begun.last_result() or {}
    assert (told["state"], [one["copy"] for one in told["residue"]]) == ("partial", [ANY_PLACE])
    assert close(begun) == ExitCode.USAGE
    keep_look(begun, RunVerdict(copies=clean_looks(begun)), began + timedelta(days=1))
    assert begun.last_result() == {**OVER, "attestation": "a"}


def test_a_run_of_which_nobody_knows_what_was_found_answers_no_earlier_run(
    begun: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is gone, and a look that could read nothing says that anybody may be anywhere."""
    kept(begun)
    plan = begun.approved().plan
    (asked,) = plan.requests
    before = RunFolder(begun.path.with_name("earlier"))
    shutil.copytree(begun.path, before.path)
    of_then = plan.model_copy(update={"created_at": plan.created_at - timedelta(days=1)})
    monkeypatch.setattr(requests_left_open, "_plan_of", lambda run: of_then if run.path == before.path else plan)
    assert answered(begun.state, before, {asked.subject}) == {asked.subject}
    assert not left_something(begun)
    (begun.path / FILE).unlink()
    keep_look(begun, unread(*(look.copy_id for look in clean_looks(begun))), NOW + timedelta(minutes=5))
    assert answered(begun.state, before, {asked.subject}) == frozenset()
    assert left_something(begun), "whoever is asked for again is looked for by all that this run knew"
    assert places_of(begun) == {asked.subject: ()}
    assert (begun.last_result() or {})["open_requests"] == [], "and the run itself is open"


def test_the_file_of_another_run_is_none_of_this_one(begun: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Its seal holds: every run of the estate has one with the same key."""
    kept(begun)
    keep(begun, found(begun, begun.approved().plan.copies[0].id))
    FoundFile(begun.path, (), "sha256:" + "b" * 64).keep(None, mark(begun))
    for looking_only in (True, False):
        with pytest.raises(Refused, match="of another run"):
            begun.found_since(looking_only=looking_only)
    capsys.readouterr()
    assert close(begun) != 0
    assert "another run" in capsys.readouterr().err


def test_what_the_run_looked_at_again_is_over(begun: RunFolder) -> None:
    """`verify` found it, the journal heard of it as the run went on, and the run erased it and ended."""
    kept(begun)
    keep(begun, found(begun, begun.approved().plan.copies[0].id))
    heard: list[str] = []
    ctx: Any = SimpleNamespace(note=lambda step, facts: heard.append(step))
    loaded = begun.approved()
    known = _taken_over(begun, loaded, ctx)
    assert heard
    assert known is not None
    ran: Any = SimpleNamespace(folder=begun, info=SimpleNamespace(result=None), loaded=loaded, found=known)
    result = json.loads(begun.result.read_text())
    assert _handed_over(ran, result, done=True) == {**OVER, "attestation": "a"}
    assert begun.found_since() is None


@pytest.mark.parametrize("how", ["a folder", "a broken record", "another form"])
def test_a_journal_whose_begin_cannot_be_read_does_not_say_that_nothing_was_kept(begun: RunFolder, how: str) -> None:
    kept(begun)
    begun.evidence.joinpath("journal.jsonl").unlink()
    (begun.path / FILE).unlink()
    first = begun.journal.read_bytes()
    begun.journal.unlink()
    if how == "a folder":
        begun.journal.mkdir()
    else:
        begun.journal.write_bytes((b"{\n" if how == "a broken record" else b"[]\n") + first)
    with pytest.raises(Refused, match=r"the begin of the run's journal cannot be read"):
        begun.last_result()


def test_a_first_record_that_was_torn_is_no_begin(begun: RunFolder) -> None:
    begun.journal.write_bytes(b'{"facts":{"found')
    assert begun.found_since() is None


def test_a_run_without_its_file_and_plan_stands_in_the_way_until_it_is_moved_out(
    begun: RunFolder, tmp_path: Path
) -> None:
    kept(begun)
    settings, other = begun.settings(), tmp_path / "q.plan.json"
    plan = load_plan(other).plan.model_copy(update={"plan_id": "plan-other"})  # both may be made in one second
    ring = KeyRing.open(manifest_path(other), plan.subjects_digest, settings.key())
    refuse_unsearched(settings, plan, ring)
    for gone in (begun.path / FILE, begun.evidence / "plan.json", tmp_path / "p.plan.json"):
        gone.unlink()
    with pytest.raises(Refused) as refused:
        refuse_unsearched(settings, plan, ring)
    assert "move the run's folder out of `runs`" in str(refused.value.todo)
    begun.path.rename(tmp_path / "past")
    refuse_unsearched(settings, plan, ring)
