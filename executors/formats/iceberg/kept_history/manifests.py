"""Manifests and their lists with other files in them: entries keep their snapshot, status and sequence numbers.

What a record does not say and inherits from its manifest or list (https://iceberg.apache.org/spec/#sequence-number-inheritance)
it does not say afterwards either: each record is written as it was read, by its own schema, but for what is told here.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from executors.formats.iceberg.kept_history.data_files import Metrics
from pii_tracer.lake.formats.iceberg.history_files import (
    ADDED,
    DATA_FILE,
    DELETED,
    FILE_PATH,
    FILE_SIZE,
    MANIFEST_LENGTH,
    MANIFEST_PATH,
    PARTITIONS,
    RECORDS,
    Container,
    Entry,
    data_file_names,
)
from pii_tracer.model.locations import placed

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table.metadata import TableMetadata

_COUNTS = {ADDED: (504, 512), 0: (505, 513), DELETED: (506, 514)}
"""Ids of a list's fields with the numbers of files and of rows, by the entries' status."""
_COLUMN_SIZES, _VALUES, _NULLS, _NANS, _DISTINCT, _LOWER, _UPPER, _SPLITS = 108, 109, 110, 137, 111, 125, 128, 132


@dataclass(frozen=True)
class Replacement:
    """A data file in another's place. name: in the same folder; metrics: None where no row is left, and no file."""

    name: str
    metrics: Metrics | None


@dataclass(frozen=True)
class Changes:
    """What becomes of data files, by their old paths. known: every file that some snapshot reads.

    An entry of a deleted file that no snapshot reads goes: its bounds can be the person's, and nobody can tell.
    """

    files: Mapping[Path, Replacement]
    known: Set[Path]

    def of(self, entry: Entry) -> Entry | None:
        """An entry as it will be; None where it goes."""
        if entry.path not in self.known:
            return None
        change = self.files.get(entry.path)
        if change is None:
            return entry
        if change.metrics is None:
            return None
        text = _beside(entry.text, change.name)
        return replace(entry, path=placed(text), text=text, rows=change.metrics.rows, size=change.metrics.size)

    def touch(self, entries: tuple[Entry, ...]) -> bool:
        """Whether a manifest with these entries has to be written again."""
        return any(self.of(entry) != entry for entry in entries)


def _beside(text: str, name: str) -> str:
    return f"{text.rpartition('/')[0]}/{name}"


def rewritten_manifest(path: Path, changes: Changes, entries: tuple[Entry, ...]) -> bytes:
    """A manifest's new bytes. entries: those that it has, in order; one of them stays at least."""
    container = Container.read(path)
    outer, inner = container.names, data_file_names(container)
    records = []
    for record, entry in zip(container.records, entries, strict=True):
        after = changes.of(entry)
        if after is None:
            continue
        change = changes.files.get(entry.path)
        if change is not None and change.metrics is not None:
            file = dict(record[outer[DATA_FILE]])
            file |= {inner[FILE_PATH]: after.text, **_measured(file, inner, change.metrics)}
            record = {**record, outer[DATA_FILE]: file}
        records.append(record)
    return container.with_records(records)


def _measured(file: Mapping[str, Any], names: Mapping[int, str], metrics: Metrics) -> dict[str, Any]:
    """The metrics of a file's record; of no column that had none, since its table may want none."""
    maps = {
        _COLUMN_SIZES: metrics.column_sizes,
        _VALUES: metrics.value_counts,
        _NULLS: metrics.null_counts,
        _LOWER: metrics.lower,
        _UPPER: metrics.upper,
    }
    found: dict[str, Any] = {names[RECORDS]: metrics.rows, names[FILE_SIZE]: metrics.size}
    for number, values in maps.items():
        name = names.get(number)
        if name is not None and file.get(name) is not None:
            had = {pair["key"] for pair in file[name]}
            pairs = [{"key": key, "value": value} for key, value in sorted((values or {}).items()) if key in had]
            found[name] = pairs if values is not None else None
    # what no footer tells: NaN among the values, how many are distinct
    found |= {names[number]: None for number in (_NANS, _DISTINCT) if file.get(names.get(number, "")) is not None}
    if file.get(names.get(_SPLITS, "")) is not None:
        found[names[_SPLITS]] = metrics.splits
    return found


@dataclass(frozen=True)
class NewManifest:
    """A manifest in another's place. text: its path, as the old one's is written. entries: what it has now.

    partitions: the summaries of its partitions; None where they are as they were.
    """

    text: str
    length: int
    entries: tuple[Entry, ...]
    partitions: list[dict[str, Any]] | None


def rewritten_list(path: Path, manifests: Mapping[Path, NewManifest | None]) -> bytes:
    """A manifest list's new bytes. manifests: by old path; None where nothing is left of one."""
    container = Container.read(path)
    names = container.names
    records = []
    for record in container.records:
        old = placed(record[names[MANIFEST_PATH]])
        if old not in manifests:
            records.append(record)
            continue
        new = manifests[old]
        if new is not None:
            records.append({**record, **_counted(record, names, new)})
    return container.with_records(records)


def _counted(record: Mapping[str, Any], names: Mapping[int, str], new: NewManifest) -> dict[str, Any]:
    found: dict[str, Any] = {names[MANIFEST_PATH]: new.text, names[MANIFEST_LENGTH]: new.length}
    for status, (files, rows) in _COUNTS.items():
        mine = [entry for entry in new.entries if entry.status == status]
        for number, value in ((files, len(mine)), (rows, sum(entry.rows for entry in mine))):
            if number in names:
                found[names[number]] = value
    if new.partitions is not None and record.get(names.get(PARTITIONS, "")) is not None:
        fields = _fields_of_summaries(record, names)
        found[names[PARTITIONS]] = [{field: one.get(field) for field in fields} for one in new.partitions]
    return found


def _fields_of_summaries(record: Mapping[str, Any], names: Mapping[int, str]) -> list[str]:
    """Names of the fields of a summary of partitions; a table without partitions has none."""
    return [name for one in record[names[PARTITIONS]][:1] for name in one]


def partition_summaries(
    io: FileIO, metadata: TableMetadata, old: Container, path: str, spec_id: int
) -> list[dict[str, Any]]:
    """The summaries of a new manifest's partitions, read back from it: the old ones' bounds can be the person's."""
    from pyiceberg.manifest import ManifestContent, ManifestFile, construct_partition_summaries
    from pyiceberg.schema import Schema

    manifest = ManifestFile.from_args(
        manifest_path=path,
        manifest_length=0,
        partition_spec_id=spec_id,
        content=ManifestContent.DATA,
        sequence_number=0,
        min_sequence_number=0,
        added_snapshot_id=0,
    )
    entries = manifest.fetch_manifest_entry(io, discard_deleted=False)
    schema = Schema.model_validate_json(old.metadata["schema"])
    partitions = [entry.data_file.partition for entry in entries]
    return [
        {
            "contains_null": one.contains_null,
            "contains_nan": one.contains_nan,
            "lower_bound": one.lower_bound,
            "upper_bound": one.upper_bound,
        }
        for one in construct_partition_summaries(metadata.specs()[spec_id], schema, partitions)
    ]
