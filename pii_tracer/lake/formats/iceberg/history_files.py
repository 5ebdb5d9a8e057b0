"""Every file of every snapshot of an Iceberg table on this machine, as manifests and their lists name it.

Records are read by their Avro schema as it was written, by field ids: names differ between writers and versions
(https://iceberg.apache.org/spec/#manifests).
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pii_tracer.lake.formats.iceberg.metadata_json import metadata_json
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import placed

ADDED, DELETED = 1, 2
"""Status of a manifest's entry; 0 is one that was there before."""

# ids of fields, https://iceberg.apache.org/spec/#manifest-lists and #manifest-entry-fields
MANIFEST_PATH, MANIFEST_LENGTH, SPEC_ID, ADDED_SNAPSHOT, PARTITIONS, LIST_KEY = 500, 501, 502, 503, 507, 519
STATUS, SNAPSHOT_ID, DATA_FILE = 0, 1, 2
CONTENT, FILE_PATH, FILE_FORMAT, PARTITION, RECORDS, FILE_SIZE, FILE_KEY = 134, 100, 101, 102, 103, 104, 131


@dataclass(frozen=True)
class Container:
    """An Avro file: records, and what its header says. metadata: without the codec and Avro's own schema."""

    schema: Any
    records: list[dict[str, Any]]
    metadata: Mapping[str, str]
    codec: str

    @classmethod
    def read(cls, path: Path) -> Container:
        """Raises OSError; and what fastavro raises of a damaged file."""
        import fastavro

        reader = fastavro.reader(io.BytesIO(path.read_bytes()))
        records: list[Any] = list(reader)
        told = {key: text for key, text in reader.metadata.items() if not key.startswith("avro.")}
        return cls(reader.writer_schema, records, told, reader.codec)

    @property
    def names(self) -> dict[int, str]:
        """Names of the records' fields by id."""
        return names_of(self.schema)

    def with_records(self, records: list[dict[str, Any]]) -> bytes:
        """A file with other records, and all else as it was."""
        import fastavro

        sink = io.BytesIO()
        codec = self.codec if self.codec in ("null", "deflate") else "deflate"
        fastavro.writer(sink, self.schema, records, codec=codec, metadata=dict(self.metadata))
        return sink.getvalue()


def names_of(schema: Any) -> dict[int, str]:
    """Names of a record's fields by id."""
    return {field["field-id"]: field["name"] for field in schema["fields"] if "field-id" in field}


def data_file_names(container: Container) -> dict[int, str]:
    """Names of the fields of a manifest's data files by id."""
    (kind,) = (f["type"] for f in container.schema["fields"] if f.get("field-id") == DATA_FILE)
    return names_of(kind)


@dataclass(frozen=True)
class Entry:
    """A file as one manifest names it. snapshot: that added or deleted it; None: the one that added the manifest.

    text: its path as it is written. partition: as text, only to be compared.
    """

    status: int
    snapshot: int | None
    path: Path
    text: str
    kind: str
    deletes: bool
    rows: int
    size: int
    partition: str
    encrypted: bool


@dataclass(frozen=True)
class Listed:
    """A manifest in a snapshot's list. text: its path as it is written. spec: id of its partition spec."""

    path: Path
    text: str
    spec: int
    added_by: int | None
    encrypted: bool


@dataclass(frozen=True)
class History:
    """A table's snapshots. document: the metadata file's JSON; lists: by snapshot id."""

    metadata: Path
    document: dict[str, Any]
    lists: Mapping[int, tuple[Listed, ...]]
    manifests: Mapping[Path, tuple[Entry, ...]]

    @classmethod
    def read(cls, metadata: Path) -> History:
        """All that one metadata file names. Each manifest is read once.

        Raises:
            EstateError: something of it cannot be read.
        """
        try:
            document = metadata_json(metadata.read_bytes())
            lists: dict[int, tuple[Listed, ...]] = {}
            manifests: dict[Path, tuple[Entry, ...]] = {}
            for snapshot in document.get("snapshots") or []:
                lists[int(snapshot["snapshot-id"])] = tuple(_listed(placed(snapshot["manifest-list"])))
            for listed in (one for each in lists.values() for one in each):
                if listed.path not in manifests:
                    manifests[listed.path] = tuple(_entries(listed.path))
        except Exception as error:  # parsers of JSON and Avro raise errors of many families
            raise EstateError(
                f"the table's history cannot be read: {type(error).__name__}",
                where=str(metadata),
                todo="repair or restore the table's metadata",
            ) from None
        return cls(metadata, document, lists, manifests)

    @property
    def live(self) -> dict[Path, Entry]:
        """Every file that some snapshot reads."""
        return {e.path: e for entries in self.manifests.values() for e in entries if e.status != DELETED}

    @property
    def named(self) -> frozenset[Path]:
        """Every file that the table needs, its metadata file and statistics among them, links followed."""
        document = self.document
        told = [*(document.get("statistics") or ()), *(document.get("partition-statistics") or ())]
        texts = [snapshot["manifest-list"] for snapshot in document.get("snapshots") or ()]
        texts += [one["statistics-path"] for one in told]
        paths = {self.metadata, *self.live, *self.manifests, *map(placed, texts)}
        return frozenset(path.resolve() for path in paths)


def _listed(path: Path) -> Iterator[Listed]:
    container = Container.read(path)
    names = container.names
    for record in container.records:
        text = record[names[MANIFEST_PATH]]
        key = record.get(names.get(LIST_KEY, ""))
        yield Listed(placed(text), text, record[names[SPEC_ID]], record.get(names[ADDED_SNAPSHOT]), key is not None)


def _entries(path: Path) -> Iterator[Entry]:
    container = Container.read(path)
    outer, inner = container.names, data_file_names(container)
    for record in container.records:
        file = record[outer[DATA_FILE]]
        text = file[inner[FILE_PATH]]
        yield Entry(
            status=record[outer[STATUS]],
            snapshot=record[outer[SNAPSHOT_ID]],
            path=placed(text),
            text=text,
            kind=str(file[inner[FILE_FORMAT]]).upper(),
            deletes=bool(file.get(inner.get(CONTENT, ""))),
            rows=file[inner[RECORDS]],
            size=file[inner[FILE_SIZE]],
            partition=repr(file[inner[PARTITION]]),
            encrypted=file.get(inner.get(FILE_KEY, "")) is not None,
        )
