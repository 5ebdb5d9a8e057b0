"""Whether what is declared to be encrypted is: at planning every stored row is looked at, those of old versions too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_tracer.config.keys import Encrypted, KeyTable
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.registry import format_of, metadata_folders
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.lake.keys.envelope.cell_format import unlike_cells
from pii_tracer.lake.keys.envelope.cells import Mode
from pii_tracer.lake.keys.key_facts import PlainCells
from pii_tracer.lake.rows.current_rows import data_files, guarded, read_columns
from pii_tracer.model.errors import EstateError
from planners.keys.key_table_lineage import family_of, state_of

if TYPE_CHECKING:
    import pyarrow as pa

_DELETES = {"file_path", "pos"}
"""Columns of Iceberg's position deletes, which hold no row (https://iceberg.apache.org/spec/#position-delete-files)."""


def plain_cells(
    table: KeyTable, others: Collection[Any], inventory: Inventory, paths: EstatePaths
) -> tuple[PlainCells, ...]:
    """What of the datasets that a key table encrypts is not known to be encrypted; nothing where all of it is.

    others: names of keys that are other people's; their rows do not count.
    """
    found = []
    for entry in table.encrypts:
        state = state_of(entry.dataset, inventory.tables)
        if state is None or {entry.key_column, *entry.encrypted} - {c.name for c in state.columns}:
            continue  # a gap of its own
        for one in family_of(state, inventory.tables):
            made = _look(entry, one, others, paths)
            if made.cells or made.files:
                found.append(made)
    return tuple(found)


def _look(entry: Encrypted, state: TableState, others: Collection[Any], paths: EstatePaths) -> PlainCells:
    """Every Parquet file in the table's folder, and the current rows where these are stored otherwise."""
    counts: Counter[str] = Counter()
    unknown = 0
    try:
        if state.remote:
            raise EstateError("files of old versions in S3 are not looked at", where=state.location)
        current = dict.fromkeys((path for path in data_files(state, paths) if isinstance(path, Path)), False)
        for path in sorted({*current, *_below(state)}):
            looked = _file(entry, state, path, others, counts, paths)
            if path in current:
                current[path] = looked
            else:
                unknown += not looked
        if not all(current.values()):
            counts.update(_counted(entry, read_columns(state, _columns(entry), paths), others))
    except EstateError:
        unknown += 1
    return PlainCells(location=state.location, cells=tuple(sorted(counts.items())), files=unknown)


def _below(state: TableState) -> Iterator[Path]:
    """Files that may hold rows, of whatever version; what is in those that are no Parquet cannot be told from here."""
    folder, adapter = Path(state.location), format_of(state.format)
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if inside[0] not in metadata_folders() and adapter.may_hold_rows(path) and path.is_file():
            yield path


def _file(
    entry: Encrypted, state: TableState, path: Path, others: Collection[Any], counts: Counter[str], paths: EstatePaths
) -> bool:
    """Count what is no cell; False where the file does not tell: of another format, or without such a column."""
    import pyarrow.parquet as pq

    paths.checked(path)
    if path.suffix != ".parquet":
        return False

    def read() -> bool:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if set(names) == _DELETES:
                return True
            there = [name for name in _columns(entry) if name in names]
            if not entry.encrypted <= set(there):
                return False
            for batch in file.iter_batches(columns=there):
                counts.update(_counted(entry, batch, others))
        return True

    return guarded(state, read)


def _columns(entry: Encrypted) -> list[str]:
    return [entry.key_column, *sorted(entry.encrypted)]


def _counted(entry: Encrypted, rows: pa.Table | pa.RecordBatch, others: Collection[Any]) -> Counter[str]:
    """Values that are no cells, by column, without the rows of other people."""
    import pyarrow as pa

    names = rows.column(entry.key_column).to_pylist() if entry.key_column in rows.schema.names else [None] * len(rows)
    counts: Counter[str] = Counter()
    for column in sorted(entry.encrypted):
        values = rows.column(column)
        mode = Mode.EQUAL if column in entry.equal else Mode.RANDOM
        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        marks = unlike_cells(whole, mode).to_pylist()
        number = sum(mark and name not in others for name, mark in zip(names, marks, strict=True))
        if number:
            counts[column] = number
    return counts
