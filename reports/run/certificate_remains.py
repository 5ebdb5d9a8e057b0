"""What the certificate tells the person of everything that limits it: without names, ids and places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pii_tracer.common.plurals import counted
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.proof.attestation import COMPUTED_AGAIN, LEFT_OUT_CELLS

_NOT_THERE = (
    GapKind.MISSING_ROOT,
    GapKind.MISSING_TABLE,
    GapKind.MISSING_TOPIC,
    GapKind.UNGUARDED_COMMITS,
    GapKind.LINEAGE,
    GapKind.HOLD_UNMATCHED,
)
"""Kinds of gaps that are no value of a person which was seen, and no place that is there and was not searched."""

_REMAINS = {
    "sealed": ("encrypted copy stays", "encrypted copies stay", "that nobody can read: what opened it was destroyed"),
    "may_stay": ("place", "places", ""),
    "unverified": ("place could", "places could", "not be read. A responsible person accepted this"),
    "waived": ("doubt was", "doubts were", "not cleared up by the search. A responsible person accepted this"),
    "computed_again": ("place was", "places were", "computed again by its owner, and not proved by a search"),
    "left_out_cells": (
        "column was",
        "columns were",
        "searched, and cells that equal a number of the request stay. A responsible person said they are not of it",
    ),
    "confirmed": ("place was", "places were", "not searched. A responsible person confirmed what was done there"),
}
"""By what is told: one, several, and what the person is told of it."""


@dataclass(frozen=True)
class Qualification:
    """What limits the statement. since: an upper bound of when a sealed copy became unreadable; None for the others.

    who: the person that answers for it, and until: to which day (RFC 3339), where these are told. kind: as the
    attestation calls it.
    """

    kind: str
    what: str
    why: str
    since: datetime | None = None
    who: str | None = None
    until: str | None = None

    @property
    def told(self) -> str:
        """What the person is told of it: a key of `_REMAINS`. Attestations of before call waived gaps `confirmed`."""
        waived = self.kind == "waived" or (
            self.kind == "confirmed" and (bool(self.until) or self.what.startswith("gap-"))
        )
        if waived:
            known = any(self.what.startswith(f"gap-{kind.value}-") for kind in _NOT_THERE)
            return "waived" if known else "may_stay"
        if self.kind == "confirmed" and self.why.startswith(LEFT_OUT_CELLS):
            return "left_out_cells"
        if self.kind == "confirmed" and self.why.startswith(COMPUTED_AGAIN):
            return "computed_again"
        return self.kind


def may_stay(qualified: Sequence[Qualification]) -> bool:
    """Whether data of the person may stay where the search saw some, or could not tell."""
    return any(item.told == "may_stay" for item in qualified)


def remains(qualified: Sequence[Qualification], whose: str) -> tuple[str, ...]:
    """What stays, or was not proved: a sentence each. whose: `you`, or what the persons are called."""
    found = []
    for told, (one, more, words) in _REMAINS.items():
        mine = [item for item in qualified if item.told == told]
        if not mine:
            continue
        until = _until(sorted({item.until[:10] for item in mine if item.until}))
        since = max((item.since for item in mine if item.since), default=None)
        by = f" by {since:%Y-%m-%d}" if since else ""
        number = counted(len(mine), one, more)
        if told == "may_stay":
            found.append(f"Data of {whose} may stay in {number}, which the company accepted{until}.")
        else:
            found.append(f"{number} {words}{until}{by}.")
    return tuple(found)


def _until(days: Sequence[str]) -> str:
    """Each end may be another: the first is told, too."""
    if not days:
        return ""
    if len(days) == 1:
        return f", until {days[0]} at the latest"
    return f": the first until {days[0]}, the last until {days[-1]}"
