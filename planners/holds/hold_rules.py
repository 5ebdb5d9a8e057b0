"""Holds: what must stay, and what must not be done elsewhere because it would destroy what must stay.

A held copy is exempt: no step touches it. Where only columns are held, the rest of the persons' rows becomes NULL (see
`elements`). Then the other copies are looked at: one whose files a held clone reads, or
whose folder a held one lies in, is blocked; one that would be rebuilt from a held one is blocked, because the person
would come back. What jobs or lifecycles would do to held data, or held data to erased copies, is a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.model.errors import PersonsApart, PlanError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.legal_holds import Hold, HoldKind
from pii_tracer.model.plan import Exemption, Gap, Mask, Override, PlannedHold
from pii_tracer.model.planned_requests import PlannedRequest
from planners.copies.classification import Recognised, inputs_of
from planners.gaps.copy_gap import gap_of
from planners.holds.column_holds import (
    described,
    first_end,
    last_end,
    mask_of,
    named_columns,
)
from planners.holds.held_copies import (
    Held,
    cited,
    utc,
)
from planners.holds.hold_conflicts import backups_of_held, dangers, locked
from planners.holds.partitions_elsewhere import partitions_of
from planners.holds.unmatched_holds import unmatched, unmatched_name
from planners.keys.key_table_lineage import has_key
from planners.locate.subject_survey import World
from planners.step_drafts import NO_ROWS, CopyDraft, clone_origins, is_named, places_in_inventory
from planners.unique_ids import distinct_gaps

# doubts about deleting rows that nobody deletes any more
_MOOT = frozenset(
    {
        GapKind.SHARED_IDENTIFIER,
        GapKind.CANNOT_BE_PROVED,
        GapKind.SEVERAL_PERSONS,
        GapKind.FOLLOWER_REPLICAS,
        GapKind.STAGED_SNAPSHOT,
    }
)


def keep_held(
    found: Recognised,
    world: World,
    holds: Sequence[Hold],
    requests: Sequence[PlannedRequest],
    as_of: datetime,
    until: datetime,
) -> tuple[Recognised, tuple[PlannedHold, ...]]:
    """Exempt what is held, block what would destroy it, and say what else endangers it.

    until: the run may last until then; a hold that begins before counts from now on.

    Raises:
        PlanError: a hold of some requests only, in a plan that has others too; a name that means two datasets.
        PersonsApart: a name that means two datasets, which a person gave.
    """
    held = Held()
    asked = {r.id for r in requests}
    for hold in holds:
        if hold.counts(as_of, until) and hold.concerns(asked):
            _place(hold, found, world, held, asked)
            held.own += [hold] if hold.kind is HoldKind.OWN_REQUEST else []
    items = {i.copy.id: i for i in found.items}
    _mask_parts(items, held)
    _keys_of_held(found.items, held)
    _with_children(found.items, held)
    while in_the_way := _endangered(items, held, world):
        for copy_id, why in in_the_way.items():
            held.keep_whole(items[copy_id], why)
        _with_children(found.items, held)
    _still_readable(found.items, held)
    _block_children(found.items, held)
    for item in (items[i] for i in sorted(held.stays)):
        held.gaps += dangers(item, held, found.items, world, as_of)
    held.gaps += [_blocked_gap(items[i], why) for i, why in held.blocked.items()]
    held.gaps += locked(found.items, held)
    held.gaps += _idle(held)
    held.gaps += backups_of_held(found.items, held)
    return _applied(found, held), _planned(held)


def idle_holds(
    holds: Sequence[Hold], requests: Sequence[PlannedRequest], as_of: datetime, until: datetime
) -> tuple[Override, ...]:
    """Holds in force that keep nothing here, since the requests they name are not in the plan: reviewers see whether
    that is meant, or a request's id is written wrongly in the estate file."""
    asked = {r.id for r in requests}
    return tuple(
        Override(
            kind="hold",
            reason=f"the hold {hold.id} keeps nothing in this plan: the hold concerns only {', '.join(hold.requests)}",
        )
        for hold in sorted(holds, key=lambda h: h.id)
        if not hold.concerns(asked) and hold.counts(as_of, until)
    )


