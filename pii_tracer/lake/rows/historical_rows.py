"""Reads the rows that retained versions of a table have, without Spark: what a person was known by before.

Delta: every version that its log can still rebuild. Iceberg: every snapshot of the metadata, so those of branches and
tags as well. Bare folders keep no versions, and of Hudi tables only the current rows are read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.dataset_paths import EstatePaths, local_path
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.table_state import load_iceberg
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.current_rows import (
    at_spot,
    delta_rows,
    guarded,
    open_delta,
)
from pii_tracer.lake.rows.historical_columns import Field, Past, past_columns
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.column_paths import Spot
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import is_s3

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, StaticTable
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import NestedField

MANY = 1_000
"""Retained versions from which on reading them is told as work of its own, and again after as many more."""

Parts = frozenset[tuple[str, ...]]
"""What a version's values stand in: each data file with what is deleted from it, and each column's ids."""

Values = dict[str, list[Any]]
Pasts = Mapping[str, tuple[Past, ...]]


@dataclass(frozen=True)
class Sought:
    """What is read of a table: spots by the names they are given, and which of these is the persons' key."""

    spots: Mapping[str, Spot]
    key: str


class _Gone(EstateError):
    """A file of the version was removed."""


def read_former(
    state: TableState,
    sought: Sought,
    paths: EstatePaths,
    say: Callable[[str], None],
    unread: Callable[[str], None],
) -> Iterator[Values]:
    """The values at some spots in each retained version before the current one, newest first, as `read_spots` gives.

    Versions that bring no file or column of their own are passed over, since their rows were given already, and so are
    those whose files are gone (vacuumed); `say` is told how many. `unread` is told of versions that are there and
    could not be read. What a version's schema does not have is None.
    """
    name = state.table or state.location
    if state.format is HUDI and state.versions > 1:
        unread(f"{state.versions:,} commits of {name} are on its timeline, and former rows of Hudi tables are not read")
    versions = {DELTA: _delta, ICEBERG: _iceberg}.get(state.format)
    if versions is None:
        return
    seen: set[tuple[str, ...]] = set()
    gone, number, why = 0, 0, Counter[str]()
    for number, version in enumerate(versions(state, sought, paths), start=1):
        if number % MANY == 0:
            say(f"reading former versions of {name}: {number:,} so far")
        try:
            parts = guarded(state, version.parts)
            rows = [] if parts <= seen else guarded(state, version.rows)
        except EstateError as error:
            if isinstance(error, _Gone) or _gone(state, version):
                gone += 1
            else:
                why[error.what] += 1
            continue
        seen |= parts
        yield from rows
    if gone:
        say(f"{gone:,} of {number:,} versions of {name} cannot be read any more")
    for reason, times in sorted(why.items()):
        unread(f"{times:,} of {number:,} versions of {name} are there and were not read: {reason}")


@dataclass(frozen=True)
class _Version:
    """What a version's values stand in, then these, and the files it needs; all raise whatever the libraries do.

    rows: without those that the current version has in the columns of now.
    """

    parts: Callable[[], Parts]
    rows: Callable[[], list[Values]]
    files: Callable[[], Iterable[Path | S3Path]]


def _gone(state: TableState, version: _Version) -> bool:
    try:
        return guarded(state, lambda: any(not path.exists() for path in version.files()))
    except EstateError:
        return False


def _values(table: pa.Table, pasts: Pasts) -> list[Values]:
    """Twice, where a name means two columns: of each name the first, then the others."""
    return [
        {
            name: at_spot(table.column(p.spot.column), p.spot).to_pylist() if p else [None] * table.num_rows
            for name, p in ((name, at[min(turn, len(at) - 1)] if at else None) for name, at in pasts.items())
        }
        for turn in range(max(len(at) for at in pasts.values()))
    ]


def _columns(pasts: Pasts) -> list[str]:
    return sorted({past.spot.column for at in pasts.values() for past in at})


def _parts(files: Iterable[tuple[str, ...]], pasts: Pasts) -> Parts:
    ids = {past.ids for at in pasts.values() for past in at}
    return frozenset((*file, *way) for file in files for way in ids)


