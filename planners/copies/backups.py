"""Declared backups: nobody here can look into them, so a person must act, confirm it and name the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pii_tracer.config.backups import Backup
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    Strategy,
)
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import (
    Copy,
    Examined,
    Gap,
    PlannedColumn,
)
from planners.copies.classification import Recognised
from planners.copies.declared_origins import known_of, untold
from planners.locate.subject_survey import World
from planners.step_drafts import (
    CopyDraft,
    Draft,
    StepWriter,
    in_inventory,
    is_named,
    slug,
    whole_list,
)

NAMESPACE = "backup"


def with_backups(found: Recognised, world: World, backups: Sequence[Backup]) -> Recognised:
    """A copy of kind BACKUP for each declared backup of something that holds a person, or may have held one.

    A key opens what is encrypted in a backup, too, so that a hold on the backup holds the key.
    """
    items = list(found.items)
    gaps: list[Gap] = []
    examined = list(found.examined)
    for backup in backups:
        inside = [i for i in (*found.items, *found.origins) if any(is_named(name, i.copy) for name in backup.of)]
        unknown = [name for name in backup.of if not _known(name, found, world)]
        gaps += [_unknown(backup, name) for name in unknown]
        if not inside:
            unclear = untold(backup.of, world)
            if unclear:
                gaps.append(_unclear(backup, unclear))
            elif not unknown:
                examined.append(_empty(backup, found.examined))
            continue
        made = _copy(backup, inside)
        ids = {i.copy.id for i in inside}
        items = [_opening(i, made, ids) for i in items] + [made]
    examined.sort(key=lambda e: e.table or e.dataset.name)
    return replace(found, items=tuple(items), gaps=(*found.gaps, *gaps), examined=tuple(examined))


def _copy(backup: Backup, inside: Sequence[CopyDraft]) -> CopyDraft:
    first = inside[0].copy
    columns: set[PlannedColumn] = {c for i in inside for c in i.copy.columns}
    sealed = all(i.copy.strategy is Strategy.DESTROY_KEY for i in inside)
    copy = Copy(
        id="c-backup-" + slug(backup.name),
        kind=CopyKind.BACKUP,
        dataset=_dataset(backup),
        table=None,
        location=backup.location,
        format=first.format,
        carries=first.carries,
        strategy=Strategy.CONFIRM,
        columns=tuple(sorted(columns, key=lambda c: (c.name, c.category))),
        lineage=(*first.lineage, backup.name),
        reason=f"a backup of {', '.join(backup.of)} that only {backup.owner} can access"
        + ("; it contains only ciphertext, if it was made after the columns were encrypted" if sealed else ""),
        facts={"of": sorted({i.copy.id for i in inside if i.copy.origin is None}), "owner": backup.owner},
    )
    # a table without the person may get them back for as long as what it is written from has them
    return CopyDraft(copy=copy, backup=backup, carriage=next((i.carriage for i in inside if i.carriage), None))


def _opening(item: CopyDraft, made: CopyDraft, inside: set[str]) -> CopyDraft:
    opens = item.copy.facts.get("opens", ())
    if item.copy.kind is not CopyKind.KEY or not inside & set(opens):
        return item
    facts = item.copy.facts | {"opens": sorted({*opens, made.copy.id})}
    return replace(item, copy=item.copy.model_copy(update={"facts": facts}))


def _known(name: str, found: Recognised, world: World) -> bool:
    """A copy, or a dataset that is there and holds nobody of this plan."""
    return any(is_named(name, i.copy) for i in found.items) or in_inventory(name, world.inventory)


def _unknown(backup: Backup, name: str) -> Gap:
    return Gap(
        id=f"gap-backup_unmatched-{slug(backup.name)}-{slug(name)}",
        dataset=None,
        kind=GapKind.BACKUP_UNMATCHED,
        reason=f"the backup {backup.name} contains {name}, which is not in the inventory: a person may be in it",
        evidence="the estate file, `backups`",
        seen=_declared(backup, name),
    )


def _unclear(backup: Backup, why: str) -> Gap:
    return Gap(
        id=f"gap-backup_unmatched-{slug(backup.name)}",
        dataset=None,
        kind=GapKind.BACKUP_UNMATCHED,
        reason=f"the backup {backup.name} contains {', '.join(backup.of)}, {why}. A person may be in it",
        evidence="the estate file, `backups`",
        seen=_declared(backup, why),
    )


def _declared(backup: Backup, why: str) -> str:
    """Who waives what may be in a backup has looked into this one, of this owner, in this place."""
    return whole_list(why, [backup.name, backup.location, backup.owner, *backup.of])


def _empty(backup: Backup, examined: Sequence[Examined]) -> Examined:
    inside = "; of ".join(known_of(name, examined) for name in backup.of)
    return Examined(
        dataset=_dataset(backup),
        table=None,
        carries=Carries.NONE,
        reason=f"a backup of {inside}; its contents were not searched",
    )


def _dataset(backup: Backup) -> DatasetId:
    return DatasetId(namespace=NAMESPACE, name=backup.name)


def backup_steps(item: CopyDraft, backup: Backup) -> tuple[Draft, ...]:
    """The one step of a backup: a person's."""
    steps = StepWriter(item.copy, "people", {})
    steps.add(
        Action.BACKUP_CONFIRM,
        f"{backup.owner}: {backup.act}",
        hazards=("B1",),
        verification=(
            "a trusted person signed that the deletion is done, with the digest of the evidence; the backup itself "
            "was not searched"
        ),
        backup=backup.name,
        owner=backup.owner,
        act=backup.act,
        due_days=backup.due_days,
    )
    return tuple(steps.drafts)


def backups_after_what_is_in_them(items: Sequence[CopyDraft]) -> list[tuple[str, str]]:
    """A backup that is made before the erasure is over holds the person again (a rule of `step_order`).

    So does one of a table that was refilled meanwhile from what is not erased yet.
    """
    last = {i.copy.id: i.drafts[-1].id for i in items if i.drafts and i.backup is None}
    above = {i.copy.dataset: i.copy.id for i in items if i.copy.origin is None}
    return [
        (item.drafts[0].id, last[inside])
        for item in items
        if item.backup is not None and item.drafts
        for inside in (
            *item.copy.facts["of"],
            *(above.get(hop, "") for hop in (item.carriage.hops if item.carriage else ())),
        )
        if inside in last
    ]
