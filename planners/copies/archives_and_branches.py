"""What hangs from the tables: archives with their old versions and replicas, branches and tags."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.registry import format_names
from pii_tracer.lake.inventory import ObjectSet
from pii_tracer.model.datasets import (
    BY_ROWS,
    CopyKind,
    Format,
    Strategy,
)
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.layout import text_of, text_properties
from pii_tracer.model.locations import without_scheme
from pii_tracer.model.plan import Copy, Gap, Override
from planners.copies.declared_origins import origin_of
from planners.formats.registry import planner_of
from planners.gaps.copy_gap import gap_of
from planners.locate.subject_survey import World
from planners.step_drafts import NO_ROWS, CopyDraft, slug


def is_in_objects(item: CopyDraft) -> bool:
    """Whether what is done with a table is done with the objects of its folder, as with an archive's."""
    return item.state is not None and item.state.in_objects and item.copy.strategy in BY_ROWS


def archives(world: World, tables: Iterable[CopyDraft], in_objects: Iterable[CopyDraft] = ()) -> list[CopyDraft]:
    """Object sets that archive one of the tables: the archive, its old versions, its replicas.

    in_objects: tables that are their objects. Another bare folder in S3 holds nobody, or is among the tables and cannot
    be erased.
    """
    bare = {_folder(state.location) for state in world.inventory.tables if state.in_objects}
    own = {_folder(item.copy.location): item for item in in_objects}
    tables = (*tables, *own.values())
    items: list[CopyDraft] = []
    for objects in world.inventory.objects:
        itself = own.get(objects.location)
        origin = itself or (origin_of(objects.of, tables) if objects.location not in bare else None)
        keys = [v.key for v in objects.versions if not v.delete_marker] or [u.key for u in objects.uploads]
        if origin is None or not keys:
            continue
        main = objects.replica_of is None
        rewritten = main or not objects.fed
        strategy = Strategy.RESTORE_REWRITE_ARCHIVE if rewritten else Strategy.DELETE_VERSIONS
        base = origin.copy.model_copy(
            update={
                "dataset": objects.dataset,
                "table": None,
                "location": objects.location,
                "format": objects.format or _object_format(keys[0]),
                "columns": origin.copy.columns,
                "lineage": (*origin.copy.lineage, objects.location),
                "mentions": (),
                "found": None,
                "facts": {"region": objects.region}
                | _left_out(objects)
                | text_properties(text_of(itself.copy.facts) if itself else None),
            }
            | (_as_table(itself.copy) if itself else {})
        )
        parent = None if main else "c-" + slug(without_scheme(objects.replica_of or ""))
        copy = base.model_copy(
            update={
                "id": "c-" + slug(without_scheme(objects.location)),
                "kind": CopyKind.ARCHIVE if main else CopyKind.REPLICA,
                "strategy": strategy if objects.delete_whole is None else Strategy.DELETE_ARCHIVES,
                "reason": (f"a folder in S3: {itself.copy.reason}" if itself else f"snapshots of {objects.of}")
                + ("" if main else f", replicated to {objects.region}: version deletes do not follow")
                + (
                    f"; {counted(len(objects.of_others), 'version')} left out, {_BY_MANIFEST}"
                    if objects.of_others
                    else ""
                ),
                "origin": parent,
            }
        )
        if world.named.get(objects.location):
            copy = copy.model_copy(update={"strategy": Strategy.BLOCKED})
            items.append(CopyDraft(copy=copy, carriage=origin.carriage, upstream=str(origin.copy.dataset)))
            continue
        upstream = itself.upstream if itself else str(origin.copy.dataset)
        items.append(
            CopyDraft(
                copy=copy,
                state=itself.state if itself else None,
                objects=objects,
                carriage=origin.carriage,
                upstream=upstream,
            )
        )
        old = [v for v in objects.versions if not v.latest or v.delete_marker]
        if main and old:
            versions = copy.model_copy(
                update={
                    "id": copy.id + "-versions",
                    "kind": CopyKind.OBJECT_VERSION,
                    "strategy": Strategy.DELETE_VERSIONS,
                    "reason": f"{counted(len(old), 'noncurrent version')} and delete markers of the archive's objects",
                    "origin": copy.id,
                }
            )
            items.append(CopyDraft(copy=versions, objects=objects, carriage=origin.carriage))
    return items


def _folder(location: str) -> str:
    """As an object set names its place."""
    return f"{location}/"


def _as_table(copy: Copy) -> dict[str, Any]:
    """What a table that is its objects is called, and how the persons came into it."""
    return {"dataset": copy.dataset, "table": copy.table, "lineage": copy.lineage, "found": copy.found}


_BY_MANIFEST = "which the archive's manifest assigns to other tables"


