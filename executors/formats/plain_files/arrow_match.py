"""Which rows of an Arrow table are the person's: the same meaning as `model.MatchTerm` has in Spark.

The leaf is cast to text as Spark casts it and compared with the key set; a row matches when any term does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pii_tracer.model.datasets import (
    ElementAccess,
    FieldAccess,
    JsonAccess,
    KeyPart,
    KeySet,
    Match,
    MatchTerm,
)
from pii_tracer.model.errors import RunError
from pii_tracer.model.keys_as_text import joined, joined_arrays
from pii_tracer.model.number_keys import is_short_number, plain_texts, spelled

Keys = Mapping[str, frozenset[str]]

Nobodys = Mapping[str, frozenset[str]]
"""By label of a column, in lower case, what is not the persons' where it is a whole cell of the column:
numbers of another system (`pii_tracer.model.non_key_columns`), and other people's keys (`KeySet.others`)."""
NOTHING: Nobodys = MappingProxyType({})


BY_HAND = "erase the person's rows in the object by hand; the tool did not change it"


class RowsError(RunError):
    """Rows of an object could not be compared or rewritten without doubt; the object is left as it is."""


class KeySource(Protocol):
    """Gives key sets by name (a `sealed.KeyRing`)."""

    def key_set(self, name: str) -> KeySet: ...


def keys_of(source: KeySource, match: Match) -> tuple[Keys, frozenset[str]]:
    """The values a match compares with, by key set, and those that stand for the person wherever they are found."""
    sets = {term.key_set: source.key_set(term.key_set) for term in match.terms}
    keys = {name: spelled(found) for name, found in sets.items()}
    whole = ((found.weak, value) for found in sets.values() if not found.columns for _, value in found.values)
    strong = frozenset(value for weak, value in whole if not (weak and is_short_number(value.strip())))
    return keys, strong


def resolve(names: list[str], wanted: str) -> int | None:
    """Position of a column: exact, else by case-insensitive name as Spark does, None where it is missing.

    Raises:
        RowsError: the name fits several columns.
    """
    fits = [i for i, name in enumerate(names) if name == wanted]
    fits = fits or [i for i, name in enumerate(names) if name.lower() == wanted.lower()]
    if len(fits) > 1:
        raise RowsError(f"the object has the column `{wanted}` twice", todo=BY_HAND)
    return fits[0] if fits else None


def present_terms(names: list[str], match: Match) -> tuple[tuple[MatchTerm, ...], tuple[str, ...]]:
    """Terms whose columns all exist here, and labels of those of which none does.

    Raises:
        RowsError: as `missing_terms`.
    """
    known = {name for name in match.columns if resolve(names, name) is not None}
    missing = missing_terms(match, known)
    return tuple(term for term in match.terms if known.issuperset(term.columns)), missing


def missing_terms(match: Match, known: Collection[str]) -> tuple[str, ...]:
    """Labels of the terms of which no column is there. known: the columns of the match that are.

    Raises:
        RowsError: these are all terms, or a key of several columns is there in part: whose its rows are is unknown.
    """
    for term in match.terms:
        there, gone = (dict.fromkeys(c for c in term.columns if (c in known) is part) for part in (True, False))
        if there and gone:
            raise RowsError(
                f"it has {', '.join(there)} but not {', '.join(gone)} of the key, so nobody knows whose its rows are",
                todo=BY_HAND,
            )
    missing = tuple(term.label() for term in match.terms if not set(term.columns).issubset(known))
    if len(missing) == len(match.terms):
        raise RowsError("no column of the match exists in the object", todo=BY_HAND)
    return missing


def person_mask(table: pa.Table, terms: tuple[MatchTerm, ...], keys: Keys) -> pa.Array:
    """True where a row is the person's; one boolean a row, never null."""
    mask = pa.array([False] * table.num_rows, pa.bool_())
    for term in terms:
        if term.within is not None:
            there = elements_of(_column(table, term), term, keys)
            rows = pa.array(range(table.num_rows), pa.int64())
            mask = pc.or_(mask, pc.is_in(rows, value_set=there.rows.filter(there.theirs).unique()))
            continue
        leaf = joined_arrays([_leaf(_column(table, part), part) for part in term.parts])
        found = pc.is_in(leaf, value_set=_value_set(keys[term.key_set]))
        mask = pc.or_(mask, pc.fill_null(found, False))
    return mask


@lru_cache(maxsize=4)
def _value_set(values: frozenset[str]) -> pa.Array:
    """Keys as Arrow compares with them: the same ones for each piece of a file."""
    return pa.array(sorted(values), pa.large_string())


