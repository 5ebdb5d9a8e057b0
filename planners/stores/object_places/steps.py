"""The steps of a place in an object store, and what reviewers must know of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.lake.stores.object_places.version_types import StoredVersion, VersionState
from pii_tracer.model.actions import Action
from pii_tracer.model.plan import Override, Precondition
from pii_tracer.model.timestamps import instant
from planners.copies.scan_evidence import StoredRead
from planners.formats.plain_files.steps import hazards_of_text
from planners.step_drafts import CopyDraft, Draft, StepWriter, StoredDraft

_STANDARD = frozenset({"", "STANDARD", "Hot", "MULTI_REGIONAL", "REGIONAL"})
"""Storage classes without a least duration."""


def preconditions(place: ObjectPlace) -> tuple[Precondition, ...]:
    """The versions are those that planning read."""
    return (Precondition(kind="object_place", target=str(place.location), expected=place.fingerprint()),)


def object_steps(item: CopyDraft, stored: StoredDraft, plan_id: str) -> tuple[Draft, ...]:
    """Write live objects again, delete the old versions, wait until the store has let go of deleted bytes."""
    place = stored.place
    steps = StepWriter(item.copy, "objects", {"location": item.copy.location, "plan_id": plan_id})
    replaced = [_described(read) for read in stored.rewritten]
    versions = [_described(read) for read in stored.old]
    if replaced:
        steps.add(
            Action.OBJECT_REWRITE,
            "each object contains many people: the step rewrites it without the person, if the object did not change "
            "since it was read",
            hazards=("S10", "F3", *hazards_of_text(item.copy)),
            verification="no live object contains the person, and other rows are unchanged",
            format=item.copy.format.value,
            versions=replaced,
        )
    if versions or replaced:
        steps.add(
            Action.OBJECT_DELETE_VERSIONS,
            "the store retains overwritten objects: the step deletes old versions that contain the person, by their "
            "ids",
            hazards=("S10",),
            verification="none of the listed old versions can be read",
            versions=versions,
            replaced=replaced,
            without_object=stored.of_deleted,
        )
    gone = list(place.of_state(VersionState.SOFT_DELETED))
    seconds = place.settings.soft_delete_seconds
    if gone or seconds:
        steps.add(
            Action.OBJECT_AWAIT_PURGE,
            "the store retains deleted bytes for a time, and can restore them; nobody can delete them earlier",
            hazards=("S10",),
            verification="the store retains none of the versions as soft-deleted",
            irreversible=False,
            not_before=max((instant(v.gone_on) for v in gone if v.gone_on), default=None),
            soft_delete_seconds=seconds if replaced or versions else 0,
            versions=[
                *map(_named, gone),
                *({k: one[k] for k in ("key", "version_id")} for one in (*replaced, *versions)),
            ],
        )
    return tuple(steps.drafts)


def table_steps(item: CopyDraft, place: ObjectPlace, drafts: Sequence[Draft], plan_id: str) -> tuple[Draft, ...]:
    """The steps of a table's engine, and what is left to do in its store after them."""
    steps = StepWriter(item.copy, "objects", {"location": item.copy.location, "plan_id": plan_id})
    first = next((number for number, draft in enumerate(drafts) if draft.retained), len(drafts))
    steps.drafts += drafts[:first]
    if any(version.pins for version in place.of_state(VersionState.NONCURRENT)) and first < len(drafts):
        _clear(steps, "the store does not let the engine delete an object that has snapshots")
        steps.drafts.append(replace(drafts[first], after=(steps.drafts[-1].id,)))
        first += 1
    steps.drafts += drafts[first:]
    _clear(steps, "if the store retains versions, objects that the engine deleted or overwrote remain as old versions")
    gone = list(place.of_state(VersionState.SOFT_DELETED))
    seconds = place.settings.soft_delete_seconds
    if gone or seconds:
        steps.add(
            Action.OBJECT_AWAIT_PURGE,
            "the store retains deleted bytes for a time, and can restore them; nobody can delete them earlier",
            hazards=("S10",),
            verification="the store retains nothing soft-deleted that was deleted before this step",
            irreversible=False,
            not_before=max((instant(v.gone_on) for v in gone if v.gone_on), default=None),
            soft_delete_seconds=seconds,
            versions=[],
            everything=True,
        )
    return tuple(steps.drafts)


def _clear(steps: StepWriter, reason: str) -> None:
    steps.add(
        Action.OBJECT_CLEAR_VERSIONS,
        reason,
        hazards=("S10",),
        verification="the folder contains only live versions",
        retained=True,
    )


def _named(version: StoredVersion) -> dict[str, Any]:
    return {"key": version.key, "version_id": version.version_id}


def _described(read: StoredRead) -> dict[str, Any]:
    version = read.version
    return {**_named(version), "mark": version.mark, "size": version.size, "sha256": read.sha256}


def whole_versions(items: Iterable[CopyDraft]) -> tuple[Override, ...]:
    """What is deleted with everybody in it, and what costs a fee for being deleted early, for reviewers."""
    found = []
    for item in items:
        stored = item.stored
        if stored is None or not item.drafts:
            continue
        location = stored.place.location
        if stored.old:
            why = stored.place.agreed if stored.of_deleted else "their objects stay"
            found.append(
                (
                    "objects_delete",
                    f"{location}: {counted(len(stored.old), 'old version is', 'old versions are')} deleted, with the "
                    f"data of all persons; {why}",
                )
            )
        classes = sorted({read.version.storage_class for read in (*stored.old, *stored.rewritten)} - _STANDARD)
        if classes:
            found.append(
                ("objects_early", f"{location}: objects of {', '.join(classes)} may incur a fee for early deletion")
            )
    return tuple(Override(kind=kind, reason=reason) for kind, reason in sorted(found))
