"""What the steps of a plan do."""

from __future__ import annotations

from pii_tracer.common.str_enum import StrEnum


class Action(StrEnum):
    """What a step does. Each belongs to one executor; tables under Nessie have an executor that does Iceberg's."""

    # keys (executor `keys`)
    STAGE_KEYS = "stage_keys"
    DROP_KEYS = "drop_keys"
    # the suppression list (executor `suppression`)
    SUPPRESS = "suppress"
    # iceberg
    ICEBERG_DELETE_ROWS = "iceberg_delete_rows"
    ICEBERG_MASK_ROWS = "iceberg_mask_rows"
    ICEBERG_REBUILD = "iceberg_rebuild"
    ICEBERG_REWRITE_FILES = "iceberg_rewrite_files"
    ICEBERG_REWRITE_REF = "iceberg_rewrite_ref"
    ICEBERG_AWAIT_REF = "iceberg_await_ref"
    ICEBERG_REWRITE_MANIFESTS = "iceberg_rewrite_manifests"
    ICEBERG_EXPIRE_SNAPSHOTS = "iceberg_expire_snapshots"
    ICEBERG_REMOVE_ORPHANS = "iceberg_remove_orphans"
    # delta
    DELTA_DELETE_ROWS = "delta_delete_rows"
    DELTA_MASK_ROWS = "delta_mask_rows"
    DELTA_REBUILD = "delta_rebuild"
    DELTA_PURGE = "delta_purge"
    DELTA_VACUUM = "delta_vacuum"
    DELTA_CLEAN_LOG = "delta_clean_log"
    # hudi
    HUDI_DELETE_SAVEPOINTS = "hudi_delete_savepoints"
    HUDI_DELETE_ROWS = "hudi_delete_rows"
    HUDI_MASK_ROWS = "hudi_mask_rows"
    HUDI_REBUILD = "hudi_rebuild"
    HUDI_COMPACT = "hudi_compact"
    HUDI_CLEAN = "hudi_clean"
    HUDI_REBUILD_METADATA = "hudi_rebuild_metadata"
    # bare files
    FILES_REWRITE = "files_rewrite"
    FILES_MASK_ROWS = "files_mask_rows"
    FILES_REBUILD = "files_rebuild"
    # objects
    S3_RESTORE = "s3_restore"
    S3_REWRITE_ARCHIVE = "s3_rewrite_archive"
    S3_AWAIT_EXPIRY = "s3_await_expiry"
    S3_AWAIT_REPLICA = "s3_await_replica"
    S3_DELETE_VERSIONS = "s3_delete_versions"
    S3_ABORT_UPLOADS = "s3_abort_uploads"
    S3_CLEAR_VERSIONS = "s3_clear_versions"
    # Glacier vaults
    VAULT_RETRIEVE = "vault_retrieve"
    VAULT_REWRITE = "vault_rewrite"
    VAULT_DELETE = "vault_delete"
    VAULT_AWAIT_INVENTORY = "vault_await_inventory"
    # topics
    KAFKA_TOMBSTONE = "kafka_tombstone"
    KAFKA_COMPACT = "kafka_compact"
    KAFKA_AWAIT_RETENTION = "kafka_await_retention"
    KAFKA_REWRITE_TOPIC = "kafka_rewrite_topic"
    KAFKA_DELETE_PREFIX = "kafka_delete_prefix"
    # lakeFS repositories
    LAKEFS_REWRITE = "lakefs_rewrite"
    LAKEFS_SET_RULES = "lakefs_set_rules"
    LAKEFS_AWAIT_COLLECTION = "lakefs_await_collection"
    LAKEFS_RESTORE_RULES = "lakefs_restore_rules"
    # data keys
    KEY_AWAIT_CACHES = "key_await_caches"
    KEY_TRY_TO_READ = "key_try_to_read"
    KMS_SCHEDULE_DELETION = "kms_schedule_deletion"
    KMS_AWAIT_DELETION = "kms_await_deletion"
    # what only a person can do
    BACKUP_CONFIRM = "backup_confirm"
    # after the work of a copy
    VERIFY_COPY = "verify_copy"


ASKED_AGAIN = frozenset(
    {
        Action.BACKUP_CONFIRM,
        Action.KMS_AWAIT_DELETION,
        Action.LAKEFS_AWAIT_COLLECTION,
        Action.KAFKA_COMPACT,
        Action.KAFKA_DELETE_PREFIX,
        Action.KAFKA_REWRITE_TOPIC,
    }
)
"""Actions whose wait can end before its date, by what a person does: a resumed run looks at once."""

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

ON_TABLE_ROWS = frozenset(
    {
        Action.ICEBERG_DELETE_ROWS,
        Action.ICEBERG_MASK_ROWS,
        Action.ICEBERG_REBUILD,
        Action.DELTA_DELETE_ROWS,
        Action.DELTA_MASK_ROWS,
        Action.DELTA_REBUILD,
        Action.HUDI_DELETE_ROWS,
        Action.HUDI_MASK_ROWS,
        Action.HUDI_REBUILD,
        Action.FILES_REWRITE,
        Action.FILES_MASK_ROWS,
        Action.FILES_REBUILD,
    }
)
"""What is done to the rows of a table or folder."""
