"""Versions of objects of which only those bytes are read that can hold a value, by the shapes of their column chunks.

A search reads an object's frame, and the hollow bytes of every chunk that may hold one of the values
(`objects_read_before`). All that is read has to have the digests that are written down, so that it is what was read
before, whatever the store does; else the object is read whole. Of the bytes that are not read the store says that they
are the same (ADR 26 and 29).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice

from pii_tracer.common.parallel_map import several
from pii_tracer.common.unnamed_file import in_sparse_file
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.scan.false_cell_hits import gaps
from pii_tracer.scan.folder_scan import scan_object
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.scan_ledger import END
from pii_tracer.scan.shapes.file_shapes import FileShapes
from pii_tracer.scan.shapes.objects_read_before import EDGE, ObjectKeeper, Outline, Stored, in_order, is_worth
from pii_tracer.scan.value_forms import Patterns

LEAST = 1 << 19
"""Of objects with fewer bytes nothing is written down: they are read whole in one request."""
_PIECE = 8 << 20
_AT_ONCE = 2
"""So many parts of one object are asked for at once; a place reads several objects at once."""


def search_in_parts(
    key: str, stored: Stored, patterns: Patterns, text: FileText | None, keeper: ObjectKeeper | None
) -> FileScan | None:
    """What the bytes of an object alone show, without reading those that cannot hold a value; None where it has to be
    read whole. As `folder_scan.scan_object` finds it in all bytes.
    """
    if keeper is None or not _may_be_known(stored.size, patterns, text) or not keeper.has_outline(stored.told):
        return None
    try:
        end = stored.part(stored.size - END, END)
        outline = keeper.outline_of(stored.told, memoryview(end)) if len(end) == END else None
        if outline is None:
            return None
        again = keeper.read_again(stored.told)
        left = {
            place for place in outline.hollow if place not in again and not patterns.sought.fits(outline.shapes[place])
        }
        holes = in_order(outline.hollow[place] for place in left)
        if not is_worth(holes, stored.size):
            return None
        data = in_sparse_file(stored.size, _fetched(stored, holes, end))
    except (EstateError, OSError):
        return None
    if not outline.stands_in(data, left):
        return None
    shapes = FileShapes(data, patterns.sought, lambda: outline.shapes, again)
    found = scan_object(key, data, patterns, text, shapes, outline.sha256)
    if found.unread or not left <= shapes.left:  # the reader took up what was not read
        return None
    keeper.count(shapes, stored.told, left)
    return found


def search_whole(
    key: str,
    data: memoryview,
    told: str | None,
    patterns: Patterns,
    text: FileText | None,
    keeper: ObjectKeeper | None,
) -> FileScan:
    """As `folder_scan.scan_object`; what becomes known of the object is written down. told: as of `Stored`, None where
    nothing tells."""
    if keeper is None or told is None or not _may_be_known(len(data), patterns, text):
        return scan_object(key, data, patterns, text)
    end, sha256 = data[-END:], hashlib.sha256(data).hexdigest()
    outline = keeper.outline_of(told, end)
    known = outline if outline is not None and outline.sha256 == sha256 else None
    again = keeper.read_again(told) if known else ()
    shapes = FileShapes(data, patterns.sought, lambda: known.shapes if known else None, again)
    found = scan_object(key, data, patterns, text, shapes, sha256)
    if shapes.made and not found.unread:
        keeper.keep_outline(told, end, Outline.of(data, sha256, shapes.hollow, shapes.made))
    keeper.count(shapes, told)
    return found


def _may_be_known(size: int, patterns: Patterns, text: FileText | None) -> bool:
    """Whether shapes are of use: rows of keys of several columns are read whole, and long patterns reach far."""
    return text is None and size >= LEAST and patterns.overlap <= EDGE and patterns.key_columns.rows is None


def _fetched(stored: Stored, holes: Sequence[range], end: bytes) -> Iterator[tuple[int, bytes]]:
    """Everything that lies in no hole, with its offset. end: the last bytes, which are there."""
    last = stored.size - len(end)
    wanted = (
        range(first, min(first + _PIECE, gap.stop, last))
        for gap in gaps(holes, range(stored.size))
        for first in range(gap.start, min(gap.stop, last), _PIECE)
    )

    def part(here: range) -> tuple[int, bytes]:
        data = stored.part(here.start, len(here))
        if len(data) != len(here):
            raise OSError("a store returned a wrong number of bytes")
        return here.start, data

    while some := list(islice(wanted, _AT_ONCE)):  # no more, for their bytes are in memory
        yield from several(part, some, _AT_ONCE)
    yield last, end
