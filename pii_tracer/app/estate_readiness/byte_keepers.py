"""What keeps the bytes of a person for a while: the waits of a plan's steps, locks, soft delete, collections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from pii_tracer.app.estate_readiness.estate_facts import Named
from pii_tracer.app.estate_readiness.invented_person_plan import AnybodysPlan
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.inventory import Inventory, ObjectSet
from pii_tracer.model.plan import Step
from pii_tracer.readiness.earliest_proof_day import Keeper, in_days
from planners.schedule.step_dates import retention_of

_HOUR_S, _DAY_S = 3_600, 86_400


def keepers(
    estate: Estate, inventory: Inventory, plans: Iterable[AnybodysPlan], named: Named, now: datetime
) -> Iterator[Keeper]:
    """Every keeper that the estate knows. plans: those for anybody, whose last step ends no earlier than it can."""
    for made in plans:
        yield _steps(estate, made, named, now)
    for objects in inventory.objects:
        yield from _locked(objects, named, now)
    for place in inventory.object_places:
        where, owner = named.mask(str(place.location)), named.rules.owner_of(str(place.location))
        if seconds := place.settings.soft_delete_seconds:
            yield Keeper(where, owner, "soft delete", in_days(now, seconds / _DAY_S))
        if any(version.holds for version in place.versions):
            yield Keeper(where, owner, "a hold on objects", None)
        ends = [datetime.fromisoformat(v.retained_until) for v in place.versions if v.retained_until]
        if ends:
            yield Keeper(where, owner, "a retention of objects", max(ends))
    for repository in inventory.lakefs:
        where, owner = named.mask(repository.location), repository.declared.owner
        if repository.rules is None:
            yield Keeper(where, owner, "a repository without collection rules", None)
            continue
        longest = max([repository.rules.default_days, *repository.rules.branches.values()])
        collected = longest + repository.declared.collect_days
        yield Keeper(where, owner, "the collection rules of lakeFS", in_days(now, collected))
    for backup in estate.backups:
        yield Keeper(backup.location, backup.owner, f"the backup {backup.name}", in_days(now, backup.due_days))
    for table in estate.keys:
        end = in_days(now, table.cache_seconds / _DAY_S)
        yield Keeper(table.table, named.rules.owner_of(table.table), "readers that remember a destroyed key", end)


def _steps(estate: Estate, made: AnybodysPlan, named: Named, now: datetime) -> Keeper:
    """When a plan's steps end at the earliest: by the longest wait of those that decide it, where one waits."""
    plan = made.plan
    begins = plan.not_before
    noticed = begins - now if begins else timedelta()
    steps = {step.id: step for step in plan.steps}
    waiting = [steps[id_] for id_ in plan.totals.critical_path if steps[id_].estimate.wait]
    waits = max((step.estimate.wait for step in waiting), default=0)
    if noticed.total_seconds() > waits or not waiting:
        owner = named.rules.owner_of(plan.estate)
        reason = "the notice to the person" if noticed > timedelta() else "the time that a plan's steps take"
        return Keeper(plan.estate, owner, reason, plan.totals.finish, made.laws)
    longest = max(waiting, key=lambda step: (step.estimate.wait, step.id))
    copy = next((c for c in plan.copies if c.id == longest.copy_), None)
    where = (copy.table or copy.location) if copy else plan.estate
    owner = named.rules.owner_of(where, *((copy.location, copy.dataset.name) if copy else ()))
    reason = _wait(estate, longest, persons=bool(copy and copy.columns))
    return Keeper(named.mask(where), owner, reason, plan.totals.finish, made.laws)


def _wait(estate: Estate, step: Step, *, persons: bool) -> str:
    """What a step waits for, in the words of the estate file."""
    name, days = retention_of(estate, persons=persons)
    if days and step.estimate.wait >= days * _DAY_S - _HOUR_S:  # from the rows' deletion, not from the step before
        return f"`{name}` of the estate file ({counted(days, 'day')} of old versions)"
    return f"a plan's step `{step.action.value}`, which waits for a window, a restore or somebody's work"


def _locked(objects: ObjectSet, named: Named, now: datetime) -> Iterator[Keeper]:
    """Locks in S3: a plan can set GOVERNANCE aside where the estate file says so, and nothing else."""
    where, owner = named.mask(objects.location), named.rules.owner_of(objects.of, objects.location)
    locks = [version.lock for version in objects.versions if version.lock is not None]
    if any(lock.legal_hold for lock in locks):
        yield Keeper(where, owner, "a legal hold on objects in S3", None)
    ends = [
        datetime.fromisoformat(lock.until.replace("Z", "+00:00"))
        for lock in locks
        if lock.until and not (lock.mode == "GOVERNANCE" and objects.bypass_governance)
    ]
    if ends and max(ends) > now:
        yield Keeper(where, owner, "an object lock in S3", max(ends))


def held(estate: Estate, now: datetime) -> Iterator[Keeper]:
    """Holds in force: what they name is exempt until they end."""
    for hold in estate.holds:
        if hold.in_force(now):
            for dataset in hold.datasets:
                reason = f"hold {hold.id} ({hold.citation})"
                yield Keeper(dataset, estate.readiness.owner_of(dataset), reason, hold.ends)
