"""Where the parts of a Parquet file lie, by its footer: column chunks, page indexes and bloom filters of row groups.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from executors.formats.plain_files.parquet_surgery.unsuited import Reason, Unsuited
from pii_tracer.common.thrift import SHORT, Fields, Thrift, ThriftError, written

MAGIC = b"PAR1"
VERSION, SCHEMA, ROWS, GROUPS, CREATED_BY, COLUMN_ORDERS = 1, 2, 3, 4, 6, 7
COLUMNS, GROUP_OFFSET, ORDINAL = 1, 5, 7
FILE_PATH, FILE_OFFSET, META, OFFSET_INDEX, COLUMN_INDEX = 1, 2, 3, 4, 6
CODEC, VALUES, PACKED_SIZE, CHUNK_TEXTS, DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, BLOOM, BLOOM_SIZE = (
    4, 5, 7, 8, 9, 10, 11, 14, 15,
)  # fmt: skip
LOCATIONS, LOCATION = 1, 1

_ENCRYPTED = frozenset({8, 9})
"""Of a file: algorithm and key. Of a column chunk: keys and a sealed `ColumnMetaData`."""
_KNOWN_OF_FILE, _KNOWN_OF_GROUP, _KNOWN_OF_CHUNK, _KNOWN_OF_META = (
    frozenset(range(1, last + 1)) for last in (9, 7, 9, 17)
)
_KNOWN_OF_INDEX, _KNOWN_OF_LOCATION = frozenset({1, 2}), frozenset({1, 2, 3})
_VERSIONS = (1, 2)
_BLOOM_HEADER = 1 << 10


@dataclass(frozen=True)
class Page:
    """header, body: where they lie. kind, plain_size: as the header says."""

    header: range
    body: range
    kind: int
    plain_size: int

    @property
    def is_dictionary(self) -> bool:
        """Whether it holds the chunk's distinct values."""
        return self.kind == _DICTIONARY


@dataclass(frozen=True)
class Chunk:
    """One column chunk. fields: `ColumnChunk`; meta: its `ColumnMetaData`; data: its pages, dictionary and all."""

    fields: Fields
    meta: Fields
    data: range
    column_index: range | None
    offset_index: range | None
    bloom: range | None

    def parts(self) -> Iterator[range]:
        """Every extent that the footer names for it."""
        yield self.data
        yield from (part for part in (self.column_index, self.offset_index, self.bloom) if part is not None)


@dataclass(frozen=True)
class Group:
    """One row group with its column chunks."""

    fields: Fields
    chunks: tuple[Chunk, ...]

    @property
    def data(self) -> range:
        """From the first byte of its pages to the last."""
        return range(min(c.data.start for c in self.chunks), max(c.data.stop for c in self.chunks))

    @property
    def rows(self) -> int:
        """Number of its rows."""
        return int(_number(self.fields, 3))


