"""Files that cannot hold the persons by their partition are not opened: here each of them is overwritten with other bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from executors.engine.match_sql import count
from executors.engine.version_profiles import installed_profile
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG, ICEBERG_DELETE_ROWS
from pii_tracer.model.datasets import Match, MatchTerm
from tests.executors.world import EMAIL, UID, Steps, context, frame, rows
from tests.sparksession import SparkEstate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not installed_profile().prunes_quietly, reason="on 4.1 the engine would tell the keys (ADR 14)"),
]

BY = {
    "bucket(8, uid)": MatchTerm(column="uid", key_set="uid", type="bigint"),
    "uid": MatchTerm(column="uid", key_set="uid", type="bigint"),
    "truncate(12, email)": MatchTerm(column="email", key_set="email", type="string"),
}


def spoil(spark: SparkSession, table: str, mine: str) -> int:
    """Overwrite all data files in which no row is the person's; how many."""
    found = {row[0] for row in spark.sql(f"SELECT DISTINCT _file FROM {table} WHERE {mine}").collect()}
    files = {row[0] for row in spark.sql(f"SELECT file_path FROM {table}.files").collect()} - found
    for name in files:
        path = Path(urlsplit(name).path)
        path.write_bytes(b"x" * path.stat().st_size)
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    return len(files)


@pytest.mark.parametrize(
    ("partition", "mode"),
    [
        ("bucket(8, uid)", "copy-on-write"),
        ("bucket(8, uid)", "merge-on-read"),
        ("uid", "copy-on-write"),
        ("truncate(12, email)", "merge-on-read"),
    ],
)
def test_partitions_without_the_person_are_not_opened(
    spark: SparkSession, spark_estate: SparkEstate, partition: str, mode: str
) -> None:
    name = f"{partition[:3]}_{mode[:3]}"
    table, folder = f"lake.candidates.{name}", spark_estate.base / "warehouse/lake/candidates" / name
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, uid BIGINT, email STRING, amount INT) USING iceberg"
        f" PARTITIONED BY ({partition}) TBLPROPERTIES ('write.delete.mode' = '{mode}')"
    )
    frame(spark, rows(0, 12, (3, 4))).writeTo(table).append()
    assert spoil(spark, table, f"uid = {UID} AND email = '{EMAIL}'") >= 5
    steps = Steps(context(spark_estate), "iceberg", table, folder, ICEBERG, Match(terms=(BY[partition],)))
    assert steps.once(ICEBERG_DELETE_ROWS)["rows_deleted"] == 2


def test_a_column_of_another_type_than_the_plan_says_is_refused(spark: SparkSession, spark_estate: SparkEstate) -> None:
    """Spark would make numbers of text to compare them: by `990000007.9` somebody else's row would go."""
    spark.sql(f"SELECT '{UID}.9' AS uid").createOrReplaceTempView("retyped")
    with pytest.raises(Exception, match="the type of a column differs") as refused:
        count(context(spark_estate), "retyped", Match(terms=(BY["uid"],)))
    assert str(UID) not in str(refused.value)
    spark.sql(f"SELECT CAST({UID} AS INT) AS uid").createOrReplaceTempView("narrower")
    assert count(context(spark_estate), "narrower", Match(terms=(BY["uid"],))) == 1, "as in a tag of before"
