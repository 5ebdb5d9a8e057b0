"""Which tests `make test` leaves to `make test-slow` and to continuous integration, beside those that carry the mark `slow`.

A test is here if it takes seconds and belongs to one of these kinds:

- a further path on a real engine, broker or server, of which `STAYS` names another of the same format, store or broker;
- a second pair: the same code with another format, server, database, dialect or version;
- a kill at a further moment, or a write of others at one;
- what an engine or a broker does by itself: it changes with its version alone, which `constraints.txt` pins;
- how work grows with the size of what is given, and what is installed.

Rules are never here: no test that `make mutants` runs is made slow by this list. Each name says what in `make test` shows
the same, or the rule of it. A name is the start of a test's id; after `*` comes what its parameters contain.
`tests/conftest.py` gives the tests their mark, and `tests/test_tiers.py` holds this list to what is said here.
"""

from __future__ import annotations

_KAFKA = "tests/executors/streams/kafka/test_kafka"
_DELTA = "tests/executors/formats/delta/test_delta"
_ICEBERG = "tests/executors/formats/iceberg/test_iceberg"
_HUDI = "tests/executors/formats/hudi/test_hudi"
_SHAPES = "tests/lineage/sources/query_log/test_statement_shapes.py::test_the_graph_is_that_of_every_text_by_itself["
_ENGINE = "what the engine does by itself; the steps against it are those of the paths in STAYS"

