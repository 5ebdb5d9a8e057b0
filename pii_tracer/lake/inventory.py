"""What discovery found to exist: tables, folders, objects. Pure data; `pii_tracer.lake.discovery` fills it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from pydantic import Field, PlainSerializer, PlainValidator

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.config.kafka import Topic
from pii_tracer.lake.catalog_only_partitions import PartitionedTable
from pii_tracer.lake.packed_versions import Packed
from pii_tracer.lake.stores.glacier.vault_state import VaultState
from pii_tracer.lake.stores.hdfs.places import HdfsPlace
from pii_tracer.lake.stores.lakefs.repository_state import LakefsState
from pii_tracer.lake.stores.object_places.places import ObjectPlace
from pii_tracer.model.datasets import PLAIN, Column, DatasetId, Format, Frozen
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.hive_text.text_reading_rules import NO_TEXTS, TextPlaces
from pii_tracer.model.locations import S3Location, is_hdfs, is_remote, is_s3, object_uri

ENCODING = "csv.encoding"
"""In `TableState.properties`: what the estate file declares of CSV files that are not UTF-8."""
NOT_NULL = "NOT NULL"
GENERATED, IDENTITY = "a generated column", "an identity column"
"""In `TableState.fixed`: the table itself makes the column from others, or counts its rows there."""


class RefKind(StrEnum):
    """Named things that keep old data alive."""

    BRANCH = "branch"
    TAG = "tag"
    SAVEPOINT = "savepoint"
    NESSIE_BRANCH = "nessie-branch"
    NESSIE_TAG = "nessie-tag"


NESSIE_WORK_BRANCH = "pii_tracer_work"
"""The branch that a tag of Nessie is erased through; it is there only while a step runs."""


class Ref(Frozen):
    """A branch, tag or savepoint; `at` is its snapshot id or instant.

    table: what Spark SQL calls the table there, for references of a catalog (Nessie), where it has a name.
    lapses: when it is older than the table lets it become (ISO 8601); None where it stays for ever. Nothing removes it
    then but a job that expires snapshots.
    lost: columns of its snapshot that the table's schema no longer has, or has in another type: written again, the
    reference would lose other people's values in them.
    """

    name: str
    kind: RefKind
    at: str
    table: str | None = None
    lapses: str | None = None
    lost: tuple[str, ...] = ()


class Expiry(Frozen):
    """What a table's own metadata tells of the jobs that expire its snapshots.

    ran: snapshots have been removed before. due: since when the oldest snapshot that the table does not keep any more
    may be removed (ISO 8601); None where there is none. A day long past: nothing removes them.
    """

    ran: bool
    due: str | None = None


class NessieTable(Frozen):
    """A table whose history a Nessie catalog keeps.

    catalog: its name in the estate file; ref and kind: the reference that `TableState.table` is read from.
    """

    catalog: str
    ref: str
    kind: RefKind


class KeptHistory(Frozen):
    """An Iceberg table whose every snapshot is to stay, without the persons (`keep_history` in the estate file).

    obstacles: why that cannot be done. late: columns, in lower case, that not every schema of the table has.
    """

    obstacles: tuple[str, ...] = ()
    late: tuple[str, ...] = ()


class Sharing(Frozen):
    """Another table or folder that has data files in common. files: their paths, sorted.

    table: the other one's name in Spark SQL, where it has one; location: its folder.
    """

    table: str | None
    location: str
    format: Format
    files: tuple[str, ...]


class TableState(Frozen):
    """One table or bare folder as it is now.

    table: the name Spark SQL knows it by (`lake.prod.payments`), or None for a bare or unregistered folder.
    location: absolute path or URI of the folder that holds everything of it.
    snapshot: current snapshot id, version or instant; for bare folders a digest over (relative path, size, checksum).
    write_mode: Iceberg `copy-on-write`/`merge-on-read`, Hudi `cow`/`mor`; None elsewhere.
    rows, files, bytes: of the current state (bytes of data files); rows None when only a scan could tell.
    clone_of: location of the table whose files it reads (Delta shallow clone). clones: locations of those reading its.
    same_files_as: location of a table whose data files are byte for byte in here too (a copied folder). partitions_of:
    tables whose partitions lie here, outside their folders. metadata: the metadata file that the table's catalog points
    at (Iceberg); None where the folder tells which one counts. sharing: with whom files are shared, so that neither
    side's clean-up may remove what the other still reads. expiry: whether anything expires its snapshots (Iceberg).
    row_key: columns by which the table itself tells rows apart (Hudi's record key, Iceberg's identifier fields).
    fixed: columns that cannot become NULL, and why (`NOT NULL`, a generated column). defaults: column and SQL of what a
    row without a value gets there. padded: columns of CHAR(n), whose values end in blanks, as far as that is told.
    nessie: set where a Nessie catalog keeps the table; its other references are among `refs`.
    staged: ids of snapshots that write-audit-publish has staged and nobody published (Iceberg). uneven: ways to columns
    of a bare folder, and to fields of its structs, that not every file has (JSON apart: a row may lack any), sorted.
    loose: nobody knows the order of its columns, which INSERT goes by: a folder of JSON, or one whose files disagree.
    mixed: columns of a folder of JSON in or below which one line has an object or a list and another something else,
    which Spark takes for text as long as there are both.
    unlike: ways to columns of a bare folder, and to fields of its structs, of whose values readers differ: two names
    differ in case alone, two files have them as different types (a number and text), or lines of JSON have text and a
    number with a fraction or an exponent, which each reader writes in its own way as text.
    outside: data files beyond its folder that it reads, sorted (Iceberg: `add_files`, `snapshot`; Delta: a clone's).
    kept_history: set where its history is to stay (Iceberg).
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
    clones: tuple[str, ...] = ()
    same_files_as: str | None = None
    partitions_of: tuple[DatasetId, ...] = ()
    metadata: str | None = None
    nessie: NessieTable | None = None
    sharing: tuple[Sharing, ...] = ()
    outside: tuple[str, ...] = ()
    expiry: Expiry | None = None
    staged: tuple[str, ...] = ()
    row_key: tuple[str, ...] = ()
    fixed: dict[str, str] = {}
    defaults: tuple[tuple[str, str], ...] = Field(default=(), exclude_if=lambda told: not told)
    padded: tuple[str, ...] = ()
    uneven: tuple[tuple[str, ...], ...] = ()
    loose: bool = False
    mixed: tuple[str, ...] = ()
    unlike: tuple[tuple[str, ...], ...] = ()
    kept_history: KeptHistory | None = None

    @property
    def remote(self) -> bool:
        """Whether it lies in a store that is reached over the network, and in no folder of this machine."""
        return is_remote(self.location)

    @property
    def in_hdfs(self) -> bool:
        """Whether it lies in HDFS: a bare folder, whose files are written again one by one, or a table."""
        return is_hdfs(self.location)

    @property
    def in_objects(self) -> bool:
        """Whether it is a bare folder in S3: no engine writes it, each object is written again by itself."""
        return self.format in PLAIN and is_s3(self.location)


class ObjectLock(Frozen):
    """What S3 refuses a delete by. mode: `GOVERNANCE`, `COMPLIANCE` or None; until: ISO 8601, of its retention."""

    mode: str | None = None
    until: str | None = None
    legal_hold: bool = False


class Upload(Frozen):
    """An unfinished multipart upload: bytes that no listing of objects shows.

    touched: when it was begun or got its newest part, ISO 8601.
    """

    key: str
    upload_id: str
    touched: str


class ObjectVersion(Frozen):
    """One version of one object in a bucket (ListObjectVersions). lock: only in buckets that can lock."""

    key: str
    version_id: str
    latest: bool
    delete_marker: bool = False
    size: int
    etag: str = ""
    storage_class: str = "STANDARD"
    modified: str
    lock: ObjectLock | None = None

    @property
    def line(self) -> str:
        """Key and version id on one line: a key may hold ends of lines."""
        return f"{one_line(self.key)}@{self.version_id}"


def one_line(key: str) -> str:
    """An object's key where a line stands for it."""
    return key.replace("\n", "\\n")


def _packed(value: Any) -> Packed[ObjectVersion]:
    if isinstance(value, Packed):
        return value
    return Packed(ObjectVersion, (ObjectVersion.model_validate(item) for item in value))


Versions = Annotated[Sequence[ObjectVersion], PlainValidator(_packed), PlainSerializer(tuple)]
"""Versions packed: a bucket has hundreds of thousands of them."""


class ObjectSet(Frozen):
    """The objects under one prefix of one bucket, all versions.

    of: table this prefix archives, as the estate file declares it. format: of its objects, as it declares.
    replica_of: `s3://bucket/prefix` this one is replicated from, read from the origin's replication rules.
    fed: what is newly written at `replica_of` arrives here by itself; not where the rule is disabled or narrower than
    the prefix, nor from a replica, since S3 does not replicate replicas again.
    copied_to: (bucket, prefix) of enabled rules: what is written here under the prefix may be copied to that bucket.
    bypass_governance: why locks in GOVERNANCE mode are set aside, as the estate file declares. delete_whole: why whole
    objects are deleted, as it declares.
    default_retention: the lock that every newly written object gets (`COMPLIANCE, 30 days`). cold_tiers: archive tiers
    that Intelligent-Tiering moves objects into. named_in: inventories and access logs that name the objects (S8).
    of_others: (key, version id, ETag) of versions that the manifest gives to other tables; not among `versions`.
    other_tables: these tables, in lower case.
    expires_after_days: when the bucket's lifecycle removes the bytes of an object; noncurrent_days: those of them that
    count only from when a version stopped being current.
    """

    dataset: DatasetId
    bucket: str
    prefix: str
    region: str
    of: str
    format: Format | None = None
    replica_of: str | None = None
    fed: bool = False
    copied_to: tuple[tuple[str, str], ...] = ()
    versioned: bool
    object_lock: bool = False
    bypass_governance: str | None = None
    delete_whole: str | None = None
    default_retention: str | None = None
    cold_tiers: tuple[str, ...] = ()
    named_in: tuple[str, ...] = ()
    of_others: tuple[tuple[str, str, str], ...] = ()
    other_tables: tuple[str, ...] = ()
    expires_after_days: int | None = None
    noncurrent_days: int = 0
    versions: Versions
    uploads: tuple[Upload, ...] = ()

    @property
    def location(self) -> str:
        return object_uri(self.bucket, self.prefix)

    def listing(self) -> str:
        """SHA-256 over all versions and unfinished uploads, as listed."""
        told = [_packed(self.versions).digest(), *sorted(one.model_dump_json() for one in self.uploads)]
        return "sha256:" + hashlib.sha256("\n".join(told).encode()).hexdigest()


class RemotePlace(Frozen):
    """A folder in S3 with tables, or files of tables.

    tables: what their catalogs call them; none for a root and what lies in it. format: None where nobody tells one.
    versions: of every object in it, without those that lie in another place of the inventory; uploads: unfinished ones.
    unlisted: why it could not be listed. doubt: what could not be told of where its tables' files lie. untreated: why
    nothing is erased there; None where it is a table of the inventory like others.
    """

    location: S3Location
    tables: tuple[str, ...] = ()
    format: Format | None = None
    region: str | None = None
    versions: Versions = ()
    uploads: tuple[Upload, ...] = ()
    unlisted: str | None = None
    doubt: str | None = None
    untreated: str | None = None

    @property
    def dataset(self) -> DatasetId:
        return self.location.dataset


class TopicState(Frozen):
    """One Kafka topic as it is now.

    declared: what the estate file says of it. topic_id: the broker's id, another one after it was made again.
    replicas: how many brokers hold each partition. settings: values in force, by name; overrides: those of them that
    are set on the topic itself. offsets: (first, next) of each partition; compaction leaves fewer records than that.
    """

    dataset: DatasetId
    cluster: str
    declared: Topic
    topic_id: str
    replicas: int
    settings: dict[str, str]
    overrides: dict[str, str]
    offsets: tuple[tuple[int, int], ...]

    @property
    def location(self) -> str:
        return f"{self.dataset.namespace}/{self.dataset.name}"

    @property
    def compacted(self) -> bool:
        """Whether old values of a key are removed."""
        return "compact" in self.settings.get("cleanup.policy", "")

    @property
    def lapses(self) -> bool:
        """Whether records are removed by their age, or by the size of what is there."""
        limits = (int(self.settings.get(name, "-1")) for name in ("retention.ms", "retention.bytes"))
        return "delete" in self.settings.get("cleanup.policy", "") and any(limit >= 0 for limit in limits)

    def fingerprint(self) -> str:
        """What a plan relies on: identity, partitions and settings, not the offsets."""
        values = [f"{name}={self.settings[name]}" for name in sorted(self.settings)]
        own = [f"{name} is set on the topic" for name in sorted(self.overrides)]
        return "\n".join([f"id {self.topic_id}", f"partitions {len(self.offsets)}", *values, *own])


class InventoryGap(Frozen):
    """Something that could not be found or read; it blocks until it is closed or waived.

    listed: digest of all the files that it is about, where reason and evidence show only some of them.
    """

    dataset: DatasetId | None
    kind: GapKind
    reason: str
    evidence: str
    listed: str = Field(default="", exclude_if=lambda listed: not listed)


class Inventory(Frozen):
    """Everything discovery found, sorted by location. texts: by what rules text is read; tables say it, too."""

    tables: tuple[TableState, ...]
    objects: tuple[ObjectSet, ...] = ()
    topics: tuple[TopicState, ...] = ()
    lakefs: tuple[LakefsState, ...] = ()
    vaults: tuple[VaultState, ...] = ()
    remote: tuple[RemotePlace, ...] = ()
    hdfs: tuple[HdfsPlace, ...] = ()
    object_places: tuple[ObjectPlace, ...] = ()
    partitioned: tuple[PartitionedTable, ...] = ()
    gaps: tuple[InventoryGap, ...] = ()
    texts: TextPlaces = Field(default=NO_TEXTS, exclude=True)

    def digest(self) -> str:
        """SHA-256 over the canonical JSON of the inventory; columns, of which a large estate has a million, go in by
        their words, and versions by a digest of their own."""
        without: dict[str, Any] = {place: {"__all__": {"versions"}} for place in ("objects", "remote")}
        without["tables"] = {"__all__": {"columns"}}
        without |= {name: True for name in ("hdfs", "object_places", "partitioned") if not getattr(self, name)}
        found = hashlib.sha256(self.model_dump_json(exclude=without).encode())
        for state in self.tables:
            words = [""] * (2 * len(state.columns))
            words[::2] = [column.name for column in state.columns]
            words[1::2] = [column.type for column in state.columns]
            found.update(msgspec.json.encode(words))
        for versions in (*(o.versions for o in self.objects), *(r.versions for r in self.remote)):
            found.update(_packed(versions).digest().encode())
        return "sha256:" + found.hexdigest()
