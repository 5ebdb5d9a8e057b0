"""Data files that tables of several folders read, so that no step takes away what another one still needs."""

from __future__ import annotations

from planners.formats.registry import planner_of
from planners.step_drafts import CopyDraft


def sharers(item: CopyDraft) -> list[dict[str, str | None]]:
    """The tables that share files with a copy, as parameters of the steps that must spare them (I7).

    A bare folder is none of them: it has its own files, and the tables that read these name them.
    """
    sharing = item.state.sharing if item.state else ()
    return [{"table": o.table, "location": o.location} for o in sharing if planner_of(o.format).shares_files]
