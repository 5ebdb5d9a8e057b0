"""Delta: the sequence that leaves no file with the person. https://docs.delta.io/latest/delta-utility.html"""

from __future__ import annotations

from pii_tracer.lake.formats.delta.vocabulary import (
    DELTA_CLEAN_LOG,
    DELTA_DELETE_ROWS,
    DELTA_MASK_ROWS,
    DELTA_PURGE,
    DELTA_REBUILD,
    DELTA_VACUUM,
)
from pii_tracer.model.plan import Copy
from planners.locate.sql.shared_rows import mask_mentions
from planners.step_drafts import CopyDraft, Draft, StepWriter


def table_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Delete (or rebuild), purge deletion vectors, vacuum, cut the log below a complete checkpoint."""
    copy, state = item.copy, item.state
    clone = state is not None and state.clone_of is not None
    keys = {name.lower() for name in copy.places.columns} if copy.places else set()
    named = state is not None and not keys.isdisjoint(name.lower() for name in state.partition_columns)
    clustered = state is not None and "delta.feature.clustering" in state.properties
    steps = StepWriter.of_table(copy, "delta")
    if item.rebuild_sql:
        steps.add(
            DELTA_REBUILD,
            "no key to delete by: rewrite the table from its erased source",
            hazards=("D1",),
            verification="the schema is unchanged, and the rows equal the result of the recorded query",
            irreversible=False,
            sql=item.rebuild_sql,
        )
    elif copy.mask:
        steps.add(
            DELTA_MASK_ROWS,
            f"a hold keeps {', '.join(copy.mask.kept)} of the rows: the rest becomes NULL, by MERGE against a key view"
            + ("; the clone takes all its files into its own folder" if clone else ""),
            hazards=("D1", "D5", "E1", *(("D8",) if clone else ())),
            verification="in the current version, the person's rows have values only in the kept columns",
            irreversible=False,
            materialise=clone,
            columns=list(copy.mask.columns),
        )
    else:
        _erase(steps, copy, clone=clone)
    steps.add(
        DELTA_PURGE,
        "a deletion vector leaves the row in its Parquet file and in the file's bounds"
        + ("; if REORG skips clustered files, the step runs it without clustering columns" if clustered else ""),
        hazards=("D2", "D6", *(("D17",) if clustered else ())),
        verification="no live file has a deletion vector",
        irreversible=False,
    )
    steps.add(
        DELTA_VACUUM,
        "older versions"
        + (" and the change data feed" if state and state.change_data_feed else "")
        + " keep the files",
        hazards=("D1", "D3", "D10", *(("D7",) if state and state.change_data_feed else ())),
        verification="the current version references every file in the folder",
        retained=True,
        retain_hours=0,
    )
    steps.add(
        DELTA_CLEAN_LOG,
        "log entries and checksums contain minima and maxima of each file"
        + (
            (
                "; checkpoints name removed partitions until the step sets the retention of tombstones to zero for a "
                "moment"
            )
            if named
            else ""
        ),
        hazards=("D4", *(("D16",) if named else ())),
        verification="no log entry below the newest complete checkpoint"
        + (", which names no partition of the person" if named else ""),
        retained=True,
    )
    return tuple(steps.drafts)


def _erase(steps: StepWriter, copy: Copy, *, clone: bool) -> None:
    """The person leaves the current version: out of rows that stay, and with those that go."""
    hazards = ("D1", "D5", "E1", *(("D8",) if clone else ()))
    mask_mentions(steps, copy, DELTA_MASK_ROWS, "by MERGE against a key view", hazards=hazards, materialise=clone)
    if copy.match:
        steps.add(
            DELTA_DELETE_ROWS,
            "logical delete by MERGE against a key view; a literal would stay in the commit log"
            + ("; the clone takes all its files into its own folder" if clone else ""),
            hazards=hazards,
            verification="the current version contains no row of the person",
            irreversible=False,
            materialise=clone,
        )
