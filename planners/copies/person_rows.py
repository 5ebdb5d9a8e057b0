"""A person's rows among rows that were read without Spark: how many, and which."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any
from unicodedata import normalize
from weakref import WeakKeyDictionary

from pii_tracer.model.datasets import (
    Access,
    ElementAccess,
    FieldAccess,
    JsonAccess,
    KeyPart,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.keys_as_text import joined, joined_arrays, split
from pii_tracer.model.number_keys import plain, plain_texts, spelled
from planners.copies.scan_evidence import Padded

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 65_536
_TIMES = 4
"""Rows that are compared at once, for each text that is wanted: Arrow makes a table of these texts at each call."""
_TEXTS: WeakKeyDictionary[KeySet, pa.Array] = WeakKeyDictionary()
"""The texts of key sets that somebody in this process uses: those of many persons take long to make."""


def _count(rows: Iterable[Mapping[str, Any]], match: Match, wanted: Mapping[MatchTerm, Collection[str]]) -> int:
    return sum(any(text in wanted[term] for term in match.terms for text in leaves(row, term)) for row in rows)


def count_of_table(table: pa.Table, match: Match, key_sets: Mapping[str, KeySet]) -> int:
    """Number of rows in which any term matches: values are compared as text, one by one, only where Arrow cannot."""
    wanted, texts = {term: _wanted(term, key_sets) for term in match.terms}, dict[MatchTerm, Collection[str]]()
    count = 0
    for batch in rows_together(table, match, key_sets):
        looked = _looked(batch, match, wanted)
        if looked is None:
            texts = texts or {term: spelled(key_sets[term.key_set]) for term in match.terms}
            count += _count(batch.to_pylist(), match, texts)
        else:
            count += _any(batch, [hits for _, hits in looked.values()]).true_count
    return count


def rows_together(table: pa.Table, match: Match, key_sets: Mapping[str, KeySet]) -> Iterator[pa.RecordBatch]:
    """A table's rows in batches that do not follow its chunks: the more texts are wanted, the larger they are.

    Rows of which only Spark can tell stay in their chunks, so that they hide nothing in others.
    """
    import pyarrow as pa

    size = max([_ROWS, *(_TIMES * len(_wanted(term, key_sets)) for term in match.terms)])
    for first in range(0, table.num_rows, size):
        part = table.slice(first, size)
        try:
            joined = part.combine_chunks().to_batches()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # dictionaries that cannot be one
            joined = []
        compared = bool(joined) and all(_is_compared(batch, term) for batch in joined for term in match.terms)
        yield from joined if compared else part.to_batches(max_chunksize=_ROWS)


def _is_compared(batch: pa.RecordBatch, term: MatchTerm) -> bool:
    """Whether Arrow compares what a term looks at."""
    import pyarrow as pa

    if term.within is not None:
        return _elements(batch, term) is not None
    columns = [_named(batch.schema, part.column) for part in term.parts if not part.access]
    kinds = [batch.schema.types[column] for column in columns if column is not None]
    if len(kinds) == len(term.parts) and all(pa.types.is_string(kind) or pa.types.is_integer(kind) for kind in kinds):
        return True
    return texts_at(batch, term) is not None


def theirs(batch: pa.RecordBatch, match: Match, key_sets: Mapping[str, KeySet]) -> pa.BooleanArray | None:
    """Which rows of a batch any term matches, as Spark compares them; None where only Spark can tell.

    That is so where a key is neither text nor a number or date: Spark casts others to text of its own.
    Columns and fields are found in any case, as Spark finds them.
    """
    looked = _looked(batch, match, {term: _wanted(term, key_sets) for term in match.terms})
    return _any(batch, [hits for _, hits in looked.values()]) if looked is not None else None


def padded(table: pa.Table, match: Match, key_sets: Mapping[str, KeySet]) -> frozenset[Padded]:
    """What no term finds and would be found without the blanks behind it, which CHAR(n) adds.

    No search finds keys of several columns: of these also what would be found without blanks on either side, and with
    accents composed in the same way.
    """
    import pyarrow.compute as pc

    rows: Counter[MatchTerm] = Counter()
    plain: Counter[MatchTerm] = Counter()
    behind: Counter[MatchTerm] = Counter()
    wanted = {term: _wanted(term, key_sets) for term in match.terms}
    for batch in rows_together(table, match, key_sets):
        looked = _looked(batch, match, wanted) or {}
        mine = _any(batch, [hits for _, hits in looked.values()])
        for term, (cells, hits) in looked.items():
            plain[term] += hits.true_count
            near = _near(batch, term, cells, wanted[term])
            behind[term] += pc.and_(near, pc.invert(mine)).true_count
            near = pc.or_(near, _otherwise(batch, term, key_sets[term.key_set])) if term.beside else near
            rows[term] += pc.and_(near, pc.invert(mine)).true_count
    return frozenset(
        Padded(t.key_set, column, number, alone=bool(behind[t]) and not plain[t])
        for t, number in rows.items()
        for column in (t.columns if number else ())
    )


def with_blanks(batch: pa.RecordBatch, match: Match, key_sets: Mapping[str, KeySet]) -> pa.BooleanArray:
    """Which rows of a batch any term matches, whatever blanks are behind what it looks at (`padded`)."""
    wanted = {term: _wanted(term, key_sets) for term in match.terms}
    looked = _looked(batch, match, wanted) or {}
    return _any(batch, [_near(batch, term, cells, wanted[term]) for term, (cells, _) in looked.items()])


def _near(batch: pa.RecordBatch, term: MatchTerm, cells: pa.Array, wanted: pa.Array) -> pa.BooleanArray:
    """Which of a term's texts are wanted without the blanks behind each."""
    import pyarrow.compute as pc

    return pc.is_in(_trimmed(batch, term, cells), value_set=wanted)


