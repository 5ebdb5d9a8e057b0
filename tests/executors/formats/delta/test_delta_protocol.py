"""Delta tables that use what the protocol offers: after the sequence no byte of the person, and every row of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from executors.formats.delta.table_settings import without_clustering, without_tombstones
from pii_tracer.lake.formats.delta.transaction_log import live_files
from pii_tracer.lake.formats.delta.vocabulary import DELTA, DELTA_CLEAN_LOG, DELTA_PURGE
from pii_tracer.run.executor_protocol import Progress
from tests.executors.formats.delta.test_delta import (
    CLEAN,
    DELETE,
    PURGE,
    VACUUM,
    append,
    make,
    read,
)
from tests.executors.world import EMAIL, UID, Steps, bystanders, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def sql_of(steps: Steps) -> str:
    return f"delta.`{steps.location}`"


def erase(spark: SparkSession, steps: Steps) -> None:
    """The naive way leaves the person; the sequence leaves nothing, everybody else, the schema and the properties."""
    others, schema = bystanders(read(spark, steps)), read(spark, steps).schema
    properties = spark.sql(f"SHOW TBLPROPERTIES {sql_of(steps)}").collect()
    count = read(spark, steps).where(f"uid != {UID}").count()
    steps.all(DELETE, VACUUM)
    assert residue(steps.location), "deleting and vacuuming alone leaves the person"
    steps.all(PURGE, VACUUM, CLEAN)
    assert residue(steps.location) == []
    assert bystanders(read(spark, steps)) == others
    assert read(spark, steps).count() == count == len(others)
    assert read(spark, steps).schema == schema
    assert spark.sql(f"SHOW TBLPROPERTIES {sql_of(steps)}").collect() == properties


def test_mapping_by_id_with_vectors_a_feed_and_a_widened_type(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(
        spark,
        spark_estate,
        "p_id_mapping",
        **{
            "delta.columnMapping.mode": "id",
            "delta.enableDeletionVectors": "true",
            "delta.enableChangeDataFeed": "true",
            "delta.enableTypeWidening": "true",
        },
    )
    spark.sql(f"ALTER TABLE {sql_of(steps)} RENAME COLUMN email TO contact")
    spark.sql(f"ALTER TABLE {sql_of(steps)} ADD COLUMN visits SMALLINT")
    spark.sql(f"INSERT INTO {sql_of(steps)} VALUES (50, {UID}, '{EMAIL}', 1, 7), (51, 7, 'b51@x.example', 1, 7)")
    spark.sql(f"ALTER TABLE {sql_of(steps)} ALTER COLUMN visits TYPE INT")
    spark.sql(
        f"INSERT INTO {sql_of(steps)} VALUES (52, {UID}, '{EMAIL}', 1, 70000), (53, 7, 'b53@x.example', 1, 70000)"
    )
    spark.sql(f"UPDATE {sql_of(steps)} SET amount = amount + 1 WHERE id IN (4, 5)")
    spark.sql(f"DELETE FROM {sql_of(steps)} WHERE id = 6")
    assert list(steps.location.rglob("cdc-*.parquet"))
    erase(spark, steps)


def test_constraints_generated_and_identity_columns(spark: SparkSession, spark_estate: SparkEstate) -> None:
    from delta.tables import DeltaTable, IdentityGenerator

    folder = spark_estate.folder("delta/p_constraints")
    builder = DeltaTable.create(spark).location(str(folder)).property("delta.enableDeletionVectors", "true")
    builder.addColumn("row", "BIGINT", generatedAlwaysAs=IdentityGenerator(100, 10))
    builder.addColumn("id", "BIGINT").addColumn("uid", "BIGINT", nullable=False).addColumn("email", "STRING")
    builder.addColumn("amount", "INT").addColumn("owner", "STRING", generatedAlwaysAs="CAST(uid AS STRING)")
    builder.execute()
    steps = Steps(context(spark_estate), "delta", None, folder, DELTA)
    spark.sql(f"ALTER TABLE {sql_of(steps)} ADD CONSTRAINT owed CHECK (amount >= 0)")
    for made in (rows(0, 20, (3, 4)), rows(20, 20, (31,))):
        append(spark, folder, made)
    erase(spark, steps)
    append(spark, folder, rows(900, 2))
    numbers = [r.row for r in read(spark, steps).select("row").collect()]
    assert len(set(numbers)) == 39, "identities go on where they were"
    with pytest.raises(Exception, match="CHECK"):
        append(spark, folder, [(1000, 1, "n@example.net", -1)])


def test_liquid_clustering_with_row_tracking_and_commit_timestamps(
    spark: SparkSession, spark_estate: SparkEstate
) -> None:
    folder = spark_estate.folder("delta/p_clustered")
    spark.sql(
        f"CREATE TABLE delta.`{folder}` (id BIGINT, uid BIGINT, email STRING, amount INT) USING delta CLUSTER BY (uid, email)"
        " TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true',"
        " 'delta.enableDeletionVectors' = 'true')"
    )
    steps = Steps(context(spark_estate), "delta", None, folder, DELTA)
    for made in (rows(0, 20, (3, 4)), rows(20, 20, (31,))):
        append(spark, folder, made)
    spark.sql(f"OPTIMIZE {sql_of(steps)}")
    spark.sql(f"DELETE FROM {sql_of(steps)} WHERE id = 3")
    spark.sql(f"REORG TABLE {sql_of(steps)} APPLY (PURGE)")
    spark.sql(f"OPTIMIZE {sql_of(steps)} FULL")
    assert steps.probe(DELTA_PURGE) is not Progress.DONE, "both pass over a cube that is whole"
    (live,) = live_files(folder)
    assert live.deletion_vector
    assert 3 in pq.read_table(live.path)["id"].to_pylist(), "the row, under its vector"
    erase(spark, steps)
    assert spark.sql(f"DESCRIBE DETAIL {sql_of(steps)}").first()["clusteringColumns"] == ["uid", "email"]
    killed = without_clustering(spark.sql, sql_of(steps), folder)
    killed.__enter__()
    assert steps.probe(DELTA_PURGE) is not Progress.DONE
    steps.all(PURGE)
    assert spark.sql(f"DESCRIBE DETAIL {sql_of(steps)}").first()["clusteringColumns"] == ["uid", "email"]
    spark.sql(f"OPTIMIZE {sql_of(steps)}")
    assert read(spark, steps).count() == 37


@pytest.mark.parametrize("policy", [pytest.param("classic", marks=pytest.mark.nightly), "v2"])
def test_checkpoints_of_several_parts(spark: SparkSession, spark_estate: SparkEstate, policy: str) -> None:
    part_size = "spark.databricks.delta.checkpoint.partSize"
    spark.conf.set(part_size, "2")
    try:
        steps = make(
            spark,
            spark_estate,
            f"p_parts_{policy}",
            **{"delta.checkpointInterval": "3", "delta.checkpointPolicy": policy},
        )
        for number in range(4):
            append(spark, steps.location, rows(50 + 5 * number, 5, (50 + 5 * number,)))
        log = steps.location / "_delta_log"
        pattern = "*.checkpoint.*.*.parquet" if policy == "classic" else "_sidecars/*.parquet"
        assert len(list(log.glob(pattern))) > 2
        erase(spark, steps)
        newest = max(p.name[:20] for p in log.glob("*.checkpoint*"))
        assert len(list(log.glob(pattern.replace("*.checkpoint", f"{newest}.checkpoint")))) > 1
        append(spark, steps.location, rows(900, 2))
        assert read(spark, steps).count() == 55
    finally:
        spark.conf.unset(part_size)


@pytest.mark.parametrize("policy", ["classic", pytest.param("v2", marks=pytest.mark.nightly)])
def test_the_person_as_partition_value(spark: SparkSession, spark_estate: SparkEstate, policy: str) -> None:
    """Removed files stay as tombstones in every checkpoint for a week, with their partition values and paths."""
    folder = spark_estate.folder(f"delta/p_partitioned_{policy}")
    made = frame(spark, [*rows(0, 6, (3, 4)), *rows(6, 3)])
    writer = made.write.format("delta").partitionBy("uid").option("delta.checkpointPolicy", policy)
    if policy == "v2":
        writer = writer.option("delta.deletedFileRetentionDuration", "interval 9 days")
    writer.save(str(folder))
    steps = Steps(context(spark_estate), "delta", None, folder, DELTA)
    own = spark.sql(f"SHOW TBLPROPERTIES {sql_of(steps)}").where("key = 'delta.deletedFileRetentionDuration'").collect()
    assert len(own) == (policy == "v2")
    erase(spark, steps)
    assert [p for p in folder.rglob("*") if str(UID) in p.name] == []
    killed = without_tombstones(spark.sql, sql_of(steps), folder)
    killed.__enter__()
    kept = "delta.deletedFileRetentionDuration"
    assert spark.sql(f"SHOW TBLPROPERTIES {sql_of(steps)} ('{kept}')").first()["value"] == "interval 0 seconds"
    assert steps.probe(DELTA_CLEAN_LOG) is not Progress.DONE
    steps.all(CLEAN)
    assert spark.sql(f"SHOW TBLPROPERTIES {sql_of(steps)}").where(f"key = '{kept}'").collect() == own