def _mask_parts(items: Mapping[str, CopyDraft], held: Held) -> None:
    """Where only columns are held: what becomes of the rest. A hold on the whole copy goes before."""
    for copy_id, parts in held.parts.items():
        if copy_id in held.exempt:
            # longer holds of columns keep only these: the rest is free with the last hold of the whole
            held.until[copy_id] = last_end(held.exempt[copy_id])
            held.exempt[copy_id] += [h for h, _ in parts if h not in held.exempt[copy_id]]
            continue
        mask = mask_of(items[copy_id], parts)
        if isinstance(mask, str):
            held.keep_whole(items[copy_id], mask)
        elif mask.columns:
            held.masked[copy_id] = mask
        else:
            held.exempt[copy_id] = held.holds_of(copy_id)  # every column is held, and each ends by itself
            held.until[copy_id] = first_end(mask)


def _endangered(items: Mapping[str, CopyDraft], held: Held, world: World) -> dict[str, str]:
    """Copies that were to be masked and cannot be touched; all others that cannot be are blocked."""
    held.blocked.clear()
    for rule in (_files_of_held, _folders_around, _rebuilt_from_held, _kept_of_held):
        for copy_id, why in rule(tuple(items.values()), held, world):
            if copy_id not in held.exempt:
                held.blocked.setdefault(copy_id, why)
    return {i: held.blocked.pop(i) for i in sorted(held.masked.keys() & held.blocked.keys()) if i in held.parts}


def _place(hold: Hold, found: Recognised, world: World, held: Held, asked: set[str]) -> None:
    for name in hold.datasets:
        partitions = tuple(partitions_of(name, found.items, world.inventory))
        items = [*_unique([i for i in found.items if is_named(name, i.copy)], name, hold, world), *partitions]
        held.empty.update(i.copy.id for i in found.origins if is_named(name, i.copy))
        if not items:
            if not places_in_inventory(name, world.inventory):
                held.gaps.append(unmatched_name(hold, name, found))
            continue
        others = sorted(asked - set(hold.requests)) if hold.requests else []
        if others:
            raise PlanError(
                f"the hold {hold.id} concerns {', '.join(hold.requests)} and not {', '.join(others)}, but {name} may "
                f"contain rows of all of them, and a plan keeps or erases {name} as a whole",
                todo="make one plan for the held requests and one for the others",
            )
        for item in items:
            _hold_item(hold, name, item, held)
        if hold.kind is HoldKind.OWN_REQUEST:
            why = (
                f"partitions of {name}, which a person asked to keep, overlap with this copy, so the plan keeps the "
                "copy"
            )
            held.gaps += [gap_of(item, GapKind.HOLD_KEEPS_REST, why, "the request store") for item in partitions]


def _hold_item(hold: Hold, name: str, item: CopyDraft, held: Held) -> None:
    if not hold.columns and not hold.categories:
        kept = held.exempt.setdefault(item.copy.id, [])
        kept += [hold] if hold not in kept else []
        return
    columns, missing = named_columns(hold, item)
    if missing:  # what was meant is not known, so that nothing may go
        held.gaps.append(unmatched(hold, name, f"the dataset has no {', '.join(missing)}"))
        held.exempt.setdefault(item.copy.id, []).append(hold)
        return
    held.parts.setdefault(item.copy.id, []).append((hold, columns))


def _unique(items: list[CopyDraft], name: str, hold: Hold, world: World) -> list[CopyDraft]:
    """The copies of one dataset: a table with its branches, an archive with its old versions. What a person means by a
    name does not depend on where data of hers is."""
    places = sorted({i.copy.location for i in items})
    if hold.kind is HoldKind.OWN_REQUEST:
        there = {place.rstrip("/") for place in places_in_inventory(name, world.inventory)}
        places = sorted(there) if len(there) > 1 else places
    if len(places) > 1 and hold.kind is HoldKind.OWN_REQUEST:
        raise PersonsApart(
            f"{name}, which a person asked to keep, is ambiguous: it can mean {' or '.join(places)}",
            todo="run `pii-tracer requests narrow REQUEST --take-back NAME --keep FULL_NAME`, then plan again",
            reasons=dict.fromkeys(
                hold.requests, f"`{name}`, which the person asked to keep, is ambiguous: several places have this name"
            ),
        )
    if len(places) > 1:
        raise PlanError(
            f"the hold on {name} is ambiguous: it can mean {' or '.join(places)}",
            todo="write the full name or path in the `holds` of the estate file",
        )
    return items


