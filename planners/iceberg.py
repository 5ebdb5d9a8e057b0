"""Iceberg: the sequence that leaves no file with the person. https://iceberg.apache.org/docs/latest/spark-procedures/"""

from __future__ import annotations

from pii_tracer.plan import Action
from planners.drafts import CopyDraft, Draft, StepWriter


def table_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Delete (or rebuild), rewrite what merge-on-read left, clear manifests, expire, remove orphans."""
    copy, state = item.copy, item.state
    steps = StepWriter.of_table(copy, "iceberg")
    if item.rebuild_sql:
        steps.add(
            Action.ICEBERG_REBUILD,
            "no key to delete by: write the table again from its erased source",
            hazards=("I1",),
            verification="the schema is unchanged and the rows equal the recorded query's",
            irreversible=False,
            sql=item.rebuild_sql,
        )
    else:
        steps.add(
            Action.ICEBERG_DELETE_ROWS,
            "logical delete by semi-join; the bytes stay in older snapshots",
            hazards=("I1", "E1"),
            verification="no row of the person is left in the current snapshot",
            irreversible=False,
        )
        if state is not None:
            steps.add(
                Action.ICEBERG_REWRITE_FILES,
                "delete files only mark rows: write the data files again without them",
                hazards=("I2", "I5"),
                verification="no delete file is referenced by the current snapshot",
                irreversible=False,
            )
    steps.add(
        Action.ICEBERG_REWRITE_MANIFESTS,
        "live manifests keep DELETED entries with the person's bounds",
        hazards=("I4", "I4b"),
        verification="no manifest of the current snapshot has a DELETED entry",
        irreversible=False,
    )
    steps.add(
        Action.ICEBERG_EXPIRE_SNAPSHOTS,
        "older snapshots still reference the person's files",
        hazards=("I1", "I3", "I4"),
        verification="only the current snapshot and the heads of references are left",
        retained=True,
        older_than=None,
        retain_last=1,
    )
    steps.add(
        Action.ICEBERG_REMOVE_ORPHANS,
        "old metadata files and files nothing references are left to this sweep",
        hazards=("I6",),
        verification="every file in the folder is referenced by the table",
    )
    return tuple(steps.drafts)


def ref_steps(item: CopyDraft, kind: str, name: str) -> tuple[Draft, ...]:
    """A branch or tag is rewritten without the person; its other rows stay."""
    steps = StepWriter.of_table(item.copy, "iceberg")
    steps.add(
        Action.ICEBERG_REWRITE_REF,
        f"the {kind} pins a snapshot that holds the person",
        hazards=("I3",),
        verification=f"no row of the person is left in the {kind}; its other rows are",
        ref=name,
        kind=kind,
    )
    return tuple(steps.drafts)
