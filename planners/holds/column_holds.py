"""Holds on single columns: the persons' rows stay, what is held stays in them, and the rest becomes NULL.

Where that cannot be done the whole copy is kept, and a gap says why: nothing that is held is put at risk, and nobody
is told that the rest is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from pii_tracer.lake.inventory import GENERATED, TableState
from pii_tracer.model.column_paths import struct_fields
from pii_tracer.model.datasets import BY_ROWS, CopyKind, Strategy
from pii_tracer.model.legal_holds import Hold
from pii_tracer.model.plan import HeldColumn, Mask
from planners.formats.registry import planner_of
from planners.step_drafts import CopyDraft

Part = tuple[Hold, tuple[str, ...]]
"""A hold, and the columns of one copy that it keeps."""


def named_columns(hold: Hold, item: CopyDraft) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of a copy that a hold keeps, as the copy spells them, and what it names that is not there."""
    known = {c.name.lower(): c.name for c in item.state.columns} if item.state else {}
    wanted = [known.get(name.lower(), name) for name in hold.columns]
    missing = [f"column {name}{_field(name, known)}" for name in hold.columns if known and name.lower() not in known]
    kinds = {c.name.lower(): c.type for c in item.state.columns} if item.state else {}
    for category in hold.categories:
        found = [c.name for c in item.copy.columns if c.category.lower() == category.lower()]
        wanted += [known.get(name.lower(), name) for name in found]
        inside = [name for name in found if struct_fields(kinds.get(name.lower(), "")) is not None]
        missing += [] if found else [f"column of the category {category}"]
        # the struct as a whole would keep what nobody asked to keep
        missing += [f"separate column for the category {category}, which lies inside {name}" for name in inside]
    return tuple(dict.fromkeys(wanted)), tuple(missing)


def _field(name: str, known: Mapping[str, str]) -> str:
    struct = name.partition(".")[0]
    return f" (a hold cannot keep a single field: hold `{struct}`)" if "." in name and struct.lower() in known else ""


def mask_of(item: CopyDraft, parts: Sequence[Part]) -> Mask | str:
    """What becomes NULL in a copy of which only some columns are held; or why that cannot be done."""
    state, match = item.state, item.copy.match
    if (
        item.copy.strategy not in (*BY_ROWS, Strategy.REWRITE_REF)
        or item.copy.kind is CopyKind.KEY
        or state is None
        or match is None
    ):
        return "no step can change single rows of the person in this dataset"
    if item.copy.mentions:
        return "a row of this dataset can name several persons, and a hold cannot keep it for only one of them"
    if any(term.beside for term in match.terms):
        return "its rows are found by a key of several columns, and no step keeps single columns of such rows"
    if why := planner_of(state.format).no_mask(state):
        return why
    held = _held(parts, [c.name for c in state.columns])
    names = {column.name.lower() for column in held}
    found_by: tuple[str, ...] = ()
    if not any(term.column.lower() in names for term in match.terms):
        inside = sorted({term.label() for term in match.terms if term.access})
        if inside:
            return (
                f"no held column shows whose row it is, and {inside[0]} is part of a column that also contains other "
                "data"
            )
        keys = {term.column.lower() for term in match.terms}
        found_by = tuple(c.name for c in state.columns if c.name.lower() in keys)
    stays = names | {name.lower() for name in found_by}
    columns = tuple(c.name for c in state.columns if c.name.lower() not in stays)
    fixed = fixed_columns(state)
    made = [c.name for c in state.columns if c.name.lower() in stays and fixed.get(c.name.lower()) == GENERATED]
    if made and columns:
        return f"{', '.join(made)} is held, but computed from other columns, and would change when these become NULL"
    stuck = [f"{name} is {fixed[name.lower()]}" for name in columns if name.lower() in fixed]
    if stuck:
        return f"{'; '.join(stuck)}: it cannot become NULL; if it may be kept, add it to the hold"
    return Mask(columns=columns, held=held, found_by=found_by)


def _held(parts: Sequence[Part], order: Sequence[str]) -> tuple[HeldColumn, ...]:
    by_column: dict[str, list[Hold]] = {}
    for hold, names in parts:
        for name in names:
            by_column.setdefault(name, []).append(hold)
    return tuple(
        HeldColumn(name=name, holds=tuple(sorted(h.id for h in by_column[name])), until=last_end(by_column[name]))
        for name in order
        if name in by_column
    )


def last_end(holds: Sequence[Hold]) -> datetime | None:
    """When the last of some holds ends; None where one of them has no end."""
    ends = [h.ends for h in holds]
    return None if None in ends else max(e.astimezone(timezone.utc) for e in ends if e is not None)


def first_end(mask: Mask) -> datetime | None:
    """When the first held column is free; None where nobody knows of any."""
    return min((c.until for c in mask.held if c.until is not None), default=None)


def fixed_columns(state: TableState) -> Mapping[str, str]:
    """Columns (lower case) that cannot become NULL, and why."""
    fixed = {name.lower(): why for name, why in state.fixed.items()}
    fixed |= dict.fromkeys((name.lower() for name in state.partition_columns), "a partition column")
    return {**fixed, **planner_of(state.format).fixed_columns(state)}


def described(mask: Mask, cited: Sequence[str]) -> str:
    """What stays and what goes, for people. cited: the holds, as they are cited."""
    text = f"kept: {', '.join(c.name for c in mask.held)} ({'; '.join(cited)})"
    if mask.found_by:
        text += f"; {', '.join(mask.found_by)} is also kept, because no held column shows whose row it is"
    return f"{text}; in the person's rows {', '.join(mask.columns)} become NULL"
