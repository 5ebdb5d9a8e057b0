"""Entries of Parquet dictionaries that no row uses, and that hold a person (hazard F3b).

Arrow filters a dictionary column by dropping numbers of entries, not entries, and its Parquet writer writes them all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Holds = Callable[[str], bool]
"""Whether a text has a value of the persons in it."""


def holds_nothing(text: str) -> bool:
    """Of nobody who is looked for beside the values that rows are found by."""
    return False


def stale_entries(
    opened: Callable[..., pq.ParquetFile], paths: Sequence[str], strong: Collection[str], holds: Holds
) -> bool:
    """Whether a dictionary has a value among its entries (strong), or in one that no row uses (holds).

    An entry that a row uses is a row's value: writing the file again would not take it away.
    """
    values = pa.array(sorted(strong), pa.large_string())
    with opened(read_dictionary=list(paths)) as encoded:
        for index in range(encoded.num_row_groups if paths else 0):
            for column in encoded.read_row_group(index, columns=list(paths)).columns:
                for array in (found for chunk in column.chunks for found in _dictionaries(chunk)):
                    if _equals(array.dictionary, values) or any(map(holds, _unused(array))):
                        return True
    return False


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
    entries = array.dictionary
    if _is_text(entries) and len(entries):
        used = pc.is_in(pa.array(range(len(entries)), array.indices.type), value_set=array.indices)
        yield from (text for text in entries.filter(pc.invert(used)).to_pylist() if text)
