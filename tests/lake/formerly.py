"""What the libraries without Spark cannot write: Delta columns under a mapping, and Iceberg's delete files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record

UUID = "2f1c5b0e-7d0f-4c0e-9a52-0d6f4f1c9b11"


def mapped(place: Path, *versions: dict[str, str]) -> None:
    """Give each version of a Delta table a mapping: names that its columns have, by their names in the files.

    https://github.com/delta-io/delta/blob/master/PROTOCOL.md#column-mapping
    """
    logs = sorted((place / "_delta_log").glob("*.json"))
    first = [json.loads(line) for line in logs[0].read_text().splitlines()]
    (metadata,) = (action["metaData"] for action in first if "metaData" in action)
    types = {field["name"]: field["type"] for field in json.loads(metadata["schemaString"])["fields"]}
    metadata["configuration"] = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}
    for number, (log, names) in enumerate(zip(logs, versions, strict=True)):
        actions: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
        fields = [
            {
                "name": name,
                "type": types[physical],
                "nullable": True,
                "metadata": {
                    "delta.columnMapping.id": list(types).index(physical) + 1,
                    "delta.columnMapping.physicalName": physical,
                },
            }
            for physical, name in names.items()
        ]
        told = {**metadata, "schemaString": json.dumps({"type": "struct", "fields": fields})}
        actions = [action for action in actions if "metaData" not in action and "protocol" not in action]
        actions.append({"metaData": told})
        if number == 0:
            actions.append({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}})
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))


class _Deletes(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def add_equality_delete(table: Any, snapshot: Snapshot, file: Path) -> None:
    """As if the snapshot had come with an equality delete on the first column; the file is named, and need not exist."""
    deleted = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=str(file),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=1,
        equality_ids=[1],
    )
    _add_delete(table, snapshot, deleted)


def add_position_delete(table: Any, snapshot: Snapshot, data_file: str, position: int) -> None:
    """As if the snapshot had come with the delete of one row of a data file, by its position."""
    fields = [("file_path", pa.string(), b"2147483546"), ("pos", pa.int64(), b"2147483545")]
    schema = pa.schema([pa.field(n, kind, False, {b"PARQUET:field_id": number}) for n, kind, number in fields])
    rows = pa.table({"file_path": [data_file], "pos": [position]}, schema=schema)
    place = f"{table.location()}/data/00000-0-{UUID}-deletes.parquet"
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    with table.io.new_output(place).create() as stream:
        stream.write(sink.getvalue())
    deleted = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=place,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=len(sink.getvalue()),
    )
    _add_delete(table, snapshot, deleted)


def _add_delete(table: Any, snapshot: Snapshot, deleted: DataFile) -> None:
    before = snapshot.manifests(table.io)
    number, sequence = snapshot.snapshot_id, snapshot.sequence_number or 0
    output = table.io.new_output(f"{table.location()}/metadata/{number}-{UUID}-deletes.avro")
    deleted.spec_id = 0
    with _Deletes(table.specs()[0], table.schema(), output, number, "deflate") as manifest:
        manifest.add_entry(
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=number,
                sequence_number=sequence,
                file_sequence_number=sequence,
                data_file=deleted,
            )
        )
    place = table.io.new_output(snapshot.manifest_list)
    with write_manifest_list(2, place, number, snapshot.parent_snapshot_id, sequence, "deflate") as written:
        written.add_manifests([*before, manifest.to_manifest_file()])
