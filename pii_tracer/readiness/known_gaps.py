"""What a reading knows of each kind of gap. Total: a new kind is classified here, or a test fails."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.model.gap_kinds import GapKind


class Knows(StrEnum):
    """asked: a reading asks the rule that a plan asks, and every gap of the kind is a finding. search: only the search
    of a plan, which reads the files, topics, repositories, archives and keys, tells. person: it comes from values of
    one person, from the rows of one, or from what one request or waiver says.
    """

    ASKED = "asked"
    SEARCH = "search"
    PERSON = "person"


_ASKED = frozenset(
    {
        GapKind.MISSING_ROOT,
        GapKind.OUTSIDE_ROOTS,
        GapKind.OUTSIDE_LINK,
        GapKind.HIDDEN_DATA,
        GapKind.TWO_FORMATS,
        GapKind.NESTED_TABLE,
        GapKind.FOLDER_AROUND_TABLES,
        GapKind.MIXED_FORMATS,
        GapKind.MIXED_COLUMNS,
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
        GapKind.REF_SCHEMA,
        GapKind.KEEP_HISTORY,
        GapKind.CLONE_READS_FILES,
        GapKind.CATALOG_UNREADABLE,
        GapKind.UNKNOWN_CATALOG,
        GapKind.UNKNOWN_TABLE,
        GapKind.REGISTERED_TWICE,
        GapKind.UNNAMEABLE_TABLE,
        GapKind.REMOTE_TABLE,
        GapKind.WORK_BRANCH_LEFT,
        GapKind.DELETES_METADATA,
        GapKind.UNSEEN_COMMITS,
        GapKind.NESSIE_STATE,
        GapKind.S3_BUCKET,
        GapKind.S3_SETTING,
        GapKind.S3_MANIFEST,
        GapKind.MFA_DELETE,
        GapKind.S3_NEIGHBOURS,
        GapKind.S3_OVERLAP,
        GapKind.S3_LEGAL_HOLD,
        GapKind.ARCHIVE_FORMAT,
        GapKind.ARCHIVE_MATCH,
        GapKind.ARCHIVE_UNMATCHED,
        GapKind.MANIFEST_OF_COPY,
        GapKind.VAULT_INVENTORY,
        GapKind.VAULT_MANIFEST,
        GapKind.HDFS_PLACE,
        GapKind.HDFS_SNAPSHOT,
        GapKind.HDFS_TRASH,
        GapKind.HDFS_TEMPORARY,
        GapKind.OBJECT_PLACE,
        GapKind.KAFKA_CLUSTER,
        GapKind.MISSING_TOPIC,
        GapKind.KAFKA_TOPIC,
        GapKind.LAKEFS_REPOSITORY,
        GapKind.BACKUP_UNMATCHED,
        GapKind.LINEAGE,
        GapKind.NOT_FOUND,
        GapKind.CANNOT_BE_PROVED,
        GapKind.REBUILD_UNPROVED,
        GapKind.FOREIGN_KEYS,
        GapKind.SEVERAL_PERSONS,
        GapKind.HOLD_UNMATCHED,
        GapKind.HOLD_KEEPS_REST,
        GapKind.HOLD_BLOCKS,
        GapKind.HOLD_EXPIRES,
        GapKind.HOLD_REFILLS,
        GapKind.HOLD_OVERWRITTEN,
        GapKind.HOLD_IN_BACKUP,
        GapKind.UNGUARDED_COMMITS,
        GapKind.KEY_MISSING,
        GapKind.KEY_COLUMNS,
        GapKind.KEY_ENCRYPTED_MISSING,
        GapKind.KEY_ENCRYPTED_COLUMNS,
        GapKind.KEY_READABLE,
        GapKind.KEY_ARCHIVED_CIPHERTEXT,
        GapKind.KEY_UNTRACED,
        GapKind.KEY_OPENED,
        GapKind.PLAIN_ARCHIVE,
    }
)
_SEARCH = frozenset(
    {
        GapKind.UNKNOWN_FILE,
        GapKind.UNREADABLE,
        GapKind.NOT_SCANNED,
        GapKind.BESIDE_UNREAD,
        GapKind.HDFS_UNREAD,
        GapKind.OBJECT_HELD,
        GapKind.OBJECT_PLACE_UNREAD,
        GapKind.FOLLOWER_REPLICAS,
        GapKind.LAKEFS_DANGLING,
        GapKind.LAKEFS_STORAGE,
        GapKind.LAKEFS_MESSAGES,
        GapKind.LAKEFS_IMPORTED,
        GapKind.LAKEFS_STAGED,
        GapKind.LAKEFS_PROTECTED,
        GapKind.LAKEFS_TAG,
        GapKind.DECLARED_KEY,
        GapKind.FORMER_UNREAD,
        GapKind.NOT_KEYS,
        GapKind.KEY_UNREAD,
        GapKind.KEY_KMS_STATE,
        GapKind.PLAIN_CELLS,
    }
)
_PERSON = frozenset(
    {
        GapKind.UNEXPECTED_COPY,
        GapKind.TABLE_TEXT,
        GapKind.LEFT_BEHIND,
        GapKind.COLUMN_NAMES,
        GapKind.STREAMING_STATE,
        GapKind.S3_REPLICATED_BACK,
        GapKind.OBJECT_METADATA,
        GapKind.OBJECT_NAMES,
        GapKind.LINEAGE_TEXT,
        GapKind.VALUE_NOT_CERTAIN,
        GapKind.SAME_DIGITS,
        GapKind.SHARED_IDENTIFIER,
        GapKind.FORMER_VALUE,
        GapKind.KEY_ONLY,
        GapKind.OTHERS_ROWS,
        GapKind.KEY_OF_SEVERAL,
        GapKind.WRITER_RUNNING,
        GapKind.LEFT_OUT,
        GapKind.KEY_SHARED,
        GapKind.KEY_KMS_SHARED,
        GapKind.KEY_REMEMBERED,
    }
)

KNOWN: Mapping[GapKind, Knows] = MappingProxyType(
    dict.fromkeys(_ASKED, Knows.ASKED) | dict.fromkeys(_SEARCH, Knows.SEARCH) | dict.fromkeys(_PERSON, Knows.PERSON)
)
"""Of every kind. Findings of a kind that is not `asked` are reported, too, where a reading meets them."""
