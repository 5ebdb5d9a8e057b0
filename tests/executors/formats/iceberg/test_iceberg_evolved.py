"""What is other people's in an Iceberg table's history alone: columns below a tag, rows that are staged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from executors.registry import build
from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.iceberg.table_state import iceberg_state, load_iceberg
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_REWRITE_REF
from pii_tracer.lake.inventory import TableState
from pii_tracer.model.errors import RunError
from pii_tracer.verify.row_checks import Verifier, compare
from tests.executors.formats.iceberg.test_iceberg import EXPIRE, make
from tests.executors.world import UID, Keyring, Steps, context, frame, rows
from tests.planners.smalllake import Lake, kinds, touched
from tests.sparksession import SparkEstate, rows_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def look(steps: Steps, world: SparkEstate) -> TableState:
    return iceberg_state(steps.location, EstatePaths(world.estate, world.base)).state


def pinned(steps: Steps, state: TableState) -> list[dict[str, Any]]:
    """The rows of the first reference's snapshot by its own schema, which Spark's reader by options does not take."""
    scan = load_iceberg(steps.location).scan(snapshot_id=int(state.refs[0].at))
    return sorted(scan.to_arrow().to_pylist(), key=lambda row: int(row["id"]))


def test_a_tag_with_a_dropped_column_is_not_written_again(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "evolved", "copy-on-write", alone=False)
    spark.sql(f"ALTER TABLE {steps.table} CREATE TAG q1")
    spark.sql(f"ALTER TABLE {steps.table} CREATE BRANCH dev")
    assert {r.name: r.lost for r in look(steps, spark_estate).refs} == {"q1": (), "dev": ()}
    spark.sql(f"ALTER TABLE {steps.table} DROP COLUMN amount")
    seen = look(steps, spark_estate)
    assert {r.name: r.lost for r in seen.refs} == {"q1": ("amount",), "dev": ("amount",)}

    plan = Lake(states={"a": {"format": ICEBERG, "refs": seen.refs}}).plan()
    assert kinds(plan) == ["ref_schema", "ref_schema"]
    assert not plan.applyable
    assert {"c-prod.a@tag.q1", "c-prod.a@branch.dev"}.isdisjoint(touched(plan))

    others = pinned(steps, seen)
    assert sum(row["amount"] is not None and row["uid"] != UID for row in others) == 37
    # a run that meets such a reference all the same writes nothing, before its first statement and at it
    for kind, name in (("tag", "q1"), ("branch", "dev")):
        step = steps.step(ICEBERG_REWRITE_REF, ref=name, kind=kind)
        executor = build(steps.ctx)["iceberg"]
        for refused in (executor.check, executor.run):
            with pytest.raises(RunError, match=rf"the {kind} {name} has columns .*\(amount\): .* lose other people's"):
                refused(step, steps.copy)
    assert [(r.name, r.at) for r in look(steps, spark_estate).refs] == [(r.name, r.at) for r in seen.refs]
    assert pinned(steps, seen) == others

    # once the owner has re-pointed it, it is erased as any other
    frame(spark, rows(60, 5, (62,))).drop("amount").writeTo(steps.table or "").append()
    spark.sql(f"ALTER TABLE {steps.table} CREATE OR REPLACE TAG q1")
    steps.once(ICEBERG_REWRITE_REF, ref="q1", kind="tag")
    assert spark.sql(f"SELECT * FROM {steps.table}.tag_q1 WHERE uid = {UID}").count() == 0


def test_a_tag_whose_columns_were_widened_is_written_again(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Everybody else's values are the same in the wider types, and the row verifier sees that they are."""
    table = "lake.iceberg.widened"
    spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
    columns = "id BIGINT, uid BIGINT, n INT, r FLOAT, d DECIMAL(10,2), s STRUCT<n: INT, l: ARRAY<FLOAT>>, m MAP<STRING, FLOAT>"
    spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg TBLPROPERTIES ('format-version'='2')")
    numbers = "-2147483648 + id, CAST(id / 10 AS FLOAT), CAST(id / 100 AS DECIMAL(10,2))"
    nested = "named_struct('n', CAST(id AS INT), 'l', array(CAST(0.1 AS FLOAT))), map('x', CAST(id / 7 AS FLOAT))"
    for first in (0, 10):
        rows_of = f"SELECT id, IF(id IN (3, 12), {UID}, id), {numbers}, {nested} FROM range({first}, {first + 10})"
        spark.sql(f"INSERT INTO {table} {rows_of}")
    steps = Steps(
        context(spark_estate), "iceberg", table, spark_estate.base / "warehouse/lake/iceberg/widened", ICEBERG
    )
    spark.sql(f"ALTER TABLE {table} CREATE TAG q1")
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH dev")
    for name, kind in {
        "n": "BIGINT",
        "r": "DOUBLE",
        "d": "DECIMAL(12,2)",
        "s.n": "BIGINT",
        "s.l.element": "DOUBLE",
        "m.value": "DOUBLE",
    }.items():
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {kind}")
    assert {r.name: r.lost for r in look(steps, spark_estate).refs} == {"q1": (), "dev": ()}
    for kind, name in (("tag", "q1"), ("branch", "dev")):
        copy = steps.copy.model_copy(update={"facts": {"ref": name}})
        verifier = Verifier(spark, Keyring.sets.values())
        before = verifier.baseline(copy)
        others = sorted(map(str, rows_at(spark, table, kind, name).where(f"uid <> {UID}").selectExpr(*_WIDE).collect()))
        assert len(others) == 18
        steps.once(ICEBERG_REWRITE_REF, ref=name, kind=kind)
        spark.catalog.refreshTable(table)
        assert sorted(map(str, rows_at(spark, table, kind, name).selectExpr(*_WIDE).collect())) == others
        told = compare(before, verifier.baseline(copy))
        assert (told.lost, told.equal) == (0, True)
        assert not any(state.rows for state in verifier.rows(copy).states if state.state == f"{kind} {name}")


