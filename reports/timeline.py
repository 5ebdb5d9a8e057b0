"""Bars over time, one lane a copy: for the planned dates, the schedules compared, and what really ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.plan import Step
from reports import wording
from reports.lineage.layered_drawing import shorten
from reports.plan.plan_view import PlanView
from reports.run.run_views import RunView, StepState

WIDTH, LABEL, RIGHT = 1140.0, 250.0, 20.0
_LANE, _TOP, _BOTTOM = 24.0, 26.0, 12.0
_LEAST = 3.0
_LABEL_LETTERS = 33
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_TICKS = (
    *(n * 1 for n in (1, 5, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 5, 7, 14, 30, 60, 180, 365)),
)
# the work may be minutes and the deadline weeks away: below this share the axis ends with the work
_SHARE = 0.35


class Tone(StrEnum):
    """How a bar is drawn."""

    WORK = "work"
    IRREVERSIBLE = "irreversible"
    WAIT = "wait"
    FAILED = "failed"
    GOOD = "good"
    BAD = "bad"


_WEIGHT = {Tone.WAIT: -1, Tone.IRREVERSIBLE: 1, Tone.FAILED: 2}


@dataclass(frozen=True)
class Span:
    """What the caller gives: a stretch of time with its tone and the text shown on hovering."""

    start: datetime
    finish: datetime
    tone: Tone
    tip: str


@dataclass(frozen=True)
class Lane:
    """A labelled row of stretches. slack_until: the work may begin this late and still be in time."""

    label: str
    depth: int
    spans: tuple[Span, ...]
    slack_until: datetime | None = None


@dataclass(frozen=True)
class Bar:
    """A stretch, placed."""

    x: float
    width: float
    tone: Tone
    tip: str


@dataclass(frozen=True)
class DrawnLane:
    """A lane, placed. slack: (x, width) of the thin line behind the bars, or None."""

    y: float
    label: str
    indent: float
    title: str
    bars: tuple[Bar, ...]
    slack: tuple[float, float] | None


@dataclass(frozen=True)
class Mark:
    """A vertical line with its label; anchor as in SVG's `text-anchor`."""

    x: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Timeline:
    """The drawing. later: what lies behind the right edge, in words."""

    height: float
    lanes: tuple[DrawnLane, ...]
    ticks: tuple[Mark, ...]
    deadline: Mark | None
    later: str


def draw(lanes: Sequence[Lane], deadline: datetime | None, *, always_deadline: bool = False) -> Timeline | None:
    """Place lanes on a common axis; None when there is nothing with a time."""
    moments = [moment for lane in lanes for span in lane.spans for moment in (span.start, span.finish)]
    if not moments:
        return None
    start, end = min(moments), max(moments)
    later = ""
    inside = deadline is not None and (
        always_deadline or (end - start).total_seconds() >= _SHARE * (deadline - start).total_seconds()
    )
    if deadline is not None:
        if inside:
            start, end = min(start, deadline), max(end, deadline)
        else:
            later = f"deadline {wording.day(deadline)}, {wording.span(deadline - end)} after the last step →"
    length = max(1.0, (end - start).total_seconds())
    scale = (WIDTH - LABEL - RIGHT) / length

    def x(moment: datetime) -> float:
        return round(LABEL + min(max((moment - start).total_seconds(), 0.0), length) * scale, 1)

    drawn = tuple(_lane(lane, _TOP + _LANE * index, x) for index, lane in enumerate(lanes))
    mark = None
    if inside and deadline is not None:
        at = x(deadline)
        mark = Mark(at, f"deadline {wording.short_day(deadline)}", "end" if at > WIDTH - 80 else "middle")
    return Timeline(_TOP + _LANE * len(lanes) + _BOTTOM, drawn, _ticks(start, length, scale, mark), mark, later)


def _lane(lane: Lane, y: float, x: Callable[[datetime], float]) -> DrawnLane:
    bars = []
    # where short steps fall on each other, the one that matters more is drawn last
    for span in sorted(lane.spans, key=lambda span: _WEIGHT.get(span.tone, 0)):
        left = min(x(span.start), WIDTH - RIGHT - _LEAST)
        bars.append(Bar(left, round(max(_LEAST, x(span.finish) - left), 1), span.tone, span.tip))
    slack = None
    if lane.slack_until is not None and lane.spans:
        left, right = x(min(span.start for span in lane.spans)), x(lane.slack_until)
        slack = (left, round(right - left, 1)) if right - left > _LEAST else None
    letters = _LABEL_LETTERS - 2 * lane.depth
    return DrawnLane(y, shorten(lane.label, letters), 14.0 * lane.depth, lane.label, tuple(bars), slack)