@dataclass(frozen=True)
class Layout:
    """A file's footer, field by field, and where its row groups lie. data: the file's bytes."""

    data: memoryview
    footer: Fields
    groups: tuple[Group, ...]
    _pages: dict[int, tuple[Page, ...]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, data: memoryview) -> Layout:
        """Read a footer, and check that every part it names is inside of the file and apart from all others.

        Raises:
            Unsuited: the footer is of a kind that is not taken apart here.
        """
        try:
            return cls._of(data)
        except (ThriftError, KeyError, TypeError, AttributeError):
            raise Unsuited(Reason.NO_FOOTER) from None

    @classmethod
    def _of(cls, data: memoryview) -> Layout:
        if len(data) < 12 or bytes(data[:4]) != MAGIC or bytes(data[-4:]) != MAGIC:
            raise Unsuited(Reason.NO_FOOTER)
        end = len(data) - 8
        start = end - int.from_bytes(data[end : end + 4], "little")
        if start < 4:
            raise Unsuited(Reason.NO_FOOTER)
        raw = bytes(data[start:end])
        footer = Thrift(raw).fields()
        if written(footer) != raw:
            raise Unsuited(Reason.NOT_CANONICAL)
        _refuse_unknown(footer, _KNOWN_OF_FILE)
        if footer.keys() & _ENCRYPTED:
            raise Unsuited(Reason.ENCRYPTED)
        if _number(footer, VERSION) not in _VERSIONS:
            raise Unsuited(Reason.VERSION)
        made = cls(data, footer, tuple(_group(data, start, fields) for fields in footer[GROUPS][1][1]))
        made._refuse_disorder()
        return made

    def pages(self, chunk: Chunk) -> tuple[Page, ...]:
        """The pages of a chunk; each chunk's headers are read once.

        Raises:
            Unsuited: they do not fill it to the last byte, or do not have the values that it says.
        """
        start = chunk.data.start
        if start not in self._pages:
            self._pages[start] = self._read_pages(chunk)
        return self._pages[start]

    def _read_pages(self, chunk: Chunk) -> tuple[Page, ...]:
        found, at, values = [], chunk.data.start, 0
        try:
            while at < chunk.data.stop:
                page, count = _page(self.data, at, chunk.data.stop)
                found.append(page)
                values += 0 if page.is_dictionary else count
                at = page.body.stop
        except (ThriftError, KeyError, TypeError):
            raise Unsuited(Reason.PAGES) from None
        starts = {page.header.start for page in found} | {0}
        told = {_number(chunk.meta, n) for n in (DATA_PAGE, DICTIONARY_PAGE) if n in chunk.meta}
        if at != chunk.data.stop or values != _number(chunk.meta, VALUES) or told - starts:
            raise Unsuited(Reason.PAGES)
        return tuple(found)

    def _refuse_disorder(self) -> None:
        groups = [group.data for group in self.groups]
        if any(one.start > other.start for one, other in pairwise(groups)):
            raise Unsuited(Reason.ORDER)
        if any(one.stop > other.start for one, other in pairwise(groups)):
            raise Unsuited(Reason.OVERLAP)
        chunks = [chunk for group in self.groups for chunk in group.chunks]
        parts = sorted((p for c in chunks for p in c.parts() if len(p)), key=lambda part: part.start)
        if any(one.stop > other.start for one, other in pairwise(parts)):
            raise Unsuited(Reason.OVERLAP)
        if any(c.offset_index and c.offset_index.start < c.data.stop for c in chunks):
            raise Unsuited(Reason.ORDER)


def locations(data: memoryview, chunk: Chunk, pages: tuple[Page, ...]) -> Fields | None:
    """The offset index of a chunk, None where it has none.

    Raises:
        Unsuited: it is another structure, or names a place where no page begins.
    """
    if chunk.offset_index is None:
        return None
    raw = bytes(data[chunk.offset_index.start : chunk.offset_index.stop])
    starts = {page.header.start for page in pages}
    try:
        fields = Thrift(raw).fields()
        _refuse_unknown(fields, _KNOWN_OF_INDEX)
        for location in fields[LOCATIONS][1][1]:
            _refuse_unknown(location, _KNOWN_OF_LOCATION)
            if _number(location, LOCATION) not in starts:
                raise Unsuited(Reason.INDEX)
    except (ThriftError, KeyError, TypeError, AttributeError):
        raise Unsuited(Reason.INDEX) from None
    if written(fields) != raw:
        raise Unsuited(Reason.INDEX)
    return fields


def moved(group: Fields, ordinal: int | None, placed: Callable[[int], range]) -> Fields:
    """A row group's fields with every offset where it lies in the new file.

    ordinal: its number, None where the file does not number them; placed: where a part comes to lie that begins at a
    byte of the old file.
    """
    chunks = [_moved_chunk(fields, placed) for fields in group[COLUMNS][1][1]]
    kind, (inner, _) = group[COLUMNS]
    changed = dict(group)
    changed[COLUMNS] = (kind, (inner, chunks))
    if GROUP_OFFSET in group:
        changed[GROUP_OFFSET] = (group[GROUP_OFFSET][0], min(start_of(chunk[META][1]) for chunk in chunks))
    if ordinal is not None:
        changed[ORDINAL] = (SHORT, ordinal)
    return changed


def start_of(meta: Fields) -> int:
    """The first byte of a chunk: its dictionary page, where it has one, or its first data page."""
    offsets = [_number(meta, n) for n in (DATA_PAGE, DICTIONARY_PAGE) if n in meta]
    return min((offset for offset in offsets if offset > 0), default=0)