SLOW: dict[str, str] = {
    # further paths, and plans of whole estates
    "tests/sample_lineage/test_plan.py::": "plans of small estates in tests/app/planning; tests/e2e/test_recall.py",
    "tests/e2e/test_meanwhile.py::": "what came since: tests/app/test_later_findings.py, tests/gcs/test_whole_path.py",
    "tests/e2e/test_second_estate.py::": "the paths in STAYS, by format",
    "tests/e2e/test_submitted.py::": "jars of sessions: tests/executors/engine/test_profiles.py",
    "tests/e2e/persons/test_holds_and_parts.py::": "tests/planners/holds, tests/planners/test_partial.py",
    "tests/e2e/persons/test_shredding.py::": "keys: tests/executors/test_killed_everywhere.py, tests/lake/keys",
    "tests/e2e/persons/test_one_stays_open.py::": "tests/verify/test_persons_left.py, tests/app/planning/test_several_persons.py",
    "tests/e2e/stores/test_glue_estate.py::": "tests/app/planning/test_glue.py, tests/app/estate_draft/test_catalogs.py",
    "tests/gcs/test_rest_estate.py::": "tests/gcs/test_first_estate.py",
    "tests/hdfs/test_hive_estate.py::": "tests/hdfs/test_first_estate.py, tests/lake/catalogs/test_hive.py",
    "tests/hdfs/test_hive_tables.py::": "tests/hdfs/test_first_estate.py, tests/lake/catalogs/test_hive.py",
    "tests/app/test_verdicts_with_ledger.py::test_plans_and_verdicts_of_an_estate_in_s3": "the same on a disk beside it; tests/verify/test_s3_with_ledger.py",
    f"{_DELTA}": "the path of Delta in STAYS; tests/executors/formats/delta/test_engine_state.py",
    f"{_ICEBERG}": "the path of Iceberg in STAYS; tests/executors/formats/iceberg/kept_history",
    f"{_HUDI}": "the path of Hudi in STAYS; tests/lake/formats/test_formats.py",
    "tests/executors/test_readers.py::": _ENGINE,
    "tests/executors/test_concurrency.py::": "the write of others in STAYS",
    "tests/executors/test_files_read_by_others.py::test_two_tables": "the other sharers beside it; tests/planners/copies/test_sharing.py",
    "tests/executors/test_files_read_by_others.py::test_a_bare_folder": "the other sharers beside it; tests/planners/copies/test_sharing.py",
    "tests/executors/test_corrupt_tables.py::": "the same for Iceberg, in STAYS",
    "tests/executors/test_dying.py::": "the dying engine in STAYS",
    "tests/executors/sweep/test_sweep": "the sweeps in STAYS; tests/gcs/test_swept_files.py",
    "tests/executors/engine/test_jars_by_packages.py::": "tests/executors/engine/test_profiles.py",
    "tests/executors/catalogs/test_nessie.py::": "references of the server: tests/lake/catalogs/test_nessie.py, tests/planners/copies/test_nessie.py",
    "tests/verify/test_nessie.py::": "references of the server: tests/lake/catalogs/test_nessie.py",
    "tests/verify/test_cluster_search.py::": "the search by workers in STAYS; the search itself in tests/scan",
    "tests/lake/stores/test_s3_lake_hudi.py::": "tests/lake/stores/test_s3_lake.py; Hudi on a disk: tests/lake/formats/test_formats.py",
    "tests/retention/test_live.py::": "statements: tests/retention/test_ddl.py, tests/retention/test_enforce.py",
    "tests/azure/test_hudi.py::": "plans of tables in Azure: tests/azure/test_iceberg.py",
    "tests/gcs/test_iceberg_rest.py::": "tests/gcs/test_iceberg.py, tests/lake/catalogs/test_catalogs.py",
    "tests/hdfs/test_iceberg.py::": "tests/gcs/test_iceberg.py, tests/hdfs/test_delta.py",
    "tests/hdfs/test_hudi.py::": "plans of tables in HDFS: tests/hdfs/test_delta.py",
    # what engines and brokers do by themselves
    "tests/executors/test_hazards_alone.py::": _ENGINE,
    "tests/executors/formats/hudi/test_hazards_alone_hudi.py::": _ENGINE,
    "tests/executors/formats/iceberg/test_hazards_alone_iceberg.py::": _ENGINE,
    "tests/executors/formats/plain_files/test_hazards_alone_files.py::test_e1": _ENGINE,
    "tests/executors/streams/kafka/test_hazards_alone_kafka.py::": _ENGINE,
    "tests/verify/test_real_tables.py::test_iceberg_merge": _ENGINE,
    "tests/verify/test_real_tables.py::test_delta_merge": _ENGINE,
    "tests/scan/rows/test_spark_lines.py::": "the rules without the engine: tests/executors/formats/plain_files/test_spark_text.py",
    "tests/planners/locate/test_linkage_on_spark.py::": "the rules without the engine: tests/planners/locate/test_linkage.py",
    "tests/proof/deletion_log/test_log_in_spark.py::": "other readers: tests/proof/deletion_log/test_log_reading.py",
    "tests/lineage/sources/query_log/test_log_reading.py::test_spark_gives": "the same graph without the engine, beside it",
    # Kafka
    f"{_KAFKA}.py::": "the topic in STAYS",
    f"{_KAFKA}_prefix.py::": "the prefix in STAYS",
    f"{_KAFKA}_followers.py::": "one broker: the topics in STAYS",
    f"{_KAFKA}_rewrite.py::test_a_crash_at_any_moment": "the moment in STAYS",
    f"{_KAFKA}_rewrite.py::test_a_half_filled": "the moment in STAYS",
    f"{_KAFKA}_rewrite.py::test_offsets_that": "the other refusals beside it",
    f"{_KAFKA}_rewrite.py::test_aborted": "test_some_records_have beside it; tests/verify/test_topics.py",
    f"{_KAFKA}_avro.py::": f"{_KAFKA}_protobuf.py; tests/lake/streams/test_schema_registry.py",
    "tests/e2e/stores/test_kafka.py::": "the topics in STAYS; tests/app/planning/test_kafka_plan.py",
    "tests/verify/test_lapsed.py::test_records": "what lapsed and what is lost, without a broker, beside it",
    "tests/verify/test_lapsed.py::test_a_rewrite": "what lapsed and what is lost, without a broker, beside it",
    "tests/verify/test_lapsed.py::test_what_is_missing": "what lapsed and what is lost, without a broker, beside it",
    "tests/executors/test_killed_everywhere.py::test_a_topic": "the other executors beside it; the moment in STAYS",
    "tests/executors/test_killed_everywhere.py::test_a_compacted": "the other executors beside it; the moment in STAYS",
    "tests/app/planning/test_tenants_in_topics.py::": "tests/app/planning/test_kafka_plan.py, tests/executors/streams/kafka/test_kafka_tenants.py",
    # second servers, databases, dialects, and buckets without versions
    "tests/intake/*postgresql": "the same in a file; tests/intake/test_postgres.py",
    "tests/http_api/*postgresql": "the same in a file; tests/intake/test_postgres.py",
    "tests/app/planning/*[versitygw": "the same on the stand-in",
    "tests/verify/test_s3_with_ledger.py::*[no versions": "the same with versions",
    "tests/verify/test_s3_in_parts.py::*[no versions": "the same with versions",
    "tests/verify/test_s3_with_ledger.py::*-plan": "the same by verification",
    "tests/verify/test_s3_with_ledger.py::*-archive": "the same by verification",
    "tests/verify/test_s3_in_parts.py::*-plan": "the same by verification",
    "tests/azure/test_known_objects.py::*[no versions": "the same with versions",
    "tests/gcs/test_known_objects.py::*[no versions": "the same with versions",
    "tests/app/planning/test_hive_s3.py::": "partitions: tests/app/planning/test_glue.py, tests/app/planning/test_partitions_since.py",
    "tests/app/planning/test_hive_text.py::": "tests/app/planning/test_glue_text.py",
    "tests/lake/catalogs/test_hive_text.py::*[2.3.9": "text of Glue beside it; tests/lake/catalogs/test_spark_text_tables.py",
    "tests/proof/test_aws_cli.py::test_both_verifiers_agree": "the changed file in STAYS",
    "tests/executors/engine/test_session.py::": "tests/executors/engine/test_names_of_other_catalogs.py, tests/executors/engine/test_profiles.py",
    "tests/executors/stores/s3/test_s3_formats.py::test_a_run_that_dies": "tests/executors/stores/s3/test_s3_servers.py, tests/executors/stores/s3/test_s3_partial.py",
    _SHAPES: "the dialects in STAYS",
    # how work grows, and what is installed
    "tests/lineage/test_long_scripts.py::test_work_grows": "readings of the same statements in tests/lineage",
    "tests/executors/stores/s3/test_s3_executor.py::test_more_than_a_thousand": "the other versions beside it",
    "tests/reports/test_plan_reports.py::test_two_thousand": "test_the_worst_names beside it",
    "tests/proof/cloudtrail/test_trail_chain.py::test_a_file_that_unzips": "the other forged chains beside it",
    "tests/faults/test_audit.py::test_everything": "`make audit`",
    "tests/cli/test_plain_install.py::": "`make package`",
    "tests/review/test_workflows.py::test_the_check_step": "command lines and scripts of workflows beside it",
    "tests/review/test_workflows.py::test_the_approvals_step": "command lines and scripts of workflows beside it",
    "tests/model_review/test_review_reports.py::test_the_hook": "the command beside it",
}  # fmt: skip

