"""What keeps the bytes of a person for a while whatever a plan does: retention, locks, soft delete, collections."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from pii_tracer.app.estate_readiness.estate_facts import Named
from pii_tracer.common.plurals import counted
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.formats.registry import format_of
from pii_tracer.lake.inventory import Inventory, ObjectSet
from pii_tracer.model.datasets import DatasetId
from pii_tracer.readiness.provable import Keeper, in_days

_DAY_S = 86_400


def keepers(
    estate: Estate, inventory: Inventory, persons: Collection[DatasetId], named: Named, now: datetime
) -> Iterator[Keeper]:
    """Every keeper that the estate knows. persons: datasets that lineage leads persons to."""
    days = estate.retention.pii_days
    for state in inventory.tables:
        if state.dataset in persons and format_of(state.format).keeps_history and days:
            reason = f"`retention.pii_days` of the estate file ({counted(days, 'day')} of old versions)"
            yield Keeper(named.of(state), named.owner(state), reason, in_days(now, days))
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