def _ticks(start: datetime, length: float, scale: float, deadline: Mark | None) -> tuple[Mark, ...]:
    step = next((step for step in _TICKS if length / step <= 9), _TICKS[-1])
    day_start = wording.utc(start).replace(hour=0, minute=0, second=0, microsecond=0)
    offset = (wording.utc(start) - day_start).total_seconds()
    at = -(-offset // step) * step
    marks = []
    while at - offset <= length:
        moment = day_start + timedelta(seconds=at)
        x = round(LABEL + (at - offset) * scale, 1)
        if step >= _DAY:
            label = wording.short_day(moment)
        elif step >= _MINUTE:
            label = f"{moment:%H:%M}" if at % _DAY else wording.short_day(moment)
        else:
            label = wording.clock(moment)
        if deadline is None or abs(deadline.x - x) > 120:
            marks.append(Mark(x, label))
        at += step
    return tuple(marks)


def _waits(step: Step, finished: Mapping[str, datetime]) -> list[Span]:
    """Where a step waits: before it starts (a retention, a window), and after its own work (a restore)."""
    if not step.estimate.wait:
        return []
    waits = []
    ready = max((finished[item] for item in step.depends_on if item in finished), default=step.earliest_start)
    if ready < step.earliest_start:
        waits.append(Span(ready, step.earliest_start, Tone.WAIT, f"waits {wording.span(step.earliest_start - ready)}"))
    rest = timedelta(seconds=step.estimate.wait) - max(timedelta(), step.earliest_start - ready)
    if rest > timedelta():
        begun = max(step.earliest_start, step.earliest_finish - rest)
        waits.append(Span(begun, step.earliest_finish, Tone.WAIT, f"waits {wording.span(rest)}"))
    return waits


def planned(view: PlanView) -> Timeline | None:
    """The plan's steps, one lane a copy, with slack behind the bars and the deadline if it is near."""
    lanes = []
    finished = {step.id: step.earliest_finish for step in view.plan.steps}
    for row in view.rows:
        spans: list[Span] = []
        for step in row.steps:
            tone = Tone.IRREVERSIBLE if step.irreversible else Tone.WORK
            words = step.action.replace("_", " ")
            tip = f"{words}: {wording.minute(step.earliest_start)}, at the latest {wording.minute(step.latest_start)}"
            waits = _waits(step, finished)
            inside = [wait.start for wait in waits if wait.finish == step.earliest_finish]
            spans += [Span(step.earliest_start, min(inside, default=step.earliest_finish), tone, tip), *waits]
        last = max((step.latest_start for step in row.steps), default=None)
        lanes.append(
            Lane(f"{row.number} {row.name}".strip() if row.depth == 0 else row.name, row.depth, tuple(spans), last)
        )
    return draw(lanes, view.plan.totals.deadline)


def schedules(view: PlanView) -> Timeline | None:
    """The planned schedule and the others, each from now to its finish, against the deadline."""
    lanes = []
    for item in view.plan.schedules:
        tip = f"done by {wording.day(item.finish)}, {wording.slack(item.slack_days)}"
        tone = Tone.GOOD if item.meets_deadline else Tone.BAD
        label = f"{item.retention} (this plan)" if item.retention == view.plan.retention else item.retention
        lanes.append(Lane(label, 0, (Span(view.plan.created_at, item.finish, tone, tip),)))
    return draw(lanes, view.plan.totals.deadline, always_deadline=True)


def ran(run: RunView, order: Sequence[tuple[int, str, str]]) -> Timeline | None:
    """What ran, one lane a copy. order: (depth, copy id, label)."""
    copies = {copy.id: copy for copy in run.copies}
    lanes = []
    for depth, copy_id, label in order:
        spans: list[Span] = []
        for step in copies[copy_id].steps:
            if step.started is None:
                continue
            tone = Tone.IRREVERSIBLE if step.irreversible else Tone.WORK
            tone = {StepState.FAILED: Tone.FAILED, StepState.WAITING: Tone.WAIT}.get(step.state, tone)
            finish = step.finished or run.finished
            tip = (
                f"{step.action.replace('_', ' ')}: {wording.clock(step.started)}, {wording.span(finish - step.started)}"
            )
            spans.append(Span(step.started, finish, tone, tip))
        lanes.append(Lane(label, depth, tuple(spans)))
    return draw(lanes, None)
