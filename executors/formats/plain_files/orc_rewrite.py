"""ORC files without a person's rows, stripe by stripe: schema, codec, dictionaries and user metadata are kept.

Written again by Arrow: bloom filters of the old file are not made anew, and where Arrow would change a type or move a
time the file is refused. Where a hold keeps columns the rows stay, and all else in them becomes NULL (`mask`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from executors.formats.plain_files.arrow_match import (
    BY_HAND,
    Keys,
    RowsError,
    present_terms,
)
from executors.formats.plain_files.orc_tail import Tail, put_notes, read_tail
from executors.formats.plain_files.row_masking import holding_more, in_lists, places, rows_of, spared
from executors.formats.plain_files.stored_file import Stored
from pii_tracer.model.datasets import Match
from pii_tracer.model.plan import Mask

_LEAST, _MOST = 1 << 20, 64 << 20
"""Bounds of a stripe's size in memory, in bytes; the greater is what writers of ORC use by default."""


def survey(path: Stored, match: Match, keys: Keys, mask: Mask | None = None) -> tuple[int, int, tuple[str, ...]]:
    """Rows before and those that stay as they are, and labels of match terms whose column is not there.

    Raises:
        RowsError: no column of the match exists, or a value cannot be compared.
    """
    with _opened(path) as file:
        terms, missing = present_terms(file.schema.names, match)
        changed = 0
        for table in _all(file):
            mine = rows_of(table, terms, keys, mask)
            if mask is not None and mine.true_count:
                rest = table.select(places(table.column_names, mask))
                changed += mine.true_count if in_lists(terms) else holding_more(rest, mine)
            elif mask is None:
                changed += mine.true_count
        return int(file.nrows), int(file.nrows) - changed, missing


def write(path: Stored, target: Stored, match: Match, keys: Keys, mask: Mask | None = None) -> None:
    """Write the rows that stay.

    Raises:
        RowsError: Arrow would not write this file as it is.
    """
    tail = read_tail(path)
    if not tail.safe_timestamps:
        raise RowsError(
            "the time stamps of the ORC file are in a time zone other than UTC, and would change", todo=BY_HAND
        )
    with _opened(path) as file, target.open("wb") as sink, _writing(sink, file, tail) as writer:
        wrote = False
        for table in _kept(file, match, keys, mask):
            if table.num_rows:
                writer.write(table)
                wrote = True
        if not wrote:
            writer.write(file.schema.remove_metadata().empty_table())
    put_notes(target, tail)


def compare(path: Stored, target: Stored, match: Match, keys: Keys, mask: Mask | None = None) -> None:
    """Read back: the same types, metadata, and rows in the same order.

    Raises:
        RowsError: something differs.
    """
    before, after = read_tail(path), read_tail(target)
    if (before.types, before.user, before.calendar) != (after.types, after.user, after.calendar):
        raise RowsError("the ORC file's schema cannot be written back exactly", todo=BY_HAND)
    with _opened(path) as old, _opened(target) as new:
        written = _Stream(_all(new))
        for rows in _kept(old, match, keys, mask):
            at = 0
            while at < rows.num_rows:
                again = written.take(rows.num_rows - at)
                part = rows.slice(at, again.num_rows if again is not None else 0)
                # NaN is not equal to itself: compare what prints alike before giving up
                if again is None or (not again.equals(part) and repr(again.to_pylist()) != repr(part.to_pylist())):
                    raise RowsError("the rewritten file does not contain all rows that must be kept", todo=BY_HAND)
                at += again.num_rows
        if written.take(1) is not None:
            raise RowsError("the rewritten file has rows that the original did not have", todo=BY_HAND)


@contextmanager
def _opened(file: Stored) -> Iterator[orc.ORCFile]:
    with file.open("rb") as stream:
        yield orc.ORCFile(stream)


def _writing(sink: IO[bytes], like: orc.ORCFile, tail: Tail) -> orc.ORCWriter:
    return orc.ORCWriter(
        sink,
        file_version=str(like.file_version),
        compression=like.compression.lower(),
        compression_block_size=like.compression_size or 64 * 1024,
        row_index_stride=like.row_index_stride or 10_000,
        stripe_size=_stripe_size(like),
        dictionary_key_size_threshold=0.8 if tail.dictionaries else 0.0,
    )


def _stripe_size(like: orc.ORCFile) -> int:
    """What a stripe may take in memory before it is written: about what one of the old file's does, who reads them one
    at a time goes on doing so.
    """
    first = like.read_stripe(0).nbytes if like.nstripes else 0
    return min(max(first, _LEAST), _MOST)


class _Stream:
    """Rows of tables in a row, taken a few at a time: stripes of two files need not lie alike."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = (table for table in tables if table.num_rows)
        self._left: pa.Table | None = None

    def take(self, most: int) -> pa.Table | None:
        """Up to so many rows; None at the end."""
        if self._left is None or not self._left.num_rows:
            self._left = next(self._tables, None)
        if self._left is None:
            return None
        part, self._left = self._left.slice(0, most), self._left.slice(most)
        return part


def _all(file: orc.ORCFile) -> Iterator[pa.Table]:
    for stripe in range(file.nstripes):
        # user metadata is no part of a row's schema
        yield pa.Table.from_batches([file.read_stripe(stripe)]).replace_schema_metadata(None)


def _kept(file: orc.ORCFile, match: Match, keys: Keys, mask: Mask | None) -> Iterator[pa.Table]:
    terms, _ = present_terms(file.schema.names, match)
    for table in _all(file):
        mine = rows_of(table, terms, keys, mask)
        yield table.filter(pc.invert(mine)) if mask is None else spared(table, mine, mask, terms, keys)
