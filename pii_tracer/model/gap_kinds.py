"""The kinds of gaps. What each means, and what to do about it: docs/gaps.md, in the same order."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

from pydantic import BeforeValidator

from pii_tracer.common.str_enum import StrEnum


class GapKind(StrEnum):
    """Why a plan or an inventory cannot vouch for a place; `unwaivable` in the policy names these."""

    # folders and files
    MISSING_ROOT = "missing_root"
    OUTSIDE_ROOTS = "outside_roots"
    UNREADABLE = "unreadable"
    OUTSIDE_LINK = "outside_link"
    HIDDEN_DATA = "hidden_data"
    UNKNOWN_FILE = "unknown_file"
    TWO_FORMATS = "two_formats"
    NESTED_TABLE = "nested_table"
    FOLDER_AROUND_TABLES = "folder_around_tables"
    MIXED_FORMATS = "mixed_formats"
    MIXED_COLUMNS = "mixed_columns"
    NOT_SCANNED = "not_scanned"
    UNEXPECTED_COPY = "unexpected_copy"

    # tables
    MISSING_TABLE = "missing_table"
    FORMAT_MISMATCH = "format_mismatch"
    MISSING_FILES = "missing_files"
    EXTERNAL_FILES = "external_files"
    EXTERNAL_METADATA = "external_metadata"
    MOVED_TABLE = "moved_table"
    SHARED_FILES = "shared_files"
    STRANGE_FILES = "strange_files"
    STAGED_SNAPSHOT = "staged_snapshot"
    UNKNOWN_VERSION = "unknown_version"
    REF_SCHEMA = "ref_schema"
    KEEP_HISTORY = "keep_history"
    CLONE_READS_FILES = "clone_reads_files"
    TABLE_TEXT = "table_text"
    LEFT_BEHIND = "left_behind"
    COLUMN_NAMES = "column_names"
    STREAMING_STATE = "streaming_state"

    # catalogs
    CATALOG_UNREADABLE = "catalog_unreadable"
    UNKNOWN_CATALOG = "unknown_catalog"
    UNKNOWN_TABLE = "unknown_table"
    REGISTERED_TWICE = "registered_twice"
    UNNAMEABLE_TABLE = "unnameable_table"
    REMOTE_TABLE = "remote_table"
    WORK_BRANCH_LEFT = "work_branch_left"
    DELETES_METADATA = "deletes_metadata"
    UNSEEN_COMMITS = "unseen_commits"
    NESSIE_STATE = "nessie_state"

    # object storage, archives and vaults
    S3_BUCKET = "s3_bucket"
    S3_SETTING = "s3_setting"
    S3_MANIFEST = "s3_manifest"
    MFA_DELETE = "mfa_delete"
    S3_NEIGHBOURS = "s3_neighbours"
    S3_OVERLAP = "s3_overlap"
    S3_REPLICATED_BACK = "s3_replicated_back"
    S3_LEGAL_HOLD = "s3_legal_hold"
    ARCHIVE_FORMAT = "archive_format"
    ARCHIVE_MATCH = "archive_match"
    OBJECT_METADATA = "object_metadata"
    BESIDE_UNREAD = "beside_unread"
    OBJECT_NAMES = "object_names"
    ARCHIVE_UNMATCHED = "archive_unmatched"
    MANIFEST_OF_COPY = "manifest_of_copy"
    VAULT_INVENTORY = "vault_inventory"
    VAULT_MANIFEST = "vault_manifest"

    # HDFS
    HDFS_PLACE = "hdfs_place"
    HDFS_SNAPSHOT = "hdfs_snapshot"
    HDFS_TRASH = "hdfs_trash"
    HDFS_TEMPORARY = "hdfs_temporary"
    HDFS_UNREAD = "hdfs_unread"

    # object stores beside S3
    OBJECT_PLACE = "object_place"
    OBJECT_HELD = "object_held"
    OBJECT_PLACE_UNREAD = "object_place_unread"

    # Kafka, lakeFS and backups
    KAFKA_CLUSTER = "kafka_cluster"
    MISSING_TOPIC = "missing_topic"
    KAFKA_TOPIC = "kafka_topic"
    FOLLOWER_REPLICAS = "follower_replicas"
    LAKEFS_REPOSITORY = "lakefs_repository"
    LAKEFS_DANGLING = "lakefs_dangling"
    LAKEFS_STORAGE = "lakefs_storage"
    LAKEFS_MESSAGES = "lakefs_messages"
    LAKEFS_IMPORTED = "lakefs_imported"
    LAKEFS_STAGED = "lakefs_staged"
    LAKEFS_PROTECTED = "lakefs_protected"
    LAKEFS_TAG = "lakefs_tag"
    BACKUP_UNMATCHED = "backup_unmatched"

    # lineage and the person's values
    LINEAGE = "lineage"
    LINEAGE_TEXT = "lineage_text"
    NOT_FOUND = "not_found"
    CANNOT_BE_PROVED = "cannot_be_proved"
    REBUILD_UNPROVED = "rebuild_unproved"
    VALUE_NOT_CERTAIN = "value_not_certain"
    SAME_DIGITS = "same_digits"
    SHARED_IDENTIFIER = "shared_identifier"
    FOREIGN_KEYS = "foreign_keys"
    DECLARED_KEY = "declared_key"
    FORMER_VALUE = "former_value"
    FORMER_UNREAD = "former_unread"
    KEY_ONLY = "key_only"
    OTHERS_ROWS = "others_rows"
    NOT_KEYS = "not_keys"
    KEY_OF_SEVERAL = "key_of_several"
    SEVERAL_PERSONS = "several_persons"

    # holds, writers and choice
    HOLD_UNMATCHED = "hold_unmatched"
    HOLD_KEEPS_REST = "hold_keeps_rest"
    HOLD_BLOCKS = "hold_blocks"
    HOLD_EXPIRES = "hold_expires"
    HOLD_REFILLS = "hold_refills"
    HOLD_OVERWRITTEN = "hold_overwritten"
    HOLD_IN_BACKUP = "hold_in_backup"
    WRITER_RUNNING = "writer_running"
    UNGUARDED_COMMITS = "unguarded_commits"
    LEFT_OUT = "left_out"

    # encrypted datasets
    KEY_MISSING = "key_missing"
    KEY_COLUMNS = "key_columns"
    KEY_UNREAD = "key_unread"
    KEY_KMS_STATE = "key_kms_state"
    KEY_SHARED = "key_shared"
    KEY_KMS_SHARED = "key_kms_shared"
    KEY_ENCRYPTED_MISSING = "key_encrypted_missing"
    KEY_ENCRYPTED_COLUMNS = "key_encrypted_columns"
    KEY_READABLE = "key_readable"
    KEY_ARCHIVED_CIPHERTEXT = "key_archived_ciphertext"
    KEY_UNTRACED = "key_untraced"
    KEY_REMEMBERED = "key_remembered"
    KEY_OPENED = "key_opened"
    PLAIN_CELLS = "plain_cells"
    PLAIN_ARCHIVE = "plain_archive"


class LineageGapKind(StrEnum):
    """Why lineage is not complete. Where that concerns a person, the plan's gap is of the kind `GapKind.LINEAGE`."""

    UNREADABLE_EVENT = "unreadable_event"
    MALFORMED_EVENT = "malformed_event"
    NO_OUTPUTS = "no_outputs"
    NO_COLUMNS = "no_columns"
    UNRESOLVED_NAME = "unresolved_name"
    SOURCE_UNREACHABLE = "source_unreachable"
    LOST_EVENTS = "lost_events"
    UNREADABLE_QUERY = "unreadable_query"
    UNREADABLE_SQL = "unreadable_sql"
    UNKNOWN_DIALECT = "unknown_dialect"
    SQL_OPAQUE = "sql_opaque"
    SQL_PARTIAL = "sql_partial"
    UNREADABLE_DBT = "unreadable_dbt"
    DBT_OPAQUE = "dbt_opaque"


