"""Which tests show each hazard of the catalogue: the person in the very place that it names, and then not there any more.

Where two tests are named the first shows the survival and the others the remedy. A hazard that is not erased but
guarded against (files lost to others, a table that is blocked) is shown by what happens without the guard, and with it.
What is only documented says why it cannot be shown here. `tests/planners/test_hazard_tests.py` holds this to the
catalogue and to the tests that there are.
"""

from __future__ import annotations

SHOWN: dict[str, tuple[str, ...]] = {
    "D18": ("tests/app/planning_gaps/test_files_left_behind.py::test_what_every_checkpoint_of_a_delta_table_repeats",),
    "D19": (
        "tests/app/planning_gaps/test_files_left_behind.py::test_files_of_a_delta_log",
        "tests/app/planning_gaps/test_files_left_behind.py::test_leftovers_of_a_running_writer_stay_for_a_day",
    ),
    "D20": ("tests/app/planning_gaps/test_files_left_behind.py::test_a_stale_dictionary_entry_in_a_table",),
    "D21": (
        "tests/planners/planted_metadata/test_planted_delta.py::test_places_that_were_passed_over",
        "tests/planners/planted_metadata/test_planted_iceberg.py::test_places_that_were_passed_over",
    ),
    "D22": (
        "tests/planners/planted_metadata/test_planted_delta.py::test_places_that_were_passed_over",
        "tests/planners/planted_metadata/test_planted_iceberg.py::test_places_that_were_passed_over",
    ),
    "F3d": ("tests/planners/planted_metadata/test_planted_files.py::test_places_that_were_passed_over",),
    "H10": ("tests/app/planning_gaps/test_files_left_behind.py::test_what_no_procedure_of_hudi_takes_away",),
    "F3c": ("tests/app/planning_gaps/test_files_left_behind.py::test_hidden_files_of_a_bare_folder",),
    "D1": ("tests/executors/test_hazards_alone.py::test_d1_and_d7_files_that_a_delete_took_out_and_its_change_data",),
    "D2": (
        "tests/executors/test_hazards_alone.py::test_d2_d5_d6_and_d10_a_literal_vectors_wide_bounds_and_hidden_files",
    ),
    "D3": ("tests/executors/test_hazards_alone.py::test_d3_files_of_which_the_time_that_vacuum_is_given_says_nothing",),
    "D4": (
        "tests/executors/test_hazards_alone.py::test_d4_and_d16_statistics_in_the_log_and_partition_values_in_checkpoints",
    ),
    "D5": (
        "tests/executors/test_hazards_alone.py::test_d2_d5_d6_and_d10_a_literal_vectors_wide_bounds_and_hidden_files",
    ),
    "D6": (
        "tests/executors/test_hazards_alone.py::test_d2_d5_d6_and_d10_a_literal_vectors_wide_bounds_and_hidden_files",
    ),
    "D7": ("tests/executors/test_hazards_alone.py::test_d1_and_d7_files_that_a_delete_took_out_and_its_change_data",),
    "D8": (
        "tests/executors/formats/delta/test_delta.py::test_vacuum_of_the_source_alone_breaks_a_clone",
        "tests/executors/formats/delta/test_delta.py::test_a_shallow_clone_first_then_its_source",
    ),
    "D10": (
        "tests/executors/test_hazards_alone.py::test_d2_d5_d6_and_d10_a_literal_vectors_wide_bounds_and_hidden_files",
    ),
    "D12": ("tests/executors/test_concurrency.py::test_a_restore_in_the_middle_is_found_and_undone",),
    "D13": (
        "tests/executors/formats/delta/test_delta_variants.py::test_a_dropped_column_stays_in_the_files_of_others",
    ),
    "D14": (
        "tests/executors/formats/delta/test_delta_variants.py::test_engines_that_read_by_symlink_manifests_lose_nothing",
    ),
    "D15": (
        "tests/executors/test_concurrency.py::test_a_file_in_flight_is_not_swept_and_goes_when_its_writer_is_long_dead",
    ),
    "D16": (
        "tests/executors/test_hazards_alone.py::test_d4_and_d16_statistics_in_the_log_and_partition_values_in_checkpoints",
        "tests/executors/formats/delta/test_delta_protocol.py::test_the_person_as_partition_value",
    ),
    "D17": (
        "tests/executors/formats/delta/test_delta_protocol.py::test_liquid_clustering_with_row_tracking_and_commit_timestamps",
    ),
    "I1": (
        "tests/executors/formats/iceberg/test_hazards_alone_iceberg.py::test_i1_i4_and_i4b_old_snapshots_bounds_and_deleted_entries",
    ),
    "I2": ("tests/executors/formats/iceberg/test_hazards_alone_iceberg.py::test_i2_the_data_file_under_a_delete_file",),
    "I3": ("tests/executors/formats/iceberg/test_iceberg.py::test_merge_on_read_with_branch_and_tag",),
    "I4": (
        "tests/executors/formats/iceberg/test_hazards_alone_iceberg.py::test_i1_i4_and_i4b_old_snapshots_bounds_and_deleted_entries",
    ),
    "I4b": (
        "tests/executors/formats/iceberg/test_hazards_alone_iceberg.py::test_i1_i4_and_i4b_old_snapshots_bounds_and_deleted_entries",
    ),
    "I5": ("tests/executors/formats/iceberg/test_iceberg_variants.py::test_equality_deletes_of_another_engine",),
    "I6": ("tests/executors/formats/iceberg/test_hazards_alone_iceberg.py::test_i6_files_that_no_snapshot_names",),
    "I7": (
        "tests/executors/test_files_read_by_others.py::test_two_tables_and_one_set_of_files",
        "tests/executors/test_files_read_by_others.py::test_a_sweep_spares_what_the_other_table_still_reads",
    ),
    "I8": (
        "tests/executors/formats/iceberg/test_iceberg_variants.py::test_a_compaction_that_forgets_deletes_brings_the_person_back",
    ),
    "I9": ("tests/executors/formats/iceberg/test_iceberg_variants.py::test_deletion_vectors_of_format_version_3",),
    "H1": (
        "tests/executors/formats/hudi/test_hazards_alone_hudi.py::test_h1_and_h3_older_slices_and_a_savepoint_that_keeps_them",
    ),
    "H2": ("tests/executors/formats/hudi/test_hazards_alone_hudi.py::test_h2_log_blocks",),
    "H3": (
        "tests/executors/formats/hudi/test_hazards_alone_hudi.py::test_h1_and_h3_older_slices_and_a_savepoint_that_keeps_them",
    ),
    "H4": (
        "tests/executors/formats/hudi/test_hudi.py::test_variants",
        "tests/executors/formats/hudi/test_hudi_indexes.py::test_indexes",
    ),
    "H5": ("tests/executors/formats/hudi/test_hudi_indexes.py::test_the_archived_timeline",),
    "H6": (
        "tests/executors/formats/hudi/test_hazards_alone_hudi.py::test_h6_rows_of_one_record_key",
        "tests/executors/formats/hudi/test_hazards_alone_hudi.py::test_h6_a_record_key_that_others_have_too",
    ),
    "H7": ("tests/executors/formats/hudi/test_hudi_variants.py::test_a_restored_savepoint_brings_the_person_back",),
    "H11": ("tests/hdfs/test_hive_acid.py::test_the_person_leaves_transactional_tables",),
    "H12": ("tests/hdfs/test_hive_acid.py::test_a_killed_run_goes_on_and_readers_are_waited_for",),
    "H8": ("tests/executors/formats/hudi/test_hazards_alone_hudi.py::test_h8_file_groups_that_were_replaced",),
    "H9": (
        "tests/executors/formats/hudi/test_hudi_indexes.py::test_the_timeline_goes_on_naming_a_partition",
        "tests/planners/copies/test_support.py::test_a_hudi_table_partitioned_by_a_key_is_blocked",
    ),
    "F1": ("tests/executors/formats/plain_files/test_files.py::test_parquet",),
    "F2": (
        "tests/executors/formats/plain_files/test_hazards_alone_files.py::test_f2_a_value_in_the_name_of_a_partition_folder",
        "tests/executors/formats/plain_files/test_hazards_alone_files.py::test_f2_a_value_in_the_name_of_an_object",
    ),
    "F2b": (
        "tests/executors/formats/plain_files/test_hazards_alone_files.py::test_f2b_the_checksum_of_a_rewritten_file",
    ),
    "F3": ("tests/executors/formats/plain_files/test_hazards_alone_files.py::test_f3_what_stands_in_footers",),
    "F3b": (
        "tests/executors/formats/plain_files/test_files.py::test_an_entry_of_a_dictionary_that_no_row_uses_is_written_out_of_the_file",
    ),
    "F4": ("tests/executors/formats/plain_files/test_hazards_alone_files.py::test_f4_compressed_pages",),
    "F5": (
        "tests/executors/formats/plain_files/test_streaming.py::test_the_output_of_a_stream_stays_readable_and_its_state_is_a_gap",
        "tests/executors/formats/plain_files/test_streaming.py::test_a_state_is_a_gap_unless_it_is_known_to_be_clean",
    ),
    "F6": (
        "tests/executors/formats/plain_files/test_streaming.py::test_the_output_of_a_stream_stays_readable_and_its_state_is_a_gap",
    ),
    "F7": (
        "tests/executors/formats/plain_files/test_files_summary.py::test_rows_taken_out_of_the_files_stay_in_the_summary",
        "tests/executors/formats/plain_files/test_files_summary.py::test_the_summaries_of_a_rewritten_file_go_and_no_other",
    ),
    "F8": (
        "tests/executors/formats/plain_files/test_hive_text.py::test_a_reader_that_does_not_know_the_escapes_leaves_the_row",
        "tests/hdfs/test_hive_text.py::test_the_person_leaves_text_that_a_metastore_describes",
    ),
    "F9": (
        "tests/verify/test_computed_again.py::test_in_s3_each_version_is_a_file",
        "tests/e2e/persons/test_computed_again.py::test_what_its_owner_computes_again_is_waited_for_and_looked_at",
    ),
    "S1": ("tests/executors/stores/s3/test_s3_executor.py::test_naive_delete_leaves_the_person_and_the_steps_do_not",),
    "S2": (
        "tests/executors/stores/s3/test_s3_executor.py::test_replica_keeps_old_versions_until_they_are_deleted_there",
    ),
    "S3": (
        "tests/executors/stores/s3/test_s3_archives.py::test_a_run_parks_until_the_lock_of_one_version_ends",
        "tests/executors/stores/s3/test_s3_archives.py::test_a_retention_that_is_over_is_not_asked_for_again_and_a_hold_stays",
    ),
    "S5": (
        "tests/executors/stores/s3/test_s3_archives.py::test_the_archive_tiers_of_intelligent_tiering_are_restored_too",
        "tests/executors/stores/s3/test_s3_archives.py::test_a_restore_parks_the_run_and_a_later_resume_goes_on",
    ),
    "S6": ("tests/executors/stores/test_vault.py::test_the_person_leaves_the_vault_and_nobody_else_does",),
    "S7": (
        "tests/executors/stores/s3/test_s3_guards.py::test_unfinished_uploads_outlive_every_version_until_they_are_aborted",
    ),
    "S9": (
        "tests/hdfs/test_run.py::test_a_file_written_again_keeps_its_rights_and_stays_in_the_snapshot_alone",
        "tests/hdfs/test_whole_path.py::test_the_person_leaves_every_place_and_nobody_else_does",
        "tests/hdfs/test_delta.py::test_the_person_leaves_a_table_and_nobody_else_does",
        "tests/hdfs/test_hive_tables.py::test_the_person_leaves_the_tables_of_a_metastore",
    ),
    "S10": (
        "tests/gcs/test_run.py::test_a_plain_overwrite_and_a_plain_delete_leave_the_person",
        "tests/gcs/test_whole_path.py::test_the_person_leaves_every_generation_and_nobody_else_does",
        "tests/gcs/test_whole_path.py::test_soft_deleted_bytes_are_dated_and_never_called_clean_before",
        "tests/azure/test_run.py::test_a_plain_overwrite_and_a_plain_delete_leave_the_person",
        "tests/azure/test_whole_path.py::test_the_person_leaves_every_version_and_snapshot_and_nobody_else_does",
        "tests/azure/test_file_rewrite.py::test_a_plain_overwrite_loses_who_may_read_and_a_plain_rename_leaves_the_person",
        "tests/azure/test_file_rewrite.py::test_what_soft_delete_keeps_of_the_old_file_is_waited_for",
    ),
    "K1": (
        "tests/executors/streams/kafka/test_kafka.py::test_a_tombstone_alone_leaves_every_value_on_disk",
        "tests/executors/streams/kafka/test_kafka.py::test_the_person_leaves_a_compacted_topic_wholly_and_alone",
        "tests/executors/streams/kafka/test_kafka.py::test_a_tombstone_that_a_cleaning_had_dated_goes_too",
    ),
    "K2": (
        "tests/executors/streams/kafka/test_hazards_alone_kafka.py::test_k2_a_tombstone_in_a_topic_that_is_not_compacted",
        "tests/executors/streams/kafka/test_kafka.py::test_retention_is_waited_for",
    ),
    "K3": (
        "tests/executors/streams/kafka/test_hazards_alone_kafka.py::test_k3_a_consumer_that_never_saw_the_tombstone",
    ),
    "K4": ("tests/executors/streams/kafka/test_kafka_followers.py::test_followers_are_cleaned_with_their_leader",),
    "K5": (
        "tests/executors/streams/kafka/test_kafka_prefix.py::test_deleting_behind_the_persons_last_record_leaves_its_bytes_rolled_or_not",
        "tests/executors/streams/kafka/test_kafka_prefix.py::test_the_person_leaves_and_partitions_without_them_are_whole",
    ),
    "X1": ("tests/executors/keys/test_shred.py::test_a_destroyed_key_is_not_over_before_the_longest_cache_is",),
    "X2": (
        "tests/executors/keys/test_kms.py::test_a_cancelled_deletion_fails_and_is_not_repeated_blindly",
        "tests/executors/keys/test_kms.py::test_pending_is_not_done_until_kms_does_not_know_the_key",
    ),
    "C1": (
        "tests/lakefs/test_run.py::test_deleting_on_main_and_collecting_leaves_the_person",
        "tests/lakefs/test_run.py::test_the_planned_way_leaves_nothing_of_the_person_and_everything_of_others",
    ),
    "E1": ("tests/executors/formats/plain_files/test_hazards_alone_files.py::test_e1_a_literal_in_the_event_log",),
    "C2": (
        "tests/e2e/stores/test_nessie.py::test_a_delete_on_main_leaves_the_person_on_every_other_reference",
        "tests/e2e/stores/test_nessie.py::test_no_byte_is_left_and_old_commits_read_nothing",
    ),
    "M1": ("tests/executors/test_hazards_alone.py::test_m1_files_of_a_table_that_was_dropped",),
}

