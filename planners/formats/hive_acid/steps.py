"""Transactional tables of Hive's: rows out, a major compaction, and the wait for Hive's cleaner."""

from __future__ import annotations

from typing import Any

from pii_tracer.lake.formats.hive_acid.rows import notes_in
from pii_tracer.lake.formats.hive_acid.vocabulary import (
    HIVE_ACID_CLEAN,
    HIVE_ACID_COMPACT,
    HIVE_ACID_DELETE_ROWS,
)
from planners.step_drafts import CopyDraft, Draft, StepWriter


def table_steps(item: CopyDraft) -> tuple[Draft, ...]:
    """Delete, compact, and wait until the old folders are gone."""
    steps = StepWriter.of_table(item.copy, "hive_acid")
    notes = notes_in(item.state) if item.state and item.state.properties else None
    hive: dict[str, Any] = {}
    if notes:
        hive = {"catalog": notes.catalog, "database": notes.database, "hive_table": notes.table}
    if item.copy.match:
        steps.add(
            HIVE_ACID_DELETE_ROWS,
            "Hive marks the rows as deleted; its bases and deltas still contain them",
            hazards=("H11", "E1"),
            verification="Hive finds no row of the person, and the keys are gone from the scratch folder",
            irreversible=False,
            **hive,
        )
    steps.add(
        HIVE_ACID_COMPACT,
        "a major compaction rewrites the partitions without deleted rows",
        hazards=("H11",),
        verification="each partition has a base that contains every folder from before",
        irreversible=False,
        **hive,
    )
    steps.add(
        HIVE_ACID_CLEAN,
        "Hive's cleaner removes the old folders when no reader uses them any more",
        hazards=("H12",),
        verification="no folder from before the compaction is left",
        retained=True,
        **hive,
    )
    return tuple(steps.drafts)
