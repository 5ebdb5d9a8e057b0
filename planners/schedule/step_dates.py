"""Dates: when each step can start and must have started, and whether the deadline can be met.

Forward pass for the earliest dates, backward pass for the latest, as in the critical path method. Two retention
strategies: `retain` waits for the window of time travel that the table's class keeps, and for the archive's weekly
window, and begins what writes in the estate's weekly windows; `immediate` does not, which is an override that plan and
approval show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pii_tracer.common.plurals import counted
from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.estate_file import Estate
from pii_tracer.config.time_windows import WEEKDAYS, weekly
from pii_tracer.lake.formats.base import Role
from pii_tracer.lake.formats.registry import actions_with
from pii_tracer.model.actions import CONFIRMED, Action
from planners.formats.registry import format_executors
from planners.step_drafts import CopyDraft, Draft


class Retention(StrEnum):
    """What happens to time travel."""

    RETAIN = "retain"
    IMMEDIATE = "immediate"


@dataclass(frozen=True)
class Dates:
    """Dates of one step. wait: seconds it waits for a window, a retention or a restore."""

    start: datetime
    finish: datetime
    latest_start: datetime
    wait: int


@dataclass(frozen=True)
class Dated:
    """All dates of a plan under one strategy."""

    by_step: Mapping[str, Dates]
    finish: datetime
    critical_path: tuple[str, ...]
    notes: tuple[str, ...]


_SECONDS = {
    Action.S3_RESTORE: 60,
    Action.VAULT_RETRIEVE: 60,
    Action.VERIFY_COPY: 120,
    Action.STAGE_KEYS: 30,
    Action.SUPPRESS: 5,
    Action.DROP_KEYS: 5,
}
INVENTORY_LAG = timedelta(days=2)
"""Until an inventory of a vault tells what was deleted: it is made about once a day, and its job takes hours."""
BYTES_PER_SECOND = 50_000_000
_DEFAULT_SECONDS = 60


def duration(draft: Draft) -> timedelta:
    """Working time of a step: a floor for its action, and its bytes at a modest rate."""
    return timedelta(seconds=least_seconds(draft.action) + draft.bytes // BYTES_PER_SECOND)


def least_seconds(action: Action) -> int:
    """The floor of an action's working time, whatever the bytes are."""
    return _SECONDS.get(action, _DEFAULT_SECONDS)


def date_steps(
    drafts: Sequence[Draft],
    items: Sequence[CopyDraft],
    estate: Estate,
    as_of: datetime,
    deadline: datetime,
    retention: Retention,
    not_before: Mapping[str, datetime] | None = None,
) -> Dated:
    """Dates for all steps; drafts come in topological order. not_before: by draft id, beside every other wait."""
    kept = {i.copy.id: retention_of(estate, persons=bool(i.copy.columns)) for i in items}
    started: dict[str, datetime] = {}
    finished: dict[str, datetime] = {}
    waited: dict[str, timedelta] = {}
    waits: dict[str, int] = {}
    binding: dict[str, str | None] = {}
    rows_done: dict[str, datetime] = {}
    for draft in drafts:
        ready, binding[draft.id] = _ready(draft, finished, as_of)
        start = max(ready, draft.not_before) if draft.not_before else ready
        if retention is Retention.RETAIN:
            if draft.retained and draft.copy:
                start = max(start, rows_done.get(draft.copy, as_of) + timedelta(days=kept[draft.copy][1]))
            start = max(start, (not_before or {}).get(draft.id, start))
            start = opening(draft, start, estate, archive=begins_archive(draft, drafts))
        restore = _asynchronous(draft, estate)
        started[draft.id] = start
        finished[draft.id] = start + duration(draft) + restore
        waited[draft.id] = start - ready
        waits[draft.id] = int((waited[draft.id] + restore).total_seconds())
        if draft.copy and draft.copy not in rows_done:
            rows_done[draft.copy] = finished[draft.id]
    finish = max(finished.values(), default=as_of)
    latest = _latest(drafts, started, finished, waited, deadline)
    by_step = {d.id: Dates(started[d.id], finished[d.id], latest[d.id], waits[d.id]) for d in drafts}
    return Dated(
        by_step, finish, _critical(finished, binding), _notes(drafts, waits, finished, deadline, retention, kept)
    )


def _asynchronous(draft: Draft, estate: Estate) -> timedelta:
    """How long a step is not over after it has begun: a restore, readers that still remember a key, a person, KMS."""
    if draft.action in _RESTORES:
        return timedelta(hours=estate.windows.restore_hours)
    if draft.action is Action.VAULT_AWAIT_INVENTORY:
        return INVENTORY_LAG
    if draft.action in CONFIRMED:
        return timedelta(days=draft.parameters["due_days"])
    if draft.action is Action.LAKEFS_AWAIT_COLLECTION:
        return timedelta(days=draft.parameters["collect_days"])
    if draft.action is Action.OBJECT_AWAIT_PURGE:
        return timedelta(seconds=draft.parameters["soft_delete_seconds"])
    if draft.action is Action.KMS_AWAIT_DELETION:
        return timedelta(days=draft.parameters["window_days"] * draft.parameters["rounds"])
    return timedelta(seconds=draft.parameters["cache_seconds"] if draft.action is Action.KEY_AWAIT_CACHES else 0)


