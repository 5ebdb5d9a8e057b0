"""A new Parquet file as a list of pieces: extents of the old file, extents of a scratch file, and new bytes.

Only extents that the footer names are copied: bytes between them may be anybody's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum

from executors.formats.plain_files.parquet_surgery.layout import (
    COLUMN_ORDERS,
    GROUPS,
    LOCATION,
    LOCATIONS,
    MAGIC,
    ORDINAL,
    ROWS,
    SCHEMA,
    Chunk,
    Group,
    Layout,
    locations,
    moved,
)
from executors.formats.plain_files.parquet_surgery.unsuited import Reason, Unsuited
from pii_tracer.common.thrift import Fields, written


class File(Enum):
    """Where a piece is taken from."""

    SOURCE = "source"
    SCRATCH = "scratch"


@dataclass(frozen=True)
class Span:
    """Bytes of a file that are copied as they are."""

    file: File
    extent: range

    def __len__(self) -> int:
        return len(self.extent)


Piece = Span | bytes


@dataclass(frozen=True)
class Recipe:
    """The pieces of the new file in their order.

    copied: numbers of the source's row groups that are copied; made: of those that were written again.
    """

    pieces: tuple[Piece, ...]
    copied: tuple[int, ...]
    made: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes of the new file."""
        return sum(len(piece) for piece in self.pieces)


def recipe(source: Layout, scratch: Layout, changed: Collection[int], made: Sequence[int]) -> Recipe:
    """Put a file together of what stays and of the row groups that were written again.

    changed: numbers of the source's row groups that are not copied; made: of those that the scratch file has, in order.

    Raises:
        Unsuited: the scratch file has another schema, or a part of the source is not what its footer says.
    """
    _refuse_other_schema(source, scratch)
    # a row group without rows says nothing, and readers do not like it
    copied = [n for n, group in enumerate(source.groups) if n not in changed and group.rows]
    new = dict(zip(made, scratch.groups, strict=True))
    placing = _Placing()
    placing.put(0, Span(File.SOURCE, range(4)))
    for start, number, chunk, part in sorted(_parts(source, copied, new), key=lambda item: item[0]):
        if chunk is None:
            _put_group(placing, new[number])
        elif part == chunk.offset_index:
            placing.put(start, _index(source, File.SOURCE, chunk, placing))
        else:
            placing.put(start, Span(File.SOURCE, part))
    _put_indexes(placing, scratch)
    order = sorted([*copied, *made])
    numbered = any(ORDINAL in group.fields for group in source.groups)
    fields = []
    for at, n in enumerate(order):
        group, places = (new[n], placing.scratch) if n in new else (source.groups[n], placing.source)
        fields.append(moved(group.fields, at if numbered else None, places.__getitem__))
    rows = sum(new.get(n, source.groups[n]).rows for n in order)
    placing.append(_tail(source.footer, rows, fields))
    return Recipe(tuple(placing.pieces), tuple(copied), tuple(made))


@dataclass
class _Placing:
    """Pieces so far. source, scratch: where a part has come to lie, by where it began there."""

    pieces: list[Piece] = field(default_factory=list)
    end: int = 0
    source: dict[int, range] = field(default_factory=dict)
    scratch: dict[int, range] = field(default_factory=dict)

    def put(self, start: int, piece: Piece, file: File = File.SOURCE) -> None:
        """Append a part that began there in a file."""
        places = self.source if file is File.SOURCE else self.scratch
        places[start] = range(self.end, self.end + len(piece))
        self.append(piece)

    def append(self, piece: Piece) -> None:
        """Append bytes; neighbours in the same file become one piece."""
        self.end += len(piece)
        last = self.pieces[-1] if self.pieces else b""
        if isinstance(piece, bytes) and isinstance(last, bytes) and last:
            self.pieces[-1] = last + piece
        elif (
            isinstance(piece, Span)
            and isinstance(last, Span)
            and (piece.file, piece.extent.start) == (last.file, last.extent.stop)
        ):
            self.pieces[-1] = Span(piece.file, range(last.extent.start, piece.extent.stop))
        else:
            self.pieces.append(piece)


def _parts(source: Layout, copied: Sequence[int], new: dict[int, Group]) -> list[tuple[int, int, Chunk | None, range]]:
    """Where it begins, row group, chunk and extent of each part; a row group that was written again is one part."""
    parts: list[tuple[int, int, Chunk | None, range]] = [
        (chunk_part.start, n, chunk, chunk_part)
        for n in copied
        for chunk in source.groups[n].chunks
        for chunk_part in chunk.parts()
    ]
    return parts + [(source.groups[n].data.start, n, None, range(0)) for n in new]


def _put_group(placing: _Placing, group: Group) -> None:
    for chunk in sorted(group.chunks, key=lambda chunk: chunk.data.start):
        placing.put(chunk.data.start, Span(File.SCRATCH, chunk.data), File.SCRATCH)


def _put_indexes(placing: _Placing, scratch: Layout) -> None:
    """Bloom filters and page indexes of the scratch file, behind all that is copied, kind by kind."""
    chunks = [chunk for group in scratch.groups for chunk in group.chunks]
    for extent in [chunk.bloom for chunk in chunks] + [chunk.column_index for chunk in chunks]:
        if extent is not None:
            placing.put(extent.start, Span(File.SCRATCH, extent), File.SCRATCH)
    for chunk in chunks:
        if chunk.offset_index is not None:
            placing.put(chunk.offset_index.start, _index(scratch, File.SCRATCH, chunk, placing), File.SCRATCH)


def _index(layout: Layout, file: File, chunk: Chunk, placing: _Placing) -> bytes:
    """A chunk's offset index with the places that its pages have come to."""
    fields = locations(layout.data, chunk, layout.pages(chunk))
    assert fields is not None
    places = placing.source if file is File.SOURCE else placing.scratch
    shift = places[chunk.data.start].start - chunk.data.start
    kind, (inner, items) = fields[LOCATIONS]
    there = [item | {LOCATION: (item[LOCATION][0], item[LOCATION][1] + shift)} for item in items]
    return written(fields | {LOCATIONS: (kind, (inner, there))})


def _tail(footer: Fields, rows: int, groups: list[Fields]) -> bytes:
    kind, (inner, _) = footer[GROUPS]
    raw = written(footer | {ROWS: (footer[ROWS][0], rows), GROUPS: (kind, (inner, groups))})
    return raw + len(raw).to_bytes(4, "little") + MAGIC


def _refuse_other_schema(source: Layout, scratch: Layout) -> None:
    """The root's name is the writer's own, and no reader takes notice of it."""
    one, other = (layout.footer[SCHEMA][1][1] for layout in (source, scratch))
    if one[1:] != other[1:] or one[0].get(_CHILDREN) != other[0].get(_CHILDREN):
        raise Unsuited(Reason.SCHEMA)
    orders = source.footer.get(COLUMN_ORDERS)
    if orders is not None and orders != scratch.footer.get(COLUMN_ORDERS):
        raise Unsuited(Reason.COLUMN_ORDERS)


_CHILDREN = 5
