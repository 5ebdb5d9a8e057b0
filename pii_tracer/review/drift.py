"""Drift: is the world still what the plan was made for?

Compares what the plan expects (`Precondition`) with a fresh inventory. Targets are locations, jobs for writers. What
cannot be found any more, and a kind of check that is not known here, count as drift: nothing is taken on trust.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pii_tracer.lake.inventory import (
    Inventory,
    ObjectSet,
    TableState,
    TopicState,
    one_line,
)
from pii_tracer.lake.stores.hdfs.places import HdfsPlace
from pii_tracer.lake.stores.lakefs.repository_state import LakefsState
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.model.hive_text.layout import TEXT_TABLE
from pii_tracer.model.plan import (
    LAPSES,
    ErasurePlan,
    Precondition,
    Step,
)

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
    topics: Mapping[str, TopicState] = field(default_factory=dict)
    lakefs: Mapping[str, LakefsState] = field(default_factory=dict)
    hdfs: Mapping[str, HdfsPlace] = field(default_factory=dict)
    object_places: Mapping[str, ObjectPlace] = field(default_factory=dict)

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
            topics={t.location: t for t in inventory.topics},
            lakefs={r.location: r for r in inventory.lakefs},
            hdfs={str(place.location): place for place in inventory.hdfs},
            object_places={str(place.location): place for place in inventory.object_places},
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
        return MISSING if objects is None else _versions(objects, precondition)
    if precondition.kind == "replication":
        objects = world.objects.get(target)
        return MISSING if objects is None else _only_new((f"to {b}: {p}" for b, p in objects.copied_to), precondition)
    if precondition.kind == "topic":
        topic = world.topics.get(target)
        return MISSING if topic is None else topic.fingerprint()
    if precondition.kind == "lakefs":
        repository = world.lakefs.get(target)
        return MISSING if repository is None else repository.fingerprint()
    if precondition.kind == "hdfs":
        place = world.hdfs.get(target)
        return MISSING if place is None else place.fingerprint()
    if precondition.kind == "object_place":
        stored = world.object_places.get(target)
        return MISSING if stored is None else stored.fingerprint()
    table = world.tables.get(target)
    if table is None:
        return MISSING
    if precondition.kind == "snapshot":
        return table.snapshot
    if precondition.kind == "refs":
        return ", ".join(f"{r.kind.value} {r.name}={r.at}" for r in table.refs)
    if precondition.kind == "columns":
        return ", ".join(f"{c.name} {c.type}" for c in table.columns)
    if precondition.kind == "text":
        return table.properties.get(TEXT_TABLE, "")
    if precondition.kind == "clones":
        return _only_new(world.clones.get(target, ()), precondition)
    if precondition.kind == "sharing":
        return _only_new(sorted(other.location for other in table.sharing), precondition)
    if precondition.kind == "staged":
        return _only_new(table.staged, precondition)
    return f"(this version does not know the check `{precondition.kind}`)"


def _versions(objects: ObjectSet, precondition: Precondition) -> str:
    """The versions that are there. One that the plan leaves to the lifecycle may be gone, behind a delete marker."""
    lapsing = [line for line in precondition.expected.split("\n") if line.endswith(LAPSES)]
    ids = {line.removesuffix(LAPSES) for line in lapsing}
    keys = {line.rpartition("@")[0] for line in ids}
    others = (v for v in objects.versions if not (v.delete_marker and one_line(v.key) in keys))
    return "\n".join(sorted([*lapsing, *({v.line for v in others} - ids)]))


def _only_new(readers: Iterable[str], precondition: Precondition) -> str:
    """Readers of a table's files, rows staged in it, rules that copy a bucket's new objects: what is gone since
    endangers nobody, and the run itself parts clones from a table and expires what is staged."""
    readers = tuple(readers)
    known = precondition.expected.split("\n")
    return precondition.expected if set(readers) <= set(known) else "\n".join(readers)