def retention_of(estate: Estate, *, persons: bool) -> tuple[str, int]:
    """The setting of the estate file that says how long a table keeps its old versions, and its days.

    persons: whether it has columns of personal data."""
    kept = estate.retention
    return ("retention.pii_days", kept.pii_days) if persons else ("retention.derived_days", kept.derived_days)


def begins_archive(draft: Draft, drafts: Sequence[Draft]) -> bool:
    """Whether the work on an archive begins here: its restore, or its rewriting where nothing must be restored."""
    return draft.action in _RESTORES or _archive_without_restore(draft, drafts)


def _archive_without_restore(draft: Draft, drafts: Sequence[Draft]) -> bool:
    if draft.action is not Action.S3_REWRITE_ARCHIVE:
        return False
    return not any(d.action is Action.S3_RESTORE and d.copy == draft.copy for d in drafts)


def _ready(draft: Draft, finished: Mapping[str, datetime], as_of: datetime) -> tuple[datetime, str | None]:
    before = max(draft.after, key=lambda d: finished[d], default=None)
    return (finished[before], before) if before else (as_of, None)


_OTHER_DATA = frozenset({"s3", "vault", "kafka", "lakefs", "hdfs", "objects"})
"""Executors that change what is no table."""

_RESTORES = frozenset({Action.S3_RESTORE, Action.VAULT_RETRIEVE})
_WAITS = _RESTORES | {
    Action.S3_AWAIT_EXPIRY,
    Action.S3_AWAIT_REPLICA,
    Action.VAULT_AWAIT_INVENTORY,
    Action.KAFKA_AWAIT_RETENTION,
    Action.LAKEFS_AWAIT_COLLECTION,
    Action.OBJECT_AWAIT_PURGE,
}


def writes(draft: Draft) -> bool:
    """Whether a step changes data or removes some, and does not only wait or look."""
    data = _OTHER_DATA | format_executors()
    return draft.executor in data and draft.action not in (_WAITS | actions_with(Role.WAITS))


def opening(draft: Draft, after: datetime, estate: Estate, *, archive: bool) -> datetime:
    """When a step may begin: archives in their own window where one is declared, what else writes in a weekly one."""
    if archive and estate.windows.archive_weekday is not None:
        return next_window(after, estate)
    if not writes(draft) and not archive:
        return after
    return min((weekly(text).opening(after, duration(draft)) for text in estate.windows.weekly), default=after)


def next_window(after: datetime, estate: Estate) -> datetime:
    """The next start of the weekly archive window at or after a time; the time itself where no window is declared."""
    windows = estate.windows
    if windows.archive_weekday is None:
        return after
    start = after.replace(hour=windows.archive_start_hour, minute=0, second=0, microsecond=0)
    start += timedelta(days=(WEEKDAYS.index(windows.archive_weekday) - start.weekday()) % 7)
    return start if start >= after else start + timedelta(days=7)


def _latest(
    drafts: Sequence[Draft],
    started: Mapping[str, datetime],
    finished: Mapping[str, datetime],
    waited: Mapping[str, timedelta],
    deadline: datetime,
) -> dict[str, datetime]:
    """Backward pass: the latest start of each step that still meets the deadline, every wait as long as it is now."""
    latest_finish = {d.id: deadline for d in drafts}
    latest_start: dict[str, datetime] = {}
    for draft in reversed(drafts):
        latest_start[draft.id] = latest_finish[draft.id] - (finished[draft.id] - started[draft.id])
        for before in draft.after:
            latest_finish[before] = min(latest_finish[before], latest_start[draft.id] - waited[draft.id])
    return latest_start


def _critical(finished: Mapping[str, datetime], binding: Mapping[str, str | None]) -> tuple[str, ...]:
    if not finished:
        return ()
    path = [max(finished, key=lambda d: (finished[d], d))]
    while (before := binding[path[-1]]) is not None:
        path.append(before)
    return tuple(reversed(path))


def _notes(
    drafts: Sequence[Draft],
    waits: Mapping[str, int],
    finished: Mapping[str, datetime],
    deadline: datetime,
    retention: Retention,
    kept: Mapping[str, tuple[str, int]],
) -> tuple[str, ...]:
    """kept: by copy, the setting that keeps its old versions, and its days."""
    notes: list[str] = []
    late = sorted({d.copy for d in drafts if d.copy and finished[d.id] > deadline})
    if late:
        worst = max(drafts, key=lambda d: (waits[d.id], d.id))
        ends = counted(len(late), "copy ends", "copies end")
        setting, days = kept.get(worst.copy or "", ("", 0))
        keeps = f"`{setting}` of the estate file ({days})"
        what, todo = (keeps, "lower it") if worst.retained and setting else ("a window or restore", "shorten it")
        notes.append(
            f"{ends} after the deadline, so the deadline cannot be met. The longest wait is "
            f"{counted(waits[worst.id] // 86400, 'day')}, {what}, at {(worst.copy or worst.id).removeprefix('c-')}: "
            f"{todo}, or plan with `--retention immediate` and a reason"
        )
    if retention is Retention.IMMEDIATE:
        notes.append("time travel ends at once for every copy; steps do not wait for off-peak windows")
    return tuple(notes)
