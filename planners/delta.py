"""Delta: the sequence that leaves no file with the person. https://docs.delta.io/latest/delta-utility.html"""

from __future__ import annotations

from pii_tracer.plan import Action
from planners.drafts import CopyDraft, Draft, StepWriter


def table_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Delete (or rebuild), purge deletion vectors, vacuum, cut the log below a complete checkpoint."""
    copy, state = item.copy, item.state
    clone = state is not None and state.clone_of is not None
    steps = StepWriter.of_table(copy, "delta")
    if item.rebuild_sql:
        steps.add(
            Action.DELTA_REBUILD,
            "no key to delete by: write the table again from its erased source",
            hazards=("D1",),
            verification="the schema is unchanged and the rows equal the recorded query's",
            irreversible=False,
            sql=item.rebuild_sql,
        )
    else:
        steps.add(
            Action.DELTA_DELETE_ROWS,
            "logical delete by MERGE against a key view; a literal would stay in the commit log"
            + ("; the clone takes all its files into its own folder" if clone else ""),
            hazards=("D1", "D5", "E1", *(("D8",) if clone else ())),
            verification="no row of the person is left in the current version",
            irreversible=False,
            materialise=clone,
        )
    steps.add(
        Action.DELTA_PURGE,
        "a deletion vector leaves the row in its Parquet file and in the file's bounds",
        hazards=("D2", "D6"),
        verification="no live file has a deletion vector",
        irreversible=False,
    )
    steps.add(
        Action.DELTA_VACUUM,
        "older versions"
        + (" and the change data feed" if state and state.change_data_feed else "")
        + " keep the files",
        hazards=("D1", "D3", "D10", *(("D7",) if state and state.change_data_feed else ())),
        verification="no file in the folder that the current version does not reference",
        retained=True,
        retain_hours=0,
    )
    steps.add(
        Action.DELTA_CLEAN_LOG,
        "log entries and checksums hold per-file minima and maxima",
        hazards=("D4",),
        verification="no log entry below the newest complete checkpoint",
        retained=True,
    )
    return tuple(steps.drafts)
