"""Iceberg: what the naive way leaves, and that the sequence leaves nothing and loses nobody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from executors.formats.iceberg.executor import IcebergExecutor
from executors.registry import build
from pii_tracer.lake.formats.iceberg.vocabulary import (
    ICEBERG,
    ICEBERG_DELETE_ROWS,
    ICEBERG_EXPIRE_SNAPSHOTS,
    ICEBERG_REBUILD,
    ICEBERG_REMOVE_ORPHANS,
    ICEBERG_REWRITE_FILES,
    ICEBERG_REWRITE_MANIFESTS,
    ICEBERG_REWRITE_REF,
)
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import Progress
from tests.executors.world import BY_ANY, EMAIL, UID, Steps, bystanders, context, frame, residue, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DELETE = (ICEBERG_DELETE_ROWS, {})
REWRITE = (ICEBERG_REWRITE_FILES, {})
MANIFESTS = (ICEBERG_REWRITE_MANIFESTS, {})
EXPIRE = (ICEBERG_EXPIRE_SNAPSHOTS, {"older_than": None, "retain_last": 1})
ORPHANS = (ICEBERG_REMOVE_ORPHANS, {})
SEQUENCE = (DELETE, REWRITE, MANIFESTS, EXPIRE, ORPHANS)


def make(spark: SparkSession, world: SparkEstate, name: str, mode: str, alone: bool = True) -> Steps:
    """Two files, the person in both, and a file of the person alone."""
    table = f"lake.iceberg.{name}"
    spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, uid BIGINT, email STRING, amount INT) USING iceberg TBLPROPERTIES ("
        f"'format-version'='2', 'write.delete.mode'='{mode}', 'write.parquet.compression-codec'='zstd')"
    )
    for made in (rows(0, 20, (3, 4)), rows(20, 20, (31,)), rows(40, 1, (40,)))[: 3 if alone else 2]:
        frame(spark, made).writeTo(table).append()
    location = world.base / "warehouse/lake/iceberg" / name
    return Steps(context(world), "iceberg", table, location, ICEBERG)


def append_works(spark: SparkSession, steps: Steps) -> None:
    assert steps.table
    before = spark.table(steps.table).count()
    frame(spark, rows(900, 2)).writeTo(steps.table).append()
    assert spark.table(steps.table).count() == before + 2


def test_copy_on_write(spark: SparkSession, spark_estate: SparkEstate) -> None:
    naive = make(spark, spark_estate, "cow_naive", "copy-on-write")
    spark.sql(f"DELETE FROM {naive.table} WHERE uid = {UID}")
    spark.sql(
        "CALL lake.system.expire_snapshots(table => 'iceberg.cow_naive', retain_last => 1, older_than => TIMESTAMP '2099-01-01 00:00:00')"
    )
    assert residue(naive.location)

    steps = make(spark, spark_estate, "cow", "copy-on-write")
    others = bystanders(spark.table(steps.table))
    facts = steps.all(*SEQUENCE)
    assert facts[ICEBERG_DELETE_ROWS]["rows_deleted"] == 4
    assert residue(steps.location) == []
    assert bystanders(spark.table(steps.table)) == others
    assert spark.table(steps.table).count() == len(others) == 37
    steps.all(*SEQUENCE, repeat=True)
    assert bystanders(spark.table(steps.table)) == others
    append_works(spark, steps)


def test_merge_on_read_with_branch_and_tag(spark: SparkSession, spark_estate: SparkEstate) -> None:
    naive = make(spark, spark_estate, "mor_naive", "merge-on-read", alone=False)
    spark.sql(f"DELETE FROM {naive.table} WHERE uid = {UID}")
    spark.sql("CALL lake.system.rewrite_data_files(table => 'iceberg.mor_naive')")
    spark.sql(
        "CALL lake.system.expire_snapshots(table => 'iceberg.mor_naive', retain_last => 1, older_than => TIMESTAMP '2099-01-01 00:00:00')"
    )
    assert [f for f in residue(naive.location) if f.endswith(".parquet")]

    steps = make(spark, spark_estate, "mor", "merge-on-read")
    spark.sql(f"ALTER TABLE {steps.table} CREATE TAG v1 RETAIN 90 DAYS")
    spark.sql(f"ALTER TABLE {steps.table} CREATE BRANCH dev")
    frame(spark, rows(60, 5, (62,))).createOrReplaceTempView("dev_rows")
    spark.sql(f"INSERT INTO {steps.table}.branch_dev SELECT * FROM dev_rows")
    others = bystanders(spark.table(steps.table))
    tagged = bystanders(spark.sql(f"SELECT * FROM {steps.table}.tag_v1"))
    branched = bystanders(spark.sql(f"SELECT * FROM {steps.table}.branch_dev"))
    branch = (ICEBERG_REWRITE_REF, {"ref": "dev", "kind": "branch"})
    tag = (ICEBERG_REWRITE_REF, {"ref": "v1", "kind": "tag"})

    steps.all(DELETE, REWRITE, MANIFESTS, EXPIRE)
    assert [f for f in residue(steps.location) if f.endswith(".parquet")], "untreated references pin the person"
    for ref in ("tag_v1", "branch_dev"):
        assert spark.sql(f"SELECT * FROM {steps.table}.{ref}").where(f"uid = {UID}").count() >= 4
    steps.all(branch)
    steps.all(tag)
    steps.all(MANIFESTS, EXPIRE, ORPHANS)
    assert residue(steps.location) == []
    for _ in range(2):
        assert bystanders(spark.table(steps.table)) == others
        assert bystanders(spark.sql(f"SELECT * FROM {steps.table}.tag_v1")) == tagged
        assert bystanders(spark.sql(f"SELECT * FROM {steps.table}.branch_dev")) == branched
        refs = {
            r[0]: (r[1], r[2])
            for r in spark.sql(f"SELECT name, type, max_reference_age_in_ms FROM {steps.table}.refs").collect()
        }
        assert refs == {"main": ("BRANCH", None), "dev": ("BRANCH", None), "v1": ("TAG", 90 * 86_400_000)}
        steps.all(DELETE, REWRITE, branch, tag, MANIFESTS, EXPIRE, ORPHANS, repeat=True)
    append_works(spark, steps)


def test_a_lone_manifest_with_live_and_deleted_entries(spark: SparkSession, spark_estate: SparkEstate) -> None:
    table = "lake.iceberg.lone"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, uid BIGINT, email STRING, amount INT) USING iceberg PARTITIONED BY (amount)"
    )
    made = [(1, UID, EMAIL, 1), (2, 1002, "b2@example.net", 2), (3, 1003, "b3@example.net", 3)]
    frame(spark, made).writeTo(table).append()
    steps = Steps(context(spark_estate), "iceberg", table, spark_estate.base / "warehouse/lake/iceberg/lone", ICEBERG)
    before = data_files(steps)
    steps.all(DELETE, MANIFESTS, EXPIRE, ORPHANS)
    assert residue(steps.location) == []
    assert spark.table(table).count() == 2
    # the person's is gone, one was written again for the manifest's sake, and one stays as it is
    assert len(before & data_files(steps)) == 1


@pytest.mark.slow
def test_small_files_without_the_person_are_not_written_again(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """They would be packed into one on the way: what an erasure writes is bounded by the files that hold the person."""
    steps = make(spark, spark_estate, "bounded", "merge-on-read", alone=False)
    for first in range(100, 700, 100):
        frame(spark, rows(first, 5)).writeTo(steps.table).append()
    before = data_files(steps)
    steps.all(*SEQUENCE)
    assert residue(steps.location) == []
    assert spark.table(steps.table).count() == 67
    assert (len(before), len(before & data_files(steps))) == (8, 6)


def data_files(steps: Steps) -> set[str]:
    return {str(path) for path in (steps.location / "data").rglob("*.parquet")}


def test_any_of_several_keys(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "several", "merge-on-read")
    frame(spark, [(70, 5, EMAIL, 1), (71, UID, "x@example.net", 2), (72, 6, "y@example.net", 3)]).writeTo(
        steps.table
    ).append()
    several = Steps(steps.ctx, "iceberg", steps.table, steps.location, ICEBERG, BY_ANY)
    assert several.once(*[DELETE[0]])["rows_deleted"] == 6
    assert spark.table(several.table).where("id >= 70").count() == 1


def test_a_branch_is_deleted_from_and_verified_by_itself(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "branch", "copy-on-write")
    spark.sql(f"ALTER TABLE {steps.table} CREATE BRANCH dev")
    steps.once(ICEBERG_DELETE_ROWS)
    assert steps.probe(ICEBERG_DELETE_ROWS, branch="dev") is not Progress.DONE
    steps.once(ICEBERG_DELETE_ROWS, branch="dev")
    assert spark.sql(f"SELECT * FROM {steps.table}.branch_dev").count() == 37


def test_the_sweep_keeps_what_is_not_its_own(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "sweep", "copy-on-write")
    spark.sql("CALL lake.system.compute_table_stats(table => 'iceberg.sweep')")
    puffins = list(steps.location.rglob("*.stats"))
    assert puffins
    stray = steps.location / "data" / ".hidden" / "stray.parquet"
    stray.parent.mkdir()
    stray.write_bytes(b"left by a crashed job: " + EMAIL.encode())
    steps.all(ORPHANS)
    assert all(p.exists() for p in puffins), "statistics files are referenced by the table's metadata"
    assert not stray.exists()
    assert spark.table(steps.table).count() == 41


@pytest.mark.parametrize(
    "marker", ["_delta_log/00000000000000000000.json", "metadata/v1.metadata.json", ".hoodie/hoodie.properties"]
)
def test_the_sweep_refuses_a_folder_that_holds_another_table(
    spark: SparkSession, spark_estate: SparkEstate, marker: str
) -> None:
    steps = make(spark, spark_estate, "outer", "copy-on-write")
    inner: Path = steps.location / "inner" / marker
    inner.parent.mkdir(parents=True, exist_ok=True)
    inner.write_text("{}")
    data = steps.location / "inner" / "part.parquet"
    data.write_bytes(b"somebody else's")
    with pytest.raises(RunError, match="a different table"):
        steps.once(ICEBERG_REMOVE_ORPHANS)
    assert data.exists()


def test_the_metadata_settings_come_back(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "settings", "copy-on-write")
    spark.sql(f"ALTER TABLE {steps.table} SET TBLPROPERTIES ('write.metadata.previous-versions-max'='7')")
    kept = {
        r[0]: r[1] for r in spark.sql(f"SHOW TBLPROPERTIES {steps.table}").collect() if r[0] != "current-snapshot-id"
    }
    steps.all(ORPHANS)
    again = {
        r[0]: r[1] for r in spark.sql(f"SHOW TBLPROPERTIES {steps.table}").collect() if r[0] != "current-snapshot-id"
    }
    assert again == kept
    assert len(list((steps.location / "metadata").glob("*.metadata.json"))) <= 4
    assert not (steps.location / "metadata" / "v1.metadata.json").exists()


def test_a_crash_before_the_settings_came_back(
    spark: SparkSession, spark_estate: SparkEstate, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = make(spark, spark_estate, "crashed", "copy-on-write")
    key = "write.metadata.previous-versions-max"
    spark.sql(f"ALTER TABLE {steps.table} SET TBLPROPERTIES ('{key}'='7')")
    real = IcebergExecutor._sql

    def dies_at_unset(self: IcebergExecutor, statement: str) -> object:
        if "UNSET" in statement:
            raise KeyboardInterrupt
        return real(self, statement)

    monkeypatch.setattr(IcebergExecutor, "_sql", dies_at_unset)
    with pytest.raises(KeyboardInterrupt):
        steps.once(ICEBERG_REMOVE_ORPHANS)
    monkeypatch.undo()
    assert steps.probe(ICEBERG_REMOVE_ORPHANS) is Progress.PARTIAL
    steps.once(ICEBERG_REMOVE_ORPHANS)
    found = {r[0]: r[1] for r in spark.sql(f"SHOW TBLPROPERTIES {steps.table}").collect()}
    assert found[key] == "7"
    assert not [name for name in found if name.startswith("pii-tracer") or "delete-after-commit" in name]


def test_rebuild_from_the_recorded_statement(spark: SparkSession, spark_estate: SparkEstate) -> None:
    source = make(spark, spark_estate, "rebuild_source", "copy-on-write")
    sql = (
        "WITH s AS (SELECT amount % 5 AS slot, email FROM lake.iceberg.rebuild_source) "
        "INSERT OVERWRITE lake.iceberg.totals SELECT slot, max(email) AS best FROM s GROUP BY slot"
    )
    spark.sql("CREATE TABLE lake.iceberg.totals (slot INT, best STRING) USING iceberg PARTITIONED BY (slot)")
    spark.sql("INSERT INTO lake.iceberg.totals VALUES (77, 'a slot that the query no longer makes')")
    location = spark_estate.base / "warehouse/lake/iceberg/totals"
    totals = Steps(context(spark_estate), "iceberg", "lake.iceberg.totals", location, ICEBERG, None)
    source.once(ICEBERG_DELETE_ROWS)
    mode = spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        facts = totals.once(ICEBERG_REBUILD, sql=sql)
    finally:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", mode)
    assert (facts["rows_before"], facts["rows_after"]) == (1, 5)
    totals.all(MANIFESTS, EXPIRE, ORPHANS)
    assert residue(location) == []


@pytest.mark.nightly
def test_rebuild_from_a_table_of_another_format(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Deletion vectors are read by a rule of Delta that does not reach into the write of another engine's table."""
    source = spark_estate.folder("rebuild_from_delta")
    writer = frame(spark, rows(0, 20)).write.format("delta").option("delta.enableDeletionVectors", "true")
    writer.save(str(source))
    spark.sql(f"DELETE FROM delta.`{source}` WHERE id = 3")
    sql = f"INSERT OVERWRITE lake.iceberg.of_delta SELECT amount % 5 AS slot, count(*) AS n FROM delta.`{source}` GROUP BY 1"
    spark.sql("CREATE TABLE lake.iceberg.of_delta (slot INT, n BIGINT) USING iceberg")
    location = spark_estate.base / "warehouse/lake/iceberg/of_delta"
    totals = Steps(context(spark_estate), "iceberg", "lake.iceberg.of_delta", location, ICEBERG, None)
    with pytest.raises(Exception, match="non-pinned"):
        spark.sql(sql)
    assert totals.once(ICEBERG_REBUILD, sql=sql)["rows_after"] == 5
    assert totals.probe(ICEBERG_REBUILD, sql=sql) is Progress.DONE


def test_a_failed_statement_says_nothing_of_the_data(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "failing", "copy-on-write")
    step = steps.step(
        ICEBERG_REBUILD,
        sql="SELECT id, uid, email, assert_true(email IS NULL, email) AS amount FROM lake.iceberg.failing",
    )
    with pytest.raises(RunError) as caught:
        build(steps.ctx)["iceberg"].run(step, steps.copy)
    assert "example" not in str(caught.value)
    assert caught.value.__cause__ is None
