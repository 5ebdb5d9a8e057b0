"""From copies to drafts of steps: the format's sequence for each, a verification after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.model.hive_text.layout import TEXT_TABLE
from pii_tracer.model.plan import LAPSES, Precondition
from planners.copies import backups
from planners.formats.registry import planner_of
from planners.keys.key_steps import key_steps, unreadable_steps
from planners.step_drafts import CopyDraft, Draft, verification
from planners.stores.glacier import vaults
from planners.stores.hdfs import steps as hdfs_steps
from planners.stores.lakefs import steps as lakefs_steps
from planners.stores.object_places import steps as object_steps
from planners.stores.s3 import archives, table_version_steps
from planners.stores.s3.lifecycle_expiry import REF_SLACK
from planners.streams.kafka import steps as topic_steps


def write_steps(items: Sequence[CopyDraft], plan_id: str) -> tuple[CopyDraft, ...]:
    """Every copy with the drafts of its steps, the verification last."""
    by_id = {item.copy.id: item for item in items}
    return tuple(_with_steps(item, by_id, plan_id) for item in items)


def _with_steps(item: CopyDraft, by_id: Mapping[str, CopyDraft], plan_id: str) -> CopyDraft:
    if item.copy.strategy in (Strategy.BLOCKED, Strategy.EXEMPT):
        return item
    drafts = _own(item, by_id, plan_id)
    if drafts:
        drafts = (replace(drafts[0], preconditions=preconditions(item)), *drafts[1:])
    if item.backup is not None:
        return replace(item, drafts=drafts)  # there is nothing to look at
    return replace(item, drafts=(*_sized(item, drafts), verification(item, drafts)))


def _own(item: CopyDraft, by_id: Mapping[str, CopyDraft], plan_id: str) -> tuple[Draft, ...]:
    copy = item.copy
    if item.backup is not None:
        return backups.backup_steps(item, item.backup)
    if copy.strategy is Strategy.DESTROY_KEY:
        return unreadable_steps(item)
    if item.topic is not None:
        return topic_steps.topic_steps(item, item.topic, plan_id)
    if item.lakefs is not None and item.letting_go is not None:
        return lakefs_steps.lakefs_steps(item, item.lakefs, item.letting_go, plan_id)
    if item.hdfs is not None and item.hdfs.by_files:
        return hdfs_steps.hdfs_steps(item, item.hdfs, plan_id)
    if item.stored is not None and item.stored.by_objects:
        return object_steps.object_steps(item, item.stored, plan_id)
    if item.vault is not None:
        return vaults.vault_steps(item, item.vault)
    if item.objects is not None and item.lapse is not None:
        return archives.lapse_steps(item, item.objects, item.lapse, plan_id)
    if copy.kind is CopyKind.ARCHIVE:
        return archives.archive_steps(item, plan_id)
    if copy.kind is CopyKind.OBJECT_VERSION:
        return archives.version_steps(item, plan_id)
    if copy.kind is CopyKind.REPLICA:
        origin = by_id.get(copy.origin or "")
        return archives.replica_steps(item, origin.objects if origin else None, plan_id)
    if copy.kind is CopyKind.TABLE_HISTORY and item.lapse is not None:
        return planner_of(copy.format).ref_lapse_steps(item, item.lapse, REF_SLACK)
    if copy.kind is CopyKind.TABLE_HISTORY:
        return planner_of(copy.format).ref_steps(item, copy.facts["ref_kind"], copy.facts["ref"])
    if copy.kind is CopyKind.KEY:
        return key_steps(item, _of_table(item, plan_id))
    return _of_table(item, plan_id)


def _of_table(item: CopyDraft, plan_id: str) -> tuple[Draft, ...]:
    drafts = planner_of(item.copy.format).table_steps(item)
    if item.stored is not None:
        return object_steps.table_steps(item, item.stored.place, drafts, plan_id)
    return table_version_steps.version_steps(item, item.place, drafts, plan_id) if item.place is not None else drafts


def _sized(item: CopyDraft, drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Files, bytes and rows that the steps of a copy touch, as far as planning knows."""
    found = item.copy.found
    if item.objects is not None or item.vault is not None:
        return tuple(replace(d, files=_objects(d), bytes=_object_bytes(d)) for d in drafts)
    if (item.state is None and item.hdfs is None and item.stored is None) or found is None:
        return tuple(drafts)
    return tuple(replace(d, files=found.files_with_person, bytes=found.bytes, rows=found.rows) for d in drafts)


def _listed(draft: Draft) -> list[Any]:
    named = ("versions", "objects", "keys", "archives")
    return next((found for name in named if (found := draft.parameters.get(name))), [])


def _objects(draft: Draft) -> int:
    return len(_listed(draft))


def _object_bytes(draft: Draft) -> int:
    return sum(item.get("size") or 0 for item in _listed(draft) if isinstance(item, dict))


def _read_as_text(item: CopyDraft) -> tuple[Precondition, ...]:
    """That a catalog still says the same of how text is read."""
    told = item.state.properties.get(TEXT_TABLE) if item.state else None
    return (Precondition(kind="text", target=item.copy.folder, expected=told),) if told else ()


def preconditions(item: CopyDraft) -> tuple[Precondition, ...]:
    """The facts that the plan for a copy relies on, to be compared with the world before its first step."""
    if item.lapse is not None and item.topic is None:
        return ()  # that they are gone when the day comes is what the step waits for
    if item.objects is not None:
        lapsing = item.lapsing.keys if item.lapsing is not None else frozenset()
        ids = sorted(v.line + (LAPSES if v.key in lapsing else "") for v in item.objects.versions)
        place = item.objects.location
        rules = "\n".join(f"to {bucket}: {prefix}" for bucket, prefix in item.objects.copied_to)
        return (
            Precondition(kind="object_versions", target=place, expected="\n".join(ids)),
            Precondition(kind="replication", target=place, expected=rules),
            *_read_as_text(item),
        )
    if item.topic is not None:
        return topic_steps.preconditions(item.topic, item.copy.strategy)
    if item.lakefs is not None:
        return lakefs_steps.preconditions(item.lakefs)
    if item.hdfs is not None and item.hdfs.by_files:
        return hdfs_steps.preconditions(item.hdfs)
    if item.stored is not None and item.stored.by_objects:
        return object_steps.preconditions(item.stored.place)
    state = item.state
    if state is None:
        return ()
    refs = ", ".join(f"{r.kind.value} {r.name}={r.at}" for r in state.refs)
    columns = ", ".join(f"{c.name} {c.type}" for c in state.columns)
    return (
        *planner_of(state.format).readers(state),
        Precondition(kind="columns", target=state.location, expected=columns),
        Precondition(kind="refs", target=state.location, expected=refs),
        Precondition(kind="snapshot", target=state.location, expected=state.snapshot),
    )
