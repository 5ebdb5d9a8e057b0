"""What listeners hear of long work, and the log of JSON lines that one of them writes."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest
from rich.console import Console

from pii_tracer.app.execution.live_step_output import Teller
from pii_tracer.app.progress import SILENT, Watches, with_facts
from pii_tracer.cli.main import run as command_line
from pii_tracer.run.executor_protocol import Outcome
from pii_tracer.run.journal import Journal, Kind
from pii_tracer.run.run_state import StepEvent
from pii_tracer.run.runner import run
from reports.progress import Progress
from reports.watch.command_watch import CommandWatch
from reports.watch.json_log import JsonLog, LinesAsJson
from reports.watch.watch import Watch
from tests.review.plans import NOW, copy, plan, step
from tests.run.fakes import FakeExecutor, FakeLease, Ticking, World


class Clock:
    """Seconds since the epoch; goes on by a second with each look."""

    def __init__(self) -> None:
        self.now = 1_795_000_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert all(isinstance(one, dict) for one in found)
    return found


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


def test_each_piece_of_work_is_a_line(out: io.StringIO) -> None:
    log = JsonLog(out, "apply", Clock())
    with Watch(None, [log], Clock()) as watch:
        watch.about({"plan_id": "plan-1"})
        watch.stage("apply: 2 steps")
        watch.step("1/2 delete", "about 3 s left", {"step_id": "c1/1", "left_seconds": 3.5})
        watch.over({"rows_deleted": 5})
        watch.step("2/2 look", facts={"step_id": "c1/2"})
        watch.warn("slow")
        watch.stop("failed gone", {"state": "failed"})
        watch.stage("report\u202e")
        watch.step("writing")
        watch.done("3 files")
    log.error("no", "here", "again")
    log.end(7)
    told = lines(out)
    assert [(t["event"], t["level"]) for t in told] == [
        ("stage", "info"), ("step", "info"), ("step_end", "info"), ("step", "info"), ("warning", "warning"),
        ("step_end", "warning"), ("stage", "info"), ("step", "info"), ("step_end", "info"), ("error", "error"),
        ("end", "warning"),
    ]  # fmt: skip
    assert {t["command"] for t in told} == {"apply"}
    assert {t["plan_id"] for t in told} == {"plan-1"}
    assert (told[1]["step"], told[1]["detail"], told[1]["left_seconds"]) == ("1/2 delete", "about 3 s left", 3.5)
    assert told[2] | {"time": ""} == {
        "time": "", "level": "info", "command": "apply", "event": "step_end", "stage": "apply: 2 steps",
        "plan_id": "plan-1", "step": "1/2 delete", "state": "done", "step_id": "c1/1", "rows_deleted": 5, "seconds": 1.0,
    }  # fmt: skip
    assert (told[5]["state"], told[5]["detail"], told[6]["stage"]) == ("failed", "failed gone", "report\\u202e")
    assert (told[8]["detail"], told[9]["next"], told[10]["exit_code"]) == ("3 files", "again", 7)
    assert all(t["time"].endswith("Z") and t["time"][10] == "T" for t in told)


@pytest.mark.parametrize("name", ["at", "time", "level", "command", "event", "stage", "step", "detail", "state", "run"])
def test_a_fact_changes_nothing_of_a_lines_head(out: io.StringIO, name: str) -> None:
    with Watch(None, [JsonLog(out, "apply", Clock())], Clock()) as watch:
        watch.about({"run": "r-1"})
        watch.step("1/1 delete", facts={name: 77})
        watch.over({name: 77})
        watch.done("all")
    plain = io.StringIO()
    with Watch(None, [JsonLog(plain, "apply", Clock())], Clock()) as watch:
        watch.about({"run": "r-1"})
        watch.step("1/1 delete")
        watch.over({})
        watch.done("all")
    for told, expected in zip(lines(out), lines(plain), strict=True):
        assert told | expected == told


def test_a_step_ends_with_the_work_that_failed(out: io.StringIO) -> None:
    def begin() -> None:
        with Watch(None, [JsonLog(out, "plan")]) as watch:
            watch.stage("plan")
            watch.step("reading")
            raise ValueError("8841302")

    with pytest.raises(ValueError, match="8841302"):
        begin()
    assert (lines(out)[-1]["event"], lines(out)[-1]["state"]) == ("step_end", "failed")
    assert "8841302" not in out.getvalue()


def test_people_see_what_they_saw_before(out: io.StringIO) -> None:
    """The terminal's lines are those of `Progress` alone, whoever else listens."""
    alone = io.StringIO()

    def work(show: Progress | Watch) -> None:
        show.stage("a")
        show.step("one", "detail")
        show.step("two")
        show.warn("look")
        show.stop("failed")
        show.stop("again")
        show.step("three")
        show.done("3 files")

    with Progress(2, console=Console(file=alone, width=90)) as progress:
        work(progress)
    terminal = Progress(2, console=Console(file=out, width=90))
    with Watch(terminal, [JsonLog(io.StringIO())]) as watch:
        work(watch)
    shown, expected = (re.sub(r"\d+\.\d s", "0.0 s", seen.getvalue()) for seen in (out, alone))
    assert shown == expected != ""