def _trimmed(batch: pa.RecordBatch, term: MatchTerm, cells: pa.Array) -> pa.Array:
    """The texts that a term looks at without the blanks behind each."""
    import pyarrow.compute as pc

    parts = [part for part in (_part_texts(batch, part) for part in term.parts) if part is not None]
    return joined_arrays([pc.utf8_rtrim(part, " ") for part in parts]) if term.beside else pc.utf8_rtrim(cells, " ")


def _otherwise(batch: pa.RecordBatch, term: MatchTerm, key_set: KeySet) -> pa.BooleanArray:
    """Which of the texts of a key of several columns are wanted, but for blanks beside each part, and how accents are
    composed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = [part for part in (_part_texts(batch, part) for part in term.parts) if part is not None]
    plain = [pc.utf8_normalize(pc.utf8_trim_whitespace(part.cast(pa.string())), form="NFC") for part in parts]
    wanted = {joined([normalize("NFC", part.strip()) for part in split(text)]) for text in spelled(key_set)}
    return pc.is_in(
        joined_arrays(plain).cast(pa.string()), value_set=pa.array(sorted(filter(None, wanted)), pa.string())
    )


def looked_at(batch: pa.RecordBatch, match: Match) -> dict[MatchTerm, pa.Array] | None:
    """By term of one column the texts that it looks at; None where only Spark can tell."""
    found = {term: texts_at(batch, term) for term in match.terms if not term.beside}
    known = {term: texts for term, texts in found.items() if texts is not None}
    return known if len(known) == len(found) else None


def _looked(
    batch: pa.RecordBatch, match: Match, wanted: Mapping[MatchTerm, pa.Array]
) -> dict[MatchTerm, tuple[pa.Array, pa.BooleanArray]] | None:
    """By term the texts that it looks at, and which of them are wanted; None where only Spark can tell. A term that
    looks into a list has no one text in a row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = {}
    for term in match.terms:
        if term.within is not None:
            elements = _elements(batch, term)
            if elements is None:
                return None
            rows = elements.rows.filter(pc.is_in(elements.texts, value_set=wanted[term])).unique()
            marks = pc.is_in(pa.array(range(batch.num_rows), pa.int64()), value_set=rows)
            found[term] = pa.nulls(batch.num_rows, pa.string()), marks
            continue
        cells = texts_at(batch, term)
        if cells is None:
            return None
        found[term] = cells, pc.is_in(cells, value_set=wanted[term])
    return found


def _any(batch: pa.RecordBatch, marks: Iterable[pa.BooleanArray]) -> pa.BooleanArray:
    """Rows that any of these mark."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return reduce(pc.or_, marks, pa.array([False] * batch.num_rows, pa.bool_()))


def _wanted(term: MatchTerm, key_sets: Mapping[str, KeySet]) -> pa.Array:
    import pyarrow as pa

    found = key_sets[term.key_set]
    texts = _TEXTS.get(found)
    if texts is None:
        texts = _TEXTS[found] = pa.array(sorted(spelled(found)), pa.string())
    return texts


def texts_at(batch: pa.RecordBatch, term: MatchTerm) -> pa.Array | None:
    """What a term looks at, as text; None where only Spark can tell."""
    parts = [_part_texts(batch, part) for part in term.parts]
    known = [part for part in parts if part is not None]
    return joined_arrays(known) if len(known) == len(parts) else None


def _part_texts(batch: pa.RecordBatch, term: KeyPart) -> pa.Array | None:
    column = _named(batch.schema, term.column)
    if column is None:
        return None
    return _texts_along(batch.column(column), term.access)


def _texts_along(values: pa.Array, way: tuple[Access, ...]) -> pa.Array | None:
    """What stands at the end of a way from some values, as text; None where only Spark can tell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for access in way:
        if pa.types.is_null(values.type):
            break
        if isinstance(access, ElementAccess):
            return None
        if isinstance(access, FieldAccess):
            field = _named(values.type, access.name) if pa.types.is_struct(values.type) else None
            if field is None:
                return None
            values = pc.struct_field(values, [field])
        else:
            members = [_member(text, access.path) for text in values.to_pylist()]
            values = pa.array([None if member is None else str(member) for member in members], pa.string())
    return plain_texts(values)


