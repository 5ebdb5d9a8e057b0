"""A journal and its end file that were both put back, or both are gone: what else knows of the run says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pii_tracer.app.execution.journal_rollback_check import refuse_gone, refuse_unlike
from pii_tracer.app.execution.plan_run import start_run
from pii_tracer.app.execution.run_folder import RunFolder, folder_of
from pii_tracer.app.settings import Settings
from pii_tracer.cli.main import run
from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.errors import ExitCode, JournalError
from pii_tracer.model.plan import ErasurePlan
from pii_tracer.proof.deletions.deletion_log import FILE, DeletionLog
from pii_tracer.proof.deletions.deletion_log_rows import groups_of
from pii_tracer.review.approval import consume
from pii_tracer.run.journal import Journal, Kind, Record
from pii_tracer.run.journal_truncation import end_file
from pii_tracer.run.openlineage_sender import Sender
from tests.proof.deletion_log.test_log_rows import rows
from tests.run.fakes import Ticking
from tests.run.placed import put_journal


@dataclass
class Ended:
    """A run that came to its end, and what it left."""

    folder: RunFolder
    plan: ErasurePlan
    records: tuple[Record, ...]

    def cut(self, left: int) -> tuple[Record, ...]:
        """The journal and its end file as they were after so many records."""
        lines = self.folder.journal.read_bytes().splitlines(keepends=True)
        put_journal(self.folder.journal, b"".join(lines[:left]))
        return Journal.open(self.folder.journal, Ticking()).records

    def refuse(self, records: tuple[Record, ...]) -> None:
        refuse_unlike(self.folder, self.folder.state, self.plan, records)


@pytest.fixture
def ended(tmp_path: Path) -> Ended:
    _, logged = rows(tmp_path, ("c1",))
    folder = folder_of(tmp_path / "state", logged.plan.plan_id)
    folder.path.mkdir(parents=True)
    put_journal(folder.journal, (tmp_path / "journal").read_bytes())
    return Ended(folder, logged.plan, tuple(logged.records))


def told_the_log(ended: Ended, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    _, logged = rows(tmp_path / "again", ("c1",))
    assert tuple(logged.records) == ended.records
    DeletionLog(ended.folder.state / FILE, ended.plan.estate).append(groups_of(logged))


def told_the_events(ended: Ended, tmp_path: Path) -> None:
    Sender(ended.plan, ended.folder.events, lambda _: None).follow(ended.records)


def told_the_result(ended: Ended, tmp_path: Path) -> None:
    write_atomic(ended.folder.result, json.dumps({"journal_head": ended.records[-1].hash}).encode())


def told_the_evidence(ended: Ended, tmp_path: Path) -> None:
    write_atomic(ended.folder.evidence / "journal.jsonl", ended.folder.journal.read_bytes())


TRACES: dict[str, tuple[Callable[[Ended, Path], None], int]] = {
    "the deletion log": (told_the_log, 2),  # its last record is a step's, the last one is the run's end
    "event ": (told_the_events, 1),
    "the run's result": (told_the_result, 1),
    "the evidence": (told_the_evidence, 1),
}


@pytest.mark.parametrize("name", TRACES)
def test_a_cut_is_noticed_by_each_of_what_else_knows(ended: Ended, tmp_path: Path, name: str) -> None:
    tell, fewest = TRACES[name]
    tell(ended, tmp_path)
    ended.refuse(ended.records)
    for left in range(len(ended.records) - fewest, 2, -1):
        with pytest.raises(JournalError, match=name) as caught:
            ended.refuse(ended.cut(left))
        assert "is missing" in caught.value.what or "knows of no step" in caught.value.what
        assert caught.value.todo is not None


def test_the_record_that_is_missing_is_named(ended: Ended, tmp_path: Path) -> None:
    told_the_log(ended, tmp_path)
    last = [r for r in ended.records if r.kind is Kind.STEP_VERIFIED][-1]
    with pytest.raises(JournalError) as caught:
        ended.refuse(ended.cut(ended.records.index(last)))
    assert last.hash in caught.value.what
    assert f"step {last.facts['step']}" in caught.value.what


@pytest.mark.parametrize("place", ["verdicts/c1.json", "before/c1.jsonl", "attestation.json", "evidence/plan.json"])
def test_nothing_began_by_the_journal_and_something_did(ended: Ended, place: str) -> None:
    write_atomic(ended.folder.path / place, b"{}")
    ended.refuse(ended.records)
    with pytest.raises(JournalError, match="knows of no step that began"):
        ended.refuse(ended.cut(2))
    with pytest.raises(JournalError, match="the journal is empty: it knows of no step"):
        ended.refuse(ended.cut(0))
    refuse_gone(ended.folder, consumed=False)
    ended.folder.journal.unlink()
    with pytest.raises(JournalError, match="its journal is missing"):
        refuse_gone(ended.folder, consumed=False)


def test_a_run_that_was_killed_before_its_first_step_is_gone_on_with(ended: Ended, tmp_path: Path) -> None:
    ended.refuse(ended.cut(0))
    ended.refuse(())
    Sender(ended.plan, ended.folder.events, lambda _: None).follow(ended.records[:2])
    ended.refuse(ended.records[:2])


@pytest.mark.parametrize("words", [["resume"], ["apply"]])
def test_the_run_is_not_begun_anew_when_its_journal_and_its_end_are_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    from tests.app.planning.test_nested_subject import called, estate

    estate(tmp_path)
    file, state = tmp_path / "p.plan.json", tmp_path / "state"
    assert called(tmp_path, "plan", str(tmp_path / "request.yaml"), "--out", str(file)) == 0
    assert called(tmp_path, "approve", str(file), "--approver", "a", "--role", "r", "--reason", "r", "--unsigned") == 0
    folder = start_run(Settings(tmp_path / "pii-tracer.yaml", state), file, None, [], None)
    journal = Journal.open(folder.journal)
    consume(state / "consumed", folder.info().plan_digest, folder.path.name)
    journal.append(Kind.RUN_STARTED)
    folder.journal.unlink()
    end_file(folder.journal).unlink()
    capsys.readouterr()
    if words == ["apply"]:
        folder.info_file.unlink()
        assert called(tmp_path, "apply", str(file)) == ExitCode.ERROR
    else:
        assert run(["resume", folder.path.name, "--state", str(state)]) == ExitCode.ERROR
    assert "the run has started, but its journal is missing: its approval is used up" in capsys.readouterr().err
    assert not folder.journal.exists()
