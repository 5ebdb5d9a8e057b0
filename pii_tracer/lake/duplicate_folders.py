"""Copies that no lineage knows: folders that hold the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pii_tracer.lake.formats.plain_files.data_file import DataFile, file_sha256
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.datasets import Format

if TYPE_CHECKING:
    from pyarrow.parquet import RowGroupMetaData


def with_originals(
    states: Sequence[TableState], files: dict[str, tuple[DataFile, ...]], is_dev: Callable[[str], bool]
) -> tuple[TableState, ...]:
    """States with `same_files_as` set on copies: one byte-identical data file in another place is enough.

    files: the data files that lie in each location, current or not. The original is the place outside the
    development roots, then the registered table, then the older one. Files without rows prove nothing and are left out.
    A row group of a Parquet file that was copied into another file counts as well, whatever its compression: its footer
    has the same rows, columns, minima and maxima. Rows that were sorted, filtered or written in another format are not
    seen here; only the scan for the person's values finds them.
    """
    rank = {s.location: _rank(s, files.get(s.location, ()), is_dev) for s in states}
    whole, parts = _twins(files)
    # what has a file of another place is its copy, also where a third place has the same rows in a file of its own
    original = _firsts(parts, rank) | _firsts(whole, rank)
    return tuple(
        s.model_copy(update={"same_files_as": original[s.location]}) if s.location in original else s for s in states
    )


def _firsts(twins: Sequence[set[str]], rank: dict[str, tuple[bool, bool, int, str]]) -> dict[str, str]:
    """Of places with the same content, the one that the others are copies of."""
    original: dict[str, str] = {}
    for places in twins:
        first = min(places, key=lambda place: rank[place])
        for place in places - {first}:
            known = original.get(place)
            original[place] = first if known is None else min(known, first, key=lambda p: rank[p])
    return original


def _rank(state: TableState, files: Sequence[DataFile], is_dev: Callable[[str], bool]) -> tuple[bool, bool, int, str]:
    oldest = min((f.path.stat().st_mtime_ns for f in files), default=0)
    return is_dev(state.location), state.table is None, oldest, state.location


def _twins(files: dict[str, tuple[DataFile, ...]]) -> tuple[list[set[str]], list[set[str]]]:
    """Sets of locations that hold one and the same file, and the same row group; hashed only where sizes meet."""
    by_size: dict[int, list[tuple[str, DataFile]]] = {}
    found: dict[str, set[str]] = {}
    groups: dict[str, set[str]] = {}
    for location in sorted(files):
        for file in files[location]:
            by_size.setdefault(file.path.stat().st_size, []).append((location, file))
            for mark in _row_groups(file):
                groups.setdefault(mark, set()).add(location)
    for same in by_size.values():
        if len({location for location, _ in same}) < 2:
            continue
        for location, file in same:
            if _has_rows(file):
                found.setdefault(file_sha256(file.path), set()).add(location)
    whole, parts = ([p for p in places.values() if len(p) > 1] for places in (found, groups))
    return whole, parts


def _row_groups(file: DataFile) -> list[str]:
    """A fingerprint of each row group, from the footer; none where the footer says too little to tell it from others.

    Rows, and of every column its name, type, values, nulls, minimum and maximum
    (https://parquet.apache.org/docs/file-format/metadata/). At least two rows, statistics of every column, and one
    column whose minimum is not its maximum.
    """
    if file.format is not Format.PARQUET:
        return []
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pii_tracer.common.parquet_file_checks import is_encrypted_file

    try:
        # pyarrow ends the process when it is asked for statistics of a column whose key is missing
        # opened here: Arrow takes no name that is no UTF-8
        with file.path.open("rb") as stream:
            metadata = None if is_encrypted_file(file.path) else pq.read_metadata(stream)
    except (OSError, pa.ArrowException):
        return []
    if metadata is None:
        return []
    marks = (_mark(metadata.row_group(number)) for number in range(metadata.num_row_groups))
    return [mark for mark in marks if mark]


def _mark(group: RowGroupMetaData) -> str | None:
    if group.num_rows < 2:
        return None
    digest, telling = hashlib.sha256(f"{group.num_rows}".encode()), False
    for number in range(group.num_columns):
        column = group.column(number)
        known = column.statistics
        if known is None or not known.has_min_max:
            if known is None or known.null_count != column.num_values:
                return None
            ends = ("", "")
        else:
            ends = (repr(known.min_raw), repr(known.max_raw))
        telling = telling or ends[0] != ends[1]
        words = (column.path_in_schema, column.physical_type, column.num_values, known.null_count, *ends)
        digest.update("\0".join(str(word) for word in words).encode("utf-8", "surrogateescape"))
    return f"row group {digest.hexdigest()}" if telling else None


def _has_rows(file: DataFile) -> bool:
    if file.format is Format.PARQUET:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with file.path.open("rb") as stream:
                return bool(pq.read_metadata(stream).num_rows)
        except (OSError, pa.ArrowException):
            return True  # damaged, and still a copy of the same damage
    return file.path.stat().st_size > 0
