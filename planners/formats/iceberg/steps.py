"""Iceberg: the sequence that leaves no file with the person. https://iceberg.apache.org/docs/latest/spark-procedures/"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG_AWAIT_REF,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_MASK_ROWS,
    ICEBERG_REBUILD,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_HISTORY,
    ICEBERG_REWRITE_MANIFESTS,
    ICEBERG_REWRITE_REF,
)
from pii_tracer.model.canonical_json import iso
from planners.formats.shared_files import sharers
from planners.locate.sql.shared_rows import mask_mentions
from planners.step_drafts import CopyDraft, Draft, StepWriter


def table_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Delete (or rebuild), rewrite what merge-on-read left, clear manifests, expire, remove orphans."""
    copy, state = item.copy, item.state
    steps = StepWriter.of_table(copy, "iceberg")
    # an expiry removes the files it frees, and another table may still read them; it refuses tables that say so
    careful = state is not None and (state.sharing or state.properties.get("gc.enabled", "").lower() == "false")
    shared: dict[str, Any] = {"sharing": sharers(item)} if careful else {}
    if item.rebuild_sql:
        steps.add(
            ICEBERG_REBUILD,
            "no key to delete by: write the table again from its erased source",
            hazards=("I1",),
            verification="the schema is unchanged and the rows equal the recorded query's",
            irreversible=False,
            sql=item.rebuild_sql,
        )
    else:
        delete_rows(steps, item)
    rewrite_manifests(steps)
    steps.add(
        ICEBERG_EXPIRE_SNAPSHOTS,
        "older snapshots still reference the person's files"
        + ("; they are forgotten and no file is removed, since other tables may read some" if shared else ""),
        hazards=("I1", "I3", "I4", *(("I7",) if shared else ())),
        verification="only the current snapshot and the heads of references are left",
        retained=True,
        older_than=None,
        retain_last=1,
        **shared,
    )
    steps.add(
        ICEBERG_REMOVE_ORPHANS,
        "old metadata files and files nothing references are left to this sweep",
        hazards=("I6", *(("I7",) if shared else ())),
        verification="every file in the folder is referenced by the table"
        + (" or by one that shares files with it" if shared else ""),
        **shared,
    )
    return tuple(steps.drafts)


def history_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Write every snapshot again without the person, then remove the old files: branches and tags are taken along."""
    steps = StepWriter.of_table(item.copy, "iceberg")
    steps.add(
        ICEBERG_REWRITE_HISTORY,
        "the history is to stay (`keep_history`): every snapshot, branch and tag is written again without the person."
        " Ids, times, parents and sequence numbers stay. Paths, sizes, checksums, bounds and the counts in summaries"
        " change. Statistics files, summaries of single partitions and the log of metadata files do not stay",
        hazards=("I1", "I3", "I4", "I4b"),
        verification="no data file of any snapshot holds the person, and no snapshot is missing",
        irreversible=False,
        snapshots=item.state.versions if item.state is not None else 0,
    )
    steps.add(
        ICEBERG_REMOVE_ORPHANS,
        "the old data files, manifests and metadata files, which nothing references now, are left to this sweep",
        hazards=("I6",),
        verification="every file in the folder is referenced by the table",
    )
    return tuple(steps.drafts)


def delete_rows(steps: StepWriter, item: CopyDraft) -> None:
    """The person's rows, or what no hold keeps of them, leave the current snapshot, and so does what marks them."""
    mask = item.copy.mask
    if mask:
        steps.add(
            ICEBERG_MASK_ROWS,
            f"a hold keeps {', '.join(mask.kept)} of the rows: the rest becomes NULL, by semi-join",
            hazards=("I1", "E1"),
            verification="in the person's rows only columns that stay have a value in the current snapshot",
            irreversible=False,
            columns=list(mask.columns),
        )
    mask_mentions(steps, item.copy, ICEBERG_MASK_ROWS, "by semi-join", hazards=("I1", "E1"))
    if item.copy.match and not mask:
        steps.add(
            ICEBERG_DELETE_ROWS,
            "logical delete by semi-join; the bytes stay in older snapshots",
            hazards=("I1", "E1"),
            verification="no row of the person is left in the current snapshot",
            irreversible=False,
        )
    if item.state is not None:
        steps.add(
            ICEBERG_REWRITE_FILES,
            "delete files only mark rows: write the data files again without them",
            hazards=("I2", "I5"),
            verification="no delete file is referenced by the current snapshot",
            irreversible=False,
        )


def rewrite_manifests(steps: StepWriter) -> None:
    """Nothing of the deleted rows' files stays in the manifests of the current snapshot."""
    steps.add(
        ICEBERG_REWRITE_MANIFESTS,
        "live manifests keep DELETED entries with the person's bounds",
        hazards=("I4", "I4b"),
        verification="no manifest of the current snapshot has a DELETED entry",
        irreversible=False,
    )


def ref_steps(item: CopyDraft, kind: str, name: str) -> tuple[Draft, ...]:
    """A branch or tag is rewritten without the person; its other rows stay."""
    steps = StepWriter.of_table(item.copy, "iceberg")
    mask = item.copy.mask
    masked: dict[str, Any] = {"columns": list(mask.columns)} if mask else {}
    steps.add(
        ICEBERG_REWRITE_REF,
        f"the {kind} pins a snapshot that holds the person",
        hazards=("I3",),
        verification=f"in the person's rows in the {kind} only columns that stay have a value; its other rows are"
        if mask
        else f"no row of the person is left in the {kind}; its other rows are",
        ref=name,
        kind=kind,
        **masked,
    )
    return tuple(steps.drafts)


def ref_lapse_steps(item: CopyDraft, lapse: datetime, patience: timedelta) -> tuple[Draft, ...]:
    """A tag that its table's own maintenance removes in time: a dated wait. patience: how long after the date."""
    facts, state = item.copy.facts, item.state
    at = next((r.at for r in state.refs if r.name == facts["ref"]), "") if state else ""
    steps = StepWriter.of_table(item.copy, "iceberg")
    steps.add(
        ICEBERG_AWAIT_REF,
        "the tag's own age ends, and a declared job expires what is too old",
        hazards=("I3",),
        verification=f"there is no {facts['ref_kind']} of this name any more",
        irreversible=False,
        not_before=lapse,
        ref=facts["ref"],
        kind=facts["ref_kind"],
        at=at,
        until=iso(lapse),
        give_up=iso(lapse + patience),
    )
    return tuple(steps.drafts)