def _left_out(objects: ObjectSet) -> dict[str, Any]:
    """For the verification, which does not look at exactly these versions; a newer one of such a key it reads."""
    return {"of_others": [list(place) for place in objects.of_others]} if objects.of_others else {}


def left_out(world: World, tables: Iterable[CopyDraft]) -> tuple[Override, ...]:
    """Versions that nobody looks at, on the word of an archive's manifest, for reviewers."""
    tables = tuple(tables)
    found = {
        (
            f"{objects.location}: {counted(len(objects.of_others), 'version was', 'versions were')} not searched, "
            f"{_BY_MANIFEST}"
        )
        for objects in world.inventory.objects
        if objects.of_others and origin_of(objects.of, tables) is not None
    }
    return tuple(Override(kind="s3_manifest", reason=reason) for reason in sorted(found))


def telling_names(world: World, items: Iterable[CopyDraft]) -> list[Gap]:
    """Places whose objects' names hold a person's value: a plan lists names, and whoever reads it would read that."""
    return [
        Gap(
            id=f"gap-object_names-{item.copy.id.removeprefix('c-')}",
            dataset=item.copy.dataset,
            kind=GapKind.OBJECT_NAMES,
            reason=(
                f"{counted(world.named[item.copy.location], 'object name contains', 'object names contain')} a value "
                "of the person, and a plan would print it. Copy these objects to names without the value, delete "
                "every version under the old names, then plan again (hazard F2)"
            ),
            evidence=item.copy.location,
        )
        for item in items
        if item.objects is None and item.vault is None and world.named.get(item.copy.location)
    ]


def _object_format(key: str) -> Format:
    return next((Format(name) for name in format_names() if f".{name}" in key), Format.PARQUET)


def _distinct(name: str) -> str:
    """A reference's name as part of an id, so that `a/b` and `a-b` are two."""
    made = slug(name)
    return made if made == name else f"{made}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def with_history(items: Iterable[CopyDraft]) -> tuple[CopyDraft, ...]:
    """Branches and tags hang from their table as copies of their own."""
    result: list[CopyDraft] = []
    for item in items:
        result.append(item)
        if item.state is None or item.copy.places is None:
            continue
        for ref in planner_of(item.state.format).history(item.state) if item.state.refs else ():
            history = item.copy.model_copy(
                update={
                    "id": f"{item.copy.id}@{ref.kind.value}.{_distinct(ref.name)}",
                    "kind": CopyKind.TABLE_HISTORY,
                    "strategy": Strategy.REWRITE_REF,
                    "table": ref.table or item.copy.table,
                    "origin": item.copy.id,
                    "reason": f"the {ref.kind.value} {ref.name} retains a snapshot that contains the person",
                    "found": None,
                    "facts": {**item.copy.facts, "ref": ref.name, "ref_kind": ref.kind.value},
                }
            )
            result.append(CopyDraft(copy=history, state=item.state, carriage=item.carriage))
    return tuple(result)


def spare_references(items: Sequence[CopyDraft]) -> tuple[tuple[CopyDraft, ...], tuple[Gap, ...]]:
    """Block references that cannot be written again without loss to others, whatever became of their table.

    Their snapshot has columns that the table's schema lacks, and Spark writes with the table's. A waiver of the gap
    does not free them: only the owner can drop or re-point a reference.
    """
    spared, gaps = [], []
    for item in items:
        lost = _lost(item)
        if lost:
            gaps.append(_ref_gap(item, lost))
            changes = {"strategy": Strategy.BLOCKED, **NO_ROWS, "mask": None, "exemption": None}
            item = replace(item, copy=item.copy.model_copy(update=changes))
        spared.append(item)
    return tuple(spared), tuple(gaps)


def _lost(item: CopyDraft) -> tuple[str, ...]:
    written = item.copy.strategy in (Strategy.REWRITE_REF, Strategy.MASK_COLUMNS)
    if item.copy.kind is not CopyKind.TABLE_HISTORY or item.state is None or not written:
        return ()
    named = item.copy.facts["ref_kind"], item.copy.facts["ref"]
    return next((ref.lost for ref in item.state.refs if (ref.kind.value, ref.name) == named), ())


def _ref_gap(item: CopyDraft, lost: Sequence[str]) -> Gap:
    kind, name = item.copy.facts["ref_kind"], item.copy.facts["ref"]
    reason = (
        f"the {kind} {name} has columns that the table no longer has, or has in another type ({', '.join(lost)}). A "
        f"rewrite of the {kind} would lose other people's values in these columns. Drop the {kind}, or point it to a "
        "snapshot with the current schema, then plan again (a waiver does not unblock it)"
    )
    return gap_of(item, GapKind.REF_SCHEMA, reason, item.copy.location)
