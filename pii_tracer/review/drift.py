"""Drift: is the world still what the plan was made for?

Compares what the plan expects (`Precondition`) with a fresh inventory. Targets are locations, jobs for writers. What
cannot be found any more, and a kind of check that is not known here, count as drift: nothing is taken on trust.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pii_tracer.inventory import Inventory, ObjectSet, TableState
from pii_tracer.plan import ErasurePlan, Precondition, Step

MISSING = "(not found)"


@dataclass(frozen=True)
class DriftItem:
    """One difference. copy: id of the copy whose step relies on it. hard: it stops the run."""

    copy: str | None
    kind: str
    target: str
    expected: str
    found: str
    hard: bool


@dataclass(frozen=True)
class World:
    """An inventory indexed by location, and the jobs whose owners say they stopped (estate file, `writers`)."""

    tables: Mapping[str, TableState]
    objects: Mapping[str, ObjectSet]
    clones: Mapping[str, tuple[str, ...]]
    stopped: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, inventory: Inventory, stopped: Mapping[str, bool] | None = None) -> World:
        """Index an inventory."""
        clones: dict[str, list[str]] = {}
        for table in inventory.tables:
            if table.clone_of:
                clones.setdefault(table.clone_of, []).append(table.location)
        return cls(
            tables={t.location: t for t in inventory.tables},
            objects={o.location: o for o in inventory.objects},
            clones={k: tuple(sorted(v)) for k, v in clones.items()},
            stopped=dict(stopped or {}),
        )


def compare(plan: ErasurePlan, inventory: Inventory, stopped: Mapping[str, bool] | None = None) -> list[DriftItem]:
    """All differences between the plan's preconditions and a fresh inventory, in the plan's order.

    stopped: writer job -> whether its owner stopped it, as the estate file says now.
    """
    world = World.of(inventory, stopped)
    return [item for step in plan.steps for item in step_drift(step, world)]


def step_drift(step: Step, world: World) -> list[DriftItem]:
    """The differences that concern one step."""
    items = []
    for precondition in step.preconditions:
        found = _found(precondition, world)
        if found != precondition.expected:
            items.append(
                DriftItem(
                    copy=step.copy_,
                    kind=precondition.kind,
                    target=precondition.target,
                    expected=precondition.expected,
                    found=found,
                    hard=precondition.hard,
                )
            )
    return items


def hard(items: Iterable[DriftItem]) -> list[DriftItem]:
    """Only the differences that stop a run."""
    return [item for item in items if item.hard]


def _found(precondition: Precondition, world: World) -> str:
    target = precondition.target
    if precondition.kind == "writers_stopped":
        stopped = world.stopped.get(target)
        return MISSING if stopped is None else ("true" if stopped else "false")
    if precondition.kind == "object_versions":
        objects = world.objects.get(target)
        return MISSING if objects is None else "\n".join(sorted(f"{v.key}@{v.version_id}" for v in objects.versions))
    table = world.tables.get(target)
    if table is None:
        return MISSING
    if precondition.kind == "snapshot":
        return table.snapshot
    if precondition.kind == "refs":
        return ", ".join(f"{r.kind.value} {r.name}={r.at}" for r in table.refs)
    if precondition.kind == "columns":
        return ", ".join(f"{c.name} {c.type}" for c in table.columns)
    if precondition.kind == "clones":
        return "\n".join(world.clones.get(target, ()))
    return f"(this version does not know the check `{precondition.kind}`)"