HDFS_PLACES = frozenset({GapKind.HDFS_PLACE, GapKind.HDFS_SNAPSHOT, GapKind.HDFS_TRASH, GapKind.HDFS_TEMPORARY})
"""Kinds about a place in HDFS that was found, whose evidence is the place."""
IN_STORES = frozenset({*HDFS_PLACES, GapKind.OBJECT_PLACE, GapKind.OBJECT_HELD, GapKind.REMOTE_TABLE})
"""Kinds about a place in a store that no step erases."""
UNREAD_AS_A_WHOLE = frozenset({GapKind.UNREADABLE, GapKind.HDFS_UNREAD, GapKind.OBJECT_PLACE_UNREAD})
"""Kinds about a place of which planning may have read nothing: who waives one answers for all of it."""
OF_PLACES = frozenset(
    {
        # folders and files
        GapKind.MISSING_ROOT,
        GapKind.OUTSIDE_ROOTS,
        GapKind.UNREADABLE,
        GapKind.OUTSIDE_LINK,
        GapKind.HIDDEN_DATA,
        GapKind.UNKNOWN_FILE,
        GapKind.TWO_FORMATS,
        GapKind.NESTED_TABLE,
        GapKind.FOLDER_AROUND_TABLES,
        GapKind.MIXED_FORMATS,
        GapKind.MIXED_COLUMNS,
        GapKind.NOT_SCANNED,
        # tables
        GapKind.MISSING_TABLE,
        GapKind.FORMAT_MISMATCH,
        GapKind.MISSING_FILES,
        GapKind.EXTERNAL_FILES,
        GapKind.EXTERNAL_METADATA,
        GapKind.MOVED_TABLE,
        GapKind.SHARED_FILES,
        GapKind.STRANGE_FILES,
        GapKind.STAGED_SNAPSHOT,
        GapKind.UNKNOWN_VERSION,
        # catalogs
        GapKind.CATALOG_UNREADABLE,
        GapKind.UNKNOWN_CATALOG,
        GapKind.UNKNOWN_TABLE,
        GapKind.REGISTERED_TWICE,
        GapKind.UNNAMEABLE_TABLE,
        GapKind.WORK_BRANCH_LEFT,
        GapKind.DELETES_METADATA,
        GapKind.UNSEEN_COMMITS,
        GapKind.NESSIE_STATE,
        # stores, streams, lineage and writers
        GapKind.S3_BUCKET,
        GapKind.S3_SETTING,
        GapKind.S3_MANIFEST,
        GapKind.MFA_DELETE,
        GapKind.S3_NEIGHBOURS,
        GapKind.BESIDE_UNREAD,
        GapKind.VAULT_INVENTORY,
        GapKind.VAULT_MANIFEST,
        GapKind.S3_OVERLAP,
        GapKind.HDFS_UNREAD,
        GapKind.OBJECT_PLACE_UNREAD,
        GapKind.KAFKA_CLUSTER,
        GapKind.MISSING_TOPIC,
        GapKind.KAFKA_TOPIC,
        GapKind.FOLLOWER_REPLICAS,
        GapKind.LAKEFS_REPOSITORY,
        GapKind.LAKEFS_STORAGE,
        GapKind.LAKEFS_PROTECTED,
        GapKind.LINEAGE,
        GapKind.NOT_FOUND,
        GapKind.HOLD_UNMATCHED,
        GapKind.HOLD_EXPIRES,
        GapKind.HOLD_REFILLS,
        GapKind.WRITER_RUNNING,
        GapKind.UNGUARDED_COMMITS,
    }
)
"""Kinds that say the same whoever is asked for: their waiver holds for plans of other persons, too. Of every other
kind it holds for the persons whom its author saw (`planners.gaps.persons_of_gaps`), so also of kinds to come."""


def known_kind(name: object) -> GapKind:
    """The kind of this name.

    Raises:
        ValueError: there is none; names the nearest.
    """
    kinds = {kind.value: kind for kind in GapKind}
    text = name if isinstance(name, str) else ""
    if text in kinds:
        return kinds[text]
    told = f"no kind of gap is called {name!r:.50}"
    if text in {kind.value for kind in LineageGapKind}:
        raise ValueError(f"{told}: in a plan, gaps of lineage are all of the kind `{GapKind.LINEAGE}`")
    near = get_close_matches(text.strip().lower().replace("-", "_"), kinds, n=1)
    raise ValueError(f"{told}{f': is `{near[0]}` meant?' if near else ''} (docs/gaps.md has all)")


NamedKind = Annotated[GapKind, BeforeValidator(known_kind)]
"""A kind in a file that people write or change: a wrong one is told with the nearest, not with all there are."""
