"""Reads the rows that retained versions of a table have, without Spark: what a person was known by before.

Delta: every version that its log can still rebuild. Iceberg: every snapshot of the metadata, so those of branches and
tags as well. Bare folders keep no versions, and of Hudi tables only the current rows are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.errors import EstateError
from pii_tracer.estate.iceberg import load_iceberg
from pii_tracer.estate.paths import EstatePaths, local_path
from pii_tracer.estate.read import at_spot, delta_rows, guarded
from pii_tracer.inventory import TableState
from pii_tracer.model import Format
from pii_tracer.spots import Spot

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyiceberg.table import FileScanTask, StaticTable

MANY = 1_000
"""Retained versions from which on reading them is told as work of its own, and again after as many more."""

Parts = frozenset[tuple[str, ...]]
"""What a version's rows stand in: each data file with what is deleted from it."""


def read_former(
    state: TableState, spots: Mapping[str, Spot], paths: EstatePaths, say: Callable[[str], None]
) -> Iterator[dict[str, list[Any]]]:
    """The values at some spots in each retained version before the current one, newest first, as `read_spots` gives.

    Versions that bring no file of their own are passed over, since their rows were given already, and so are those
    that cannot be read any more (their files were vacuumed); `say` is told how many. What a version's schema does not
    have yet is None.
    """
    versions = {Format.DELTA: _delta, Format.ICEBERG: _iceberg}.get(state.format)
    if versions is None:
        return
    columns = sorted({spot.column for spot in spots.values()})
    seen: set[tuple[str, ...]] = set()
    name, unread, number = state.table or state.location, 0, 0
    for number, version in enumerate(versions(state, columns, paths), start=1):
        if number % MANY == 0:
            say(f"reading former versions of {name}: {number:,} so far")
        try:
            parts = guarded(state, version.parts)
            if parts <= seen:
                continue
            table = None if version.current else guarded(state, version.rows)
        except EstateError:
            unread += 1
            continue
        seen |= parts
        if table is not None:
            yield {given: _values(table, spot) for given, spot in spots.items()}
    if unread:
        say(f"{unread:,} of {number:,} versions of {name} cannot be read any more")


def _values(table: pa.Table, spot: Spot) -> list[Any]:
    import pyarrow as pa

    try:
        values: list[Any] = at_spot(table.column(spot.column), spot).to_pylist()
    except (KeyError, pa.ArrowException):  # a column or field that came later
        return [None] * table.num_rows
    return values


@dataclass(frozen=True)
class _Version:
    """What a version's rows stand in, and then its rows; both raise whatever the formats' libraries do."""

    current: bool
    parts: Callable[[], Parts]
    rows: Callable[[], pa.Table]


def _delta(state: TableState, columns: Sequence[str], paths: EstatePaths) -> Iterator[_Version]:
    from deltalake import DeltaTable

    newest = int(state.snapshot)
    opened: dict[int, DeltaTable] = {}

    def version(number: int) -> _Version:
        def parts() -> Parts:
            opened.clear()
            opened[number] = DeltaTable(Path(state.location), version=number)
            return _delta_parts(opened[number], paths)

        def rows() -> pa.Table:
            has = {field.name for field in opened[number].schema().fields}
            return delta_rows(state, [c for c in columns if c in has], number)

        return _Version(number == newest, parts, rows)

    for number in range(newest, newest - state.versions, -1):
        yield version(number)


def _delta_parts(table: DeltaTable, paths: EstatePaths) -> Parts:
    import pyarrow as pa

    masks = pa.table(table.deletion_vectors().read_all())
    names, kept = (masks.column(name) for name in ("filepath", "selection_vector"))
    deleted = {local_path(n.as_py()): _digest(k.values) for n, k in zip(names, kept, strict=True)}
    files = [local_path(uri) for uri in table.file_uris()]
    for path in files:
        paths.checked(path)
    return frozenset((str(path), deleted.get(path, "")) for path in files)


def _digest(mask: pa.BooleanArray) -> str:
    import pyarrow as pa

    data = mask.cast(pa.uint8()).buffers()[1]
    return hashlib.sha256(memoryview(data)[: len(mask)]).hexdigest() if data else ""


def _iceberg(state: TableState, columns: Sequence[str], paths: EstatePaths) -> Iterator[_Version]:
    table = load_iceberg(Path(state.location), state.metadata)
    planned: dict[int, list[FileScanTask]] = {}

    def version(snapshot: int) -> _Version:
        def parts() -> Parts:
            planned.clear()
            planned[snapshot] = list(table.scan(snapshot_id=snapshot).plan_files())
            return frozenset(_iceberg_part(task, paths) for task in planned[snapshot])

        current = str(snapshot) == state.snapshot
        return _Version(current, parts, lambda: _iceberg_rows(table, columns, planned[snapshot]))

    newest_first = sorted(table.metadata.snapshots, key=lambda s: (-s.timestamp_ms, s.snapshot_id))
    for snapshot in sorted(newest_first, key=lambda s: str(s.snapshot_id) != state.snapshot):
        yield version(snapshot.snapshot_id)


def _iceberg_part(task: FileScanTask, paths: EstatePaths) -> tuple[str, ...]:
    files = (task.file, *sorted(task.delete_files, key=lambda f: (f.file_path, f.record_count)))
    for file in files:
        paths.checked(local_path(file.file_path))
    return tuple(f"{file.file_path} {file.record_count}" for file in files)


def _iceberg_rows(table: StaticTable, columns: Sequence[str], tasks: Sequence[FileScanTask]) -> pa.Table:
    """By the current schema's field ids, so that a column is found under the name that it has now."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    schema = table.schema().select(*columns)
    return ArrowScan(table.metadata, table.io, schema, AlwaysTrue()).to_table(tasks)
