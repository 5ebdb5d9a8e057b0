"""Bare folders: there is no delete or update, so the files that hold the person are written again."""

from __future__ import annotations

from typing import Any

from pii_tracer.lake.formats.plain_files.table_state import SUMMARY
from pii_tracer.lake.inventory import ENCODING
from pii_tracer.lake.streaming_checkpoints import SINK_LOG
from pii_tracer.model.actions import Action
from pii_tracer.model.hive_text.layout import TEXT_TABLE
from pii_tracer.model.plan import Copy
from planners.formats.sharing_tables import sharers
from planners.locate.sql.shared_rows import mask_mentions
from planners.step_drafts import CopyDraft, Draft, StepWriter

_TEXT = "F8"
_BESIDE = {SINK_LOG: "F6", SUMMARY: "F7", TEXT_TABLE: _TEXT}
"""Properties of a folder that are hazards of their own."""

_SUMMARY_GOES = (
    "; the step removes the summary file _metadata, which repeats minima and maxima; readers then use the footers of "
    "the files"
)


def hazards_of_text(copy: Copy) -> tuple[str, ...]:
    """The hazards of files of a table of text, wherever they lie."""
    return (_TEXT,) if TEXT_TABLE in copy.facts else ()


def folder_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Rewrite the files that hold the person, or more of it than a hold keeps; or the folder from its erased source."""
    copy, state = item.copy, item.state
    steps = StepWriter.of_table(copy, "files")
    codec = state.codec if state else None
    shared: dict[str, Any] = {"sharing": read_by} if (read_by := sharers(item)) else {}
    encoding = state.properties.get(ENCODING) if state else None
    encoded: dict[str, Any] = {"encoding": encoding} if encoding else {}
    if state and TEXT_TABLE in state.properties:
        encoded[TEXT_TABLE] = state.properties[TEXT_TABLE]
    if item.rebuild_sql:
        steps.add(
            Action.FILES_REBUILD,
            "no key to delete by: rewrite the folder from its erased source",
            hazards=("F1", "F2b", "F3", "F3b"),
            verification="the rows equal the result of the recorded query",
            sql=item.rebuild_sql,
            format=copy.format.value,
            codec=codec,
            partition_columns=list(state.partition_columns) if state else [],
        )
        return tuple(steps.drafts)
    beside = state.properties if state else {}
    summary = _SUMMARY_GOES if SUMMARY in beside else ""
    rewrite: dict[str, Any] = {
        "hazards": ("F1", "F2b", "F3", "F3b", *(hazard for name, hazard in _BESIDE.items() if name in beside)),
        "format": copy.format.value,
        "codec": codec,
        **encoded,
        **shared,
    }
    if copy.mask:
        steps.add(
            Action.FILES_MASK_ROWS,
            f"a hold keeps {', '.join(copy.mask.kept)} of the rows: only files in which these rows have more values "
            "are rewritten, with NULL in the rest. Each new file replaces the old one in one step" + summary,
            verification="in every file, the person's rows have values only in the kept columns",
            columns=list(copy.mask.columns),
            **rewrite,
        )
    if copy.mentions:
        how = "in files that are rewritten; each new file replaces the old one in one step" + summary
        mask_mentions(steps, copy, Action.FILES_MASK_ROWS, how, irreversible=True, **rewrite)
    if copy.match and not copy.mask:
        steps.add(
            Action.FILES_REWRITE,
            "plain files have no DELETE: only files that contain the person are rewritten; each new file replaces "
            "the old one in one step" + summary,
            verification="no file contains a row of the person",
            **rewrite,
        )
    return tuple(steps.drafts)
