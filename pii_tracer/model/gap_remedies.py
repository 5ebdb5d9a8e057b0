"""What to do about each kind of gap, in a line or two. The same as the last column of docs/gaps.md,
with the page of a link behind its text."""

from __future__ import annotations

from collections.abc import Mapping

from pii_tracer.model.gap_kinds import GapKind

REMEDIES: Mapping[str, str] = {
    GapKind.MISSING_ROOT: "Correct `roots`, or mount the place; then plan again.",
    GapKind.OUTSIDE_ROOTS: "Add its folder to `roots`, or to the places of `object_stores`. If the place belongs to "
    "somebody else, waive the gap.",
    GapKind.UNREADABLE: (
        "Give the rights to read it; repair, remove or rename it; or declare the encoding "
        "(docs/estate-file.md#csv-that-is-not-utf-8) of a CSV folder."
    ),
    GapKind.OUTSIDE_LINK: "Remove the link, or add its target to `roots`.",
    GapKind.HIDDEN_DATA: "Check what it contains. Then remove it, or give it a name that is not hidden.",
    GapKind.UNKNOWN_FILE: (
        "Remove or move the file. Or check that nobody's data is in it, and waive the gap. If a later scan can "
        "read the file and finds nothing, the gap is gone."
    ),
    GapKind.TWO_FORMATS: "Remove the metadata of the format that is no longer used, or split the folder.",
    GapKind.NESTED_TABLE: "Move the inner table out of the other table's folder.",
    GapKind.FOLDER_AROUND_TABLES: "Move the data files into a separate folder.",
    GapKind.MIXED_FORMATS: "Put the files of each format into a separate folder.",
    GapKind.MIXED_COLUMNS: "Put files with different columns into separate folders.",
    GapKind.NOT_SCANNED: "Make its files readable to the scan (rights, keys, format), then plan again.",
    GapKind.UNEXPECTED_COPY: (
        "Load the lineage of the job that wrote it (SQL or events, under `lineage`). Or name the table under the "
        "subject's `tables` (docs/where-is-the-key.md#further-tables). Or ask the owner to remove the data."
    ),
    GapKind.MISSING_TABLE: "Correct the estate file, or drop the catalog's entry.",
    GapKind.FORMAT_MISMATCH: "Correct the declaration, or the catalog's entry.",
    GapKind.MISSING_FILES: "Restore the files, or repair the table (`FSCK REPAIR TABLE`, a rollback).",
    GapKind.EXTERNAL_FILES: (
        "Add the files' folder to `roots`, or copy the rows into the table. Move a partition into its table's folder, "
        "or into a folder of its own (docs/catalogs.md#partitions-outside-their-tables-folder)."
    ),
    GapKind.EXTERNAL_METADATA: "Set `write.metadata.path` to the table's folder, and write the metadata there.",
    GapKind.MOVED_TABLE: "Register the table at its present location, or remove the copy.",
    GapKind.SHARED_FILES: (
        "Rewrite one of the tables, so that it has its own files, or drop it. Move such a partition into a folder of "
        "its own."
    ),
    GapKind.STRANGE_FILES: (
        "If somebody needs the files, move them. If nobody needs them, waive the gap. (In S3 the run keeps the "
        "files, and deletes only their old versions.) If a metadata file is newer than the one in the catalog, "
        "correct the catalog's pointer."
    ),
    GapKind.STAGED_SNAPSHOT: "Publish or drop the staged rows, then plan again.",
    GapKind.UNKNOWN_VERSION: (
        "Use a version of pii-tracer, or a `spark.profile`, that supports the feature. Or ask the owner to drop "
        "the feature. Or search the table for the person yourself, and waive the gap."
    ),
    GapKind.REF_SCHEMA: (
        "Drop the branch or tag, or move it to a snapshot with the current schema. If you waive the gap, the copy "
        "stays blocked."
    ),
    GapKind.KEEP_HISTORY: "Correct the name, or remove it from `keep_history` (docs/howto/keep-history.md).",
    GapKind.CLONE_READS_FILES: (
        "Copy the clone into an independent table, or drop it. If nobody needs the clone, waive the gap."
    ),
    GapKind.TABLE_TEXT: "Ask the owner to remove the value, with the commands in the gap.",
    GapKind.LEFT_BEHIND: (
        "Ask the owner to do what the gap proposes, then plan again. If you waive the gap, the run ends with residue."
    ),
    GapKind.COLUMN_NAMES: "Ask the owner to rename these columns, also in old versions of the table.",
    GapKind.STREAMING_STATE: (
        "Wait until the watermark drops the person's state. Or start the query with a new checkpoint after the "
        "erasure, and remove the old checkpoint."
    ),
    GapKind.CATALOG_UNREADABLE: (
        "Do what the gap says: correct the address or the rights. `pii-tracer doctor` checks each catalog. If the "
        "server does not support a request, check these tables in another way, and waive the gap."
    ),
    GapKind.UNKNOWN_CATALOG: (
        "Declare the other catalog under `catalogs`, or erase the person in the other system. If the catalog "
        "belongs to somebody else, waive the gap."
    ),
    GapKind.UNKNOWN_TABLE: (
        "If the name in the estate file is wrong, correct it (`of`). Otherwise search the table for the person "
        "with its own engine, and waive the gap."
    ),
    GapKind.REGISTERED_TWICE: "Drop all but one registration.",
    GapKind.UNNAMEABLE_TABLE: "Rename the table, branch or tag.",
    GapKind.REMOTE_TABLE: (
        "Remove the cause that the gap names, or erase the person with another tool. If neither a catalog nor the "
        "estate file names the table, the gap has the line to write for it. What is supported: tables in S3 "
        "(docs/catalogs.md#tables-in-s3). If the place has no files, correct the place in the catalog or estate file, "
        "or drop the entry there."
    ),
    GapKind.WORK_BRANCH_LEFT: "Resume the run, or delete the branch while no run is active.",
    GapKind.DELETES_METADATA: "Set `write.metadata.delete-after-commit.enabled` to false on that reference.",
    GapKind.UNSEEN_COMMITS: "Let the account see every branch. With a waiver you confirm that no branch is hidden.",
    GapKind.NESSIE_STATE: "Commit to the table once through Nessie, or repair the reference.",
    GapKind.S3_BUCKET: "Correct the bucket's name, or give the right to list its versions.",
    GapKind.S3_SETTING: "Give the right that the evidence names.",
    GapKind.S3_MANIFEST: "Correct the file or its declaration.",
    GapKind.MFA_DELETE: (
        "Ask the bucket's owner to switch MFA Delete off for the run, or to delete the versions by hand."
    ),
    GapKind.S3_NEIGHBOURS: "End the prefix with `/`. If the other objects belong to the archive, waive the gap.",
    GapKind.S3_OVERLAP: "Declare only one of the two archives.",
    GapKind.S3_REPLICATED_BACK: (
        "Switch the replication rule off until the run is over, or delete the objects at the source, too."
    ),
    GapKind.S3_LEGAL_HOLD: "Ask for the release of the legal hold, or declare a hold in the estate file.",
    GapKind.ARCHIVE_FORMAT: (
        "Convert the objects, or allow the deletion of whole objects (`delete_whole`). If you waive the gap, the "
        "copy stays blocked."
    ),
    GapKind.ARCHIVE_MATCH: (
        "Allow the deletion of whole objects (`delete_whole`). If you waive the gap, the copy stays blocked."
    ),
    GapKind.OBJECT_METADATA: (
        "Copy each object onto itself without the value. If you waive the gap, the copy stays blocked."
    ),
    GapKind.BESIDE_UNREAD: (
        "If the gap names a right, give it to the planning account. If only the account of the run has this right, "
        "waive the gap."
    ),
    GapKind.OBJECT_NAMES: (
        "Rename them, and delete every version under the old names (hazard F2). If you waive the gap for a bare "
        "folder, the run ends with residue."
    ),
    GapKind.ARCHIVE_UNMATCHED: (
        "Under `of`, write the table's name as `inventory` prints it. Or search the archive for the person "
        "yourself, and waive the gap."
    ),
    GapKind.MANIFEST_OF_COPY: "Move the objects to a place with its own declaration, or remove them from the manifest.",
    GapKind.VAULT_INVENTORY: "Request an inventory from Glacier, as the evidence says, and plan again within a day.",
    GapKind.VAULT_MANIFEST: "Correct the file or its declaration.",
    GapKind.HDFS_PLACE: "Erase the person with the table's own engine, or do what the gap says, then plan again.",
    GapKind.HDFS_SNAPSHOT: "Once the owner agrees, name the snapshot under `hdfs[].deletable`, then plan again.",
    GapKind.HDFS_TRASH: "Remove the contents of the trash with `-skipTrash`, then plan again.",
    GapKind.HDFS_TEMPORARY: (
        "Once nothing writes there, name the folder under `hdfs[].deletable`, or remove it with `-skipTrash`."
    ),
    GapKind.HDFS_UNREAD: "Give the right that the gap names, or correct `hdfs` in the estate file.",
    GapKind.OBJECT_PLACE: "Erase the person with the table's own engine, or do what the gap says, then plan again.",
    GapKind.OBJECT_HELD: (
        "Ask for the release of the hold, or plan again after it ends. If no step can write there, erase the "
        "person with the engine that writes the files."
    ),
    GapKind.OBJECT_PLACE_UNREAD: "Give the right that the gap names, or correct `object_stores` in the estate file.",
    GapKind.KAFKA_CLUSTER: "Correct the cluster's address and settings, or start it.",
    GapKind.MISSING_TOPIC: "Correct the topic's name in the estate file, or remove the topic there.",
    GapKind.KAFKA_TOPIC: "Give the right to describe the topic and its settings.",
    GapKind.FOLLOWER_REPLICAS: "Ask the cluster's owner to check the brokers' disks, or waive the gap.",
    GapKind.LAKEFS_REPOSITORY: "Correct the address and the rights, as the evidence says.",
    GapKind.LAKEFS_DANGLING: "Set garbage collection rules for the repository, and let the run prepare a collection.",
    GapKind.LAKEFS_STORAGE: "Name `local_root`, or the estate's `s3`. If you waive the gap, the run ends unverified.",
    GapKind.LAKEFS_MESSAGES: "Move the data to a new repository, because no commit of the old one can be changed.",
    GapKind.LAKEFS_IMPORTED: "Erase the objects at their source, and import them again.",
    GapKind.LAKEFS_STAGED: "Commit or reset the changes.",
    GapKind.LAKEFS_PROTECTED: (
        "Lift the protection for the erasure, or merge the changed objects into the branch yourself."
    ),
    GapKind.LAKEFS_TAG: "Move the tag. If the tag may lose the objects, waive the gap.",
    GapKind.BACKUP_UNMATCHED: (
        "Under `of`, write the tables' names as `inventory` prints them. Or check the backup for the person, and "
        "waive the gap."
    ),
    GapKind.LINEAGE: "Do what `pii-tracer gaps NAME` proposes for each gap of lineage.",
    GapKind.LINEAGE_TEXT: "Remove the value from the file, or remove the events. Then harvest and plan again.",
    GapKind.NOT_FOUND: "Add the place to the estate file. If the place was dropped, waive the gap.",
    GapKind.CANNOT_BE_PROVED: (
        "Give what the reason asks for: a key column, lineage, or a statement that rebuilds the copy. If you waive "
        "the gap, the copy stays blocked (docs/gaps.md#blocked-copies), unless the reason asks for a waiver with a "
        "task. If a partition's key is in the catalog alone, delete its files and all old versions before you drop it "
        "(docs/catalogs.md#partitions-outside-their-tables-folder)."
    ),
    GapKind.REBUILD_UNPROVED: "Load the lineage of the table's inputs, or rebuild the table by hand.",
    GapKind.VALUE_NOT_CERTAIN: ("Let the job also write the key into the rows (docs/where-is-the-key.md)."),
    GapKind.SAME_DIGITS: (
        "Load its lineage, or name the table under the subject's `tables`. If another system counts this number, "
        "waive the gap."
    ),
    GapKind.SHARED_IDENTIFIER: "Find out whose rows contain only this value, and clear them. Then waive the gap.",
    GapKind.FOREIGN_KEYS: (
        "If it is the same persons, name the source of the other data under the subject's `tables`. Otherwise let the "
        "job write the other values into a column of their own, in old rows, too."
    ),
    GapKind.DECLARED_KEY: (
        "Correct the table's `key` under the subject's `tables`, name its identifier as `of`, or remove the table "
        "there."
    ),
    GapKind.FORMER_VALUE: (
        "Check whose rows contain the value. If you waive the gap, these rows stay "
        "(docs/where-is-the-key.md#former-values)."
    ),
    GapKind.FORMER_UNREAD: "Make these versions readable. If no identifier was ever changed, waive the gap.",
    GapKind.KEY_ONLY: (
        "Check that the earlier run verified each place that the gap names, then waive the gap. If that run left the "
        "request open, restore its sealed manifest from a backup, and plan again."
    ),
    GapKind.OTHERS_ROWS: (
        "Ask the owner to clear the value or to correct the key. Or name a key that identifies the person's rows, or "
        "declare in `not_keys` that the number belongs to another system."
    ),
    GapKind.NOT_KEYS: (
        "Correct `not_keys` (docs/estate-file.md#numbers-of-other-systems). If only the column's values contradict "
        "it, check them and waive the gap."
    ),
    GapKind.KEY_OF_SEVERAL: (
        "Name all columns that distinguish persons, as `key: [tenant_id, user_id]`. If the rows belong to one person "
        "(docs/where-is-the-key.md#one-key-several-persons), waive the gap. If a place is not searched "
        "(docs/where-is-the-key.md#keys-of-several-columns), ask its owner to erase the rows, or check the rows and "
        "waive the gap."
    ),
    GapKind.SEVERAL_PERSONS: (
        "Write `row: delete` or `row: keep` for each key column "
        "(docs/where-is-the-key.md#rows-that-name-two-persons). Where no step clears a column, only `row: delete` "
        "works. For lists and maps (docs/where-is-the-key.md#lists-and-maps-of-persons) that no step changes: let the "
        "job write each element into a row of its own, or use a format that the page names. If you waive the gap, the "
        "copy stays blocked."
    ),
    GapKind.HOLD_UNMATCHED: (
        "Name the dataset as the inventory does. If a person keeps it (docs/requests.md#narrow-a-request): `requests "
        "narrow REQUEST --take-back` the name, and `--keep` the right one."
    ),
    GapKind.HOLD_KEEPS_REST: (
        "Waive the gap if the other columns may stay, too. Or ask the owners of the hold to release the columns."
    ),
    GapKind.HOLD_BLOCKS: "Separate the two copies, hold both, or plan again when the hold ends.",
    GapKind.HOLD_EXPIRES: "Raise the retention, or lock the objects.",
    GapKind.HOLD_REFILLS: "Stop these jobs, or exclude the person in them.",
    GapKind.HOLD_OVERWRITTEN: "Stop the job, or store the held data elsewhere.",
    GapKind.HOLD_IN_BACKUP: "Hold the backup too, or waive the gap.",
    GapKind.WRITER_RUNNING: (
        "Stop the job and say so under `writers` (docs/estate-file.md#jobs-that-write), or plan with retention."
    ),
    GapKind.UNGUARDED_COMMITS: (
        "Name all jobs that write to such tables (docs/estate-file.md#jobs-that-write) under `writers`, and stop "
        "them. Or set a log store for several clusters. If nobody writes to the table, waive the gap."
    ),
    GapKind.LEFT_OUT: "Erase the copy by another plan. Nobody can waive this gap.",
    GapKind.KEY_MISSING: "Correct the table's name under `keys`.",
    GapKind.KEY_COLUMNS: "Correct the columns under `keys`.",
    GapKind.KEY_UNREAD: "Give the right to read the table, and the rights on KMS.",
    GapKind.KEY_KMS_STATE: (
        "Cancel the deletion of the key, or enable the key. If its deletion is intended, waive the gap."
    ),
    GapKind.KEY_SHARED: "Encrypt each person's cells with a key of their own.",
    GapKind.KEY_KMS_SHARED: "Name KMS keys by their ids, with one key for each person.",
    GapKind.KEY_ENCRYPTED_MISSING: "Correct the dataset's name under `encrypts`.",
    GapKind.KEY_ENCRYPTED_COLUMNS: "Correct the columns under `encrypts`.",
    GapKind.KEY_READABLE: "Encrypt or erase the data, or declare what is not encrypted.",
    GapKind.KEY_ARCHIVED_CIPHERTEXT: "Restore the archive, check it for the person, then plan again.",
    GapKind.KEY_UNTRACED: "Load the lineage of the job that fills the column.",
    GapKind.KEY_REMEMBERED: "Erase these copies: old versions, archives, backups.",
    GapKind.KEY_OPENED: "Declare the dataset under `encrypts`, let its job write the person's key, or drop it.",
    GapKind.PLAIN_CELLS: (
        "Encrypt or erase the values, and let old versions expire. If the values are not the person's, waive the gap."
    ),
    GapKind.PLAIN_ARCHIVE: "Check every object, erase the person in unencrypted objects, then waive the gap.",
}