_WIDE = [
    "id", "uid", "CAST(n AS BIGINT)", "CAST(r AS DOUBLE)", "CAST(d AS DECIMAL(12,2))",
    "CAST(s AS STRUCT<n: BIGINT, l: ARRAY<DOUBLE>>)", "CAST(m AS MAP<STRING, DOUBLE>)",
]  # fmt: skip


def test_staged_rows_are_seen_before_an_expiry_takes_them(spark: SparkSession, spark_estate: SparkEstate) -> None:
    steps = make(spark, spark_estate, "staged", "copy-on-write", alone=False)
    spark.sql(f"ALTER TABLE {steps.table} SET TBLPROPERTIES ('write.wap.enabled'='true')")
    spark.conf.set("spark.wap.id", "audit-77")
    try:
        frame(spark, rows(60, 5)).writeTo(steps.table or "").append()
    finally:
        spark.conf.unset("spark.wap.id")
    assert spark.table(steps.table or "").count() == 40
    (staged,) = look(steps, spark_estate).staged
    spark.sql("CALL lake.system.publish_changes(table => 'iceberg.staged', wap_id => 'audit-77')")
    assert look(steps, spark_estate).staged == ()
    assert spark.table(steps.table or "").count() == 45

    spark.conf.set("spark.wap.id", "audit-78")
    try:
        frame(spark, rows(70, 5)).writeTo(steps.table or "").append()
    finally:
        spark.conf.unset("spark.wap.id")
    (lost,) = look(steps, spark_estate).staged
    assert lost != staged
    steps.all(EXPIRE)
    snapshots = spark.sql(f"SELECT snapshot_id FROM {steps.table}.snapshots").collect()
    assert lost not in {str(row[0]) for row in snapshots}, "which is why they are a gap"
