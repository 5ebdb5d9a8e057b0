"""A run as Prometheus text metrics: while it goes on, and when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from math import isfinite

from reports.prometheus_text import Metric, Sample, render

PREFIX = "pii_tracer_run"
LAST_SUCCESS = "last_success_timestamp_seconds"


@dataclass(frozen=True)
class RunNumbers:
    """What is told of a run. steps, bytes: by state. seconds: by action, of the steps that were done.

    residue: places that still hold a person, as far as they were searched. succeeded: when a run of the estate last
    ended with exit code 0. exit_code: None while it goes on.
    """

    estate: str
    plan_id: str
    deadline: datetime
    at: datetime
    begun: datetime | None
    steps: Mapping[str, int]
    bytes: Mapping[str, int]
    seconds: Mapping[str, tuple[float, ...]]
    rows_deleted: int
    files_removed: int
    files_rewritten: int
    residue: int
    succeeded: float | None
    exit_code: int | None


def render_run_metrics(run: RunNumbers) -> str:
    """Labels are the estate, the plan's id, states and actions; never values."""
    begun = [_alone(run.begun.timestamp())] if run.begun else []
    metrics = (
        Metric("info", "The plan that the run is of.", [({"plan": run.plan_id}, 1)]),
        Metric("start_timestamp_seconds", "When the run began.", begun),
        Metric("updated_timestamp_seconds", "When these metrics were written.", [_alone(run.at.timestamp())]),
        Metric("deadline_timestamp_seconds", "The first deadline of the requests.", [_alone(run.deadline.timestamp())]),
        Metric("steps", "Steps of the plan by state.", _by("state", run.steps)),
        Metric("step_bytes", "Bytes that the plan counts for its steps, by their state.", _by("state", run.bytes)),
        Metric(
            "step_duration_seconds",
            "Time that the steps took that were done, by action.",
            (),
            "summary",
            {
                "_sum": _by("action", {action: sum(took) for action, took in run.seconds.items()}),
                "_count": _by("action", {action: len(took) for action, took in run.seconds.items()}),
            },
        ),
        Metric("rows_deleted_total", "Rows of the persons that were deleted.", [_alone(run.rows_deleted)], "counter"),
        Metric(
            "files_removed_total",
            "Files and versions of objects that were removed.",
            [_alone(run.files_removed)],
            "counter",
        ),
        Metric(
            "files_rewritten_total",
            "Files, objects and archives that were written again.",
            [_alone(run.files_rewritten)],
            "counter",
        ),
        Metric("residue", "Places that still hold a person, of those that were searched.", [_alone(run.residue)]),
        Metric(LAST_SUCCESS, "When a run last ended with exit code 0.", _known(run.succeeded)),
        Metric("exit_code", "Exit code of the run, once it has ended.", _known(run.exit_code)),
    )
    return render(PREFIX, metrics, {"estate": run.estate})


def last_success_in(text: str, estate: str) -> float | None:
    """What a file of `render_run_metrics` says of an estate; None where it says nothing that can be true."""
    named = render(PREFIX, [Metric(LAST_SUCCESS, "", [_alone(0)])], {"estate": estate}).splitlines()[-1].rpartition(" ")
    found = []
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name == named[0]:
            with suppress(ValueError):
                found.append(float(value))
    return max(filter(isfinite, found), default=None)


def _alone(value: float) -> Sample:
    return {}, value


def _known(value: float | None) -> list[Sample]:
    return [] if value is None else [_alone(value)]


def _by(label: str, values: Mapping[str, float]) -> list[Sample]:
    return [({label: name}, value) for name, value in sorted(values.items())]
