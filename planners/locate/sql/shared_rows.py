"""Rows that name several persons: payer and payee, sender and recipient, a user and who referred her.

The estate file says of each key column whose the row is. Where it is the person's, the row goes. Where it is somebody
else's, too, the row stays, and the column becomes NULL in it; a list or a map of keys loses the person's elements.
Where nobody said it, nothing is done and a gap asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import GENERATED, NOT_NULL, TableState
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import ElementAccess, Match, MatchTerm, Strategy
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
from planners.locate.identifier_traces import Mentioned, what_is_done
from planners.locate.key_location import Carriage, field_name
from planners.locate.sql.column_types import leaf_type
from planners.locate.subject_survey import Survey
from planners.step_drafts import NO_ROWS, CopyDraft, StepWriter

_SAY = "`row: delete` if the row belongs to the person, `row: keep` if it also belongs to somebody else"


MANY_KEYS = 1_000
COMPARISONS = 10**9
"""Every row with a list is compared with every key, by steps and by the verifier: with more than so many keys, in more
than so many comparisons, a run would not end in time."""

UNKNOWN_ROWS = 1_000_000
"""What a table is taken to have where its metadata do not tell."""


def refused(found: Survey, state: TableState, carriage: Carriage) -> str | None:
    """Why nothing is done in a table whose rows can name several persons, with what its owner does; None otherwise."""
    if not carriage.mentions:
        return None
    unsaid = [field_name(m.column, m.trace.access) for m in carriage.mentions if not m.said]
    if unsaid:
        return (
            "a row can name several persons, but the estate file does not declare whose the row is when "
            f"{', '.join(unsaid)} names the person. Declare it at the table of the subject: {_SAY}"
        )
    return _cannot(state, carriage) or _too_many(found, state, carriage)


def _too_many(found: Survey, state: TableState, carriage: Carriage) -> str | None:
    """Why the elements of so many persons are not removed in one plan, with what to do; None where they are."""
    looked = [found.derived[m.trace.origin, m.trace.expression].keys for m in carriage.mentions if m.in_list]
    keys = max((len(one.values) for one in looked), default=0)
    rows = UNKNOWN_ROWS if state.rows is None else state.rows
    if keys <= MANY_KEYS or keys * rows <= COMPARISONS:
        return None
    return (
        f"{counted(keys, 'key')} would be compared with the lists or maps of {counted(rows, 'row')}: a run would take "
        "too long. Plan for fewer persons at a time: this table takes up to "
        f"{counted(max(MANY_KEYS, COMPARISONS // rows), 'key')}"
    )


def _cannot(state: TableState, carriage: Carriage) -> str | None:
    lists = [m for m in carriage.mentions if m.in_list]
    inside = [field_name(m.column, m.trace.access) for m in carriage.mentions if m.trace.access and m not in lists]
    if inside:
        return f"{inside[0]} is a field of a struct, but a step sets only whole columns to NULL in kept rows"
    planner = planner_of(state.format)
    if lists and (stuck := _no_elements(state, lists)):
        return stuck
    where = "a bare folder in S3" if state.in_objects else planner.no_clearing(state)
    if where is not None:
        kept = ", ".join(m.column for m in carriage.mentions)
        return f"no step clears columns of kept rows in {where}: {kept}. Declare `row: delete` for each key column"
    fixed = fixed_columns(state)
    named = [name for m in carriage.mentions for name in (*(() if m in lists else (m.column,)), *m.clears)]
    stays = [f"{name} is {fixed[name.lower()]}" for name in named if name.lower() in fixed]
    if stays:
        return f"{'; '.join(stays)}: it cannot become NULL in kept rows"
    if GENERATED in fixed.values():
        return "the table computes columns from other columns, and would compute them again in kept rows"
    return None


def _no_elements(state: TableState, lists: Sequence[Mentioned]) -> str | None:
    """Why no step removes elements of these lists and maps, with what the owner does; None where one does."""
    names = ", ".join(field_name(m.column, m.trace.access) for m in lists)
    where = "a bare folder in S3" if state.in_objects else planner_of(state.format).no_removing(state)
    if where is not None:
        return (
            f"no step removes elements of lists and maps in {where}: {names}. Let the job write one row for each "
            "element, or use a format whose steps remove elements "
            "(docs/where-is-the-key.md#lists-and-maps-of-persons). Or remove the elements by hand. Then plan again"
        )
    for m in lists:
        first, *rest = m.trace.access
        if not isinstance(first, ElementAccess) or any(isinstance(step, ElementAccess) for step in rest):
            return (
                f"{field_name(m.column, m.trace.access)} is in a nested list, and steps remove elements only from a "
                "list or map that is a whole column. Let the job write the list as a column, or remove the elements "
                "by hand; then plan again"
            )
    fixed = fixed_columns(state)
    stays = [m.column for m in lists if fixed.get(m.column.lower(), NOT_NULL) != NOT_NULL]
    if stays:
        return f"{stays[0]} is {fixed[stays[0].lower()]}: no step removes its elements in kept rows"
    cleared = {name.lower() for m in lists for name in m.clears}
    both = [m.column for m in lists if m.column.lower() in cleared]
    if both:
        return f"{both[0]} loses elements, but is also under `clears`: remove it from `clears`, then plan again"
    return None


def mentions_of(found: Survey, state: TableState, carriage: Carriage) -> tuple[Mention, ...]:
    """What becomes NULL in which rows, or loses elements, by column."""
    if not carriage.mentions:
        return ()
    spelled = {column.name.lower(): column for column in state.columns}
    made = []
    for told in carriage.mentions:
        keys = found.derived[told.trace.origin, told.trace.expression].keys
        kind = spelled[told.column.lower()].type if told.column.lower() in spelled else "string"
        way = told.trace.access
        term = MatchTerm(column=told.column, access=way, key_set=keys.name, type=leaf_type(kind, way))
        gone = {name.lower() for name in (*(() if told.in_list else (told.column,)), *told.clears)}
        columns = tuple(c.name for c in state.columns if c.name.lower() in gone)
        stays = tuple(c.name for c in state.columns if c.name.lower() not in gone)
        made.append(Mention(match=Match(terms=(term,)), mask=Mask(columns=columns, held=(), found_by=stays)))
    return tuple(made)


def mask_mentions(steps: StepWriter, copy: Copy, action: Action, how: str, **more: Any) -> None:
    """A step for each column that names the persons in rows that stay. They come before rows go: in a folder a file
    that still has the person in rows of her own is not held against them. how: by what means."""
    for number, mention in enumerate(copy.mentions):
        done = what_is_done(mention.match.lists, mention.mask.columns)
        told: dict[str, Any] = {"hazards": ("E1",), "irreversible": False} | more
        steps.add(
            action,
            f"the rows also belong to somebody else, and are kept: {done} if they name the person, {how}",
            verification=f"no row names the person in {mention.match.terms[0].label()}, and no row is lost",
            mention=number,
            columns=[*mention.match.lists, *mention.mask.columns],
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
                "rows of this dataset can name several persons, and no step removes one person from such rows in "
                "objects. If whole objects must be deleted, write the reason (`delete_whole`). Otherwise ask the "
                "owner to rewrite the objects. Then plan again (a waiver does not unblock it)"
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