@dataclass(frozen=True)
class Elements:
    """The elements of a column's lists, or the entries of its maps as structs, end to end. rows: of which row each is,
    by number. theirs: which of them name the persons."""

    values: pa.Array
    rows: pa.Array
    theirs: pa.Array


def elements_of(column: pa.Array, term: MatchTerm, keys: Keys) -> Elements:
    """What stands in the lists or maps of a column.

    Raises:
        RowsError: it has neither, or a value that cannot be compared.
    """
    kind, inside = column.type, term.access[1:]
    if pa.types.is_null(kind):  # a file in which nobody has a list
        return Elements(column.slice(0, 0), pa.array([], pa.int64()), pa.array([], pa.bool_()))
    if pa.types.is_map(kind) and term.access[0] == ElementAccess(name="key"):  # Arrow has no kernels for these
        fields = [pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)]
        column, inside = column.cast(pa.list_(pa.struct(fields))), (FieldAccess(name="key"), *inside)
    elif not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or term.access[0] != ElementAccess(
        name="element"
    ):
        raise RowsError(f"`{term.label()}` is not in a list or map of a column: {kind}", todo=BY_HAND)
    values = pc.list_flatten(column)
    # list_parent_indices would also count values that stand behind a list that is NULL
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    rows = pa.array(np.repeat(np.arange(len(column), dtype=np.int64), lengths))
    texts = _leaf(values, term.model_copy(update={"access": inside}))
    found = pc.is_in(texts, value_set=_value_set(keys[term.key_set]))
    return Elements(values, rows, pc.fill_null(found, False))


def _column(table: pa.Table, part: KeyPart) -> pa.Array:
    position = resolve(table.column_names, part.column)
    if position is None:
        raise RowsError(f"the column `{part.column}` is missing", todo="make the plan again")
    return table.column(position).combine_chunks()


def texts_match(cells: Sequence[str | None], term: MatchTerm, keys: Keys) -> bool:
    """Whether cells that are text already (CSV) match, one for each column of the term's key.

    Raises:
        RowsError: the term asks for a field of a struct, which text does not have.
    """
    value = joined([_text_at(cell, part) for cell, part in zip(cells, term.parts, strict=True)])
    return value is not None and value in keys[term.key_set]


def _text_at(cell: str | None, part: KeyPart) -> str | None:
    value = cell
    for access in part.access:
        if not isinstance(access, JsonAccess):
            raise RowsError(f"`{part.label()}` is a field, but the object contains text", todo="make the plan again")
        value = json_member(value, access.path)
    return value


def json_member(text: str | None, path: tuple[str, ...]) -> str | None:
    """A member of a JSON text, as Spark's get_json_object gives it: scalars as text, null and missing as None."""
    if text is None:
        return None
    try:
        value: Any = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _leaf(array: pa.Array, term: KeyPart) -> pa.Array:
    for access in term.access:
        if pa.types.is_null(array.type):  # a file in which nobody has a value
            break
        if isinstance(access, FieldAccess):
            if not pa.types.is_struct(array.type):
                raise RowsError(f"`{term.label()}` is not a field of a struct in this file: {array.type}", todo=BY_HAND)
            position = resolve([array.type.field(i).name for i in range(array.type.num_fields)], access.name)
            if position is None:
                return pa.nulls(len(array), pa.large_string())
            array = pc.struct_field(array, [position])
        elif isinstance(access, ElementAccess):
            raise RowsError(f"`{term.label()}` is in a list, where the step compares no keys", todo=BY_HAND)
        else:
            texts = _as_text(array, term).to_pylist()
            array = pa.array([json_member(text, access.path) for text in texts], pa.large_string())
    return _as_text(array, term)


def _as_text(array: pa.Array, term: KeyPart) -> pa.Array:
    """Cast to text as Spark does, whole numbers without a fraction; other types (timestamps) are refused."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return array.cast(pa.large_string())
    found = plain_texts(array)
    if found is not None:
        return found.cast(pa.large_string())
    if isinstance(array, pa.UuidArray):
        return pa.array([None if value is None else str(value) for value in array.to_pylist()], pa.large_string())
    if isinstance(array, pa.ExtensionArray):
        return _as_text(array.storage, term)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        texts = [None if raw is None else raw.decode("utf-8", "replace") for raw in array.to_pylist()]
        return pa.array(texts, pa.large_string())
    raise RowsError(f"`{term.label()}` has a type that the step cannot compare: {kind}", todo=BY_HAND)
