"""What becomes of a row that stays: columns become NULL, and lists and maps lose the elements of the persons."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from executors.formats.plain_files.arrow_match import BY_HAND, Keys, RowsError, elements_of, person_mask, resolve
from pii_tracer.common.plurals import counted
from pii_tracer.model.datasets import Match, MatchTerm
from pii_tracer.model.plan import Mask

_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


def places(names: Sequence[str], mask: Mask) -> list[int]:
    """Positions of the columns that become NULL, in any case as Spark takes them.

    Raises:
        RowsError: there are columns of which the plan says neither that they stay nor that they go. Their names are
            not told: in a file without a header they are a row of somebody.
    """
    gone, kept = ({name.lower() for name in part} for part in (mask.columns, mask.kept))
    unknown = [name for name in names if name.lower() not in gone | kept]
    if unknown:
        raise RowsError(
            f"the plan does not say whether to keep or clear {counted(len(unknown), 'column')} of this file",
            todo="plan again",
        )
    return [position for position, name in enumerate(names) if name.lower() in gone]


def lasting(match: Match, mask: Mask) -> Match:
    """The terms that still find a row when the rest of it is NULL."""
    kept = {name.lower() for name in mask.kept}
    return Match(terms=tuple(term for term in match.terms if term.column.lower() in kept))


def refuse_required(schema: pa.Schema, positions: Sequence[int]) -> None:
    """Raise `RowsError` where one of the columns cannot hold NULL."""
    names = [schema.field(position).name for position in positions if not schema.field(position).nullable]
    if names:
        raise RowsError(
            f"{', '.join(names)} cannot become NULL in this file: the column is required", todo="plan again"
        )


def holding_more(table: pa.Table, mine: pa.Array) -> int:
    """Number of the persons' rows in which any column of a table has a value. mine: one boolean a row."""
    rest = pa.chunked_array([pa.array([False] * len(mine))])  # of no columns a table does not know its rows
    for column in table.columns:
        rest = pc.or_(rest, pc.is_valid(column))
    return int(pc.sum(pc.and_(rest, mine)).as_py() or 0)


def blanked(table: pa.Table, mine: pa.Array, mask: Mask) -> pa.Table:
    """The table with NULL in the columns that go, in the persons' rows only. mine: one boolean a row.

    Raises:
        RowsError: as `places`, or a column cannot hold NULL.
    """
    if not mine.true_count:
        return table
    positions = places(table.column_names, mask)
    refuse_required(table.schema, positions)
    for position in positions:
        column = table.column(position)
        starts = accumulate((len(chunk) for chunk in column.chunks), initial=0)
        chunks = [_without(chunk, mine.slice(at, len(chunk))) for at, chunk in zip(starts, column.chunks, strict=False)]
        table = table.set_column(position, table.schema.field(position), pa.chunked_array(chunks, column.type))
    return table


def rows_of(table: pa.Table, terms: tuple[MatchTerm, ...], keys: Keys, mask: Mask | None) -> pa.Array:
    """As `person_mask`, of rows that go, or stay by a mask.

    Raises:
        RowsError: as `person_mask`, or rows would go that belong to everybody in a list of theirs.
    """
    if mask is None and in_lists(terms):
        raise RowsError(
            "rows with a list or map of persons belong to all these persons, so the step does not remove them",
            todo="plan again",
        )
    return person_mask(table, terms, keys)


def spared(table: pa.Table, mine: pa.Array, mask: Mask, terms: Sequence[MatchTerm], keys: Keys) -> pa.Table:
    """The table with the persons' rows as they stay: `blanked`, and without the persons' elements of lists and maps.

    Raises:
        RowsError: as `blanked`, and `elements_of`.
    """
    table = blanked(table, mine, mask)
    for term in terms if mine.true_count else ():
        position = resolve(table.column_names, term.column)
        if term.within is not None and position is not None:
            left = _without_elements(table.column(position).combine_chunks(), term, keys)
            table = table.set_column(position, table.schema.field(position), left)
    return table


def in_lists(terms: Sequence[MatchTerm]) -> bool:
    """Whether rows are found by elements of lists or maps: then each row that is found loses some."""
    return any(term.within is not None for term in terms)


def _without_elements(column: pa.Array, term: MatchTerm, keys: Keys) -> pa.Array:
    """The lists or maps without the elements that name the persons, in their order. NULL and an empty list stay."""
    there = elements_of(column, term, keys)
    if pa.types.is_null(column.type):
        return column
    stays = pc.invert(there.theirs)
    counts = np.bincount(there.rows.filter(stays).to_numpy(zero_copy_only=False), minlength=len(column))
    width = np.int64 if pa.types.is_large_list(column.type) else np.int32
    offsets = pa.py_buffer(np.concatenate(([0], np.cumsum(counts))).astype(width).tobytes())
    known = pa.array(pc.is_valid(column).to_pylist(), pa.bool_()).buffers()[1] if column.null_count else None
    left: pa.Array = pa.Array.from_buffers(
        column.type, len(column), [known, offsets], column.null_count, 0, [there.values.filter(stays)]
    )
    left.validate(full=True)
    return left


def _without(values: pa.Array, mine: pa.Array) -> pa.Array:
    """Taken by position, so that a value of whatever type is copied as it is, and NULL stands where a position is."""
    if not mine.true_count:
        return values
    if pa.types.is_struct(values.type):
        # a field that the struct requires must have something in it, even where the struct is NULL and hides it
        fields = list(values.type)
        members = [_hidden(values.field(number), field, mine) for number, field in enumerate(fields)]
        return pa.StructArray.from_arrays(members, fields=fields, mask=pc.or_(values.is_null(), mine))
    return values.take(pc.if_else(mine, pa.scalar(None, pa.int64()), _every(values)))


def _hidden(values: pa.Array, field: pa.Field, mine: pa.Array) -> pa.Array:
    if field.nullable:
        return _without(values, mine)
    behind = pa.scalar(len(values), pa.int64())
    return pa.concat_arrays([values, _nothing(field)]).take(pc.if_else(mine, behind, _every(values)))


def _nothing(field: pa.Field) -> pa.Array:
    """One value that says nothing: NULL where it may be, else zero or an empty text or list.

    Raises:
        RowsError: nothing of the kind is known for this type.
    """
    kind = field.type
    if field.nullable:
        return pa.nulls(1, kind)
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([_nothing(inner) for inner in kind], fields=list(kind))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return pa.array([[]], kind)
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or any(fits(kind) for fits in _TEXTS):
        return pa.Array.from_buffers(kind, 1, [None, *pa.nulls(1, kind).buffers()[1:]])
    raise RowsError(f"`{field.name}` ({kind}) is required, so its column cannot become NULL", todo=BY_HAND)


def _every(values: pa.Array) -> pa.Array:
    return pa.array(range(len(values)), pa.int64())
