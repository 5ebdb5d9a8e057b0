"""Cells of other people's longer keys, known again in the bytes of the file that they were decoded from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

WINDOW = 16 * 1024 * 1024
"""So many bytes are searched at once."""

_CUT = 64
"""parquet-mr cuts the bounds of column indexes to so many bytes (`parquet.columnindex.truncate.length`)."""


def gaps(parts: Iterable[range], within: range) -> Iterator[range]:
    """What lies between some parts, which come in order, from the start to the end of what they are in."""
    start = within.start
    for part in (*parts, range(within.stop, within.stop)):
        if start < part.start:
            yield range(start, part.start)
        start = max(start, part.stop)


def between(gone: Sequence[range], size: int) -> Iterator[tuple[int, int]]:
    """What lies between some parts, in windows."""
    for gap in gaps(gone, range(size)):
        for position in range(gap.start, gap.stop, WINDOW):
            yield position, min(gap.stop, position + WINDOW)


def explained(
    view: memoryview, at: int, end: int, cells: dict[tuple[int, int], set[bytes]], read: Sequence[range]
) -> bool:
    """Whether the bytes around are those of a cell that was decoded and holds somebody else's longer key."""
    inside = any(at in part for part in read)
    for (offset, size), texts in cells.items():
        start = at - offset
        if start < 0:
            continue
        if bytes(view[start : start + size]) in texts and (inside or _counted(view, start, size)):
            return True
        if size > _CUT and end < start + _CUT - 1 and _counted(view, start, _CUT):
            # cut as parquet-mr cuts it in column indexes, the last character of a maximum raised
            piece = bytes(view[start : start + _CUT - 1])
            if any(text.startswith(piece) for text in texts):
                return True
    return False


def _counted(view: memoryview, start: int, size: int) -> bool:
    """A text has its length in front: as a varint (Thrift, Protocol Buffers) or in four bytes (Parquet PLAIN)."""
    varint, rest = b"", size
    while rest > 127:
        varint, rest = varint + bytes([rest & 127 | 128]), rest >> 7
    varint += bytes([rest])
    lengths = (varint, size.to_bytes(4, "little"))
    return any(start >= len(n) and bytes(view[start - len(n) : start]) == n for n in lengths)
