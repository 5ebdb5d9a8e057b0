"""Commit conflicts: another writer was first, so the statement runs again on the new snapshot, within a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from pii_tracer.errors import RunError

T = TypeVar("T")

ATTEMPTS = 5
CONFLICTS = (
    "ConcurrentAppend",
    "ConcurrentDelete",
    "ConcurrentModification",
    "ConcurrentTransaction",
    "ConcurrentWrite",
    "MetadataChanged",
    "CommitFailedException",
    "ValidationException",
    "HoodieWriteConflict",
    "DELTA_CONCURRENT",
)


def on_conflict(act: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """Run an act; after a commit conflict run it again, at most `ATTEMPTS` times in all.

    Raises:
        RunError: still in conflict after the last attempt.
        Exception: whatever else the act raises.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return act()
        except Exception as error:
            text = f"{type(error).__name__} {error}"
            if not any(name in text for name in CONFLICTS):
                raise
            if attempt < ATTEMPTS:
                sleep(0.5 * 2**attempt)
    raise RunError(
        f"another writer commits all the time: {ATTEMPTS} attempts ended in a conflict",
        todo="stop the writers of this table, then `pii-tracer resume`",
    )
