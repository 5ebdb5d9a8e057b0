"""The steps of a place in HDFS, and what reviewers must know of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.model.actions import Action
from pii_tracer.model.plan import Override, Precondition
from planners.copies.scan_evidence import HdfsRead
from planners.formats.plain_files.steps import hazards_of_text
from planners.step_drafts import CopyDraft, Draft, StepWriter


def preconditions(place: HdfsPlace) -> tuple[Precondition, ...]:
    """The files are those that planning read."""
    return (Precondition(kind="hdfs", target=str(place.location), expected=place.fingerprint()),)


def hdfs_steps(item: CopyDraft, place: HdfsPlace, plan_id: str) -> tuple[Draft, ...]:
    """The step of one place."""
    steps = StepWriter(item.copy, "hdfs", {"location": item.copy.location, "plan_id": plan_id})
    if place.kind is HdfsKind.SNAPSHOT:
        steps.add(
            Action.HDFS_DELETE_SNAPSHOT,
            "a snapshot retains the bytes of deleted files, and no step can change a snapshot",
            hazards=("S9",),
            verification="the snapshot does not exist",
            mark=place.mark,
        )
    elif place.kind is HdfsKind.FOLDER:
        steps.add(
            Action.HDFS_REWRITE,
            "each file contains many people: the step rewrites it without the person, and replaces it in one rename",
            hazards=("S9", "F3", *hazards_of_text(item.copy)),
            verification="no file contains the person, and other rows are unchanged",
            format=item.copy.format.value,
            files=[_described(read) for read in item.reads],
        )
    else:
        steps.add(
            Action.HDFS_DELETE_FILES,
            "HDFS moved deleted files here, or a job left them: the step deletes them without the trash",
            hazards=("S9",),
            verification="none of the listed files exists",
            files=[_described(read) for read in item.reads],
        )
    return tuple(steps.drafts)


def _described(read: HdfsRead) -> dict[str, Any]:
    return {
        "path": read.path,
        "size": read.size,
        "modified": read.modified,
        "file_id": read.file_id,
        "checksum": read.checksum,
    }


def whole_deletions_in_hdfs(items: Iterable[CopyDraft]) -> tuple[Override, ...]:
    """What is deleted with everybody in it, for reviewers."""
    found = []
    for item in items:
        place = item.hdfs
        if place is None or place.kind in (HdfsKind.FOLDER, HdfsKind.TABLE) or not item.drafts:
            continue
        number = len(place.files) if place.kind is HdfsKind.SNAPSHOT else len(item.reads)
        why = place.agreed or "files that its user deleted"
        found.append(
            f"{place.location}: {counted(number, 'file is', 'files are')} deleted, with the data of all persons; {why}"
        )
    return tuple(Override(kind="hdfs_delete", reason=reason) for reason in sorted(found))
