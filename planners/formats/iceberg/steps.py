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
from planners.formats.sharing_tables import sharers
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
            "no key to delete by: rewrite the table from its erased source",
            hazards=("I1",),
            verification="the schema is unchanged, and the rows equal the result of the recorded query",
            irreversible=False,
            sql=item.rebuild_sql,
        )
    else:
        delete_rows(steps, item)
    rewrite_manifests(steps)
    steps.add(
        ICEBERG_EXPIRE_SNAPSHOTS,
        "older snapshots still reference the person's files"
        + (
            "; the step expires these snapshots, but removes no file, because other tables may read some of the files"
            if shared
            else ""
        ),
        hazards=("I1", "I3", "I4", *(("I7",) if shared else ())),
        verification="the table has only the current snapshot and the heads of references",
        retained=True,
        older_than=None,
        retain_last=1,
        **shared,
    )
    steps.add(
        ICEBERG_REMOVE_ORPHANS,
        "this sweep removes old metadata files and unreferenced files",
        hazards=("I6", *(("I7",) if shared else ())),
        verification="every file in the folder is referenced by the table"
        + (" or by a table that shares files with it" if shared else ""),
        **shared,
    )
    return tuple(steps.drafts)


def history_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Write every snapshot again without the person, then remove the old files: branches and tags are taken along."""
    steps = StepWriter.of_table(item.copy, "iceberg")
    steps.add(
        ICEBERG_REWRITE_HISTORY,
        "the history must be kept (`keep_history`): every snapshot, branch and tag is rewritten without the person. "
        "Ids, times, parents and sequence numbers do not change. Paths, sizes, checksums, bounds and the counts in "
        "summaries change. Statistics files, summaries of single partitions and the log of metadata files are removed",
        hazards=("I1", "I3", "I4", "I4b"),
        verification="no data file of any snapshot contains the person, and no snapshot is missing",
        irreversible=False,
        snapshots=item.state.versions if item.state is not None else 0,
    )
    steps.add(
        ICEBERG_REMOVE_ORPHANS,
        "this sweep removes the old data files, manifests and metadata files, which are now unreferenced",
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
            verification="in the current snapshot, the person's rows have values only in the kept columns",
            irreversible=False,
            columns=list(mask.columns),
        )
    mask_mentions(steps, item.copy, ICEBERG_MASK_ROWS, "by semi-join", hazards=("I1", "E1"))
    if item.copy.match and not mask:
        steps.add(
            ICEBERG_DELETE_ROWS,
            "logical delete by semi-join; older snapshots still contain the bytes",
            hazards=("I1", "E1"),
            verification="the current snapshot contains no row of the person",
            irreversible=False,
        )
    if item.state is not None:
        steps.add(
            ICEBERG_REWRITE_FILES,
            "delete files only mark rows as deleted: rewrite the data files without these rows",
            hazards=("I2", "I5"),
            verification="the current snapshot references no delete file",
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
        f"the {kind} retains a snapshot that contains the person",
        hazards=("I3",),
        verification=f"in the {kind}, the person's rows have values only in the kept columns; other rows are unchanged"
        if mask
        else f"the {kind} contains no row of the person, and all its other rows",
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
        "the tag reaches its maximum age, and a declared job then expires it",
        hazards=("I3",),
        verification=f"no {facts['ref_kind']} has this name any more",
        irreversible=False,
        not_before=lapse,
        ref=facts["ref"],
        kind=facts["ref_kind"],
        at=at,
        until=iso(lapse),
        give_up=iso(lapse + patience),
    )
    return tuple(steps.drafts)
