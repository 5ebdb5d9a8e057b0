"""Archives that their bucket's lifecycle removes before the deadline anyway: waiting costs nothing, a rewrite does.

Tags of Iceberg tables, too, whose own age ends, where a job that expires snapshots is declared and has left its trace
in the table: a retention setting deletes nothing by itself.

Only under `retain`. Where everything lapses in time, objects, old versions and every replica, the whole archive is
waited for. Where only some objects do, these are waited for and the others rewritten: to delete what does not lapse
would lose other people's rows. Not where replicas hang from it: these wait for every rewritten object of their origin.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from pii_tracer.common.plurals import counted
from pii_tracer.config.maintenance_jobs import MaintenanceJob, Upkeep
from pii_tracer.lake.inventory import (
    ObjectSet,
    ObjectVersion,
    RefKind,
    TableState,
)
from pii_tracer.model.datasets import BY_ROWS, CopyKind, Strategy
from pii_tracer.model.timestamps import instant
from planners.step_drafts import CopyDraft, Lapsing
from planners.stores.s3.archives import current_of

EXPIRY_SLACK = timedelta(days=1)
"""How long after the midnight UTC that ends the counted days a rule is taken to be applied; S3 names no bound
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/lifecycle-expire-general-considerations.html)."""

_OF_ARCHIVES = frozenset({CopyKind.ARCHIVE, CopyKind.OBJECT_VERSION, CopyKind.REPLICA})


def let_lapse(
    items: Sequence[CopyDraft], as_of: datetime, due: datetime, price: Callable[[CopyDraft], str]
) -> tuple[CopyDraft, ...]:
    """Every archive that ends in time by itself, with all that hangs from it, is waited for and then verified.

    price: what treating a copy as it is planned so far would cost, for people.
    """
    ids = {i.copy.id: i for i in items}
    found = {i.copy.id: lapse_of(i.objects, as_of) for i in items if i.objects and i.copy.kind in _OF_ARCHIVES}
    late = {_root(i, ids) for i, lapse in found.items() if lapse is None or lapse > due}
    late |= {_root(i, ids) for i in found if ids[i].copy.strategy in (Strategy.EXEMPT, Strategy.BLOCKED)}
    parted = {i.copy.id: some for i in items if (some := _some(i, items, as_of, due))}
    return tuple(
        _waiting(item, lapse, price)
        if (lapse := found.get(item.copy.id)) and _root(item.copy.id, ids) not in late
        else _parted(item, parted[_root(item.copy.id, ids)])
        if item.objects and _root(item.copy.id, ids) in parted
        else item
        for item in items
    )


def _some(item: CopyDraft, items: Sequence[CopyDraft], as_of: datetime, due: datetime) -> Lapsing | None:
    """The current objects of an archive that end in time; None where none or all do."""
    objects, copy = item.objects, item.copy
    if objects is None or (copy.kind, copy.strategy) != (CopyKind.ARCHIVE, Strategy.RESTORE_REWRITE_ARCHIVE):
        return None
    if any(i.copy.origin == copy.id and i.copy.kind is CopyKind.REPLICA for i in items):
        return None
    current, rule = current_of(objects), _rule(objects, as_of)
    ends = [(v, end) for v in current if (end := rule.of_current(v)) <= due] if rule is not None else []
    if not ends or len(ends) == len(current):
        return None
    return Lapsing(tuple(v for v, _ in ends), max(end for _, end in ends))


def _parted(item: CopyDraft, some: Lapsing) -> CopyDraft:
    if item.copy.kind is not CopyKind.ARCHIVE:
        return replace(item, lapsing=some)
    told = (
        f"{counted(len(some.versions), 'object is', 'objects are')} left to the"
        f" bucket's lifecycle, until {some.until:%Y-%m-%d}"
    )
    copy = item.copy.model_copy(update={"reason": f"{item.copy.reason}; {told}"})
    return replace(item, lapsing=some, copy=copy)


def _root(copy_id: str, ids: dict[str, CopyDraft]) -> str:
    while (above := ids[copy_id].copy.origin) in ids:
        copy_id = str(above)
    return copy_id


def lapse_of(objects: ObjectSet, as_of: datetime) -> datetime | None:
    """When lifecycle rules have removed every version that is there now; None where no date can be named.

    Delete markers hold nothing of anybody, and nothing waits for them.
    """
    rule = _rule(objects, as_of)
    if rule is None:
        return None
    since = _no_longer_current(objects.versions)
    ends = (
        rule.of_current(v) if v.latest else rule.of_noncurrent(since.get((v.key, v.version_id)))
        for v in objects.versions
        if not v.delete_marker
    )
    return max(ends, default=as_of)


@dataclass(frozen=True)
class _Rule:
    """What a bucket's lifecycle lets go, and when.

    current: after the write; noncurrent: after a version stopped being current, None where the bucket keeps none.
    A rule that is younger than the objects removes nothing before the plan: what is due long ago, it applies next.
    """

    current: timedelta
    noncurrent: timedelta | None
    as_of: datetime

    def of_current(self, version: ObjectVersion) -> datetime:
        """In a versioned bucket a delete marker comes first, and from then on the version is not current."""
        hidden = self._applied(instant(version.modified) + self.current)
        return hidden if self.noncurrent is None else self._applied(hidden + self.noncurrent)

    def of_noncurrent(self, since: datetime | None) -> datetime:
        """since: when its successor came; None where the listing does not show it: now at the latest."""
        return self._applied((since or self.as_of) + (self.noncurrent or timedelta()))

    def _applied(self, due: datetime) -> datetime:
        """S3 rounds up to the next midnight UTC, and is at work some time after it."""
        counted = max(due, self.as_of).astimezone(timezone.utc)
        return counted.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1) + EXPIRY_SLACK


def _rule(objects: ObjectSet, as_of: datetime) -> _Rule | None:
    """None where nothing is promised."""
    if objects.expires_after_days is None or objects.object_lock:
        return None
    later = objects.noncurrent_days if objects.versioned else 0
    current = timedelta(days=objects.expires_after_days - later)
    return _Rule(current, timedelta(days=later) if objects.versioned else None, as_of)


def _no_longer_current(versions: Iterable[ObjectVersion]) -> dict[tuple[str, str], datetime]:
    """When each noncurrent version got its successor, a version or a delete marker, by key and version id.

    Of several written within one second nobody can tell the order, so the successor is the first one of a later
    second; without one there is no entry.
    """
    # only keys that have old versions: an archive has millions of others
    written: dict[str, list[datetime]] = {v.key: [] for v in versions if not v.latest}
    for version in versions:
        if version.key in written:
            written[version.key].append(instant(version.modified))
    for moments in written.values():
        moments.sort()
    found = {}
    for version in versions:
        later = written.get(version.key, []) if not version.latest else []
        at = bisect_right(later, instant(version.modified)) if later else 0
        if at < len(later):
            found[version.key, version.version_id] = later[at]
    return found


def _waiting(item: CopyDraft, lapse: datetime, price: Callable[[CopyDraft], str]) -> CopyDraft:
    archive = item.copy.kind is CopyKind.ARCHIVE
    instead = f"; a rewrite would end earlier and cost {price(item)}" if archive else ""
    reason = f"{item.copy.reason}; the lifecycle of its bucket removes it completely by {lapse:%Y-%m-%d}{instead}"
    return replace(
        item,
        lapse=lapse,
        copy=item.copy.model_copy(update={"strategy": Strategy.LET_LAPSE, "match": None, "reason": reason}),
    )


REF_SLACK = timedelta(days=1)
"""A job may begin late, and takes its time. After so long again the plan gives up, and there is time for a new one."""


def let_refs_lapse(
    items: Sequence[CopyDraft], jobs: Sequence[MaintenanceJob], as_of: datetime, due: datetime
) -> tuple[CopyDraft, ...]:
    """Every tag that a declared job removes in time is waited for; its table does not count its rows as lost.

    Branches are not: each commit makes a branch younger, so that nobody can tell when it ends.
    """
    ids = {i.copy.id: i for i in items}
    found: dict[str, tuple[datetime, MaintenanceJob]] = {}
    for item in items:
        above = ids.get(item.copy.origin or "")
        if item.copy.strategy is Strategy.REWRITE_REF and above is not None and above.copy.strategy in BY_ROWS:
            lapse = _ref_lapse(item, jobs, as_of)
            if lapse is not None and lapse[0] <= due - 2 * REF_SLACK:
                found[item.copy.id] = lapse
    lapsing: dict[str, list[str]] = {}
    for copy_id in found:
        copy = ids[copy_id].copy
        lapsing.setdefault(copy.origin or "", []).append(copy.facts["ref"])
    return tuple(
        _awaited(item, *found[item.copy.id])
        if item.copy.id in found
        else _with_lapsing(item, lapsing[item.copy.id])
        if item.copy.id in lapsing
        else item
        for item in items
    )


def _ref_lapse(
    item: CopyDraft, jobs: Sequence[MaintenanceJob], as_of: datetime
) -> tuple[datetime, MaintenanceJob] | None:
    state, table = item.state, (item.copy.table or "").lower()
    ref = next((r for r in state.refs if r.name == item.copy.facts["ref"]), None) if state else None
    if state is None or ref is None or ref.kind is not RefKind.TAG or ref.lapses is None:
        return None
    running = [
        job
        for job in jobs
        if job.does is Upkeep.EXPIRE_SNAPSHOTS and table in {t.lower() for t in job.tables} and _runs(state, job, as_of)
    ]
    if not running:
        return None
    job = min(running, key=lambda j: (j.every_days, j.job))
    return max(datetime.fromisoformat(ref.lapses), as_of) + timedelta(days=job.every_days) + REF_SLACK, job


def _runs(state: TableState, job: MaintenanceJob, as_of: datetime) -> bool:
    """Whether the table itself shows that the job runs: it has lost snapshots, and none is overdue."""
    if state.expiry is None or not state.expiry.ran or state.properties.get("gc.enabled", "").lower() == "false":
        return False
    overdue = state.expiry.due and datetime.fromisoformat(state.expiry.due) + timedelta(days=job.every_days) + REF_SLACK
    return not overdue or overdue >= as_of


def _awaited(item: CopyDraft, lapse: datetime, job: MaintenanceJob) -> CopyDraft:
    reason = (
        f"{item.copy.reason}; it reaches its maximum age, and the job {job.job} removes it by {lapse:%Y-%m-%d}; a "
        "rewrite would end earlier"
    )
    changes = {"strategy": Strategy.LET_LAPSE, "reason": reason}
    return replace(item, lapse=lapse, copy=item.copy.model_copy(update=changes))


def _with_lapsing(item: CopyDraft, refs: Sequence[str]) -> CopyDraft:
    facts = {**item.copy.facts, "lapsing_refs": sorted(refs)}
    return replace(item, copy=item.copy.model_copy(update={"facts": facts}))
