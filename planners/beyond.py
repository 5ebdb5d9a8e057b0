"""What hangs from the tables: archives with their old versions and replicas, branches and tags."""

from __future__ import annotations

from collections.abc import Iterable

from pii_tracer.inventory import RefKind
from pii_tracer.model import CopyKind, Format, Strategy
from planners.drafts import CopyDraft, slug
from planners.survey import World


def archives(world: World, tables: Iterable[CopyDraft]) -> list[CopyDraft]:
    """Object sets that archive a table which is a copy: the archive, its old versions, its replicas."""
    archived = {i.copy.table: i for i in tables if i.copy.table}
    items: list[CopyDraft] = []
    for objects in world.inventory.objects:
        origin = archived.get(objects.of)
        if origin is None or not any(not v.delete_marker for v in objects.versions):
            continue
        main = objects.replica_of is None
        base = origin.copy.model_copy(
            update={
                "dataset": objects.dataset,
                "table": None,
                "location": objects.location,
                "format": _object_format(objects.versions[0].key),
                "columns": origin.copy.columns,
                "lineage": (*origin.copy.lineage, objects.location),
                "found": None,
                "facts": {"region": objects.region},
            }
        )
        parent = None if main else "c-" + slug((objects.replica_of or "").removeprefix("s3://"))
        copy = base.model_copy(
            update={
                "id": "c-" + slug(objects.location.removeprefix("s3://")),
                "kind": CopyKind.ARCHIVE if main else CopyKind.REPLICA,
                "strategy": Strategy.RESTORE_REWRITE_ARCHIVE if main else Strategy.DELETE_VERSIONS,
                "reason": f"snapshots of {objects.of}"
                + ("" if main else f", replicated to {objects.region}: version deletes do not follow"),
                "origin": parent,
            }
        )
        items.append(CopyDraft(copy=copy, objects=objects, carriage=origin.carriage, upstream=str(origin.copy.dataset)))
        old = [v for v in objects.versions if not v.latest or v.delete_marker]
        if main and old:
            versions = copy.model_copy(
                update={
                    "id": copy.id + "-versions",
                    "kind": CopyKind.OBJECT_VERSION,
                    "strategy": Strategy.DELETE_VERSIONS,
                    "reason": f"{len(old)} noncurrent versions and delete markers of the archive's objects",
                    "origin": copy.id,
                }
            )
            items.append(CopyDraft(copy=versions, objects=objects, carriage=origin.carriage))
    return items


def _object_format(key: str) -> Format:
    for fmt in Format:
        if f".{fmt.value}" in key:
            return fmt
    return Format.PARQUET


def with_history(items: Iterable[CopyDraft]) -> tuple[CopyDraft, ...]:
    """Branches and tags hang from their table as copies of their own."""
    result: list[CopyDraft] = []
    for item in items:
        result.append(item)
        if item.state is None or item.copy.match is None:
            continue
        for ref in item.state.refs:
            if ref.kind is RefKind.SAVEPOINT:
                continue
            history = item.copy.model_copy(
                update={
                    "id": f"{item.copy.id}@{ref.kind.value}.{slug(ref.name)}",
                    "kind": CopyKind.TABLE_HISTORY,
                    "strategy": Strategy.REWRITE_REF,
                    "origin": item.copy.id,
                    "reason": f"the {ref.kind.value} {ref.name} pins a snapshot that holds the person",
                    "found": None,
                    "facts": {"ref": ref.name, "ref_kind": ref.kind.value},
                }
            )
            result.append(CopyDraft(copy=history, state=item.state, carriage=item.carriage))
    return tuple(result)
