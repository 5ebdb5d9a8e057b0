"""Hazards of Iceberg one by one, as in test_hazards_alone.py, and its clean-ups that do less, or more, than they say."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.config.estate_file import load_estate
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_DELETE_ROWS, ICEBERG_REWRITE_REF
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from tests.executors.formats.iceberg.test_iceberg import (
    DELETE,
    EXPIRE,
    MANIFESTS,
    ORPHANS,
    REWRITE,
)
from tests.executors.formats.iceberg.test_iceberg import make as make_iceberg
from tests.executors.sweep.test_sweep_catalogs import estate as sql_estate
from tests.executors.world import COLUMNS, EMAIL, UID, Steps, bystanders, context, frame, held, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FAR = "older_than => TIMESTAMP '2099-01-01 00:00:00', retain_last => 1"


def call(spark: SparkSession, procedure: str, name: str, more: str = "") -> None:
    """The engine's own."""
    spark.sql(f"CALL lake.system.{procedure}(table => 'iceberg.{name}'{', ' * bool(more)}{more})")


def manifests(steps: Steps) -> set[str]:
    """Manifests, not their lists, in which the person stands."""
    return {Path(name).name for name in held(Path(steps.location), "*.avro") if "snap-" not in name}


def live_manifests(spark: SparkSession, steps: Steps) -> set[str]:
    return {Path(row[0]).name for row in spark.sql(f"SELECT path FROM {steps.table}.manifests").collect()}


def test_i1_i4_and_i4b_old_snapshots_bounds_and_deleted_entries(spark: SparkSession, spark_estate: SparkEstate) -> None:
    naive = make_iceberg(spark, spark_estate, "i4b", "copy-on-write", alone=False)
    steps = make_iceberg(spark, spark_estate, "i1_i4", "copy-on-write", alone=False)
    others = bystanders(spark.table(str(steps.table)))
    added = {each.table: manifests(each) for each in (naive, steps)}
    for each in (naive, steps):
        each.once(*DELETE[:1])
        assert len(held(each.location, "data/*.parquet")) == 2, "what the older snapshots read"
        assert manifests(each) - added[each.table], "entries that say what was deleted, with its bounds"
    call(spark, "expire_snapshots", "i4b", FAR)
    assert held(naive.location, "data/*.parquet") == []
    assert manifests(naive)
    assert manifests(naive) <= live_manifests(spark, naive)

    steps.once(*MANIFESTS[:1])
    assert not manifests(steps) & live_manifests(spark, steps)
    assert manifests(steps) >= added[steps.table], "the older snapshots'"
    steps.once(EXPIRE[0], **EXPIRE[1])
    assert (held(steps.location, "data/*.parquet"), manifests(steps)) == ([], set())
    assert bystanders(spark.table(str(steps.table))) == others


