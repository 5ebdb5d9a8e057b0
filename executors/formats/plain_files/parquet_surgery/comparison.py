"""Whether row groups that were copied are the source's: every byte of their parts, and what the footer says of them."""

from __future__ import annotations

from collections.abc import Sequence

from executors.formats.plain_files.arrow_match import BY_HAND, RowsError
from executors.formats.plain_files.parquet_surgery.layout import (
    BLOOM,
    COLUMNS,
    DATA_PAGE,
    DICTIONARY_PAGE,
    GROUP_OFFSET,
    GROUPS,
    LOCATION,
    LOCATIONS,
    ORDINAL,
    ROWS,
    Chunk,
    Layout,
    locations,
)
from executors.formats.plain_files.parquet_surgery.unsuited import Unsuited
from pii_tracer.common.thrift import Fields

_AT_ONCE = 1 << 20
_PLACES = (DATA_PAGE, DICTIONARY_PAGE, BLOOM)


def compare_copied(source: Layout, new: memoryview, copied: Sequence[int], made: Sequence[int]) -> None:
    """Read the new file's footer, and compare the row groups that were copied.

    copied, made: numbers of the source's row groups that are copied, and of those that were written again.

    Raises:
        RowsError: something differs.
    """
    try:
        written = Layout.of(new)
        same = _footer(source.footer) == _footer(written.footer) and _groups(source, written, copied, made)
    except (Unsuited, KeyError):
        same = False
    if not same:
        raise RowsError("the rewritten file does not have the row groups that were copied", todo=BY_HAND)


def _groups(source: Layout, written: Layout, copied: Sequence[int], made: Sequence[int]) -> bool:
    order = sorted([*copied, *made])
    if len(order) != len(written.groups):
        return False
    if written.footer[ROWS][1] != sum(group.rows for group in written.groups):
        return False
    there = set(copied)
    for number, group in zip(order, written.groups, strict=True):
        if number not in there:
            continue
        old = source.groups[number]
        if _rest(old.fields, (COLUMNS, GROUP_OFFSET, ORDINAL)) != _rest(group.fields, (COLUMNS, GROUP_OFFSET, ORDINAL)):
            return False
        if not all(_same(source, one, written, other) for one, other in zip(old.chunks, group.chunks, strict=True)):
            return False
    return True


def _same(source: Layout, old: Chunk, written: Layout, new: Chunk) -> bool:
    """The same pages, column index and bloom filter; an offset index that names the same pages."""
    if _rest(old.meta, _PLACES) != _rest(new.meta, _PLACES) or _relative(old) != _relative(new):
        return False
    pairs = ((old.data, new.data), (old.column_index, new.column_index), (old.bloom, new.bloom))
    if not all(_equal(source.data, one, written.data, other) for one, other in pairs):
        return False
    return _located(source, old) == _located(written, new)


def _located(layout: Layout, chunk: Chunk) -> Fields | None:
    """The offset index, counted from the first byte of the chunk."""
    fields = locations(layout.data, chunk, layout.pages(chunk))
    if fields is None:
        return None
    kind, (inner, items) = fields[LOCATIONS]
    counted = [item | {LOCATION: (0, item[LOCATION][1] - chunk.data.start)} for item in items]
    return fields | {LOCATIONS: (kind, (inner, counted))}


def _relative(chunk: Chunk) -> list[int]:
    places = (chunk.meta[n][1] for n in (DATA_PAGE, DICTIONARY_PAGE) if n in chunk.meta)
    return [place and place - chunk.data.start for place in places]


def _equal(old: memoryview, one: range | None, new: memoryview, other: range | None) -> bool:
    if one is None or other is None:
        return one is other
    if len(one) != len(other):
        return False
    starts = range(0, len(one), _AT_ONCE)
    return all(_piece(old, one, start) == _piece(new, other, start) for start in starts)


def _piece(data: memoryview, extent: range, start: int) -> bytes:
    return bytes(data[extent.start + start : min(extent.stop, extent.start + start + _AT_ONCE)])


def _footer(fields: Fields) -> Fields:
    return _rest(fields, (ROWS, GROUPS))


def _rest(fields: Fields, left_out: Sequence[int]) -> Fields:
    return {number: value for number, value in fields.items() if number not in left_out}
