"""Cells of other people's longer keys, known again in the bytes of the file that they were decoded from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

WINDOW = 16 * 1024 * 1024
"""So many bytes are searched at once."""

_CUT = 64
"""parquet-mr cuts the bounds of column indexes to so many bytes (`parquet.columnindex.truncate.length`), or to up to
three less, where a character of several bytes would be cut."""


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
        if size > _CUT and any(_cut(view, start, end, length, texts) for length in range(_CUT - 3, _CUT + 1)):
            return True
    return False


def _cut(view: memoryview, start: int, end: int, length: int, texts: Iterable[bytes]) -> bool:
    """Whether a cell stands there, cut to a length as parquet-mr cuts it, and the match is in what is left of it.

    The last byte of a maximum is raised, so that a match which ends with that byte is not the cell's.
    """
    if end > start + length or not _counted(view, start, length):
        return False
    piece = bytes(view[start : start + length])
    ends = (piece[-1], piece[-1] - 1) if end < start + length else (piece[-1],)
    same = (text for text in texts if text.startswith(piece[:-1]) and text[length - 1] in ends)
    return any(_length_cut(text) == length for text in same)


def _length_cut(text: bytes) -> int:
    """Of what parquet-mr leaves of a longer text: whole characters."""
    length = _CUT
    while text[length] & 0b1100_0000 == 0b1000_0000 and length > _CUT - 3:
        length -= 1
    return length


def _counted(view: memoryview, start: int, size: int) -> bool:
    """A text has its length in front: as a varint (Thrift, Protocol Buffers) or in four bytes (Parquet PLAIN)."""
    varint, rest = b"", size
    while rest > 127:
        varint, rest = varint + bytes([rest & 127 | 128]), rest >> 7
    varint += bytes([rest])
    lengths = (varint, size.to_bytes(4, "little"))
    return any(start >= len(n) and bytes(view[start - len(n) : start]) == n for n in lengths)
