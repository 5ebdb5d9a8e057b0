"""What the steps of a plan do."""

from __future__ import annotations

from typing import ClassVar

from pii_tracer.common.open_vocabulary import OpenVocabulary, word


class Action(OpenVocabulary):
    """What a step does. Each belongs to one executor; table formats have theirs in `lake/formats/*/vocabulary.py`."""

    __slots__ = ()

    # keys (executor `keys`)
    STAGE_KEYS: ClassVar[Action] = word("stage_keys")
    DROP_KEYS: ClassVar[Action] = word("drop_keys")
    # the suppression list (executor `suppression`)
    SUPPRESS: ClassVar[Action] = word("suppress")
    # bare files
    FILES_REWRITE: ClassVar[Action] = word("files_rewrite")
    FILES_MASK_ROWS: ClassVar[Action] = word("files_mask_rows")
    FILES_REBUILD: ClassVar[Action] = word("files_rebuild")
    # objects
    S3_RESTORE: ClassVar[Action] = word("s3_restore")
    S3_REWRITE_ARCHIVE: ClassVar[Action] = word("s3_rewrite_archive")
    S3_AWAIT_EXPIRY: ClassVar[Action] = word("s3_await_expiry")
    S3_AWAIT_REPLICA: ClassVar[Action] = word("s3_await_replica")
    S3_DELETE_VERSIONS: ClassVar[Action] = word("s3_delete_versions")
    S3_ABORT_UPLOADS: ClassVar[Action] = word("s3_abort_uploads")
    S3_CLEAR_VERSIONS: ClassVar[Action] = word("s3_clear_versions")
    # Glacier vaults
    VAULT_RETRIEVE: ClassVar[Action] = word("vault_retrieve")
    VAULT_REWRITE: ClassVar[Action] = word("vault_rewrite")
    VAULT_DELETE: ClassVar[Action] = word("vault_delete")
    VAULT_AWAIT_INVENTORY: ClassVar[Action] = word("vault_await_inventory")
    # topics
    KAFKA_TOMBSTONE: ClassVar[Action] = word("kafka_tombstone")
    KAFKA_COMPACT: ClassVar[Action] = word("kafka_compact")
    KAFKA_AWAIT_RETENTION: ClassVar[Action] = word("kafka_await_retention")
    KAFKA_REWRITE_TOPIC: ClassVar[Action] = word("kafka_rewrite_topic")
    KAFKA_DELETE_PREFIX: ClassVar[Action] = word("kafka_delete_prefix")
    # lakeFS repositories
    LAKEFS_REWRITE: ClassVar[Action] = word("lakefs_rewrite")
    LAKEFS_SET_RULES: ClassVar[Action] = word("lakefs_set_rules")
    LAKEFS_AWAIT_COLLECTION: ClassVar[Action] = word("lakefs_await_collection")
    LAKEFS_RESTORE_RULES: ClassVar[Action] = word("lakefs_restore_rules")
    # HDFS
    HDFS_REWRITE: ClassVar[Action] = word("hdfs_rewrite")
    HDFS_DELETE_FILES: ClassVar[Action] = word("hdfs_delete_files")
    HDFS_DELETE_SNAPSHOT: ClassVar[Action] = word("hdfs_delete_snapshot")
    # places of object stores beside S3
    OBJECT_REWRITE: ClassVar[Action] = word("object_rewrite")
    OBJECT_DELETE_VERSIONS: ClassVar[Action] = word("object_delete_versions")
    OBJECT_CLEAR_VERSIONS: ClassVar[Action] = word("object_clear_versions")
    OBJECT_AWAIT_PURGE: ClassVar[Action] = word("object_await_purge")
    # data keys
    KEY_AWAIT_CACHES: ClassVar[Action] = word("key_await_caches")
    KEY_TRY_TO_READ: ClassVar[Action] = word("key_try_to_read")
    KMS_SCHEDULE_DELETION: ClassVar[Action] = word("kms_schedule_deletion")
    KMS_AWAIT_DELETION: ClassVar[Action] = word("kms_await_deletion")
    # what only a person can do
    BACKUP_CONFIRM: ClassVar[Action] = word("backup_confirm")
    OWNER_TASK: ClassVar[Action] = word("owner_task")
    # before a copy is computed again by its owner (executor `verify`)
    NOTE_FILES: ClassVar[Action] = word("note_files")
    # after the work of a copy
    VERIFY_COPY: ClassVar[Action] = word("verify_copy")


ASKED_AGAIN = frozenset(
    {
        Action.BACKUP_CONFIRM,
        Action.OWNER_TASK,
        Action.KMS_AWAIT_DELETION,
        Action.LAKEFS_AWAIT_COLLECTION,
        Action.KAFKA_COMPACT,
        Action.KAFKA_DELETE_PREFIX,
        Action.KAFKA_REWRITE_TOPIC,
    }
)
"""Actions whose wait can end before its date, by what a person does: a resumed run looks at once."""

SOURCES, COMPUTES = "sources", "computes"
"""Parameters of NOTE_FILES and OWNER_TASK: copies that a copy is computed from, and copies that the owner computes
again."""
CONFIRMED = frozenset({Action.BACKUP_CONFIRM, Action.OWNER_TASK})
"""Actions of people, who confirm them by a signature."""

BY_OBJECT = frozenset(
    {
        Action.S3_ABORT_UPLOADS,
        Action.S3_RESTORE,
        Action.S3_REWRITE_ARCHIVE,
        Action.S3_AWAIT_REPLICA,
        Action.S3_DELETE_VERSIONS,
        Action.S3_AWAIT_EXPIRY,
        Action.VAULT_RETRIEVE,
        Action.VAULT_REWRITE,
        Action.VAULT_DELETE,
    }
)
"""Actions that decide about each object by what they find of it, whatever the step before them said. So they may begin
behind another of these that is done in part: one object that cannot be treated does not hold up the others."""

READS_ONLY = frozenset(
    {
        Action.VERIFY_COPY,
        Action.S3_RESTORE,
        Action.S3_AWAIT_EXPIRY,
        Action.S3_AWAIT_REPLICA,
        Action.LAKEFS_SET_RULES,
        Action.LAKEFS_AWAIT_COLLECTION,
        Action.LAKEFS_RESTORE_RULES,
        Action.VAULT_RETRIEVE,
        Action.VAULT_AWAIT_INVENTORY,
        Action.KEY_AWAIT_CACHES,
        Action.KEY_TRY_TO_READ,
        Action.KMS_SCHEDULE_DELETION,
        Action.KMS_AWAIT_DELETION,
        Action.BACKUP_CONFIRM,
        Action.OWNER_TASK,
        Action.NOTE_FILES,
    }
)
"""Actions that erase nothing themselves: they prepare, wait, look, or take a person's word."""