def test_what_is_written_beside_the_progress_is_a_line_of_the_log(out: io.StringIO) -> None:
    stream = LinesAsJson(JsonLog(out, "plan"))
    stream.write("wrote a\n\n  next: ")
    stream.write("apply\nno end")
    stream.close()
    assert [one["message"] for one in lines(out)] == ["wrote a", "  next: apply", "no end"]


def test_a_command_takes_and_gives_back_standard_error(out: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", out)
    whole = CommandWatch()
    whole.log_as_json()
    with whole.show("plan") as watch:
        watch.stage("plan")
    print("beside", file=sys.stderr)
    whole.end(0)
    print("after", file=sys.stderr)
    *told, last = out.getvalue().splitlines()
    assert [json.loads(line)["event"] for line in told] == ["stage", "message", "end"]
    assert last == "after"


def test_a_run_tells_its_steps_with_what_they_counted(out: io.StringIO, tmp_path: Any) -> None:
    class Counting(FakeExecutor):
        def run(self, step: Any, copy: Any) -> Outcome:
            return Outcome({**super().run(step, copy).facts, "rows_deleted": 7, "files": ["of one person"], "ok": True})

    made = plan([step("c1/1"), step("c2/1", "c2"), step("c2/2", "c2", after=["c2/1"])], copies=[copy("c1"), copy("c2")])
    journal, executor = Journal.open(tmp_path / "j", Ticking()), Counting(World(), broken={"c2/1"}, clock=Ticking())
    with Watch(None, [JsonLog(out, "apply")]) as watch:
        tell = Teller(watch, made)
        run(made, {"fake": executor}, journal, clock=Ticking(), lease=FakeLease(), on_event=tell)
    told = lines(out)
    assert [(t["event"], t.get("step_id"), t.get("state")) for t in told] == [
        ("stage", None, None),
        ("step", "c1/1", None),
        ("step_end", "c1/1", "done"),
        ("step", "c2/1", None),
        ("step_end", "c2/1", "failed"),
    ]
    assert (told[1]["number"], told[1]["of"], told[1]["copy"]) == (1, 3, "lake.c1")
    assert (told[2]["rows_deleted"], told[2]["rows"]) == (7, 0)
    assert not {"files", "ok"} & told[2].keys()


def test_who_only_shows_hears_no_facts() -> None:
    heard: list[tuple[str, str]] = []

    class Shows(type(SILENT)):  # type: ignore[misc]
        def step(self, name: str, detail: str = "") -> None:
            heard.append((name, detail))

    watch = with_facts(Shows())
    watch.about({"plan_id": "p"})
    watch.step("a", "b", {"x": 1})
    watch.over({"x": 2})
    assert heard == [("a", "b")]
    assert isinstance(Watch(None, []), Watches)
    assert not isinstance(Progress(), Watches)


@pytest.mark.parametrize("words", [["apply"], ["apply", "gone.plan.json"], ["no-such-command"]])
def test_errors_are_lines_of_the_log(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = command_line(["--log", "json", *words])
    error, end = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (error["event"], error["level"], end["event"], end["exit_code"]) == ("error", "error", "end", code)
    assert code != 0
    assert error["message"]


@pytest.fixture(params=["nobody reads it", "the disk is full"])
def unwritable(request: pytest.FixtureRequest) -> Iterator[TextIO]:
    if request.param == "the disk is full":
        out = Path("/dev/full").open("w")  # noqa: SIM115
    else:
        reader, writer = os.pipe()
        os.close(reader)
        out = os.fdopen(writer, "w")
    with out:
        yield out


def test_a_log_that_cannot_be_written_stops_no_work(unwritable: TextIO) -> None:
    done = []
    with Watch(None, [JsonLog(unwritable, "apply")]) as watch:
        watch.stage("apply: 2 steps")
        for number in range(2):
            watch.step(f"{number}/2 delete")
            done.append(number)
            watch.over()
    assert done == [0, 1]


def test_a_log_that_cannot_be_written_changes_no_exit_code(unwritable: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", unwritable)
    assert command_line(["--log", "json", "apply", "--no-such-option"]) == 2
    assert sys.stderr is unwritable


def test_a_result_that_nobody_reads_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert command_line(["--log", "json", "--help"]) == 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    assert "nobody reads the output any more" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--log", "json", "--bogus"], ["--bogus", "--log=json"], ["--log", "json"]])
def test_wrong_words_before_the_command_are_lines_of_the_log(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = command_line(words)
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [one["event"] for one in told] == ["error", "end"]
    assert (told[-1]["exit_code"], code) == (2, 2)


def test_wrong_words_are_lines_of_the_log_that_the_variable_asks_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PII_TRACER_LOG", "json")
    assert command_line(["--bogus"]) == 2
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == ["error", "end"]
    assert command_line(["--log", "text", "--bogus"]) == 2
    assert "Usage" in capsys.readouterr().err


def test_what_threads_write_at_the_same_time_is_a_line_each(out: io.StringIO) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    stream = LinesAsJson(JsonLog(out))

    def write(thread: int) -> None:
        for number in range(300):
            print(f"t{thread}-{number}", file=stream)

    threads = [threading.Thread(target=write, args=(one,)) for one in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    sys.setswitchinterval(before)
    stream.close()
    assert sorted(t["message"] for t in lines(out)) == sorted(f"t{t}-{n}" for t in range(6) for n in range(300))


def test_a_step_that_works_long_is_told_again(out: io.StringIO) -> None:
    with Watch(None, [JsonLog(out, "apply", quiet=0.01)]) as watch:
        watch.step("1/1 delete", "", {"step_id": "c1/1", "left_seconds": 9.0})
        until = time.monotonic() + 10
        while "step_running" not in out.getvalue() and time.monotonic() < until:
            time.sleep(0.005)
    running = next(t for t in lines(out) if t["event"] == "step_running")
    assert (running["step"], running["step_id"]) == ("1/1 delete", "c1/1")
    assert "left_seconds" not in running
    assert lines(out)[-1]["event"] == "step_end"


def test_a_step_that_was_killed_and_is_found_done_is_told(out: io.StringIO) -> None:
    made = plan([step("c1/1"), step("c2/1", "c2")], copies=[copy("c1"), copy("c2")])
    with Watch(None, [JsonLog(out, "resume")]) as watch:
        tell = Teller(watch, made)
        for number, one in enumerate(made.steps, 1):
            for kind, facts in (
                (Kind.STEP_PROBED, {}),
                (Kind.STEP_RESULT, {"rows_deleted": 5}),
                (Kind.STEP_VERIFIED, {}),
            ):
                tell(StepEvent(kind, one, number, 2, NOW, "", facts))
    told = lines(out)
    assert [(t["event"], t.get("step_id"), t.get("state")) for t in told[1:]] == [
        ("step", "c1/1", None), ("step_end", "c1/1", "done"), ("step", "c2/1", None), ("step_end", "c2/1", "done"),
    ]  # fmt: skip
    assert [t.get("rows_deleted") for t in told[1:]] == [None, 5, None, 5]
