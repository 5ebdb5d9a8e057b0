"""Dear tests that run at night alone (`make test-nightly`), each with what shows the same, or the rule of it, in `make test`.

A name is the start of a test's id. `tests/conftest.py` gives the tests their mark; `tests/test_architecture.py` refuses a
name that no test has.
"""

from __future__ import annotations

_DELTA = "tests/executors/formats/delta/test_delta"
_ICEBERG = "tests/executors/formats/iceberg/test_iceberg"
_HUDI = "tests/executors/formats/hudi/test_hudi"
_PREFIX = "tests/executors/streams/kafka/test_kafka_prefix.py::test_"
_FOLLOWERS = "tests/executors/streams/kafka/test_kafka_followers.py::test_"

NIGHTLY: dict[str, str] = {
    "tests/sample_lineage/test_oracle.py::test_the_two_worlds": "the sample estate's own likeness: no rule of the product",
    "tests/sample_lineage/test_build.py::": "the sample estate itself: every slow path of `tests/e2e` builds it and finds the person",
    "tests/lake/test_against_spark.py::TestEveryTable": "the sample estate's tables: `tests/lake/formats` read one of each kind",
    "tests/e2e/crashes/test_kill.py::": "kills of a whole run: each executor is killed in test_executor_crashes and test_killed_everywhere",
    "tests/e2e/crashes/test_executor_crashes.py::test_killed_after_each_thing_it_does[make_hudi": "the same for Delta and Iceberg",
    "tests/e2e/test_second_estate.py::test_every_command": "the slow path of `tests/e2e` on the sample estate",
    "tests/e2e/stores/test_kafka_prefix.py::test_every_command": "test_kafka.py beside it; test_kafka_prefix of the executor",
    "tests/e2e/persons/test_holds_and_parts.py::test_a_part_is_done": "parts of plans without an engine, in `tests/planners`",
    "tests/e2e/test_meanwhile.py::test_others_who_write": "test_concurrency of the executors",
    "tests/e2e/test_meanwhile.py::test_an_engine_that_quotes": "test_match of the engine: errors are told without their texts",
    "tests/e2e/test_meanwhile.py::test_a_table_made_while": "test_what_comes_back beside it",
    f"{_DELTA}.py::test_variants[plain]": "the variants with vectors and with a change feed",
    f"{_DELTA}.py::test_variants[checkpoint_v2]": "the variants with vectors and with a change feed; checkpoints in `tests/lake/formats/delta`",
    f"{_DELTA}.py::test_rebuild_from_the_recorded_statement": "test_a_rebuild_by_insert beside it",
    f"{_DELTA}.py::test_probe_before_and_after": "test_hazards_alone",
    f"{_DELTA}.py::test_any_of_several_keys": "test_match of the engine, and the variants",
    f"{_DELTA}.py::test_vacuum_keeps_what": "test_sweep: what a class keeps",
    f"{_DELTA}_s3.py::test_a_table_is_rebuilt": "rebuilds on a disk; test_no_current_object beside it",
    f"{_DELTA}_variants.py::test_days_before": "values without an engine, in `tests/planners/locate`",
    f"{_DELTA}_variants.py::test_engines_that_read": "symlink manifests in `tests/lake/formats/delta`",
    f"{_ICEBERG}_s3.py::test_no_current_object_and_no_version_holds_the_person[2]": "the same for version 3",
    f"{_ICEBERG}.py::test_rebuild_from_a_table": "test_rebuild_from_the_recorded_statement beside it",
    f"{_ICEBERG}.py::test_any_of_several_keys": "test_match of the engine",
    f"{_HUDI}_s3.py::": "Hudi on a disk; test_s3_lake_hudi; the S3 paths of Delta and Iceberg",
    f"{_HUDI}.py::test_variants[cow]": "the variant merge-on-read, which has base files too",
    f"{_HUDI}.py::test_rebuild": "rebuilds of Delta and Iceberg: one module makes all of them",
    f"{_HUDI}_versions.py::test_a_table_keeps_its_version[6-cow]": "the same for version 8",
    "tests/executors/formats/delta/test_delta_protocol.py::test_checkpoints_of_several_parts": "checkpoints in `tests/lake/formats/delta`",
    "tests/executors/formats/delta/test_delta_protocol.py::test_constraints_generated": "the other features of the protocol beside it",
    "tests/executors/formats/delta/test_delta_protocol.py::test_liquid_clustering": "the other features of the protocol beside it",
    "tests/executors/formats/iceberg/test_iceberg_variants.py::test_equality_deletes_be": "test_equality_deletes_of_another_engine beside them",
    "tests/executors/formats/iceberg/test_iceberg_evolved.py::test_a_tag_with_a_dropped": "a tag whose columns were widened, beside it",
    "tests/e2e/persons/test_whole_cells.py::": "test_mask of the engine, for each format; whole cells in `tests/app/planning`",
    "tests/executors/formats/hudi/test_hazards_alone_hudi.py::test_h6_rows_of_one_record_key[cow]": "the same for merge-on-read",
    "tests/executors/sweep/test_sweep_iceberg_s3.py::test_what_no_version": "test_sweep on a disk; test_s3_clear",
    "tests/executors/sweep/test_sweep.py::test_delta_keeps_what_the_class_keeps_longer": "test_delta_keeps_what_the_class_keeps beside it",
    f"{_PREFIX}after_a_crash_the_settings_are_restored_and_the_person_goes[about": "the other moments",
    f"{_PREFIX}after_a_crash_the_settings_are_restored_and_the_person_goes[marked": "the other moments",
    f"{_PREFIX}a_group_that_has_not_read_everything_is_waited_for[nothing": "one record behind",
    f"{_PREFIX}a_group_that_has_not_read_everything_is_waited_for[never": "one record behind",
    f"{_PREFIX}killed_behind_the_cut": "test_killed_between_the_note_and_the_cut",
    f"{_FOLLOWERS}a_follower_that_is_lost_at_the_cut": "test_with_a_follower_away",
    f"{_FOLLOWERS}a_follower_that_is_lost_while": "test_with_a_follower_away",
    f"{_FOLLOWERS}a_cleaning_is_not_over": "test_with_a_follower_away",
    f"{_FOLLOWERS}a_topic_is_not_written": "test_with_a_follower_away",
    "tests/lake/stores/test_s3_lake_hudi.py::test_its_state_and_rows_are_those_of_the_same_table_here[trips]": "the other tables of it",
    "tests/planners/locate/test_functions.py::test_case_of_every_letter": "letters that differ, one by one, beside it",
    "tests/scan/boundaries/test_neighbours_tables.py::test_a_table_with_the_longer_key_only_is_clean[hudi": "the same for Delta and Iceberg",
    "tests/executors/test_readers.py::test_a_reader_of_the_erased_version_gets_all_rows_and_one_of_an_older_version_an_error[iceberg": "the same for Delta",
    "tests/verify/test_real_tables.py::test_hudi_delete_leaves_slices_logs_and_metadata[cow]": "the same for merge-on-read",
}  # fmt: skip
