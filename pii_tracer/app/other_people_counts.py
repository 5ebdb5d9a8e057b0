"""Of which copies everybody else is counted before anything is touched."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.app.vault_verification import in_vault
from pii_tracer.lake.stores.lakefs.repository_state import in_lakefs
from pii_tracer.model.datasets import CopyKind, Strategy
from pii_tracer.model.locations import in_place
from pii_tracer.model.plan import Copy

OBJECTS = frozenset({CopyKind.ARCHIVE, CopyKind.OBJECT_VERSION, CopyKind.REPLICA})
"""Kinds of copies that are objects in a bucket, and have no rows that Spark reads."""


def counting_of(copy: Copy) -> str | None:
    """How it is told that a copy's other people are counted; None where it has none, or none that are read."""
    if copy.kind is CopyKind.TOPIC:
        return f"reading everybody else's records in {copy.facts['topic']}"
    if in_lakefs(copy.location):
        kept = copy.strategy in (Strategy.BLOCKED, Strategy.EXEMPT)
        return None if kept else f"counting everybody else's rows on the branches of {copy.facts['repository']}"
    if in_place(copy.location) and not copy.stored_table:
        kept = copy.strategy in (Strategy.BLOCKED, Strategy.EXEMPT)
        return None if kept or copy.match is None else f"counting everybody else's rows in {copy.location}"
    if is_rewritten(copy):
        return f"counting everybody else's rows in {copy.location}"
    if copy.kind not in OBJECTS and copy.kind is not CopyKind.TABLE_HISTORY and copy.places:
        return f"counting everybody else's rows in {copy.table or Path(copy.location).name}"
    return None


def is_rewritten(copy: Copy) -> bool:
    """Whether steps write objects of S3 anew, in an archive or a bare folder."""
    return copy.kind is CopyKind.ARCHIVE and copy.strategy is Strategy.RESTORE_REWRITE_ARCHIVE and not in_vault(copy)


def counted_by_spark(copy: Copy) -> bool:
    """Whether the rows of a copy that is counted are read by Spark."""
    by_files = in_place(copy.location) and not copy.stored_table
    return not (copy.kind is CopyKind.TOPIC or copy.kind in OBJECTS or in_lakefs(copy.location) or by_files)
