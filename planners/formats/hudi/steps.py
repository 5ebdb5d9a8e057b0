"""Hudi: the sequence that leaves no file with the person. https://hudi.apache.org/docs/procedures"""

from __future__ import annotations

from pii_tracer.lake.formats.hudi.vocabulary import (
    HUDI_CLEAN,
    HUDI_COMPACT,
    HUDI_DELETE_ROWS,
    HUDI_DELETE_SAVEPOINTS,
    HUDI_MASK_ROWS,
    HUDI_REBUILD,
    HUDI_REBUILD_METADATA,
)
from pii_tracer.lake.inventory import RefKind
from pii_tracer.model.plan import Copy
from planners.locate.sql.shared_rows import mask_mentions
from planners.step_drafts import CopyDraft, Draft, StepWriter


def table_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Savepoints away, delete (or rebuild), compact log files, clean old slices, build the metadata table anew."""
    copy, state = item.copy, item.state
    steps = StepWriter.of_table(copy, "hudi")
    if state and any(ref.kind is RefKind.SAVEPOINT for ref in state.refs):
        steps.add(
            HUDI_DELETE_SAVEPOINTS,
            "a savepoint blocks the cleaner without an error",
            hazards=("H3",),
            verification="no savepoint is left",
        )
    if item.rebuild_sql:
        steps.add(
            HUDI_REBUILD,
            "no key to delete by: rewrite the table from its erased source",
            hazards=("H1",),
            verification="the schema is unchanged, and the rows equal the result of the recorded query",
            irreversible=False,
            sql=item.rebuild_sql,
        )
    elif copy.mask:
        steps.add(
            HUDI_MASK_ROWS,
            f"a hold keeps {', '.join(copy.mask.kept)} of the rows: the rest becomes NULL, by semi-join",
            hazards=("H1", "H6", "E1"),
            verification="in the newest slices, the person's rows have values only in the kept columns",
            irreversible=False,
            columns=list(copy.mask.columns),
        )
    else:
        _erase(steps, copy)
    if state and state.write_mode == "mor":
        steps.add(
            HUDI_COMPACT,
            "log blocks contain the rows, and the delete added their record keys",
            hazards=("H2",),
            verification="no file group has a log file in its newest slice",
            irreversible=False,
        )
    steps.add(
        HUDI_CLEAN,
        "older file slices and log files are kept for the last commits",
        hazards=("H1", "H2"),
        verification="one slice for each file group",
        retained=True,
    )
    steps.add(
        HUDI_REBUILD_METADATA,
        "the metadata table retains names and statistics of removed slices until it is rebuilt",
        hazards=("H4", "H5"),
        verification="the metadata table was built after the clean",
    )
    return tuple(steps.drafts)


def _erase(steps: StepWriter, copy: Copy) -> None:
    """The person leaves the newest slices: out of rows that stay, and with those that go."""
    hazards = ("H1", "H6", "E1")
    mask_mentions(steps, copy, HUDI_MASK_ROWS, "by semi-join", hazards=hazards)
    if copy.match:
        steps.add(
            HUDI_DELETE_ROWS,
            "logical delete by semi-join; older file slices still contain the rows",
            hazards=hazards,
            verification="the newest slices contain no row of the person",
            irreversible=False,
        )
