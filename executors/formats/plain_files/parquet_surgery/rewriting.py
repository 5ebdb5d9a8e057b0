"""Write a Parquet file again without a person: only the row groups that have anything of theirs, where that is safe.

Where it is not (`Reason`), every row group is written again.
"""

from __future__ import annotations

import io
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from executors.formats.plain_files import parquet_rewrite
from executors.formats.plain_files.arrow_match import Keys, Nobodys
from executors.formats.plain_files.parquet_dictionaries import Holds, holds_nothing
from executors.formats.plain_files.parquet_rewrite import Opened
from executors.formats.plain_files.parquet_surgery.assembly import assemble
from executors.formats.plain_files.parquet_surgery.comparison import compare_copied
from executors.formats.plain_files.parquet_surgery.layout import Layout
from executors.formats.plain_files.parquet_surgery.recipe import File, Recipe, recipe
from executors.formats.plain_files.parquet_surgery.traces import Traces
from executors.formats.plain_files.parquet_surgery.unsuited import Reason, Unsuited
from pii_tracer.model.datasets import Match
from pii_tracer.model.plan import Mask


@dataclass(frozen=True)
class Persons:
    """Whose rows go, or stay by `mask`. strong, holds, nobodys: as `parquet_rewrite.survey` takes them."""

    match: Match
    keys: Keys
    strong: frozenset[str]
    mask: Mask | None = None
    holds: Holds = holds_nothing
    nobodys: Nobodys = field(default_factory=dict)


@dataclass(frozen=True)
class Original:
    """A Parquet file that is open: as a stream, as its bytes, and for Arrow. stream: None of bytes in memory."""

    stream: IO[bytes] | None
    data: memoryview
    opened: Opened

    @cached_property
    def layout(self) -> Layout:
        """Where its parts lie.

        Raises:
            Unsuited: as `Layout.of`.
        """
        return Layout.of(self.data)

    @classmethod
    def in_memory(cls, data: bytes) -> Original:
        """Of bytes."""
        return cls(None, memoryview(data), lambda **options: pq.ParquetFile(pa.BufferReader(data), **options))

    @classmethod
    @contextmanager
    def at(cls, path: Path) -> Iterator[Original]:
        """Of a file on disk that is not empty; its bytes are mapped, not read.

        Raises:
            OSError: it cannot be read.
        """
        with (
            path.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as data,
        ):
            yield cls(stream, data, lambda **options: pq.ParquetFile(path, **options))


def scratch_beside(path: Path) -> IO[bytes]:
    """A file without a name in the folder of another: nothing of it is left, whatever ends the process."""
    return TemporaryFile(dir=path.parent)


def facts_of(how: Recipe | Reason) -> dict[str, Any]:
    """How a file was written again, for the journal."""
    if isinstance(how, Reason):
        return {"written_whole": how.value}
    return {"row_groups_copied": len(how.copied), "row_groups_written": len(how.made)}


def write_again(old: Original, sink: IO[bytes], scratch: Callable[[], IO[bytes]], persons: Persons) -> Recipe | Reason:
    """Write the new file into an empty sink: by a recipe, or, for a reason, every row group of it.

    scratch: makes an empty file for the row groups that are written again; it is closed here.

    Raises:
        RowsError: as `parquet_rewrite.write`.
    """
    try:
        with scratch() as made:
            found = _recipe(old, made, persons)
            assemble(found, {File.SOURCE: old.stream or old.data, File.SCRATCH: made}, sink)
            return found
    except Unsuited as unsuited:
        parquet_rewrite.write(old.opened, sink, persons.match, persons.keys, persons.mask)
        return unsuited.reason


def read_back(old: Original, new: Original, how: Recipe | Reason, persons: Persons) -> None:
    """Compare what was written with the source: rows that were encoded anew, bytes that were copied.

    Raises:
        RowsError: something differs.
    """
    copied = frozenset(how.copied) if isinstance(how, Recipe) else frozenset[int]()
    parquet_rewrite.compare(old.opened, new.opened, persons.match, persons.keys, persons.mask, copied)
    if isinstance(how, Recipe):
        compare_copied(old.layout, new.data, how.copied, how.made)


def _recipe(old: Original, scratch: IO[bytes], persons: Persons) -> Recipe:
    layout = old.layout
    changed = _changed(layout, old.opened, persons)
    if len(changed) == len(layout.groups):
        raise Unsuited(Reason.EVERY_GROUP)
    made = parquet_rewrite.write(old.opened, scratch, persons.match, persons.keys, persons.mask, changed)
    with _bytes_of(scratch) as data:
        return recipe(layout, Layout.of(data), changed, made)


def _changed(layout: Layout, opened: Opened, persons: Persons) -> frozenset[int]:
    """Row groups with rows that go or change, and those that have a value of the persons anywhere else."""
    rows, search = parquet_rewrite.changed_groups(
        opened, persons.match, persons.keys, persons.strong, persons.mask, persons.holds, persons.nobodys
    )
    rest = [number for number in range(len(layout.groups)) if number not in rows]
    stale = Traces(layout, search).in_indexes(rest)
    with opened() as source:
        if search.in_writer(source):
            raise Unsuited(Reason.NAMED)
        stale |= {number for number, found in zip(rest, search.in_bounds(source, rest), strict=True) if found}
        stale |= search.unused(source, [number for number in rest if number not in stale])
    return rows | stale


@contextmanager
def _bytes_of(stream: IO[bytes]) -> Iterator[memoryview]:
    """All bytes of a scratch file that is not empty."""
    stream.flush()
    if isinstance(stream, io.BytesIO):
        with stream.getbuffer() as data:
            yield data
        return
    with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
        yield data