def _keyed(pasts: Pasts, key: str) -> Pasts:
    """Raises EstateError: the columns are there, and not the key that tells whose the rows are."""
    if not pasts[key] and any(pasts.values()):
        raise EstateError(
            f"they have no {key}, or another column of that name, so that whose their rows are cannot be told"
        )
    return pasts


def _delta(state: TableState, sought: Sought, paths: EstatePaths) -> Iterator[_Version]:
    newest = int(state.snapshot)
    opened = _Opened(state, newest, paths)
    for number in range(newest, newest - state.versions, -1):
        yield _delta_version(opened, number, number == newest, sought, paths)


class _Opened:
    """A Delta table at one of its versions, opened once, and its columns of now."""

    def __init__(self, state: TableState, newest: int, paths: EstatePaths) -> None:
        self.state, self._newest, self._paths = state, newest, paths
        self._at: dict[int, DeltaTable] = {}

    def at(self, number: int) -> DeltaTable:
        if number not in self._at:
            self._at.clear()
            self._at[number] = open_delta(self.state, number, self._paths)
        return self._at[number]

    @cached_property
    def now(self) -> tuple[Field, ...]:
        return _delta_fields(self.at(self._newest))


def _delta_version(opened: _Opened, number: int, current: bool, sought: Sought, paths: EstatePaths) -> _Version:
    def pasts() -> Pasts:
        now = opened.now
        return past_columns(sought.spots, now, _delta_fields(opened.at(number)), sought.key)

    def parts() -> Parts:
        there = _keyed(pasts(), sought.key)
        return _parts(_delta_files(opened.at(number), paths), there) if any(there.values()) else frozenset()

    def rows() -> list[Values]:
        there = pasts()
        return [] if current else _values(delta_rows(opened.state, _columns(there), number, paths), there)

    def files() -> list[Path | S3Path]:
        return list(map(paths.place, opened.at(number).file_uris()))

    return _Version(parts, rows, files)


def _delta_fields(table: DeltaTable) -> tuple[Field, ...]:
    return tuple(_delta_field(field) for field in json.loads(table.schema().to_json())["fields"])


def _delta_field(field: Mapping[str, Any]) -> Field:
    """Names differ by more than case."""
    inner = field["type"]["fields"] if isinstance(field["type"], dict) and field["type"]["type"] == "struct" else ()
    physical = field["metadata"].get("delta.columnMapping.physicalName", field["name"])
    return Field(field["name"], physical.casefold(), tuple(map(_delta_field, inner)))


_NOT_FOUND = re.compile(r"File not found: (?P<path>/.+)")
"""How Delta's kernel says that a deletion vector was vacuumed."""


def _delta_files(table: DeltaTable, paths: EstatePaths) -> list[tuple[str, ...]]:
    import pyarrow as pa

    try:
        masks = pa.table(table.deletion_vectors().read_all())
    except Exception as error:
        lost = _NOT_FOUND.search(str(error))
        if lost and not Path(lost["path"]).exists():
            raise _Gone("a deletion vector was removed") from None
        raise
    names, kept = (masks.column(name) for name in ("filepath", "selection_vector"))
    deleted = {_named(n.as_py()): _digest(k.values) for n, k in zip(names, kept, strict=True)}
    files = [_named(uri) for uri in table.file_uris()]
    for path in files:
        paths.checked_file(paths.place(path))
    return [(path, deleted.get(path, "")) for path in files]


def _named(uri: str) -> str:
    """A file as `EstatePaths.place` takes it."""
    return uri if is_s3(uri) else str(local_path(uri))


def _digest(mask: pa.BooleanArray) -> str:
    import pyarrow as pa

    data = mask.cast(pa.uint8()).buffers()[1]
    return hashlib.sha256(memoryview(data)[: len(mask)]).hexdigest() if data else ""


@dataclass(frozen=True)
class _Reading:
    """A schema of an Iceberg table, and where it has what is sought."""

    schema: Schema
    pasts: Pasts