def test_i2_the_data_file_under_a_delete_file(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Neither a compaction with its defaults nor one of the delete files erases anything."""
    steps = make_iceberg(spark, spark_estate, "i2", "merge-on-read", alone=False)
    others = bystanders(spark.table(str(steps.table)))
    steps.once(*DELETE[:1])
    call(spark, "rewrite_data_files", "i2")
    call(spark, "rewrite_position_delete_files", "i2", "options => map('rewrite-all', 'true')")
    call(spark, "expire_snapshots", "i2", FAR)
    live = {
        Path(row[0]).name for row in spark.sql(f"SELECT file_path FROM {steps.table}.files WHERE content = 0").collect()
    }
    assert {Path(name).name for name in held(steps.location, "data/*.parquet")} == live
    for action, parameters in (REWRITE, EXPIRE):
        steps.once(action, **parameters)
    assert held(steps.location, "data/*.parquet") == []
    assert bystanders(spark.table(str(steps.table))) == others


def test_i6_files_that_no_snapshot_names(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make_iceberg(spark, spark_estate, "i6", "copy-on-write", alone=False)
    location = Path(steps.location)
    stray = location / "data" / "00000-crashed.parquet"
    pq.write_table(pa.table({"email": [EMAIL]}), stray)
    spark.sql(f"ALTER TABLE {steps.table} SET TBLPROPERTIES ('comment' = 'for {EMAIL}')")
    spark.sql(f"ALTER TABLE {steps.table} UNSET TBLPROPERTIES ('comment')")
    steps.once(ICEBERG_DELETE_ROWS)
    others = bystanders(spark.table(steps.table))
    spark.sql(
        "CALL lake.system.expire_snapshots(table => 'iceberg.i6', retain_last => 1, older_than => TIMESTAMP '2099-01-01 00:00:00')"
    )
    assert stray.is_file()
    old = held(location / "metadata", "*.metadata.json")
    assert old, "metadata of former times names the person"
    for action, parameters in (EXPIRE, ORPHANS):
        steps.once(action, **parameters)
    assert not stray.exists()
    assert held(location / "metadata", "*.metadata.json") == []
    assert bystanders(spark.table(steps.table)) == others


def mounted(spark: SparkSession, base: Path, name: str) -> str:
    """A catalog of Iceberg tables below `base`, in which every path can be said by a mount table, too."""
    conf = f"spark.sql.catalog.{name}"
    for key, value in {
        conf: "org.apache.iceberg.spark.SparkCatalog",
        f"{conf}.type": "hadoop",
        f"{conf}.warehouse": base.as_uri(),
        f"{conf}.hadoop.fs.viewfs.mounttable.lake.link.{base}": base.as_uri(),
    }.items():
        spark.conf.set(key, value)
    return name


def test_remove_orphan_files_by_other_prefixes(spark: SparkSession, tmp_path: Path) -> None:
    """What a listing spells otherwise than the metadata is no file of the table, or it is an orphan.

    With ERROR the engine says so and removes nothing, and by that the sweep asks (tests/executors/sweep/test_sweep.py).
    """
    catalog = mounted(spark, tmp_path, "mounts")
    spark.sql(f"CREATE TABLE {catalog}.db.t ({COLUMNS}) USING iceberg")
    frame(spark, rows(0, 5)).writeTo(f"{catalog}.db.t").append()
    data = tmp_path / "db" / "t" / "data"
    live = set(data.glob("*.parquet"))
    pq.write_table(pa.table({"email": [EMAIL]}), data / "00000-crashed.parquet")
    there = set(data.glob("*.parquet"))
    long_ago = datetime.now(timezone.utc) - timedelta(days=9)
    listed = [(f"viewfs://lake{path}", long_ago) for path in there]
    frame_of_rows(spark, listed, "file_path string, last_modified timestamp").createOrReplaceTempView("listed")

    def removed(*more: str) -> int:
        words = ", ".join(("table => 'db.t'", "file_list_view => 'listed'", *more))
        return spark.sql(f"CALL {catalog}.system.remove_orphan_files({words})").count()

    spelled = f"location => 'viewfs://lake{tmp_path}/db/t'"
    assert removed() == 0
    with pytest.raises(Exception, match=r"(?i)prefix"):
        removed(spelled)
    assert set(data.glob("*.parquet")) == there, "the stray file, too"
    assert removed(spelled, "prefix_mismatch_mode => 'DELETE'") == 2
    assert not live & set(data.glob("*.parquet"))
    spark.catalog.clearCache()
    with pytest.raises(Exception, match=r"(?i)not.*exist|FileNotFound|FAILED_READ_FILE"):
        spark.table(f"{catalog}.db.t").collect()


def test_pyiceberg_expires_in_the_metadata_alone(spark: SparkSession, tmp_path: Path) -> None:
    """The files stay, and so does every snapshot that a reference names; the steps on the same table leave neither."""
    sql_estate(tmp_path, spark, {"type": "iceberg-sql", "uri": "sqlite:///desk.db", "warehouse": "wh"}, "wh")
    there = SqlCatalog("desk", uri=f"sqlite:///{tmp_path}/desk.db", warehouse=(tmp_path / "wh").as_uri())
    there.create_namespace("core")
    made = pa.table({"uid": [UID, 1], "email": [EMAIL, "b@example.net"]})
    table = there.create_table("core.visits", made.schema)
    for _ in range(2):
        table.append(made)
        if not table.refs().get("q3"):
            table.manage_snapshots().create_tag(table.metadata.snapshots[0].snapshot_id, "q3").commit()
    table.delete(f"uid == {UID}")
    folder = tmp_path / "wh" / "core" / "visits"
    before = held(folder, "*.parquet")
    table.maintenance.expire_snapshots().older_than(datetime.now() + timedelta(days=1)).commit()
    assert (len(before), held(folder, "*.parquet")) == (2, before)
    assert set(table.refs()) == {"main", "q3"}
    assert len(table.metadata.snapshots) == 2

    world = SparkEstate(load_estate(tmp_path / "pii-tracer.yaml"), tmp_path)
    steps = Steps(context(world), "iceberg", "desk.core.visits", folder, ICEBERG)
    for action, parameters in (EXPIRE, ORPHANS):
        steps.once(action, **parameters)
    assert len(held(folder, "*.parquet")) == 1, "the tag's"
    for action, parameters in ((ICEBERG_REWRITE_REF, {"ref": "q3", "kind": "tag"}), EXPIRE, ORPHANS):
        steps.once(action, **parameters)
    assert held(folder, "*.parquet") == []
    assert [row.uid for row in spark.table("desk.core.visits").collect()] == [1, 1]
