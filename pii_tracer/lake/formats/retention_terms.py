"""What a table's own settings keep of old data, in the terms in which every format tells it."""

from __future__ import annotations

from dataclasses import dataclass

from pii_tracer.lake.inventory import RefKind

DAY_MS = 86_400_000
MAIN = "main"
"""The branch that is the table itself, where a format has branches."""


@dataclass(frozen=True)
class RefRetention:
    """What one branch or tag keeps; ages in milliseconds, None where it has no setting of its own."""

    name: str
    kind: RefKind
    snapshot: int
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None


@dataclass(frozen=True)
class Kept:
    """One setting. value: as it stands in the table, None where the engine's default counts.

    days: how long it keeps old data, None for ever. stored: False where nothing in the table says how long.
    ref: the branch or tag it belongs to. history: it decides how far back main can be read.
    """

    setting: str
    value: str | None
    days: float | None
    note: str = ""
    stored: bool = True
    ref: str | None = None
    history: bool = False