def _iceberg(state: TableState, sought: Sought, paths: EstatePaths) -> Iterator[_Version]:
    table = load_iceberg(paths.place(state.location), state.metadata)
    newest_first = sorted(table.metadata.snapshots, key=lambda s: (-s.timestamp_ms, s.snapshot_id))
    readings = _readings(table, sought)
    for snapshot in sorted(newest_first, key=lambda s: str(s.snapshot_id) != state.snapshot):
        current = str(snapshot.snapshot_id) == state.snapshot
        yield _iceberg_version(table, snapshot, current, readings, sought, paths)


def _readings(table: StaticTable, sought: Sought) -> list[_Reading]:
    """The schema of now, by whose ids a renamed column is found, and former ones with columns that are no more."""
    readings: list[_Reading] = []
    known: set[tuple[str, ...]] = set()
    for schema in (table.schema(), *table.metadata.schemas):
        pasts = _iceberg_pasts(table, schema, sought)
        ids = {past.ids for at in pasts.values() for past in at}
        if not readings or (pasts[sought.key] and not ids <= known):
            readings.append(_Reading(schema, pasts))
            known |= ids
    return readings


def _iceberg_pasts(table: StaticTable, schema: Schema, sought: Sought) -> Pasts:
    return past_columns(
        sought.spots, _iceberg_fields(table.schema().fields), _iceberg_fields(schema.fields), sought.key
    )


def _iceberg_fields(fields: Iterable[NestedField]) -> tuple[Field, ...]:
    from pyiceberg.types import StructType

    found = []
    for field in fields:
        kind = field.field_type
        inner = _iceberg_fields(kind.fields) if isinstance(kind, StructType) else ()
        found.append(Field(field.name, str(field.field_id), inner))
    return tuple(found)


def _iceberg_version(
    table: StaticTable,
    snapshot: Snapshot,
    current: bool,
    readings: list[_Reading],
    sought: Sought,
    paths: EstatePaths,
) -> _Version:
    tasks: list[FileScanTask] = []

    def parts() -> Parts:
        own = next((s for s in table.metadata.schemas if s.schema_id == snapshot.schema_id), table.schema())
        _keyed(_iceberg_pasts(table, own, sought), sought.key)
        tasks[:] = table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
        files = [_iceberg_part(task, paths) for task in tasks]
        return frozenset[tuple[str, ...]]().union(*(_parts(files, reading.pasts) for reading in readings))

    def rows() -> list[Values]:
        wanted = readings[1:] if current else readings
        return [v for reading in wanted for v in _values(_iceberg_rows(table, reading, tasks), reading.pasts)]

    return _Version(parts, rows, lambda: map(paths.place, _iceberg_files(table, snapshot)))


def _iceberg_files(table: StaticTable, snapshot: Snapshot) -> Iterator[str]:
    """One by one, so that a missing list of files is told before it is read."""
    yield snapshot.manifest_list
    for manifest in snapshot.manifests(table.io):
        yield manifest.manifest_path
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield entry.data_file.file_path


def _iceberg_part(task: FileScanTask, paths: EstatePaths) -> tuple[str, ...]:
    files = (task.file, *sorted(task.delete_files, key=lambda f: (f.file_path, f.record_count)))
    for file in files:
        paths.checked_file(paths.place(file.file_path))
    return tuple(f"{file.file_path} {file.record_count}" for file in files)


def _iceberg_rows(table: StaticTable, reading: _Reading, tasks: list[FileScanTask]) -> pa.Table:
    """By field ids, so that a column is found whatever a file calls it."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.schema import Schema

    columns = reading.schema.select(*_columns(reading.pasts)).fields
    schema = Schema(*map(_optional, columns), schema_id=reading.schema.schema_id)
    return ArrowScan(table.metadata, table.io, schema, AlwaysTrue()).to_table(tasks)


def _optional(field: NestedField) -> NestedField:
    """A column that was required once may be in no file that came later."""
    from pyiceberg.types import NestedField, StructType

    kind = field.field_type
    kind = StructType(*map(_optional, kind.fields)) if isinstance(kind, StructType) else kind
    return NestedField(field.field_id, field.name, kind, required=False)
