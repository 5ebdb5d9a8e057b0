"""Faults that a run must survive without a false word: what failed in part, what was lost, who came in between."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from executors.formats.delta import sweep_rules
from pii_tracer.app.execution.run_outputs import counts_lost, rows_deleted, step_facts
from pii_tracer.app.execution.run_verification import facts_of
from pii_tracer.cli.main import run as cli
from pii_tracer.model.errors import RunError
from pii_tracer.model.plan import Copy, Step
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.openlineage_events import RunEvents
from pii_tracer.run.run_state import State
from pii_tracer.run.runner import run
from tests.review.plans import plan, step
from tests.run.fakes import (
    FakeExecutor,
    FakeLease,
    Ticking,
    World,
)
from tests.run.history import violations


@dataclass
class Batch:
    """Deletes objects one by one; some are refused until they are let go. Deleting what is gone is an error."""

    there: set[str]
    refused: set[str]
    deletes: list[str] = field(default_factory=list)
    name: str = "fake"

    def check(self, step: Step, copy: Copy | None) -> None:
        """Nothing stands against it."""

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        gone = sorted(self.there - self.refused)
        for key in gone:
            self.there.remove(key)
            self.deletes.append(key)
        facts: dict[str, Any] = {"deleted": [{"key": key, "version_id": "1"} for key in gone]}
        if self.there:
            raise PartlyDone("1 was not deleted: AccessDenied", facts, where="s3://b", todo="lift the hold")
        return Outcome(facts)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        return Check(not self.there, tuple(f"{key} is there" for key in sorted(self.there)))

    def probe(self, step: Step, copy: Copy | None) -> Progress:
        return Progress.PARTIAL if self.there else Progress.DONE


def test_a_batch_that_failed_in_part_is_not_done_and_only_the_rest_is_tried_again(tmp_path: Path) -> None:
    a_plan, clock = plan([step("a"), step("b", after=["a"])]), Ticking()
    batch = Batch({"x", "y", "z"}, {"y"})
    journal = Journal.open(tmp_path / "j", clock)
    state = run(a_plan, {"fake": batch}, journal, clock=clock, lease=FakeLease())
    assert (state.state, state.done, state.never_started) == (State.PARTIAL, (), ("b",))
    assert batch.deletes == ["x", "z"]
    batch.refused.clear()
    state = run(a_plan, {"fake": batch}, Journal.open(tmp_path / "j", clock), clock=clock, lease=FakeLease(2))
    assert state.state is State.COMPLETE
    assert batch.deletes == ["x", "z", "y"]
    records = Journal.open(tmp_path / "j", clock).records
    # what the failed attempt had deleted is written down and told with the rest
    assert [item["key"] for item in step_facts(records)["a"]["deleted"]] == ["x", "z", "y"]
    assert violations(records, a_plan) == []


def test_a_count_that_a_crash_took_along_is_known_to_be_lost(tmp_path: Path) -> None:
    a_plan, clock, world = plan([step("a"), step("b", after=["a"])]), Ticking(), World()

    class Deaf(FakeExecutor):
        def run(self, step: Step, copy: Copy | None) -> Outcome:
            super().run(step, copy)
            raise ConnectionError("the answer was lost")

    journal = Journal.open(tmp_path / "j", clock)
    state = run(a_plan, {"fake": Deaf(world)}, journal, clock=clock, lease=FakeLease())
    assert (state.state, world.side_effects) == (State.PARTIAL, 1)
    journal = Journal.open(tmp_path / "j", clock)
    state = run(a_plan, {"fake": FakeExecutor(world)}, journal, clock=clock, lease=FakeLease())
    assert (state.state, world.done) == (State.COMPLETE, ["a", "b"]), "recognised, not done a second time"
    assert counts_lost(journal.records) == {"a"}
    assert [r.kind for r in journal.records if r.facts.get("step") == "a"][-3:] == [
        Kind.STEP_PROBED,
        Kind.STEP_RESULT,
        Kind.STEP_VERIFIED,
    ]


def test_rows_that_a_step_deletes_when_it_is_done_again_count_besides(tmp_path: Path) -> None:
    """Somebody wrote late rows of the person, so that the step was repeated: both answers are there, nothing is lost."""
    journal = Journal.open(tmp_path / "j", Ticking())
    for rows in (5, 2):
        journal.append(Kind.STEP_INTENT, step="a")
        journal.append(Kind.STEP_RESULT, step="a", facts={"rows_deleted": rows})
    assert (rows_deleted(journal.records), counts_lost(journal.records)) == ({"a": 7}, set())
    journal.append(Kind.STEP_INTENT, step="a")
    assert counts_lost(journal.records) == {"a"}


def test_what_a_step_noted_before_it_died_stands_and_says_nothing_of_how_far_it_came(tmp_path: Path) -> None:
    a_plan, clock, world = plan([step("a")]), Ticking(), World()
    journal = Journal.open(tmp_path / "j", clock)

    class Noting(FakeExecutor):
        def run(self, step: Step, copy: Copy | None) -> Outcome:
            journal.append(Kind.STEP_NOTED, step=step.id, facts={"copied_from": [3]})
            raise ConnectionError("the answer was lost")

    state = run(a_plan, {"fake": Noting(world)}, journal, clock=clock, lease=FakeLease())
    assert (state.state, world.side_effects) == (State.PARTIAL, 0)
    journal = Journal.open(tmp_path / "j", clock)
    state = run(a_plan, {"fake": FakeExecutor(world)}, journal, clock=clock, lease=FakeLease())
    assert (state.state, world.side_effects) == (State.COMPLETE, 1)
    assert facts_of(journal.records, "a")[0] == {"copied_from": [3]}
    assert violations(journal.records, a_plan) == []
    events = RunEvents(a_plan).feed(journal.records)
    assert [str(e.eventType.value) for e in events if e.eventType].count("FAIL") == 2


def test_a_writer_that_commits_while_the_sweep_looks_loses_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two things the sweep reads, the folder and the log, somebody commits a new file."""
    folder = tmp_path / "t"
    write_deltalake(folder, pa.table({"id": [1, 2]}))
    (folder / "part-never-committed.parquet").write_bytes(b"left by a job that died")
    looked: list[str] = []

    def then_a_writer_commits(name: str) -> None:
        look = getattr(sweep_rules, name)

        def looking(where: Path, *more: Any, **options: Any) -> Any:
            answer = look(where, *more, **options)
            looked.append(name)
            if len(looked) == 1:
                write_deltalake(folder, pa.table({"id": [3]}), mode="append")
            return answer

        monkeypatch.setattr(sweep_rules, name, looking)

    then_a_writer_commits("files_below")
    then_a_writer_commits("log_of")
    swept = sweep_rules.unreferenced(folder)
    assert sorted(set(looked)) == ["files_below", "log_of"]
    assert [Path(f.path).name for f in swept] == ["part-never-committed.parquet"]
    for file in swept:
        Path(file.path).unlink()
    assert sorted(DeltaTable(folder).to_pyarrow_table().column("id").to_pylist()) == [1, 2, 3]


