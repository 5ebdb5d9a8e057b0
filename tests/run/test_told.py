"""What a run shows: the mark stands at the step that it is about, and whoever waits knows how long."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from executors.engine import rebuild_check
from pii_tracer.app.execution.live_step_output import Teller
from pii_tracer.app.execution.run_view import foreseen
from pii_tracer.app.work_pace import Pace
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG_REBUILD
from pii_tracer.model.datasets import Carries
from pii_tracer.model.errors import Refused
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Examined, Gap
from pii_tracer.model.waivers import Waiver
from pii_tracer.run.journal import Kind
from pii_tracer.run.run_state import StepEvent
from reports.progress import Progress
from tests.review.plans import DEADLINE, NOW, copy, plan, step


def test_the_mark_stands_at_the_tables_that_were_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [step(n, action=ICEBERG_REBUILD, parameters={"table": f"lake.{n}"}) for n in ("a", "lost", "z")]
    monkeypatch.setattr(rebuild_check, "_against", lambda ctx, s, name: "rows" if "lost" in name else None)
    out = io.StringIO()
    progress = Progress(console=Console(file=out, width=200))
    ctx: Any = SimpleNamespace(open=lambda: None)

    def begin() -> None:
        with progress:
            rebuild_check.refuse_losses(ctx, steps, progress.step, progress.stop)

    with pytest.raises(Refused):
        begin()
    marks = [(line.split()[0], next(n for n in ("a", "lost", "z") if f"lake.{n}" in line)) for line in _lines(out)]
    assert marks == [("✓", "a"), ("!", "lost"), ("✓", "z"), ("✗", "lost")]


def test_a_step_that_fails_without_an_act_marks_no_other_one() -> None:
    """A resumed run looks at a step, finds it failed, and shows that; the step before it was done."""
    out = io.StringIO()
    first = step("c1/1", earliest_finish=NOW + timedelta(minutes=5))
    a_plan = plan(steps=[first, step("c2/1", "c2")], copies=[copy("c1"), copy("c2")])
    with Progress(console=Console(file=out, width=200)) as progress:
        tell = Teller(progress, a_plan)
        event = StepEvent(Kind.STEP_INTENT, a_plan.steps[0], 1, 2, NOW)
        tell(event)
        tell(replace(event, kind=Kind.STEP_VERIFIED))
        tell(replace(event, kind=Kind.STEP_FAILED, step=a_plan.steps[1], position=2, detail="gone"))
        tell.looks_back(a_plan.steps[0])
    assert [" ".join(line.split()[:2]) for line in _lines(out)] == [
        "apply: 2",
        "✓ 1/2",
        "! 2/2",
        "verifying again",
        "✓ looking",
    ]
    assert "the plan reckons with 5 min" in _lines(out)[1]
    assert "failed gone" in _lines(out)[2]


def test_an_estimate_follows_sizes_and_the_time_so_far() -> None:
    ticks = iter([100.0, 110.0, 140.0])
    pace = Pace([100, 300, 0], clock=lambda: next(ticks))
    assert [pace.next() for _ in range(3)] == ["1 of 3", "2 of 3, about 40 s left", "3 of 3, about 10 s left"]


def test_a_waiver_foresaw_what_is_about_its_own_place_only() -> None:
    there = copy("c1")
    seen = Examined(dataset=copy("c2").dataset, table="lake.c2", carries=Carries.NONE, reason="")
    waiver = Waiver(who="Dr. Rao", why="so", until=DEADLINE)
    gaps = [
        Gap(id="gap-1", dataset=there.dataset, kind=GapKind.UNREADABLE, reason="", evidence="", waiver=waiver),
        Gap(id="gap-2", dataset=seen.dataset, kind=GapKind.UNREADABLE, reason="", evidence="", waiver=waiver),
        Gap(id="gap-3", dataset=None, kind=GapKind.UNREADABLE, reason="", evidence="", waiver=waiver),
    ]
    a_plan = plan(copies=[there], gaps=gaps, examined=(seen,))
    assert foreseen(a_plan, "c1") == ("gap-1",)
    assert foreseen(a_plan, "(no copy) lake.c2") == ("gap-2",)
    assert foreseen(a_plan, "(new) lake.c2") == ()
    assert foreseen(a_plan, str(Path("elsewhere"))) == ()


def _lines(out: io.StringIO) -> list[str]:
    return [line.strip() for line in out.getvalue().splitlines()]
