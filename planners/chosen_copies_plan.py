"""A plan for some copies only. What is left out is said as gaps that nobody can waive: the plan is never complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pii_tracer.model.datasets import Strategy
from pii_tracer.model.errors import PlanError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import Gap, PlannedHold
from planners.copies.classification import Recognised, inputs_of
from planners.locate.subject_survey import World
from planners.step_drafts import CopyDraft, clone_origins, is_named


def choose(
    found: Recognised, holds: Sequence[PlannedHold], world: World, only: Sequence[str]
) -> tuple[Recognised, tuple[PlannedHold, ...]]:
    """Keep the named copies with all that hangs from them and belongs to them.

    only: ids of copies, tables or places; empty for all.

    Raises:
        PlanError: a name is no copy; or erasing the named ones alone would harm one that is left out, or undo itself.
    """
    if not only:
        return found, tuple(holds)
    roots = {i.copy.id: i.copy.origin for i in found.items}
    chosen = {_root(i.copy.id, roots) for name in only for i in _called(name, found.items)}
    kept = [i for i in found.items if _root(i.copy.id, roots) in chosen]
    left = [i for i in found.items if _root(i.copy.id, roots) not in chosen]
    _refuse_harm(kept, left, world)
    gone = {i.copy.dataset for i in left} - {i.copy.dataset for i in kept}
    gaps = {g.id: g for g in found.gaps if g.dataset not in gone}
    gaps |= {g.id: g for g in (_left_out(i) for i in left if i.copy.origin is None)}
    ids = {i.copy.id for i in kept}
    pruned = (h.model_copy(update={"copies": tuple(c for c in h.copies if c in ids)}) for h in holds)
    return (
        replace(found, items=tuple(kept), gaps=tuple(gaps[g] for g in sorted(gaps))),
        tuple(h for h in pruned if h.copies),
    )


def _root(copy_id: str, origins: dict[str, str | None]) -> str:
    while (above := origins.get(copy_id)) is not None:
        copy_id = above
    return copy_id


def _called(name: str, items: Sequence[CopyDraft]) -> list[CopyDraft]:
    found = [i for i in items if i.copy.id == name or is_named(name, i.copy)]
    if not found:
        raise PlanError(
            f"the plan has no copy with the name {name}",
            where="--only",
            todo="run `pii-tracer plan` without `--only` to list the copies",
        )
    if len({i.copy.location for i in found}) > 1:
        raise PlanError(
            f"{name} could be {' or '.join(sorted(i.copy.id for i in found))}", where="--only", todo="name one of them"
        )
    return found


def _refuse_harm(kept: Sequence[CopyDraft], left: Sequence[CopyDraft], world: World) -> None:
    places, states = {i.copy.location: i for i in kept}, {s.location: s for s in world.inventory.tables}
    for item in left:
        for origin in clone_origins(item, states):
            if origin in places:
                raise PlanError(
                    f"{_title(item)} is a shallow clone that reads files of {_title(places[origin])}: erasing these "
                    "files would make the clone unreadable",
                    where="--only",
                    todo=f"add `--only {item.copy.id}`",
                )
    ids = {i.copy.id: i for i in left}
    for item in kept:
        key = item.copy.facts.get("key_copy")
        if item.copy.strategy is Strategy.DESTROY_KEY and key in ids:
            raise PlanError(
                f"{_title(item)} is erased by destroying a key in {_title(ids[key])}, and this plan does not destroy "
                "that key",
                where="--only",
                todo=f"add `--only {key}`",
            )
    unerased = {i.copy.dataset: i for i in left}
    for item in kept:
        if item.copy.strategy is not Strategy.REBUILD:
            continue
        for dataset in sorted(inputs_of(item, world) & unerased.keys()):
            raise PlanError(
                f"{_title(item)} is rebuilt from {_title(unerased[dataset])}, and this plan does not erase the person "
                "there",
                where="--only",
                todo=f"add `--only {unerased[dataset].copy.id}`",
            )


def _title(item: CopyDraft) -> str:
    return item.copy.table or item.copy.id.removeprefix("c-")


def _left_out(item: CopyDraft) -> Gap:
    return Gap(
        id=f"gap-{GapKind.LEFT_OUT}-{item.copy.id.removeprefix('c-')}",
        dataset=item.copy.dataset,
        kind=GapKind.LEFT_OUT,
        reason="this plan leaves this copy out: the copy contains the person until a later plan erases it",
        evidence=item.copy.reason,
    )
