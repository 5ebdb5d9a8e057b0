"""Metrics of a run: they say what the journal says, while it goes on and at the end, and stop no erasure."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.watching import run_metrics_file
from pii_tracer.app.watching.file_counts import FileCounts
from pii_tracer.app.watching.run_metrics_file import RunMetricsFile
from pii_tracer.model.actions import Action
from pii_tracer.model.errors import ExitCode, UsageError
from pii_tracer.model.plan import Copy, ErasurePlan, Step
from pii_tracer.run.executor_protocol import Check, Outcome
from pii_tracer.run.journal import Journal, Kind
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


def succeeded(file: Path) -> list[float]:
    told = families(file.read_text()).get("pii_tracer_run_last_success_timestamp_seconds")
    return [s.value for s in told.samples] if told else []


def test_the_last_success_is_that_of_the_same_estate(tmp_path: Path) -> None:
    file = tmp_path / "run.prom"
    RunMetricsFile(file, plan(estate="shop-a"), lambda: NOW, pytest.fail).end(ExitCode.DONE)
    RunMetricsFile(file, plan(estate="shop-b"), lambda: NOW, pytest.fail).end(ExitCode.RESIDUE)
    assert succeeded(file) == []
    assert b"shop-a" not in file.read_bytes()


def test_a_run_that_began_earlier_takes_no_success_away(tmp_path: Path) -> None:
    """Two runs of an estate write one file at the same time; the one that fails last began first."""
    file, late = tmp_path / "run.prom", NOW + timedelta(hours=1)
    first, second = (RunMetricsFile(file, plan(), lambda: late, pytest.fail) for _ in "ab")
    second.end(ExitCode.DONE)
    first.end(ExitCode.RESIDUE)
    assert succeeded(file) == [late.timestamp()]


@pytest.mark.parametrize("value", ["nan", "-inf", "+Inf", "yesterday"])
def test_a_success_at_no_time_is_none(tmp_path: Path, value: str) -> None:
    file = tmp_path / "run.prom"
    RunMetricsFile(file, plan(), lambda: NOW, pytest.fail).end(ExitCode.DONE)
    file.write_text(re.sub(r"(last_success_timestamp_seconds\{.*\}) \S+", rf"\1 {value}", file.read_text()))
    RunMetricsFile(file, plan(), lambda: NOW, pytest.fail).end(ExitCode.RESIDUE)
    assert succeeded(file) == []


@pytest.mark.parametrize("kind", ["text", "folder", "pipe", "large", "link"])
def test_what_holds_something_else_is_not_written(tmp_path: Path, kind: str) -> None:
    """Files of the run, folders, pipes, devices: it is said before anything is done, and they stay as they are."""
    file, text = tmp_path / "run.prom", b"estate: shop\n"
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "large":
        with file.open("wb") as out:
            out.write(b"# HELP pii_tracer_run_x\n")
            out.truncate(1 << 33)
    elif kind == "link":
        (tmp_path / "plan").write_bytes(text)
        file.symlink_to(tmp_path / "plan")
    else:
        file.write_bytes(text)
    before = file.lstat()
    with pytest.raises(UsageError) as refused:
        RunMetricsFile(file, plan(), lambda: NOW, pytest.fail)
    assert refused.value.where == str(tmp_path / "plan" if kind == "link" else file)
    assert (file.lstat().st_ino, file.lstat().st_size) == (before.st_ino, before.st_size)
    assert kind not in ("text", "link") or file.read_bytes() == text


def test_what_became_something_else_meanwhile_is_not_written(tmp_path: Path) -> None:
    file, warned = tmp_path / "run.prom", list[str]()
    numbers = RunMetricsFile(file, plan(), lambda: NOW, warned.append)
    file.write_text("estate: shop")
    numbers.end(ExitCode.DONE)
    assert file.read_text() == "estate: shop"
    assert warned == [
        "metrics cannot be written: the metrics file holds something else, which would be overwritten",
    ]


def test_an_empty_file_is_taken(tmp_path: Path) -> None:
    (tmp_path / "run.prom").touch()
    RunMetricsFile(tmp_path / "run.prom", plan(), lambda: NOW, pytest.fail).end(ExitCode.DONE)
    assert succeeded(tmp_path / "run.prom") == [NOW.timestamp()]


def test_a_run_of_another_process_keeps_its_file(tmp_path: Path) -> None:
    """Whoever is refused because somebody else runs the plan writes nothing; whoever heard the journal does."""
    file, busy = tmp_path / "run.prom", [True]
    numbers = RunMetricsFile(file, plan(), lambda: NOW, pytest.fail, lambda: busy[0])
    numbers.begin([])
    numbers.end(ExitCode.ERROR)
    assert not file.exists()
    numbers.follow([])
    assert file.exists()


def test_the_time_of_a_step_that_was_killed_is_not_known(tmp_path: Path) -> None:
    """The process died in the step; days later it is found done."""
    made, times = plan([step("c1/1")]), iter([timedelta(0), timedelta(seconds=1), *[timedelta(days=3)] * 9])
    journal = Journal.open(tmp_path / "j", lambda: NOW + next(times))
    journal.append(Kind.RUN_STARTED)
    journal.append(Kind.STEP_INTENT, step="c1/1")
    journal.append(Kind.RUN_STARTED)
    journal.append(Kind.STEP_PROBED, step="c1/1")
    journal.append(Kind.STEP_VERIFIED, step="c1/1")
    numbers = RunMetricsFile(tmp_path / "run.prom", made, lambda: NOW, pytest.fail)
    numbers.follow(journal.records)
    told = families((tmp_path / "run.prom").read_text())
    assert {s.labels["state"]: s.value for s in told["pii_tracer_run_steps"].samples}["done"] == 1
    assert "pii_tracer_run_step_duration_seconds" not in told


@pytest.mark.parametrize(
    ("answers", "counts"),
    [
        ([(Kind.STEP_RESULT, {"files_removed": 3})], (3, 0)),
        ([(Kind.STEP_RESULT, {"files_swept": 4, "retain_hours": 1})], (4, 0)),
        ([(Kind.STEP_RESULT, {"versions_deleted": 5, "left_alone": 2})], (5, 0)),
        ([(Kind.STEP_RESULT, {"deleted": {"deleted_data_files_count": 2, "deleted_manifest_files_count": 1}})], (3, 0)),
        ([(Kind.STEP_RESULT, {"deleted": True, "snapshot": "s"})], (0, 0)),
        (
            [(Kind.STEP_FAILED, {"deleted": [{}, {}]}), (Kind.STEP_WAITING, {"deleted": [{}]}),
             (Kind.STEP_RESULT, {"deleted": [{}]})],
            (4, 0),
        ),
        ([(Kind.STEP_WAITING, {"rewritten": 1}), (Kind.STEP_RESULT, {"rewritten": 3, "objects": []})], (0, 3)),
        ([(Kind.STEP_RESULT, {"files_rewritten": 2}), (Kind.STEP_RESULT, {"files_rewritten": 2})], (0, 2)),
        (
            [
                (Kind.STEP_WAITING, {"rewritten": 1, "rewritten_archives": [{"archive": "a", "new_archive": "n"}]}),
                (Kind.STEP_RESULT, {"rewritten": 1, "rewritten_archives": [
                    {"archive": "b", "new_archive": "m"}, {"archive": "c", "new_archive": None}]}),
            ],
            (0, 2),
        ),
    ],
)  # fmt: skip
def test_files_are_counted_as_each_executor_tells_them(
    tmp_path: Path, answers: list[tuple[Kind, dict[str, Any]]], counts: tuple[int, int]
) -> None:
    journal = Journal.open(tmp_path / "j", lambda: NOW)
    for kind, facts in answers:
        journal.append(kind, step="c1/1", facts=facts)
    found = FileCounts(journal.records)
    assert (found.removed, found.rewritten) == counts