STAYS: dict[str, str] = {
    f"{_DELTA}.py::test_variants[vectors": "Delta",
    f"{_ICEBERG}.py::test_merge_on_read_with": "Iceberg",
    f"{_HUDI}.py::test_variants[mor": "Hudi",
    "tests/executors/formats/plain_files/test_files_formats.py::test_every_other_row": "bare files",
    "tests/executors/formats/plain_files/test_files_rebuild.py::test_totals_are_made_again[parquet": "bare files made again",
    "tests/executors/stores/s3/test_s3_executor.py::test_naive_delete_leaves": "S3",
    "tests/hdfs/test_whole_path.py::test_the_person_leaves": "HDFS",
    "tests/gcs/test_whole_path.py::test_the_person_leaves": "Cloud Storage",
    "tests/azure/test_whole_path.py::test_the_person_leaves": "Azure",
    "tests/lakefs/test_run.py::test_the_planned_way": "lakeFS",
    "tests/executors/stores/test_vault.py::test_the_person_leaves": "vaults",
    "tests/app/planning/test_glue_text.py::test_the_person_leaves": "tables of a catalog",
    "tests/lake/catalogs/test_hive.py::test_tables_in_all_formats[2.3.9": "a Hive metastore",
    f"{_KAFKA}.py::test_the_person_leaves_a_compacted_topic_wholly_and_alone[3": "a compacted topic",
    f"{_KAFKA}_prefix.py::test_the_person_leaves": "a prefix of a topic",
    f"{_KAFKA}_rewrite.py::test_everybody_else": "a topic written again",
    f"{_KAFKA}_rewrite.py::test_a_crash_at_any_moment_loses_nothing[compared, old topic": "a killed rewrite of a topic",
    "tests/e2e/crashes/test_executor_crashes.py::test_killed_after_each_thing_it_does[make_delta": "a killed run",
    "tests/executors/sweep/test_sweep.py::test_delta_keeps_what_the_class_keeps": "a sweep of Delta",
    "tests/executors/sweep/test_sweep.py::test_iceberg_expires_by_class": "a sweep of Iceberg",
    "tests/executors/test_concurrency.py::test_iceberg_delete_beside_an_append": "a write of others",
    "tests/executors/test_corrupt_tables.py::test_a_corrupt_data_file_stops_the_step_whatever_spark_is_told_to_pass_over[iceberg": "a corrupt table",
    "tests/executors/test_dying.py::test_an_engine_that_answers": "a dying engine",
    "tests/executors/engine/test_session.py::test_a_name_by_which_spark": "names that lead elsewhere",
    "tests/verify/test_cluster_search.py::test_every_place_is_seen_as_here": "the search by workers",
    "tests/verify/test_real_tables.py::test_the_baseline_sees_one_changed_value": "rows compared by the engine",
    "tests/proof/test_aws_cli.py::test_both_verifiers_agree[a changed log file": "the AWS CLI agrees",
    "tests/e2e/test_toy_format.py::": "a format of somebody else, by the commands",
    f"{_SHAPES}spark": "statements of Spark",
    f"{_SHAPES}snowflake": "statements of Snowflake",
    f"{_SHAPES}bigquery": "statements of BigQuery",
}  # fmt: skip
"""What `make test` runs all the same, though a name above has it, or though it takes seconds: one of each kind."""


def is_slow(test: str) -> bool:
    """Whether a test, by its id, is slow by the list."""
    return any(matches(test, name) for name in SLOW) and not test.startswith(tuple(STAYS))


def matches(test: str, name: str) -> bool:
    """Whether a name of the list means a test."""
    start, _, parameters = name.partition("*")
    return test.startswith(start) and parameters in test[len(start) :]
