"""Keys in columns whose type keeps them otherwise than they are: nobody looks for what is stored there.

Engines cast on writing, and no recorded expression tells it
(https://spark.apache.org/docs/3.5.6/sql-ref-ansi-compliance.html#store-assignment).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pii_tracer.common.plurals import counted
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import PLAIN, Strategy
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.keys_as_text import has_several_columns, split
from pii_tracer.model.number_keys import without_fraction
from pii_tracer.model.plan import Gap
from planners.copies.derived_keys import everybodys
from planners.copies.scan_evidence import Evidence, Padded
from planners.formats.registry import planner_of
from planners.locate.identifier_traces import Trace
from planners.locate.key_location import Carriage
from planners.locate.sql.column_types import fits, is_number, leaf_type, stored_alike
from planners.locate.subject_survey import Survey, title
from planners.step_drafts import CopyDraft, slug, whole_list

_BLANKS = "blanks after the value, as columns of type CHAR add them"
_WRITTEN = "blanks around a value, or accents in a different Unicode form"


def misfits(found: Survey, state: TableState, carriage: Carriage) -> list[Gap]:
    """A gap for each column of keys in which some of the persons' values are stored as others."""
    if carriage.mixed or planner_of(state.format).holds_texts(state):  # rows that nobody deletes; texts
        return []
    types = _types(state)
    gaps = {}
    for name, trace, values in _compared(found, carriage):
        kind = leaf_type(types.get(name.lower(), "string"), trace.access)
        # where a value is a number with a fraction of zeros, the number itself is compared as well
        number = sum(not fits(without_fraction(value), kind) for value in values)
        if number:
            gap = Gap(
                id=f"gap-misfit-{slug(title(state))}-{slug(name)}-{slug(trace.origin)}",
                dataset=state.dataset,
                kind=GapKind.VALUE_NOT_CERTAIN,
                reason=(
                    f"{name} is a {kind}, in which {number} of the persons' values of {trace.origin} are stored as "
                    "different values: these rows look like rows of other people, and would remain"
                ),
                evidence="let the job keep the key in the type of its source, or waive this gap",
            )
            gaps[gap.id] = gap
    return [*gaps.values(), *_of_others(found, state, carriage, types)]


def _types(state: TableState) -> dict[str, str]:
    """By column, in lower case. Of folders with bare files, that of a partition is made of the values that are there
    now: it says nothing of those that were, or come."""
    made = {name.lower() for name in state.partition_columns} if state.format in PLAIN else frozenset[str]()
    return {
        name: "bigint" if name in made and kind == "int" else kind
        for name, kind in ((c.name.lower(), c.type) for c in state.columns)
    }


def _of_others(found: Survey, state: TableState, carriage: Carriage, types: Mapping[str, str]) -> Iterator[Gap]:
    """A gap for each place of keys in which other people's keys are stored as the persons' numbers."""
    for name, trace in carriage.found_in:
        columns = ((name, trace), *trace.beside)
        kinds = [leaf_type(types.get(column.lower(), "string"), one.access) for column, one in columns]
        numbers = [column for (column, _), kind in zip(columns, kinds, strict=True) if is_number(kind)]
        if not numbers:
            continue
        mine = {value for _, value in found.derived[trace.origin, trace.expression].keys.values}
        alike = stored_alike(mine, everybodys(found.keys, trace.origin, trace.expression), kinds)
        if alike:
            reason = (
                f"{', '.join(numbers)}: keys are stored as numbers here, equal to the numbers of "
                f"{counted(len(alike), 'value')} of other people in {trace.origin} (as `007` and `7`). Rows of these "
                "people would be erased"
            )
            yield Gap(
                id=f"gap-misfit-others-{slug(title(state))}-{slug(name)}-{slug(trace.origin)}",
                dataset=state.dataset,
                kind=GapKind.VALUE_NOT_CERTAIN,
                reason=reason,
                evidence=(
                    "let the job keep the key in the type of its source. If both values belong to the same person, "
                    "waive this gap"
                ),
                seen=whole_list(reason, sorted(alike)),
            )


def _compared(found: Survey, carriage: Carriage) -> Iterator[tuple[str, Trace, Sequence[str]]]:
    """The columns that are compared, each with the persons' values there."""
    for name, trace in carriage.found_in:
        values = [value for _, value in found.derived[trace.origin, trace.expression].keys.values]
        if not trace.beside:
            yield name, trace, values
            continue
        for number, (column, one) in enumerate(((name, trace), *trace.beside)):
            yield column, one, [split(value)[number] for value in values]


def with_blanks(found: Survey, state: TableState, seen: Evidence | None) -> TableState:
    """The table, with what its rows tell of columns of CHAR: the persons' keys stand there with blanks behind them.

    Spark's ORC files are such: blanks are added, and the schema says STRING.
    """
    told = {p.column for p in _padded(found, seen) if p.alone}
    return state.model_copy(update={"padded": tuple(sorted(told.union(state.padded)))}) if told else state


def blanks(found: Survey, state: TableState, item: CopyDraft, seen: Evidence | None) -> list[Gap]:
    """A gap for each column of keys in which some rows have one with blanks behind it: no match finds these."""
    if item.copy.strategy is Strategy.BLOCKED:
        return []
    return [
        Gap(
            id=f"gap-blanks-{slug(title(state))}-{slug(p.column)}-{slug(p.key_set)}",
            dataset=state.dataset,
            kind=GapKind.VALUE_NOT_CERTAIN,
            reason=(
                f"in {counted(p.rows, 'row')} of the persons {p.column} has "
                f"{_WRITTEN if has_several_columns(p.key_set) else _BLANKS}: no step compares such values, so the "
                "rows would remain"
            ),
            evidence="ask the owner to write the key as the source has it, then plan again; or waive this gap",
        )
        for p in sorted(_padded(found, seen), key=lambda p: (p.column, p.key_set))
    ]


def _padded(found: Survey, seen: Evidence | None) -> list[Padded]:
    return [p for p in (seen.padded if seen else ()) if p.key_set in found.key_sets]