TRAPS: tuple[str, ...] = (
    "tests/executors/test_hazards_alone.py::test_vacuum_lite_leaves_files_that_were_never_committed",
    "tests/executors/test_hazards_alone.py::test_d3_files_of_which_the_time_that_vacuum_is_given_says_nothing",
    "tests/executors/formats/iceberg/test_hazards_alone_iceberg.py::test_remove_orphan_files_by_other_prefixes",
    "tests/executors/formats/iceberg/test_hazards_alone_iceberg.py::test_pyiceberg_expires_in_the_metadata_alone",
    "tests/executors/formats/iceberg/test_hazards_alone_iceberg.py::test_i2_the_data_file_under_a_delete_file",
    "tests/executors/formats/hudi/test_hudi_versions.py::test_the_naive_way_raises_the_version",
)
"""The clean-ups that do less, or more, than their names say (docs/hazards.md), each by the engine that does so."""

NOT_SHOWN: dict[str, str] = {
    "D11": "a catalog that commits for the engine, or the service that writes UniForm's metadata, is no part of open Delta",
    "S4": "an absence: no stand-in shows what AWS' Batch Operations does not offer",
    "S8": "AWS writes inventories and access logs by itself, hours later; no stand-in does",
    "B1": "a backup that only its owner reaches is by its nature out of the tests' reach, and so is its restore",
}
