"""Parquet: all pages through the reader, statistics, key-value metadata, and the bytes between.

Page indexes and footers are never compressed (https://parquet.apache.org/docs/file-format/), so text in them is met by
the raw search. Bloom filters and page indexes hold nothing that is not in the rows of the same file; dictionary pages
can hold more.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from pii_tracer.common.parquet_file_checks import is_encrypted, other_files
from pii_tracer.scan.decode.arrow import search_batch, search_leaf, search_rows, unused_entries
from pii_tracer.scan.decode.file_kind import FileKind
from pii_tracer.scan.decode.parquet_encrypted import decode_encrypted
from pii_tracer.scan.decode.parquet_footer import (
    columns_apart,
    holds_positions,
    label_of,
    search_footer,
    search_gap,
)
from pii_tracer.scan.decode.parquet_pages import Page, PageError, numbers, pages, plain
from pii_tracer.scan.decode.table_metadata import Role
from pii_tracer.scan.false_cell_hits import gaps
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.shapes.chunk_value_tables import Place, TextShape
from pii_tracer.scan.shapes.file_shapes import FileShapes, shapes_in

ROWS = 65_536
NUMBER_DICTIONARY = "dictionary page of numbers"
"""`where` of a number among entries that no row uses. Arrow reads such entries of texts alone, so no step
finds these to write the file again."""

_TEXTS = frozenset({"STRING", "ENUM", "JSON"})


def decode(data: memoryview, collector: Collector, role: Role, where: str = "data") -> None:
    """Search one Parquet file held in memory (or mapped).

    Raises:
        pa.ArrowException, OSError: the file cannot be read to its end.
    """
    if is_encrypted(data):
        decode_encrypted(data, collector, role, where)
        return
    buffer = pa.BufferReader(pa.py_buffer(data))
    with pq.ParquetFile(buffer, pre_buffer=False) as file:
        meta = file.metadata
        if role is Role.DATA:
            search_footer(file, collector, role)
        if other_files(meta):
            _summary(data, meta, collector)
            return
        positions = holds_positions(file)
    chunks = tuple(_chunks(data, meta))
    shapes = shapes_in(collector, data) if role is Role.DATA and not positions else None
    left = {chunk for chunk in chunks if shapes is not None and chunk.pages and shapes.leaves_out(chunk.place)}
    silent = {c for c in chunks if role is Role.DATA and c not in left and c.is_silent(data, collector, shapes)}
    left -= _read_anyway(chunks, left | silent)
    unread = silent | left
    # a dictionary page of numbers is looked at whatever the shape of the rows
    open_ = [c for c in chunks if c not in silent and not (c in left and c.is_text)]
    loud = {chunk for chunk in open_ if chunk.holds_more(data, collector)}
    coded = _coded(chunks) if role is Role.DATA else ()
    noting = shapes is not None and shapes.noting
    with pq.ParquetFile(buffer, metadata=meta, read_dictionary=coded, pre_buffer=False) as file:
        for groups, columns in _to_read(meta, {chunk.place for chunk in unread}, apart=noting):
            batches = file.iter_batches(ROWS, groups, columns, use_threads=False)
            if shapes is not None and noting:
                batches = shapes.watched(batches, _alone(chunks, groups[0]))
            search_rows(batches, collector, role, where, positions=positions)
        if role is Role.ENGINE:  # its rows tell what the bounds are of
            search_footer(file, collector, role)
    if shapes is not None:
        if noting:
            shapes.hollow = _hollow(chunks, len(data) - 8 - int.from_bytes(data[-8:-4], "little"))
        shapes.left = frozenset(chunk.place for chunk in left - loud)
        shapes.decoded = len(chunks) - len(shapes.left)
    for group in sorted({chunk.group for chunk in loud}):
        _dictionaries(data, group, [c for c in open_ if c.group == group], collector)
    known = [c for c in chunks if c.packed or c in silent or (c in left and c.is_text)]
    bodies = sorted((b for c in known for b in c.searched(collector.patterns.overlap)), key=lambda body: body.start)
    packed, read = ([p for c in chunks if c.packed is is_packed for p in c.bodies] for is_packed in (True, False))
    apart = columns_apart(data, collector, role, ((c.path, c.extent) for c in chunks if c.pages is not None))
    collector.rest(data, "raw bytes", gone=bodies, packed=packed, read=read, apart=apart)
    _between(data, chunks, collector)


def _between(data: memoryview, chunks: Iterable[_Chunk], collector: Collector) -> None:
    """What lies between the column chunks and the footer: page indexes and bloom filters, and what nobody refers to."""
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    chunked = sorted((chunk.extent for chunk in chunks), key=lambda part: part.start)
    for gap in gaps(chunked, range(len(b"PAR1"), footer)):
        search_gap(data, gap, collector)


def _summary(data: memoryview, meta: pq.FileMetaData, collector: Collector) -> None:
    """A folder's `_metadata`: nothing but magic and a footer, which was searched; its row groups are other files'."""
    collector.raw(data, "raw bytes")
    footer = int.from_bytes(data[-8:-4], "little")
    if len(data) != len(b"PAR1") + footer + 8:
        collector.unread("row groups in a different file, and rows of its own")


@dataclass(frozen=True)
class _Chunk:
    """A column chunk. pages: None where they could not be told apart.

    named: the file says that its bytes are text. Others may be compressed, cell by cell, which no page shows.
    """

    group: int
    index: int
    path: str
    kind: str
    length: int
    scale: int | None
    codec: str
    named: bool
    extent: range
    pages: tuple[Page, ...] | None

    @property
    def packed(self) -> bool:
        """Whether its pages are compressed."""
        return self.codec != "UNCOMPRESSED"

    @property
    def place(self) -> Place:
        """Its row group and its column."""
        return self.group, self.index

    def searched(self, overlap: int) -> Iterator[range]:
        """Where its pages' contents lie, which need no further search.

        What stands as it is may go on behind a page's end, so that the last bytes of the page are searched with that.
        """
        for page in self.pages or ():
            start = page.body.start + page.levels
            yield page.body if self.packed else range(start, max(start, page.body.stop - overlap))

    @property
    def bodies(self) -> tuple[range, ...]:
        """Where the reader has given all there is: the pages without their headers, as far as they are told apart."""
        return (self.extent,) if self.pages is None else tuple(page.body for page in self.pages)

    @property
    def hollow(self) -> tuple[range, ...]:
        """Where nobody looks who leaves the chunk out: the pages that `searched` gives, without a dictionary of
        numbers, which is looked at all the same. Numbers that are not packed are searched as they stand.
        """
        if not (self.packed or self.is_text):
            return ()
        pages = (page for page in self.pages or () if self.is_text or not page.is_dictionary)
        return tuple(
            page.body if self.packed else range(page.body.start + page.levels, page.body.stop) for page in pages
        )

    @property
    def dictionary(self) -> Page | None:
        """Its dictionary page."""
        return next((page for page in self.pages or () if page.is_dictionary), None)

    def is_silent(self, data: memoryview, collector: Collector, shapes: FileShapes | None = None) -> bool:
        """Whether its pages, searched as they stand, hold none of the patterns: then no reader has to take them apart.

        A superset of what is in its texts: lengths and levels are searched with them. shapes: where its shape is
        written down when it is not known.
        """
        patterns = collector.patterns
        noting = shapes is not None and shapes.noting
        if (
            not self.is_text
            or not self.named
            or not self.pages
            or (patterns.has_tiny and not noting)
            or not all(page.stands for page in self.pages)
        ):
            return False
        label, made = label_of(self.path), TextShape(len(self.extent)) if noting else None
        # what a page says are its levels could be anything
        levels = [data[page.body.start : page.body.start + page.levels] for page in self.pages]
        quiet = not patterns.has_tiny and all(map(patterns.quiet, levels))
        if made is not None and not self.packed:  # they are searched as raw bytes, too
            for piece in levels:
                made.add(piece)
        try:
            for page in self.pages:
                of_texts = page.is_dictionary or not page.coded or not self.packed
                if quiet or (made is not None and of_texts):
                    content = plain(data, page, self.codec)
                    quiet = quiet and patterns.quiet(content, label, text=not page.coded)
                    if made is not None and of_texts:
                        made.add(content)
        except PageError:
            return False
        if shapes is not None and made is not None:
            shapes.made[self.place] = made.shape()
        return quiet

    def holds_more(self, data: memoryview, collector: Collector) -> bool:
        """Whether its dictionary may hold something, used by a row or not."""
        if self.dictionary is None:
            return self.pages is None
        if not self.is_text:
            return bool(self.numbers(data, collector))
        try:
            content = plain(data, self.dictionary, self.codec)
        except PageError:
            return True
        return (
            not self.named or collector.patterns.has_tiny or not collector.patterns.quiet(content, label_of(self.path))
        )

    def numbers(self, data: memoryview, collector: Collector) -> set[int]:
        """Key values among the numbers in its dictionary page.

        A chunk with other pages, too, began with a dictionary that was made of its rows, which are read.
        """
        if self.dictionary is None or self.is_text or not self.coded:
            return set()
        try:
            content = plain(data, self.dictionary, self.codec)
        except PageError:
            collector.unread("a dictionary page of numbers in a codec that is read for its rows only")
            return set()
        return numbers(content, self.kind, self.length, self.scale, collector.patterns.ints)

    @property
    def coded(self) -> bool:
        """Whether every page holds numbers of dictionary entries."""
        return self.dictionary is not None and all(page.coded or page.is_dictionary for page in self.pages or ())

    @property
    def is_text(self) -> bool:
        """Whether its values are text or bytes of any length."""
        return self.kind == "BYTE_ARRAY" and self.scale is None


def _chunks(data: memoryview, meta: pq.FileMetaData) -> Iterator[_Chunk]:
    schema = meta.schema
    for group in range(meta.num_row_groups):
        row_group = meta.row_group(group)
        for index in range(meta.num_columns):
            column, kind = row_group.column(index), schema.column(index)
            scale = kind.scale if kind.logical_type.type == "DECIMAL" else None
            starts = [o for o in (column.dictionary_page_offset, column.data_page_offset) if o]
            if not starts:
                continue
            extent = range(min(starts), min(starts) + column.total_compressed_size)
            found: tuple[Page, ...] | None
            try:
                found = pages(data, extent.start, extent.stop, column.num_values)
            except PageError:
                found = None
            path, codec, named = column.path_in_schema, column.compression, kind.logical_type.type in _TEXTS
            yield _Chunk(group, index, path, column.physical_type, kind.length, scale, codec, named, extent, found)


def _hollow(chunks: Sequence[_Chunk], footer: int) -> dict[Place, tuple[range, ...]]:
    """By chunk, where nobody looks who leaves it out. Of a column of several leaves, which is read whole, and of a file
    whose chunks share bytes with each other or with the footer: nowhere. footer: where it begins.
    """
    extents = sorted((c.extent for c in chunks), key=lambda extent: extent.start)
    if any(one.stop > other.start for one, other in itertools.pairwise([*extents, range(footer, footer)])):
        return {}
    leaves = Counter((c.group, _root(c.path)) for c in chunks)
    return {c.place: c.hollow for c in chunks if leaves[c.group, _root(c.path)] == 1}


def _read_anyway(chunks: Iterable[_Chunk], unread: Collection[_Chunk]) -> set[_Chunk]:
    """Chunks that are read with others of their column, which are not among those that need not be."""
    read = {(chunk.group, _root(chunk.path)) for chunk in chunks if chunk not in unread}
    return {chunk for chunk in unread if (chunk.group, _root(chunk.path)) in read}


def _alone(chunks: Iterable[_Chunk], group: int) -> dict[str, tuple[Place, int]]:
    """Of the columns of a row group that are no text and not nested: the places of their chunks, and their bytes."""
    here = [c for c in chunks if c.group == group]
    names = Counter(_root(c.path) for c in here)
    return {c.path: (c.place, len(c.extent)) for c in here if c.pages and not c.is_text and names[c.path] == 1}


def _to_read(meta: pq.FileMetaData, silent: Collection[Place], *, apart: bool) -> Iterator[tuple[list[int], list[str]]]:
    """Row groups and the paths of the columns in them that are not silent; neighbours with the same are read at once.

    A column of several leaves is read whole: a map without its keys is none. apart: each row group is read alone.
    """
    paths = [meta.schema.column(index).path for index in range(meta.num_columns)]

    def columns(group: int) -> list[str]:
        roots = {_root(path) for index, path in enumerate(paths) if (group, index) not in silent}
        return [path for path in paths if _root(path) in roots]

    for wanted, groups in itertools.groupby(range(meta.num_row_groups), columns):
        together = list(groups)
        if wanted:
            yield from (([group], wanted) for group in together) if apart else ((together, wanted),)


def _root(path: str) -> str:
    return path.split(".", 1)[0]


def _coded(chunks: Iterable[_Chunk]) -> list[str]:
    """Text columns of which every page holds numbers of dictionary entries: each entry is searched once.

    The reader gives no dictionaries of nested columns.
    """
    whole: dict[str, bool] = {}
    for chunk in chunks:
        whole[chunk.path] = chunk.is_text and chunk.coded and whole.get(chunk.path, True)
    return sorted(path for path, coded in whole.items() if coded and "." not in path)


def _dictionaries(data: memoryview, group: int, chunks: list[_Chunk], collector: Collector) -> None:
    """Entries of dictionary pages that no row uses: writers of filtered encoded columns keep what was filtered out."""
    paths = [c.path for c in chunks if c.is_text and (c.dictionary or c.pages is None)]
    held = {c.path: found for c in chunks if (found := c.numbers(data, collector))}
    with pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)), read_dictionary=paths, pre_buffer=False) as file:
        table = file.read_row_group(group, columns=paths, use_threads=False)
        rows = {path: file.read_row_group(group, columns=[path], use_threads=False) for path in held}
    for name, column in zip(table.column_names, table.columns, strict=True):
        for label, entries in unused_entries(column, name):
            search_leaf(entries, collector, "dictionary page", label)
    for path, found in held.items():
        used = Collector(collector.patterns)
        search_batch(rows[path], used, "data")
        for number in sorted(found):
            if not set(collector.patterns.ints[number]) <= used.seen:
                collector.number(number, NUMBER_DICTIONARY, label_of(path))


KIND = FileKind(
    name="parquet",
    rank=0,
    fits=lambda data: not {bytes(data[:4]), bytes(data[-4:])}.isdisjoint((b"PAR1", b"PARE")),
    starts=(b"PAR1", b"PARE"),
    decode=decode,
)
