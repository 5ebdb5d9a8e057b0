"""What discovery found to exist: tables, folders, objects. Pure data; `pii_tracer.estate` fills it."""

from __future__ import annotations

import hashlib

from pii_tracer.enums import StrEnum
from pii_tracer.model import Column, DatasetId, Format, Frozen


class RefKind(StrEnum):
    """Named things that keep old data alive."""

    BRANCH = "branch"
    TAG = "tag"
    SAVEPOINT = "savepoint"


class Ref(Frozen):
    """A branch, tag or savepoint; `at` is its snapshot id or instant."""

    name: str
    kind: RefKind
    at: str


class TableState(Frozen):
    """One table or bare folder as it is now.

    table: the name Spark SQL knows it by (`lake.prod.payments`), or None for a bare or unregistered folder.
    location: absolute path or URI of the folder that holds everything of it.
    snapshot: current snapshot id, version or instant; for bare folders a digest over (relative path, size, checksum).
    write_mode: Iceberg `copy-on-write`/`merge-on-read`, Hudi `cow`/`mor`; None elsewhere.
    rows, files, bytes: of the current state (bytes of data files); rows None when only a scan could tell.
    clone_of: location of the table whose files it reads (Delta shallow clone).
    same_files_as: location of a table whose data files are byte for byte in here too (a copied folder).
    """

    dataset: DatasetId
    table: str | None
    location: str
    format: Format
    snapshot: str
    columns: tuple[Column, ...]
    partition_columns: tuple[str, ...] = ()
    format_version: int | None = None
    write_mode: str | None = None
    deletion_vectors: bool = False
    change_data_feed: bool = False
    codec: str | None = None
    rows: int | None = None
    files: int = 0
    bytes: int = 0
    refs: tuple[Ref, ...] = ()
    versions: int = 1
    properties: dict[str, str] = {}
    clone_of: str | None = None
    same_files_as: str | None = None


class ObjectVersion(Frozen):
    """One version of one object in a bucket (ListObjectVersions)."""

    key: str
    version_id: str
    latest: bool
    delete_marker: bool = False
    size: int
    etag: str = ""
    storage_class: str = "STANDARD"
    modified: str


class ObjectSet(Frozen):
    """The objects under one prefix of one bucket, all versions.

    of: table this prefix archives, as the estate file declares it.
    replica_of: `s3://bucket/prefix` this one is replicated from, read from the origin's replication rules.
    """

    dataset: DatasetId
    bucket: str
    prefix: str
    region: str
    of: str
    replica_of: str | None = None
    versioned: bool
    object_lock: bool = False
    expires_after_days: int | None = None
    versions: tuple[ObjectVersion, ...]

    @property
    def location(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"


class InventoryGap(Frozen):
    """Something that could not be found or read; it blocks until it is closed or waived."""

    dataset: DatasetId | None
    kind: str
    reason: str
    evidence: str


class Inventory(Frozen):
    """Everything discovery found, sorted by location."""

    tables: tuple[TableState, ...]
    objects: tuple[ObjectSet, ...] = ()
    gaps: tuple[InventoryGap, ...] = ()

    def digest(self) -> str:
        """SHA-256 over the canonical JSON of the inventory."""
        return "sha256:" + hashlib.sha256(self.model_dump_json().encode()).hexdigest()
