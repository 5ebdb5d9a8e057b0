"""Rows that name several persons: payer and payee, sender and recipient, a user and who referred her.

The estate file says of each key column whose the row is. Where it is the person's, the row goes. Where it is somebody
else's, too, the row stays, and the column becomes NULL in it. Where nobody said it, nothing is done and a gap asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pii_tracer.lake.inventory import GENERATED, TableState
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import Match, MatchTerm, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.plan import (
    Copy,
    Gap,
    Mask,
    Mention,
)
from planners.formats.registry import planner_of
from planners.gaps.copy_gap import gap_of
from planners.holds.column_holds import fixed_columns
from planners.locate.key_location import Carriage, field_name
from planners.locate.sql.column_types import leaf_type
from planners.locate.subject_survey import Survey
from planners.step_drafts import NO_ROWS, CopyDraft, StepWriter

_SAY = "`row: delete` where the row is the person's, `row: keep` where it is somebody else's, too"


def refused(state: TableState, carriage: Carriage) -> str | None:
    """Why nothing is done in a table whose rows can name several persons, with what its owner does; None otherwise."""
    if not carriage.mentions:
        return None
    unsaid = [field_name(m.column, m.trace.access) for m in carriage.mentions if not m.said]
    if unsaid:
        return (
            f"a row can name several persons, and the estate file does not say whose it is when {', '.join(unsaid)}"
            f" names the person. Say it there, at the table of the subject: {_SAY}"
        )
    return _cannot(state, carriage)


def _cannot(state: TableState, carriage: Carriage) -> str | None:
    inside = [field_name(m.column, m.trace.access) for m in carriage.mentions if m.trace.access]
    if inside:
        return f"{inside[0]} is a field of a struct, and only a whole column becomes NULL in rows that stay"
    where = "a bare folder in S3" if state.in_objects else planner_of(state.format).no_clearing(state)
    if where is not None:
        kept = ", ".join(m.column for m in carriage.mentions)
        return (
            f"columns of rows that stay cannot be cleared in {where} yet: {kept}."
            " There, only `row: delete` works for each key column"
        )
    fixed = fixed_columns(state)
    named = [name for m in carriage.mentions for name in (m.column, *m.clears)]
    stuck = [f"{name} is {fixed[name.lower()]}" for name in named if name.lower() in fixed]
    if stuck:
        return f"{'; '.join(stuck)}: it cannot become NULL in the rows that stay"
    if GENERATED in fixed.values():
        return "the table makes columns from others, and would make them again in rows that stay"
    return None


def mentions_of(found: Survey, state: TableState, carriage: Carriage) -> tuple[Mention, ...]:
    """What becomes NULL in which rows, by column."""
    if not carriage.mentions:
        return ()
    spelled = {column.name.lower(): column for column in state.columns}
    made = []
    for told in carriage.mentions:
        keys = found.derived[told.trace.origin, told.trace.expression].keys
        kind = spelled[told.column.lower()].type if told.column.lower() in spelled else "string"
        term = MatchTerm(column=told.column, key_set=keys.name, type=leaf_type(kind, ()))
        gone = {name.lower() for name in (told.column, *told.clears)}
        columns = tuple(c.name for c in state.columns if c.name.lower() in gone)
        stays = tuple(c.name for c in state.columns if c.name.lower() not in gone)
        made.append(Mention(match=Match(terms=(term,)), mask=Mask(columns=columns, held=(), found_by=stays)))
    return tuple(made)


def mask_mentions(steps: StepWriter, copy: Copy, action: Action, how: str, **more: Any) -> None:
    """A step for each column that names the persons in rows that stay. They come before rows go: in a folder a file
    that still has the person in rows of her own is not held against them. how: by what means."""
    for number, mention in enumerate(copy.mentions):
        columns = ", ".join(mention.mask.columns)
        told: dict[str, Any] = {"hazards": ("E1",), "irreversible": False} | more
        steps.add(
            action,
            f"the rows are somebody else's, too, and stay: {columns} become NULL where they name the person, {how}",
            verification=f"no row names the person in {mention.match.terms[0].label()}, and none is lost",
            mention=number,
            columns=list(mention.mask.columns),
            **told,
        )


def several_persons(item: CopyDraft, why: str) -> Gap:
    """What stands against treating such a table."""
    return gap_of(item, GapKind.SEVERAL_PERSONS, why, item.carriage.reason if item.carriage else item.copy.reason)


def spare_stored(items: Sequence[CopyDraft]) -> tuple[tuple[CopyDraft, ...], list[Gap]]:
    """Archives, vaults, topics and repositories of such a table: no step clears a column of their rows. What goes with
    everybody in it, or lapses by itself, is another matter.
    """
    spared, gaps = [], []
    for item in items:
        if _stored(item) and item.carriage is not None and item.carriage.mentions:
            why = (
                "rows of this dataset can name several persons, as in the table"
                " that they are of, and one person cannot be"
                " removed from them here. Say why whole objects go (`delete_whole`) where that is meant, or let the"
                " owner write them again, then plan again (a waiver does not free it)"
            )
            gaps.append(several_persons(item, why))
            blocked = item.copy.model_copy(update={"strategy": Strategy.BLOCKED, **NO_ROWS})
            item = replace(item, copy=blocked)
        spared.append(item)
    return tuple(spared), gaps


def _stored(item: CopyDraft) -> bool:
    whole = item.objects is not None and item.objects.delete_whole is not None
    in_hdfs = item.hdfs if item.hdfs and item.hdfs.by_files else None
    stored = item.stored if item.stored and item.stored.by_objects else None
    kept = (item.objects, item.vault, item.topic, item.lakefs, in_hdfs, stored)
    going = whole or item.copy.strategy in (Strategy.DELETE_ARCHIVES, Strategy.LET_LAPSE)
    return not going and any(part is not None for part in kept)