@dataclass(frozen=True)
class _Elements:
    """The elements of a column's lists, or the entries of its maps, end to end. rows: of which row each is, by number.
    texts: what a term looks at in each."""

    values: pa.Array
    rows: pa.Array
    texts: pa.Array


def _elements(batch: pa.RecordBatch, term: MatchTerm) -> _Elements | None:
    """What stands in the lists or maps of a column; None where only Spark can tell."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _named(batch.schema, term.column)
    if column is None or term.access[0] != term.within:
        return None
    lists = batch.column(column)
    if pa.types.is_null(lists.type):
        return _Elements(lists.slice(0, 0), pa.array([], pa.int64()), pa.array([], pa.string()))
    way = term.access[1:]
    if pa.types.is_map(lists.type):  # Arrow has no kernels for these
        kind = lists.type
        fields = [pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)]
        lists = lists.cast(pa.list_(pa.struct(fields)))
        way = (FieldAccess(name="key"), *way)
    elif not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        return None
    values = pc.list_flatten(lists)
    texts = _texts_along(values, way)
    # list_parent_indices also counts values that stand behind a list that is NULL
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    rows = pa.array(np.repeat(np.arange(len(lists), dtype=np.int64), lengths))
    return None if texts is None else _Elements(values, rows, texts)


def without_elements(batch: pa.RecordBatch, match: Match, key_sets: Mapping[str, KeySet]) -> pa.RecordBatch | None:
    """A batch without the elements in which a match finds the persons; None where only Spark can tell. Lists that were
    NULL are empty then.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    for term in match.terms:
        looked = _elements(batch, term) if term.within is not None else None
        if looked is None or term.within is None:
            return None
        if not len(looked.values):
            continue
        stays = pc.invert(pc.is_in(looked.texts, value_set=_wanted(term, key_sets)))
        left = looked.rows.filter(stays).to_numpy(zero_copy_only=False)
        ends = np.cumsum(np.bincount(left, minlength=batch.num_rows)) if batch.num_rows else np.array([], np.int64)
        offsets, values = pa.array([0, *ends.tolist()], pa.int32()), looked.values.filter(stays)
        lists: pa.Array = pa.ListArray.from_arrays(offsets, values)
        if term.within.name == "key":
            lists = pa.MapArray.from_arrays(offsets, *values.flatten())
        index = _named(batch.schema, term.column)
        assert index is not None, "it was searched"
        batch = batch.set_column(index, batch.schema.names[index], lists)
    return batch


def _named(fields: Any, name: str) -> int | None:
    """The index of the one field of this name in a schema or a struct's type."""
    found = [index for index, field in enumerate(fields) if field.name.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def leaves(row: Mapping[str, Any], term: MatchTerm) -> Iterator[str]:
    """The values that a term looks at, as text: of a list or a map each element's, else one or none."""
    if term.within is None:
        found = leaf(row, term)
        yield from () if found is None else (found,)
        return
    held = _cell(row, term.column)
    # of a map, rows have its entries as pairs
    elements = held if isinstance(held, Sequence) and not isinstance(held, str | bytes) else ()
    for element in elements:
        inner = element[0] if term.within.name == "key" else element
        text = _text_along(inner, term.access[1:])
        if text is not None:
            yield text


def leaf(row: Mapping[str, Any], term: MatchTerm) -> str | None:
    """The value a term looks at, as text; None where there is none. Whole numbers have no fraction."""
    return joined([_part_leaf(row, part) for part in term.parts])


def _part_leaf(row: Mapping[str, Any], term: KeyPart) -> str | None:
    return _text_along(_cell(row, term.column), term.access)


def _cell(row: Mapping[str, Any], column: str) -> Any:
    """A row's value, or a struct's; Spark finds columns and fields in any case."""
    if column in row:
        return row[column]
    named = [name for name in row if name.lower() == column.lower()]
    return row[named[0]] if len(named) == 1 else None


def _text_along(value: Any, way: tuple[Access, ...]) -> str | None:
    for access in way:
        if not isinstance(access, JsonAccess):
            value = _cell(value, access.name) if isinstance(value, Mapping) else None
        else:
            value = _member(value, access.path)
    return None if value is None else plain(value)


def _member(text: Any, path: tuple[str, ...]) -> Any:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
