"""What this plan does not do, and endangers what is held or the erasure beside it: gaps for a person to answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from pii_tracer.common.plurals import counted
from pii_tracer.model.datasets import CopyKind
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap
from pii_tracer.model.timestamps import instant
from planners.gaps.copy_gap import gap_of
from planners.holds.column_holds import last_end
from planners.holds.held_copies import Held
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft

_NAMED = 5
# what is there before goes; a plain CREATE TABLE would fail or do nothing where the table exists
_REPLACES = re.compile(r"\b(create\s+or\s+replace\s+table|replace\s+table|insert\s+overwrite)\b", re.IGNORECASE)


def dangers(item: CopyDraft, held: Held, items: Sequence[CopyDraft], world: World, as_of: datetime) -> Iterable[Gap]:
    """What is not done by this plan, and endangers a held copy or the erasure beside it."""
    yield from _refills(item, held, items, world)
    yield from _overwritten(item, held, items, world)
    until, days = last_end(held.holds_of(item.copy.id)), _kept_for(item)
    if days is not None and (until is None or min(_written(item, as_of), as_of) + days < until):
        yield gap_of(
            item,
            GapKind.HOLD_EXPIRES,
            f"the system removes this data {counted(days.days, 'day')} after it was written, before the hold ends",
            "retention.ms of the topic" if item.topic else "bucket lifecycle; Object Lock would keep them",
        )


def _kept_for(item: CopyDraft) -> timedelta | None:
    """How long the system that holds a copy keeps it by its own settings; None for as long as nobody deletes it."""
    if item.objects and item.objects.expires_after_days is not None:
        return timedelta(days=item.objects.expires_after_days)
    settings = item.topic.settings if item.topic else {}
    retention = int(settings.get("retention.ms", "-1"))
    if retention < 0 or "delete" not in settings.get("cleanup.policy", ""):
        return None
    return timedelta(milliseconds=retention)


def _written(item: CopyDraft, as_of: datetime) -> datetime:
    """When the oldest of what is held was written, as far as the system tells."""
    told = [v.modified for v in item.objects.versions if not v.delete_marker] if item.objects else []
    return min(map(instant, told), default=as_of)


def _refills(item: CopyDraft, held: Held, items: Sequence[CopyDraft], world: World) -> Iterable[Gap]:
    fed = [
        other
        for other in items
        if other.copy.id not in held.exempt
        and other is not item
        and other.copy.origin is None
        and item.copy.origin is None
        and any(item.copy.dataset in job.inputs for job in world.graph.jobs_into(other.copy.dataset))
    ]
    if fed:
        yield gap_of(
            item,
            GapKind.HOLD_REFILLS,
            "this dataset still contains the person, and jobs copy its rows into "
            f"{counted(len(fed), 'copy that is', 'copies that are')} erased: the rows may come back with the next run "
            "of a job",
            "jobs into " + _names(fed),
            [i.copy.id for i in fed],
        )


def _overwritten(item: CopyDraft, held: Held, items: Sequence[CopyDraft], world: World) -> Iterable[Gap]:
    erased = {i.copy.dataset for i in items if i.copy.id not in held.exempt and i.copy.id not in held.blocked}
    erased.discard(item.copy.dataset)
    jobs = [
        job
        for job in world.graph.jobs_into(item.copy.dataset)
        if item.copy.origin is None and job.sql and _REPLACES.search(job.sql) and erased & set(job.inputs)
    ]
    if jobs:
        yield gap_of(
            item,
            GapKind.HOLD_OVERWRITTEN,
            "a job rewrites this whole held dataset from data that is erased: its next run would remove the held data",
            "job " + ", ".join(sorted({job.job for job in jobs})[:_NAMED]),
            {job.job for job in jobs},
        )


def locked(items: Sequence[CopyDraft], held: Held) -> Iterable[Gap]:
    """A legal hold of S3 has no date, so a person must say what becomes of it; a retention's date is planned (S3)."""
    for item in items:
        if item.objects is None or item.copy.id in held.exempt:
            continue
        under = [v for v in item.objects.versions if v.lock and v.lock.legal_hold]
        if under and item.copy.kind in (CopyKind.ARCHIVE, CopyKind.REPLICA):
            yield gap_of(
                item,
                GapKind.S3_LEGAL_HOLD,
                "S3 refuses to delete versions under a legal hold until its owner releases it",
                f"{counted(len(under), 'version')} of {item.objects.location}; declare a hold, or ask the owner to "
                "release the legal hold",
                [version.line for version in under],
            )


def backups_of_held(items: Sequence[CopyDraft], held: Held) -> Iterable[Gap]:
    """A backup is deleted whole: whether what is held may go from it is for those who hold it to say."""
    for item in items:
        inside = [i for i in item.copy.facts.get("of", ()) if i in held.stays | held.empty]
        if item.backup is not None and inside and item.copy.id not in held.exempt:
            yield gap_of(
                item,
                GapKind.HOLD_IN_BACKUP,
                f"a hold covers {counted(len(inside), 'dataset')} in this backup: a deletion "
                "of the backup also deletes held "
                "data",
                "the estate file, `holds` and `backups`; hold the backup too, or waive this gap",
                inside,
            )


def _names(items: Sequence[CopyDraft]) -> str:
    names = [i.copy.id.removeprefix("c-") for i in items]
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
