"""From copies to drafts of steps: the format's sequence for each, a verification after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pii_tracer.model import CopyKind, Format, Strategy
from pii_tracer.plan import Action, Precondition
from planners import archives, delta, files, hudi, iceberg
from planners.drafts import CopyDraft, Draft


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
    return replace(item, drafts=(*_sized(item, drafts), _verification(item, drafts)))


def _own(item: CopyDraft, by_id: Mapping[str, CopyDraft], plan_id: str) -> tuple[Draft, ...]:
    copy = item.copy
    if copy.kind is CopyKind.ARCHIVE:
        return archives.archive_steps(item, plan_id)
    if copy.kind is CopyKind.OBJECT_VERSION:
        return archives.version_steps(item, plan_id)
    if copy.kind is CopyKind.REPLICA:
        origin = by_id[copy.origin or ""].objects
        return archives.replica_steps(item, origin, plan_id) if origin else ()
    if copy.kind is CopyKind.TABLE_HISTORY:
        return iceberg.ref_steps(item, copy.facts["ref_kind"], copy.facts["ref"])
    if copy.format is Format.ICEBERG:
        return iceberg.table_steps(item)
    if copy.format is Format.DELTA:
        return delta.table_steps(item)
    if copy.format is Format.HUDI:
        return hudi.table_steps(item)
    return files.folder_steps(item)


def _sized(item: CopyDraft, drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Files, bytes and rows that the steps of a copy touch, as far as planning knows."""
    found = item.copy.found
    if item.objects is not None:
        return tuple(replace(d, files=_objects(d), bytes=_object_bytes(d)) for d in drafts)
    if item.state is None or found is None:
        return tuple(drafts)
    return tuple(replace(d, files=found.files_with_person, bytes=found.bytes, rows=found.rows) for d in drafts)


def _listed(draft: Draft) -> list[Any]:
    return draft.parameters.get("versions") or draft.parameters.get("objects") or draft.parameters.get("keys") or []


def _objects(draft: Draft) -> int:
    return len(_listed(draft))


def _object_bytes(draft: Draft) -> int:
    return sum(item.get("size") or 0 for item in _listed(draft) if isinstance(item, dict))


def _verification(item: CopyDraft, drafts: Sequence[Draft]) -> Draft:
    return Draft(
        id=f"{item.copy.id}/99-verify",
        copy=item.copy.id,
        action=Action.VERIFY_COPY,
        executor="verify",
        parameters={"table": item.copy.table, "location": item.copy.location},
        hazards=("F3", "F4"),
        irreversible=False,
        verification="rows and bytes: every snapshot read, every file decoded by its format",
        reason="no step's own word is believed",
        after=(drafts[-1].id,) if drafts else (),
    )


def preconditions(item: CopyDraft) -> tuple[Precondition, ...]:
    """The facts that the plan for a copy relies on, to be compared with the world before its first step."""
    if item.objects is not None:
        ids = sorted(f"{v.key}@{v.version_id}" for v in item.objects.versions)
        return (Precondition(kind="object_versions", target=item.objects.location, expected="\n".join(ids)),)
    state = item.state
    if state is None:
        return ()
    refs = ", ".join(f"{r.kind.value} {r.name}={r.at}" for r in state.refs)
    columns = ", ".join(f"{c.name} {c.type}" for c in state.columns)
    return (
        Precondition(kind="columns", target=state.location, expected=columns),
        Precondition(kind="refs", target=state.location, expected=refs),
        Precondition(kind="snapshot", target=state.location, expected=state.snapshot),
    )