def _moved_chunk(chunk: Fields, placed: Callable[[int], range]) -> Fields:
    changed, meta = dict(chunk), dict(chunk[META][1])
    start, size = start_of(meta), _number(meta, PACKED_SIZE)
    shift = placed(start).start - start

    def put(fields: Fields, number: int, value: int) -> None:
        fields[number] = (fields[number][0], value)

    for number in (DATA_PAGE, DICTIONARY_PAGE):
        if number in meta and _number(meta, number) > 0:
            put(meta, number, _number(meta, number) + shift)
    if BLOOM in meta:
        put(meta, BLOOM, placed(_number(meta, BLOOM)).start)
    changed[META] = (chunk[META][0], meta)
    # writers do not agree on what this is; where it is no place among the pages it says that there is none
    told = _number(chunk, FILE_OFFSET)
    put(changed, FILE_OFFSET, told + shift if start <= told < start + size else 0)
    for number in (OFFSET_INDEX, COLUMN_INDEX):
        if number in chunk:
            extent = placed(_number(chunk, number))
            put(changed, number, extent.start)
            put(changed, number + 1, len(extent))
    return changed


def _group(data: memoryview, end: int, fields: Fields) -> Group:
    _refuse_unknown(fields, _KNOWN_OF_GROUP)
    chunks = tuple(_chunk(data, end, chunk) for chunk in fields[COLUMNS][1][1])
    if not chunks:
        raise Unsuited(Reason.NO_FOOTER)
    _number(fields, 3)
    return Group(fields, chunks)


def _chunk(data: memoryview, end: int, fields: Fields) -> Chunk:
    _refuse_unknown(fields, _KNOWN_OF_CHUNK)
    if fields.keys() & _ENCRYPTED:
        raise Unsuited(Reason.ENCRYPTED)
    if FILE_PATH in fields:
        raise Unsuited(Reason.OTHER_FILES)
    meta: Fields = fields[META][1]
    _refuse_unknown(meta, _KNOWN_OF_META)
    if CHUNK_TEXTS in meta:
        raise Unsuited(Reason.CHUNK_TEXTS)
    start = start_of(meta)
    pages = range(start, start + _number(meta, PACKED_SIZE))
    if any(n in meta and _number(meta, n) not in pages for n in (DATA_PAGE, DICTIONARY_PAGE) if meta.get(n, (0, 0))[1]):
        raise Unsuited(Reason.OUTSIDE)
    if meta.get(INDEX_PAGE, (0, 0))[1]:
        raise Unsuited(Reason.UNKNOWN_FIELD)  # a page of a kind that no version of the format describes
    indexes = [_extent(fields, n, n + 1) if n in fields else None for n in (COLUMN_INDEX, OFFSET_INDEX)]
    chunk = Chunk(fields, meta, pages, indexes[0], indexes[1], _bloom(data, meta))
    if any(part.start < 4 or part.stop < part.start or part.stop > end for part in chunk.parts()):
        raise Unsuited(Reason.OUTSIDE)
    return chunk


def _bloom(data: memoryview, meta: Fields) -> range | None:
    """A bloom filter's extent; old writers do not say its size, its own header does."""
    if BLOOM not in meta:
        return None
    start = _number(meta, BLOOM)
    reader = Thrift(bytes(data[start : start + _BLOOM_HEADER]))
    try:
        size = reader.struct()[1]
    except (ThriftError, KeyError):
        raise Unsuited(Reason.BLOOM) from None
    stop = start + reader.position + size
    if size < 0 or (BLOOM_SIZE in meta and _number(meta, BLOOM_SIZE) != stop - start):
        raise Unsuited(Reason.BLOOM)
    return range(start, stop)


_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_INNER = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
_PAGE_HEADER = 1 << 16


def _page(data: memoryview, at: int, end: int) -> tuple[Page, int]:
    """The page that begins there, and how many values it says it has."""
    reader = Thrift(bytes(data[at : min(end, at + _PAGE_HEADER)]))
    header = reader.struct()
    body = at + reader.position
    kind, plain_size, size = header[1], header[2], header[3]
    count = header[_INNER[kind]][1]
    if size < 0 or plain_size < 0 or count < 0 or body + size > end:
        raise Unsuited(Reason.PAGES)
    return Page(range(at, body), range(body, body + size), kind, plain_size), count


def _extent(fields: Fields, offset: int, length: int) -> range:
    return range(_number(fields, offset), _number(fields, offset) + _number(fields, length))


def _number(fields: Fields, number: int) -> int:
    value: Any = fields[number][1]
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no number")
    return value


def _refuse_unknown(fields: Fields, known: frozenset[int]) -> None:
    if fields.keys() - known:
        raise Unsuited(Reason.UNKNOWN_FIELD)
