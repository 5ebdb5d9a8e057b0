"""Rows of every version of a Delta table that its log can still rebuild."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.delta.rows import delta_rows, open_delta, stored_name
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows.former_versions import (
    FilesGoneError,
    Parts,
    Pasts,
    Sought,
    Values,
    Version,
    columns_in,
    parts_of,
    values_in,
    with_key,
)
from pii_tracer.lake.rows.historical_columns import Field, past_columns
from pii_tracer.lake.stores.any_place import AnyPlace
from pii_tracer.model.locations import local_path

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


def versions(state: TableState, sought: Sought, paths: EstatePaths) -> Iterator[Version]:
    """From the newest to the oldest."""
    newest = int(state.snapshot)
    opened = _Opened(state, newest, paths)
    for number in range(newest, newest - state.versions, -1):
        yield _version(opened, number, number == newest, sought, paths)


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
        return _fields(self.at(self._newest))


def _version(opened: _Opened, number: int, current: bool, sought: Sought, paths: EstatePaths) -> Version:
    def pasts() -> Pasts:
        now = opened.now
        return past_columns(sought.spots, now, _fields(opened.at(number)), sought.key)

    def parts() -> Parts:
        there = with_key(pasts(), sought.key)
        return parts_of(_files(opened.at(number), paths), there) if any(there.values()) else frozenset()

    def rows() -> list[Values]:
        there = pasts()
        return [] if current else values_in(delta_rows(opened.state, columns_in(there), number, paths), there)

    def files() -> list[AnyPlace]:
        return list(map(paths.place, opened.at(number).file_uris()))

    return Version(parts, rows, files)


def _fields(table: DeltaTable) -> tuple[Field, ...]:
    return tuple(_field(field) for field in json.loads(table.schema().to_json())["fields"])


def _field(field: Mapping[str, Any]) -> Field:
    """Names differ by more than case."""
    inner = field["type"]["fields"] if isinstance(field["type"], dict) and field["type"]["type"] == "struct" else ()
    physical = field["metadata"].get("delta.columnMapping.physicalName", field["name"])
    return Field(field["name"], physical.casefold(), tuple(map(_field, inner)))


_NOT_FOUND = re.compile(r"File not found: (?P<path>/.+)")
"""How Delta's kernel says that a deletion vector was vacuumed."""


def _files(table: DeltaTable, paths: EstatePaths) -> list[tuple[str, ...]]:
    import pyarrow as pa

    try:
        masks = pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all()
    except Exception as error:
        lost = _NOT_FOUND.search(str(error))
        if lost and not Path(lost["path"]).exists():
            raise FilesGoneError("a deletion vector was removed") from None
        raise
    names, kept = (masks.column(name) for name in ("filepath", "selection_vector"))
    deleted = {_named(n.as_py()): _digest(k.values) for n, k in zip(names, kept, strict=True)}
    files = [_named(uri) for uri in table.file_uris()]
    for path in files:
        paths.checked_file(paths.place(path))
    return [(path, deleted.get(path, "")) for path in files]


def _named(uri: str) -> str:
    """A file as `EstatePaths.place` takes it."""
    return stored_name(uri) or str(local_path(uri))


def _digest(mask: pa.BooleanArray) -> str:
    import pyarrow as pa

    data = mask.cast(pa.uint8()).buffers()[1]
    return hashlib.sha256(memoryview(data)[: len(mask)]).hexdigest() if data else ""