def _idle(held: Held) -> Iterable[Gap]:
    """What persons asked to keep, and of which no copy stays: what they meant is not known, or may be erased."""
    kept = {hold.id for copy_id in held.stays for hold in held.holds_of(copy_id)}
    told = {gap.id for gap in held.gaps}
    gaps = (
        unmatched(hold, name, "this place has no copy of the persons' data")
        for hold in held.own
        if hold.id not in kept
        for name in hold.datasets
    )
    return [gap for gap in gaps if gap.id not in told]


def _with_children(items: Sequence[CopyDraft], held: Held) -> None:
    """Branches, old versions and replicas of a held copy are held with it; of a masked one they are masked."""
    for item, above in _below(items, held.exempt):
        if item.copy.id not in held.exempt and above in held.until:
            held.until[item.copy.id] = held.until[above]
        held.exempt.setdefault(item.copy.id, held.exempt[above])
        held.masked.pop(item.copy.id, None)
    for item, above in _below(items, held.masked):
        if item.copy.id not in held.exempt:
            held.masked.setdefault(item.copy.id, held.masked[above])
            held.parts.setdefault(item.copy.id, held.parts[above])


def _keys_of_held(items: Sequence[CopyDraft], held: Held) -> None:
    """A key that opens a held copy is held with it: without the key the copy would be as good as erased."""
    for key in (i for i in items if i.copy.kind is CopyKind.KEY):
        opened = held.stays & set(key.copy.facts["opens"])
        holds = {h.id: h for copy_id in sorted(opened) for h in held.holds_of(copy_id)}
        for hold in holds.values():
            held.exempt.setdefault(key.copy.id, []).append(hold)


def _still_readable(items: Sequence[CopyDraft], held: Held) -> None:
    """What was to become unreadable with a key stays readable where the key stays."""
    for item in items:
        if item.copy.strategy is Strategy.DESTROY_KEY and item.copy.id not in held.exempt:
            key = item.copy.facts["key_copy"]
            if key in held.exempt:
                held.blocked.setdefault(
                    item.copy.id, f"its key in {key.removeprefix('c-')} is held, so the plan keeps it"
                )
            elif key in held.blocked:
                held.blocked.setdefault(item.copy.id, f"its key in {key.removeprefix('c-')} cannot be destroyed")
            elif kept := _kept_with_key(key, items, held):
                held.blocked.setdefault(item.copy.id, f"its key is also in {kept.removeprefix('c-')}, which is held")


def _kept_with_key(key: str, items: Sequence[CopyDraft], held: Held) -> str | None:
    """A held copy in which the wrapped key stays when the key table has let it go."""
    table = next(i.copy for i in items if i.copy.id == key)
    held_copies = (i for i in items if i.copy.id in held.exempt)
    return next((i.copy.id for i in held_copies if has_key(i, table)), None)


def _block_children(items: Sequence[CopyDraft], held: Held) -> None:
    for item, above in _below(items, held.blocked):
        if item.copy.id not in held.exempt:
            held.blocked.setdefault(item.copy.id, f"{above.removeprefix('c-')}, which it depends on, is blocked")


def _below(items: Sequence[CopyDraft], roots: Iterable[str]) -> list[tuple[CopyDraft, str]]:
    """(copy, id of the root or of what hangs from it) for everything below the roots."""
    seen, result, grew = set(roots), [], True
    while grew:
        new = [i for i in items if i.copy.origin in seen and i.copy.id not in seen]
        result += [(i, i.copy.origin or "") for i in new]
        seen.update(i.copy.id for i in new)
        grew = bool(new)
    return result


Why = Iterable[tuple[str, str]]
"""Ids of copies that cannot be treated as planned, and why."""


def _files_of_held(items: Sequence[CopyDraft], held: Held, world: World) -> Why:
    """A shallow clone reads its origin's files; erasing the origin would tear them from under a held clone (D8).

    A masked clone takes its files into its own folder first.
    """
    by_location = {i.copy.location: i for i in items if i.copy.origin is None}
    states = {s.location: s for s in world.inventory.tables}
    ids = {i.copy.id: i for i in items}
    for copy_id in held.exempt:
        for place in clone_origins(ids[copy_id], states):
            if place in by_location:
                yield by_location[place].copy.id, f"the held clone {copy_id.removeprefix('c-')} reads its files"


