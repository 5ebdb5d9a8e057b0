"""What to do about each kind of gap, in a line or two. The same as the last column of docs/gaps.md."""

from __future__ import annotations

from collections.abc import Mapping

from pii_tracer.model.gap_kinds import GapKind

REMEDIES: Mapping[str, str] = {
    GapKind.MISSING_ROOT: "Correct `roots`, or mount the place; then plan again.",
    GapKind.OUTSIDE_ROOTS: "Add its folder to `roots`, or waive it where the place is somebody else's.",
    GapKind.UNREADABLE: "Give the rights, repair, remove or rename it, or declare the encoding of a CSV folder.",
    GapKind.OUTSIDE_LINK: "Remove the link, or add the place that it leads to under `roots`.",
    GapKind.HIDDEN_DATA: "Look into it; remove it or give it a name that is not hidden.",
    GapKind.UNKNOWN_FILE: (
        "Look into it; remove or move it, or waive it. It is no gap once the scan can read it and finds nothing."
    ),
    GapKind.TWO_FORMATS: "Remove the metadata of the one that is no longer used, or split the folder.",
    GapKind.NESTED_TABLE: "Move the inner table out.",
    GapKind.FOLDER_AROUND_TABLES: "Move them into a folder of their own.",
    GapKind.MIXED_FORMATS: "Put the files of each format into a folder of their own.",
    GapKind.MIXED_COLUMNS: "Put files of different shapes into folders of their own.",
    GapKind.NOT_SCANNED: "Make its files readable to the scan (rights, keys, format), then plan again.",
    GapKind.UNEXPECTED_COPY: (
        "Load the lineage of the job that wrote it (SQL or events, under `lineage`), name the table under the "
        "subject's `tables`, or let its owner remove it."
    ),
    GapKind.MISSING_TABLE: "Correct the estate file, or drop the catalog's entry.",
    GapKind.FORMAT_MISMATCH: "Correct the declaration, or the catalog's entry.",
    GapKind.MISSING_FILES: "Restore them, or repair the table (`FSCK REPAIR TABLE`, a rollback).",
    GapKind.EXTERNAL_FILES: "Add their folder to `roots`, or copy the rows into the table.",
    GapKind.EXTERNAL_METADATA: "Write the metadata into the table's folder again (`write.metadata.path`).",
    GapKind.MOVED_TABLE: "Register it again where it is, or remove the copy.",
    GapKind.SHARED_FILES: "Give one of them files of its own, or drop it.",
    GapKind.STRANGE_FILES: (
        "Move what is somebody's; waive it where nobody needs them. In S3 they stay, and their old versions go. "
        "Where metadata is younger than what a catalog points at, have it point at the right one."
    ),
    GapKind.STAGED_SNAPSHOT: "Publish or drop them, then plan again.",
    GapKind.UNKNOWN_VERSION: (
        "Use a version of pii-tracer, or a `spark.profile`, that knows it; have its owner drop the feature; or "
        "look into it and waive."
    ),
    GapKind.REF_SCHEMA: "Drop it, or re-point it to a snapshot with today's schema. A waiver does not free it.",
    GapKind.KEEP_HISTORY: "Correct the name, or take it out (how-to).",
    GapKind.CLONE_READS_FILES: "Make it a table of its own, or drop it; waive it where nobody needs it.",
    GapKind.TABLE_TEXT: "Ask the owner to remove the value, with the commands in the gap.",
    GapKind.LEFT_BEHIND: (
        "Ask the owner to do what the gap proposes, then plan again. If you waive it, the run ends with residue."
    ),
    GapKind.COLUMN_NAMES: "Ask the owner to rewrite the table, with old versions, without these column names.",
    GapKind.STREAMING_STATE: (
        "Let the watermark drop it, or start the query with a new checkpoint after the erasure and remove this one."
    ),
    GapKind.CATALOG_UNREADABLE: "Correct address and rights; `pii-tracer doctor` looks at each catalog.",
    GapKind.UNKNOWN_CATALOG: (
        "Declare that catalog under `catalogs`, erase the person where its tables are, or waive it where it is "
        "somebody else's."
    ),
    GapKind.UNKNOWN_TABLE: "Correct the name in the estate file (`of`), or look into the registered table.",
    GapKind.REGISTERED_TWICE: "Drop all but one registration.",
    GapKind.UNNAMEABLE_TABLE: "Rename the table, branch or tag.",
    GapKind.REMOTE_TABLE: (
        "Remove the reason that the gap names, or erase the person there by other means. What is supported: "
        "tables in S3."
    ),
    GapKind.WORK_BRANCH_LEFT: "Resume that run, or delete the branch when no run is under way.",
    GapKind.DELETES_METADATA: "Set `write.metadata.delete-after-commit.enabled` to false on that reference.",
    GapKind.UNSEEN_COMMITS: "Let the account see every branch. A waiver states that nothing is hidden.",
    GapKind.NESSIE_STATE: "Commit to the table once through Nessie, or repair the reference.",
    GapKind.S3_BUCKET: "Correct its name, or give the right to list its versions.",
    GapKind.S3_SETTING: "Give the right that the evidence names.",
    GapKind.S3_MANIFEST: "Correct the file or its declaration.",
    GapKind.MFA_DELETE: "The bucket's owner switches MFA Delete off for the run, or deletes by hand.",
    GapKind.S3_NEIGHBOURS: "End it with `/`; waive it where they belong to the archive.",
    GapKind.S3_OVERLAP: "Declare one of them.",
    GapKind.S3_REPLICATED_BACK: "Switch the rule off until the run is over, or delete the objects at the source, too.",
    GapKind.S3_LEGAL_HOLD: "Have it released, or declare a hold.",
    GapKind.ARCHIVE_FORMAT: "Convert them, or say why whole objects go (`delete_whole`). A waiver does not free it.",
    GapKind.ARCHIVE_MATCH: "Say why whole objects go (`delete_whole`). A waiver does not free it.",
    GapKind.OBJECT_METADATA: "Copy each onto itself without it. A waiver does not free it.",
    GapKind.BESIDE_UNREAD: "Give the planner the rights; waive it where only the run has them.",
    GapKind.OBJECT_NAMES: (
        "Give them other names and delete every version under the old ones (hazard F2). If this is waived for a "
        "bare folder, the run ends with residue there until they are removed."
    ),
    GapKind.ARCHIVE_UNMATCHED: "Name the table as the inventory does, or look into the archive and waive.",
    GapKind.MANIFEST_OF_COPY: "Move it to a place with its own declaration, or take it out of the manifest.",
    GapKind.VAULT_INVENTORY: "Ask Glacier for one, as the evidence says, and plan again within a day.",
    GapKind.VAULT_MANIFEST: "Correct the file or its declaration.",
    GapKind.HDFS_PLACE: "Erase the person with the table's own engine, or do what the gap says, then plan again.",
    GapKind.HDFS_SNAPSHOT: "Once its owner agrees, name it under `hdfs[].deletable`, then plan again.",
    GapKind.HDFS_TRASH: "Remove what is in it with `-skipTrash`, then plan again.",
    GapKind.HDFS_TEMPORARY: (
        "Once nothing writes there, name it under `hdfs[].deletable`, or remove it with `-skipTrash`."
    ),
    GapKind.HDFS_UNREAD: "Give the right that it names, or correct `hdfs` in the estate file.",
    GapKind.OBJECT_PLACE: "Erase the person with the table's own engine, or do what the gap says, then plan again.",
    GapKind.OBJECT_HELD: (
        "Have the hold released, or plan again after the day; erase with the engine that writes the files."
    ),
    GapKind.OBJECT_PLACE_UNREAD: "Give the right that it names, or correct `object_stores` in the estate file.",
    GapKind.KAFKA_CLUSTER: "Correct its address and settings, or start it.",
    GapKind.MISSING_TOPIC: "Correct the estate file, or take it out.",
    GapKind.KAFKA_TOPIC: "Give the right to describe it and its settings.",
    GapKind.FOLLOWER_REPLICAS: "Ask the cluster's owner to check the brokers' disks, or waive the gap.",
    GapKind.LAKEFS_REPOSITORY: "Correct address and rights, as the evidence says.",
    GapKind.LAKEFS_DANGLING: "Set garbage collection rules for the repository, and let the run prepare a collection.",
    GapKind.LAKEFS_STORAGE: "Name `local_root`, or the estate's `s3`. A run under a waiver ends unverified.",
    GapKind.LAKEFS_MESSAGES: "Only a new repository is free of them.",
    GapKind.LAKEFS_IMPORTED: "Erase them where they lie, and import them again.",
    GapKind.LAKEFS_STAGED: "Commit or reset them.",
    GapKind.LAKEFS_PROTECTED: "Lift the protection for the erasure, or bring the objects in by a merge of your own.",
    GapKind.LAKEFS_TAG: "Move the tag, or agree to it by a waiver.",
    GapKind.BACKUP_UNMATCHED: "Name the tables as the inventory does, or look into the backup and waive.",
    GapKind.LINEAGE: "`pii-tracer gaps NAME` says what closes each.",
    GapKind.LINEAGE_TEXT: "Take the value out of the file, or remove the events, harvest and plan again.",
    GapKind.NOT_FOUND: "Add the place to the estate file; waive it where it was dropped.",
    GapKind.CANNOT_BE_PROVED: (
        "Give what the reason asks for: a key column, lineage, or a statement that writes it again."
    ),
    GapKind.REBUILD_UNPROVED: "Load the lineage of its inputs, or rebuild it by hand.",
    GapKind.VALUE_NOT_CERTAIN: "Let the job write the key beside it (where is the key?).",
    GapKind.SAME_DIGITS: (
        "Load its lineage, or name the table under the subject's `tables`. If another system counts this number,"
        " waive the gap."
    ),
    GapKind.SHARED_IDENTIFIER: "Find out whose rows only this value finds; waive it when they are cleared.",
    GapKind.FOREIGN_KEYS: (
        "Name that table under the subject's `tables`, or let the job say which of the two a row is of."
    ),
    GapKind.DECLARED_KEY: "Correct the table's `key` under the subject's `tables`, or take the table out.",
    GapKind.FORMER_VALUE: "Look whose rows hold it; a waiver lets them stay (former values).",
    GapKind.FORMER_UNREAD: "Make them readable, or waive it if no identifier was changed.",
    GapKind.KEY_ONLY: "Waive it only if the earlier run verified each place that it names.",
    GapKind.OTHERS_ROWS: (
        "Ask their owner to clear the value, name a key that shows the person's"
        " rows, or declare in `not_keys` that the number"
        " is another system's."
    ),
    GapKind.NOT_KEYS: "Correct `not_keys`; where the values alone speak against it, somebody who has looked waives it.",
    GapKind.KEY_OF_SEVERAL: (
        "Name all columns that distinguish persons, as `key: [tenant_id, user_id]`; waive it where the rows are "
        "one person's. A place that is not searched: ask its owner to erase the rows, or waive it after a check."
    ),
    GapKind.SEVERAL_PERSONS: "Say `row: delete` or `row: keep` of each key column. A waiver does not free it.",
    GapKind.HOLD_UNMATCHED: "Name the dataset as the inventory does.",
    GapKind.HOLD_KEEPS_REST: "Agree to it, or let those who hold it take the held columns out.",
    GapKind.HOLD_BLOCKS: "Separate the two, hold it as well, or plan again when the hold ends.",
    GapKind.HOLD_EXPIRES: "Raise the retention, or lock the objects.",
    GapKind.HOLD_REFILLS: "Stop these jobs, or let them leave the person out.",
    GapKind.HOLD_OVERWRITTEN: "Stop the job, or keep what is held elsewhere.",
    GapKind.HOLD_IN_BACKUP: "Hold the backup too, or waive it.",
    GapKind.WRITER_RUNNING: "Stop it and say so under `writers`, or plan with retention.",
    GapKind.UNGUARDED_COMMITS: (
        "Name the jobs under `writers` and stop them, or set a log store for several clusters; waive it where "
        "nobody writes."
    ),
    GapKind.LEFT_OUT: "Erase it by another plan. Nobody can waive it.",
    GapKind.KEY_MISSING: "Correct its name under `keys`.",
    GapKind.KEY_COLUMNS: "Correct the columns under `keys`.",
    GapKind.KEY_UNREAD: "Give the right to read the table, and KMS.",
    GapKind.KEY_KMS_STATE: "Cancel its deletion or enable it, or make sure that this is meant.",
    GapKind.KEY_SHARED: "Encrypt those people's cells under keys of their own.",
    GapKind.KEY_KMS_SHARED: "Name keys by their ids, one for a person.",
    GapKind.KEY_ENCRYPTED_MISSING: "Correct its name under `encrypts`.",
    GapKind.KEY_ENCRYPTED_COLUMNS: "Correct the columns under `encrypts`.",
    GapKind.KEY_READABLE: "Encrypt or erase it; declare what is not encrypted.",
    GapKind.KEY_ARCHIVED_CIPHERTEXT: "Restore it, look into it, then plan again.",
    GapKind.KEY_UNTRACED: "Load the lineage of the job that fills it.",
    GapKind.KEY_REMEMBERED: "Erase these copies: old versions, archives, backups.",
    GapKind.KEY_OPENED: "Declare it under `encrypts`, let its job write the person's key, or drop it.",
    GapKind.PLAIN_CELLS: "Encrypt or erase them and let old versions expire; waive it where they are not the person's.",
    GapKind.PLAIN_ARCHIVE: "Check every object, erase the person in unencrypted objects, then waive the gap.",
}
