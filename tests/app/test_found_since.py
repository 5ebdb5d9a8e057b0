"""What `verify` finds where a run had found nothing counts for all that is said of the run later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.execution.run_folder import RunFolder, over
from pii_tracer.app.execution.run_journal_facts import noted_of
from pii_tracer.app.persons_apart.found_since import FILE, FoundSince, found_by, keep_found
from pii_tracer.app.persons_apart.requests_left_open import left_something, places_of
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.plan import Copy, ErasurePlan
from pii_tracer.proof.open_requests import left_of_step
from pii_tracer.review.plan_file import LoadedPlan
from pii_tracer.run.journal import Journal, Kind, Record
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


def found(folder: RunFolder, *places: str, left: PersonsLeft = EVERYBODY) -> FoundSince | None:
    loaded, records = folder.approved(), Journal.open(folder.journal).records
    return found_by(loaded, records, seen(*places), left, folder.found_since(), NOW)


def test_what_is_found_after_the_end_keeps_the_values_until_a_look_finds_nothing(
    begun: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(begun, **OVER)
    copy = begun.approved().plan.copies[0]
    for place in (copy.id, "(new) late"):
        keep_found(begun.path, found(begun, place))
        result = begun.last_result() or {}
        assert (result["state"], [one["copy"] for one in result["residue"]]) == ("partial", [place])
        assert not over(result)
        assert close(begun) == ExitCode.USAGE
        assert "not over" in capsys.readouterr().err
    assert "ABCDE" not in (begun.path / FILE).read_text()
    keep_found(begun.path, found(begun))
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


def test_a_file_of_another_plan_says_nothing(begun: RunFolder) -> None:
    ended(begun, **OVER)
    copy = begun.approved().plan.copies[0]
    late = found(begun, copy.id)
    assert late is not None
    keep_found(begun.path, late.model_copy(update={"plan_digest": "sha256:other"}))
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
    late = found_by(LoadedPlan(both, b"", loaded.digest, "p"), records, seen(copy.id), left, None, NOW)
    assert late is not None
    assert (late.open_requests, late.of_copies) == ((asked.id,), {copy.id: (asked.subject,)})
    assert not left_something(begun)
    keep_found(begun.path, late)
    assert left_something(begun)
    assert places_of(begun) == {asked.subject: ()}


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
