"""The benchmark of the time left compares what was told with what was true, and leaves out what was only waited for."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks.bench_time_left import Told, estimates, table


def event(second: int, **fields: object) -> str:
    return json.dumps({"time": f"2026-11-30T09:{second // 60:02d}:{second % 60:02d}.000Z", **fields})


LOG = [
    "text of something else",
    event(0, event="step", step="1/2 delete", step_id="a", number=1),
    event(10, event="step_end", step="1/2 delete", step_id="a", seconds=10, state="done"),
    event(20, event="step", step="2/2 look", step_id="b", number=2, left_seconds=20),
    event(21, event="step_end", step="2/2 look", step_id="b", seconds=1, state="waiting"),
    event(51, event="step_end", step="waiting", seconds=30, state="done"),
    event(51, event="step", step="2/2 look", step_id="b", number=2, left_seconds=9),
    event(60, event="step_end", step="2/2 look", step_id="b", seconds=9, state="done"),
]


def test_waiting_counts_nowhere() -> None:
    first, second = estimates(LOG)
    assert first == Told(2, 20 / 30, 20.0, 10.0)
    assert (first.factor, second.factor) == (2.0, 1.0)
    assert (
        table([first, second])[-2] == "quarter 3: 2 of 2 within a factor of 2, worst 2.00, the others at most 0 s off"
    )


def test_a_log_without_a_run_is_refused() -> None:
    with pytest.raises(ValueError, match="no steps"):
        estimates(LOG[:1])