def test_a_full_disk_in_the_middle_of_an_act_is_told_and_resumed_from(tmp_path: Path) -> None:
    a_plan, clock, world = plan([step("a"), step("b", after=["a"])]), Ticking(), World()

    class Full(FakeExecutor):
        def run(self, step: Step, copy: Copy | None) -> Outcome:
            raise OSError(errno.ENOSPC, "No space left on device", "/lake/email=asha@clinic.example/part-0")

    state = run(a_plan, {"fake": Full(world)}, Journal.open(tmp_path / "j", clock), clock=clock, lease=FakeLease())
    assert state.state is State.PARTIAL
    assert "No space left on device" in state.failed[0].reason
    assert b"asha" not in (tmp_path / "j").read_bytes()
    again = FakeExecutor(world)
    state = run(a_plan, {"fake": again}, Journal.open(tmp_path / "j", clock), clock=clock, lease=FakeLease(2))
    assert (state.state, world.done) == (State.COMPLETE, ["a", "b"])


def test_who_stops_a_run_is_obeyed_though_cleaning_up_fails(tmp_path: Path) -> None:
    a_plan, clock, world = plan([step("a"), step("b")]), Ticking(), World()

    class Stopped(FakeExecutor):
        def run(self, step: Step, copy: Copy | None) -> Outcome:
            try:
                raise KeyboardInterrupt
            finally:
                raise RunError("the engine does not answer")

    with pytest.raises(KeyboardInterrupt):
        run(a_plan, {"fake": Stopped(world)}, Journal.open(tmp_path / "j", clock), clock=clock, lease=FakeLease())
    kinds = [record.kind for record in Journal.open(tmp_path / "j", clock).records]
    assert kinds[-1] is Kind.STEP_INTENT, "the step did not fail, and the next one was not begun"


def test_a_full_disk_outside_of_steps_is_told_and_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("pii_tracer.common.atomic_files.os.fsync", full)
        assert cli(["init", str(tmp_path), "--state", str(tmp_path / "state")]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
