"""Metrics of a run: they say what the journal says, while it goes on and at the end, and stop no erasure."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from pii_tracer.app.watching import run_metrics_file
from pii_tracer.app.watching.run_metrics_file import RunMetricsFile
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import ExitCode
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.run.executor_protocol import Check, Outcome
from pii_tracer.run.journal import Journal
from pii_tracer.run.runner import run
from tests.prometheus import Family, families
from tests.review.plans import DEADLINE, NOW, copy, plan, step
from tests.run.fakes import FakeExecutor, FakeLease, Ticking, World

ODD = 'estate "x"\\\n\u202e'


class Counting(FakeExecutor):
    """Counts rows, files and what a verification finds."""

    def run(self, step: Step, copy: Copy | None) -> Outcome:
        done = super().run(step, copy)
        facts = {"residue": 2} if step.action is Action.VERIFY_COPY else {"rows_deleted": 7, "files_removed": 3}
        return Outcome({**done.facts, **facts}, done.waiting_until)

    def verify(self, step: Step, copy: Copy | None) -> Check:
        return super().verify(step, copy)


def the_plan() -> ErasurePlan:
    return plan(
        [
            step("c1/1"),
            step("c1/2", after=["c1/1"], action=Action.VERIFY_COPY),
            step("c2/1", "c2"),
            step("c3/1", "c3"),
            step("c3/2", "c3", after=["c3/1"]),
        ],
        copies=[copy("c1"), copy("c2"), copy("c3")],
        estate=ODD,
    )


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Family]]:
    """What the file says after each event of a run, of which one step fails and one waits; the end comes after."""
    monkeypatch.setattr(run_metrics_file, "AGAIN", 0.0)
    made, clock = the_plan(), Ticking()
    executor = Counting(World(), broken={"c2/1"}, waits={"c3/1": NOW + timedelta(days=1)}, clock=clock)
    journal = Journal.open(tmp_path / "j", clock)
    numbers = RunMetricsFile(tmp_path / "m" / "pii_tracer.prom", made, clock, lambda told: pytest.fail(told))
    found = []

    def follow(event: object) -> None:
        numbers.follow(journal.records)
        found.append(families((tmp_path / "m" / "pii_tracer.prom").read_text()))

    run(made, {"fake": executor}, journal, clock=clock, lease=FakeLease(), on_event=follow)
    numbers.follow(journal.records)
    numbers.end(ExitCode.RESIDUE, residue=4)
    found.append(families((tmp_path / "m" / "pii_tracer.prom").read_text()))
    return found


def test_the_steps_of_each_state_are_counted_while_the_run_goes_on(seen: list[dict[str, Family]]) -> None:
    states = [{s.labels["state"]: s.value for s in one["pii_tracer_run_steps"].samples} for one in seen]
    assert {sum(one.values()) for one in states} == {5.0}
    assert states[0] == {"done": 0, "failed": 0, "waiting": 0, "open": 5}
    assert states[-1] == {"done": 2, "failed": 1, "waiting": 1, "open": 1}
    assert [one["done"] for one in states] == sorted(one["done"] for one in states)


def test_the_numbers_are_those_of_the_journal(seen: list[dict[str, Family]]) -> None:
    def value(name: str, at: int = -1) -> float:
        (one,) = seen[at][f"pii_tracer_run_{name}"].samples
        return one.value

    assert (value("rows_deleted_total"), value("files_removed_total")) == (7, 6), "a step that waits has removed some"
    assert (value("residue", -2), value("residue")) == (2, 4)
    assert (value("exit_code"), value("deadline_timestamp_seconds")) == (9, DEADLINE.timestamp())
    assert "pii_tracer_run_exit_code" not in seen[-2], "it has not ended"
    took = {(s.name, s.labels["action"]): s.value for s in seen[-1]["pii_tracer_run_step_duration_seconds"].samples}
    assert took["pii_tracer_run_step_duration_seconds_count", "verify_copy"] == 1
    assert 1 <= took["pii_tracer_run_step_duration_seconds_sum", "verify_copy"] <= 5
    assert {s.labels["estate"] for one in seen for family in one.values() for s in family.samples} == {
        'estate "x"\\\\n\\u202e'
    }


def test_a_run_that_fails_keeps_the_time_of_the_last_success(tmp_path: Path) -> None:
    file = tmp_path / "run.prom"
    RunMetricsFile(file, plan(), lambda: NOW, pytest.fail).end(ExitCode.DONE)
    for code in (ExitCode.NOT_APPROVED, ExitCode.RESIDUE):
        RunMetricsFile(file, plan(), lambda: NOW + timedelta(days=9), pytest.fail).end(code)
        told = families(file.read_text())
        assert [s.value for s in told["pii_tracer_run_exit_code"].samples] == [code]
        assert [s.value for s in told["pii_tracer_run_last_success_timestamp_seconds"].samples] == [NOW.timestamp()]


def test_everybody_may_read_it_and_nothing_is_beside_it(tmp_path: Path) -> None:
    RunMetricsFile(tmp_path / "run.prom", plan(), lambda: NOW, pytest.fail).end(ExitCode.DONE)
    assert [p.name for p in tmp_path.iterdir()] == ["run.prom"]
    assert (tmp_path / "run.prom").stat().st_mode & 0o044 == 0o044


def test_a_file_that_cannot_be_written_is_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    warned: list[str] = []
    numbers = RunMetricsFile(tmp_path / "file" / "run.prom", plan(), lambda: NOW, warned.append)
    numbers.end(ExitCode.DONE)
    numbers.end(ExitCode.DONE)
    assert len(warned) == 1
    assert re.match(r"metrics cannot be written: \w+", warned[0])
