"""Entries of Parquet dictionaries that no row uses, and that hold a person (hazard F3b).

Arrow filters a dictionary column by dropping numbers of entries, not entries, and its Parquet writer writes them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from executors.formats.plain_files.arrow_match import BY_HAND, Nobodys, RowsError
from pii_tracer.lake.spark_types import with_leaves
from pii_tracer.model.number_keys import without_fraction

Holds = Callable[[str], bool]
"""Whether a text has a value of the persons in it."""


def holds_nothing(text: str) -> bool:
    """Of nobody who is looked for beside the values that rows are found by."""
    return False


def stale_entries(
    opened: Callable[..., pq.ParquetFile],
    paths: Mapping[int, Sequence[str]],
    strong: frozenset[str],
    holds: Holds,
    nobodys: Nobodys,
) -> Iterator[int]:
    """Row groups of which a dictionary has a value among its entries (strong), or in one that no row uses (holds).

    paths: columns with dictionaries by row group. An entry that a row uses is a row's value: writing the file again
    would not take it away. nobodys: by path, entries that are not the person's.
    """
    every = sorted({path for found in paths.values() for path in found})
    values = {left: pa.array(sorted(strong - left), pa.large_string()) for left in {nobodys[path] for path in every}}
    with opened(read_dictionary=every) as encoded:
        for group, columns in paths.items():
            read = ((nobodys[path], array) for path, array in _read(encoded, group, columns))
            if any(_holds(array, values[left], holds, left) for left, array in read):
                yield group


def _read(file: pq.ParquetFile, group: int, paths: Sequence[str]) -> Iterator[tuple[str, pa.DictionaryArray]]:
    """The dictionaries of some columns, each with the column's path."""
    for path in paths:
        for column in file.read_row_group(group, columns=[path]).columns:
            for chunk in column.chunks:
                yield from ((path, array) for array in _dictionaries(chunk))


def _holds(array: pa.DictionaryArray, values: pa.Array, holds: Holds, left: frozenset[str]) -> bool:
    unused = (text for text in _unused(array) if without_fraction(text.strip()) not in left)
    return _equals(array.dictionary, values) or any(map(holds, unused))


def fresh_dictionaries(table: pa.Table) -> pa.Table:
    """Arrow keeps filtered-out values in a column's dictionary, and Parquet would write them: encode anew, also inside
    of lists, maps and structs.

    Raises:
        RowsError: Arrow cannot encode a type again.
    """
    for index, name in enumerate(table.column_names):
        column, kind = table.column(index), table.schema.types[index]
        if "dictionary<" not in str(kind):
            continue
        plain = decoded(column)
        try:
            encoded = (pc.dictionary_encode(plain) if pa.types.is_dictionary(kind) else plain).cast(kind)
        except pa.ArrowException:
            raise RowsError(f"the column `{name}` has a nested dictionary type", todo=BY_HAND) from None
        table = table.set_column(index, table.schema.field(name), encoded)
    return table


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with values in place of numbers of a dictionary, wherever in it."""
    if pa.types.is_dictionary(column.type):
        return pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    return column.cast(with_leaves(column.type, _without_dictionary)) if "dictionary<" in str(column.type) else column


def _without_dictionary(leaf: pa.DataType) -> pa.DataType:
    return leaf.value_type if pa.types.is_dictionary(leaf) else leaf


def unused_entries(opened: Callable[..., pq.ParquetFile], paths: Sequence[str], groups: Sequence[int]) -> set[int]:
    """Row groups of which a dictionary of texts has an entry that no row uses. paths: columns of texts."""
    found = set()
    with opened(read_dictionary=list(paths)) as encoded:
        for group in groups if paths else ():
            tables = encoded.read_row_group(group, columns=list(paths)).columns
            arrays = (array for column in tables for chunk in column.chunks for array in _dictionaries(chunk))
            if any(len(_without_row(array)) for array in arrays):
                found.add(group)
    return found


def _dictionaries(array: pa.Array) -> Iterator[pa.DictionaryArray]:
    if pa.types.is_dictionary(array.type):
        yield array
    elif pa.types.is_struct(array.type):
        for child in array.flatten():
            yield from _dictionaries(child)
    elif pa.types.is_map(array.type):
        yield from _dictionaries(array.keys)
        yield from _dictionaries(array.items)
    elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        yield from _dictionaries(array.flatten())


def _is_text(entries: pa.Array) -> bool:
    return bool(pa.types.is_string(entries.type) or pa.types.is_large_string(entries.type))


def _equals(entries: pa.Array, values: pa.Array) -> bool:
    return _is_text(entries) and bool(pc.any(pc.is_in(entries.cast(pa.large_string()), value_set=values)).as_py())


def _unused(array: pa.DictionaryArray) -> Iterator[str]:
    if _is_text(array.dictionary):
        yield from (text for text in _without_row(array).to_pylist() if text)


def _without_row(array: pa.DictionaryArray) -> pa.Array:
    """Entries that no row uses."""
    entries = array.dictionary
    used = pc.is_in(pa.array(range(len(entries)), array.indices.type), value_set=array.indices)
    return entries.filter(pc.invert(used))