def _folders_around(items: Sequence[CopyDraft], held: Held, world: World) -> Why:
    """Sweeps go through a whole folder: one that lies around a held one, or in it, is left alone."""
    kept = [(i, i.copy.location.rstrip("/")) for i in items if i.copy.id in held.stays]
    for item in items:
        place = item.copy.location.rstrip("/")
        for other, held_place in kept:
            if place.startswith(held_place + "/") or held_place.startswith(place + "/"):
                yield (
                    item.copy.id,
                    (f"its folder overlaps with the folder of the held copy {other.copy.id.removeprefix('c-')}"),
                )


def _rebuilt_from_held(items: Sequence[CopyDraft], held: Held, world: World) -> Why:
    """A table that is written again from a held one would hold the person again."""
    kept = {i.copy.dataset: i for i in items if i.copy.id in held.stays}
    for item in items:
        if item.copy.strategy is not Strategy.REBUILD:
            continue
        for dataset in sorted(inputs_of(item, world) & kept.keys()):
            name = kept[dataset].copy.id.removeprefix("c-")
            yield (
                item.copy.id,
                (f"the plan would rebuild it from {name}, which is held: the person's data would come back"),
            )


def _kept_of_held(items: Sequence[CopyDraft], held: Held, world: World) -> Why:
    """What HDFS kept, and old versions in an object store, may hold what a hold keeps of a place there."""
    names = {i.copy.dataset.namespace: i.copy.id for i in items if i.copy.id in held.stays and (i.hdfs or i.stored)}
    for item in items:
        if item.copy.strategy is Strategy.DELETE_KEPT and item.copy.dataset.namespace in names:
            name = names[item.copy.dataset.namespace].removeprefix("c-")
            yield item.copy.id, f"it may contain the held data of {name}"


def _blocked_gap(item: CopyDraft, why: str) -> Gap:
    return gap_of(item, GapKind.HOLD_BLOCKS, why, "the estate file, `holds`")


def _applied(found: Recognised, held: Held) -> Recognised:
    change: Mapping[str, Callable[[CopyDraft], CopyDraft]] = {
        **dict.fromkeys(held.blocked, _block),
        **{i: lambda item: _exempt(item, held) for i in held.exempt},
        **{i: lambda item: _mask(item, held.masked[item.copy.id], held.holds_of(item.copy.id)) for i in held.masked},
    }
    items = tuple(change[i.copy.id](i) if i.copy.id in change else i for i in found.items)
    kept = {i.copy.dataset for i in items if i.copy.strategy is Strategy.EXEMPT}
    gaps = distinct_gaps([*(g for g in found.gaps if not (g.kind in _MOOT and g.dataset in kept)), *held.gaps])
    return replace(found, items=items, gaps=tuple(gaps[g] for g in sorted(gaps)))


def _block(item: CopyDraft) -> CopyDraft:
    blocked = item.copy.model_copy(update={"strategy": Strategy.BLOCKED, **NO_ROWS})
    return replace(item, rebuild_sql=None, recomputable=False, copy=blocked)


def _exempt(item: CopyDraft, held: Held) -> CopyDraft:
    holds = held.exempt[item.copy.id]
    changes = {
        "strategy": Strategy.EXEMPT,
        **NO_ROWS,
        "reason": "kept: " + "; ".join(cited(h) for h in holds),
        "exemption": Exemption(holds=tuple(h.id for h in holds), until=held.until_of(item.copy.id)),
    }
    return replace(item, rebuild_sql=None, copy=item.copy.model_copy(update=changes))


def _mask(item: CopyDraft, mask: Mask, holds: Sequence[Hold]) -> CopyDraft:
    changes = {
        "strategy": Strategy.MASK_COLUMNS,
        "mask": mask,
        "reason": described(mask, [cited(h) for h in holds]),
        "exemption": Exemption(holds=tuple(h.id for h in holds), until=first_end(mask)),
    }
    return replace(item, copy=item.copy.model_copy(update=changes))


def _planned(held: Held) -> tuple[PlannedHold, ...]:
    keeps = {i: held.holds_of(i) for i in held.stays}
    holds = {h.id: h for found in (held.own, *keeps.values()) for h in found}
    return tuple(
        PlannedHold(
            id=hold.id,
            kind=hold.kind.value,
            basis=hold.basis,
            citation=hold.citation,
            from_=utc(hold.from_),
            until=None if hold.ends is None else utc(hold.ends),
            approver=hold.approver,
            copies=tuple(sorted(i for i, found in keeps.items() if hold in found)),
        )
        for hold in sorted(holds.values(), key=lambda h: h.id)
    )
