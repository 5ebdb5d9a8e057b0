"""How right a run's estimate of the time left is: the sample's run, and at each step the estimate and the truth.

    python -m tests.benchmarks.bench_time_left [LOG|RUN]

LOG: standard error of a run that was begun with `pii-tracer --log json`; without one, the demo is run for it. RUN: the
folder of a run that is over, whose journal is told to the estimate of today.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pii_tracer.app.execution.run_folder import RunFolder
from pii_tracer.app.watching.time_left import TimeLeft
from pii_tracer.review.plan_file import load_plan
from pii_tracer.run.journal import Kind, read_journal
from pii_tracer.run.step_progress import planned_waits, running_order

WITHIN = 2.0


@dataclass(frozen=True)
class Told:
    """One estimate. at: share of the run's working time that was over. told, true: seconds that are left."""

    number: int
    at: float
    told: float
    true: float

    @property
    def factor(self) -> float:
        """How often the larger is the smaller."""
        small, large = sorted((max(self.told, 0.1), max(self.true, 0.1)))
        return large / small


def estimates(lines: Iterable[str]) -> list[Told]:
    """Every estimate of a run's steps, against the end of its last step. Time in which the run only waits counts not.

    Raises:
        ValueError: the log has no steps of a run.
    """
    events = [json.loads(line) for line in lines if line.startswith("{")]
    steps = [e for e in events if "step_id" in e]
    waits = [(_at(e) - e["seconds"], _at(e)) for e in events if e.get("step") == "waiting" and e["event"] == "step_end"]
    if not steps:
        raise ValueError("no steps in this log")
    begun, end = _at(steps[0]), _at(steps[-1])

    def working(since: float, until: float) -> float:
        return until - since - sum(max(0.0, min(b, until) - max(a, since)) for a, b in waits)

    whole = working(begun, end)
    return [
        Told(e["number"], working(begun, _at(e)) / whole, e["left_seconds"], working(_at(e), end))
        for e in steps
        if e["event"] == "step" and "left_seconds" in e
    ]


def replayed(folder: Path) -> list[Told]:
    """The estimates that a run's steps would get now, by the times of its journal."""
    plan = load_plan(Path(RunFolder(folder).recorded().plan_file)).plan
    records, _ = read_journal(folder / "journal.jsonl")
    steps = {step.id: step for step in plan.steps}
    order = running_order(plan.steps)
    positions = {step.id: n for n, step in enumerate(order, 1)}
    now = [0.0]
    later = {step for step, until in planned_waits(plan).items() if until > records[0].time}
    left = TimeLeft(order, held=later, clock=lambda: now[0])
    hear = {
        Kind.STEP_INTENT: left.begin,
        Kind.STEP_VERIFIED: left.over,
        Kind.STEP_WAITING: left.hold,
        Kind.STEP_FAILED: left.hold,
    }
    events, ended = [], 0.0
    for record in records:
        now[0] = record.time.timestamp()
        if record.kind is Kind.RUN_STARTED and ended:
            events.append(
                {"time": record.time.isoformat(), "event": "step_end", "step": "waiting", "seconds": now[0] - ended}
            )
        ended = now[0] if record.kind is Kind.RUN_FINISHED else ended
        step = steps.get(str(record.facts.get("step")))
        if step is None or record.kind not in hear:
            continue
        hear[record.kind](step)
        begins = record.kind is Kind.STEP_INTENT
        told = left.seconds() if begins else None
        event = {"time": record.time.isoformat(), "event": "step" if begins else "step_end", "step_id": step.id}
        events.append({**event, "number": positions[step.id], **({} if told is None else {"left_seconds": told})})
    return estimates(map(json.dumps, events))


def _at(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


def table(found: Sequence[Told]) -> list[str]:
    """The estimates after each tenth of the run, and how many are right within the factor, by quarter."""
    lines = [f"{'step':>5} {'over':>6} {'estimate':>9} {'truth':>8} {'factor':>7}"]
    for tenth in range(1, 10):
        one = next((t for t in found if t.at >= tenth / 10), None)
        if one:
            lines.append(f"{one.number:>5} {one.at:>6.0%} {one.told:>7.0f} s {one.true:>6.0f} s {one.factor:>7.2f}")
    for quarter in range(4):
        mine = [t for t in found if quarter / 4 <= t.at < (quarter + 1) / 4]
        right = sum(t.factor <= WITHIN for t in mine)
        worst = max((t.factor for t in mine), default=0.0)
        off = max((abs(t.told - t.true) for t in mine if t.factor > WITHIN), default=0.0)
        lines.append(
            f"quarter {quarter + 1}: {right} of {len(mine)} within a factor of {WITHIN:.0f}, worst {worst:.2f}, the others at most {off:.0f} s off"
        )
    return lines


def main(argv: Sequence[str]) -> int:
    if argv and Path(argv[0]).is_dir():
        print("\n".join(table(replayed(Path(argv[0])))))
        return 0
    if argv:
        log = Path(argv[0]).read_text(encoding="utf-8")
    else:
        with tempfile.TemporaryDirectory() as state:
            command = [sys.executable, "-m", "pii_tracer.cli.main", "--log", "json", "demo", "--state", state]
            log = subprocess.run(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True
            ).stderr
    print("\n".join(table(estimates(log.splitlines()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
