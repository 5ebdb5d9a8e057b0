"""Real tables of each format with one person among others, made once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.rows.spark_frames import frame_of_rows
from pii_tracer.model.datasets import (
    Carries,
    CopyKind,
    DatasetId,
    FieldAccess,
    Format,
    JsonAccess,
    Match,
    MatchTerm,
    Strategy,
)
from pii_tracer.model.plan import Copy
from tests.scan.support import PHONE, USER
from tests.sparksession import SparkEstate, spark, spark_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark", "spark_estate"]

ROWS = f"""VALUES (1L, 'Asha', '+91 90000 00002', 5L), ({USER}L, 'Ravi', '{PHONE}', 6L),
(3L, 'Meera', '+91 97777 11111', {USER}L) AS v(user_id, name, phone, merchant_id)"""

MATCH = Match(
    terms=(
        MatchTerm(column="user_id", key_set="user_id", type="bigint"),
        MatchTerm(column="phone", key_set="phone", type="string"),
    )
)
NESTED = Match(
    terms=(
        MatchTerm(column="payer", access=(FieldAccess(name="id"),), key_set="user_id", type="bigint"),
        MatchTerm(column="payload", access=(JsonAccess(path=("who", "id")),), key_set="user_id", type="string"),
    )
)


def a_copy(
    fmt: Format, location: Path | str, table: str | None = None, match: Match | None = MATCH, **more: object
) -> Copy:
    """A copy as a plan has it."""
    return Copy.model_validate(
        {
            "id": f"copy-{fmt.value}",
            "kind": CopyKind.DERIVED,
            "dataset": DatasetId(namespace="file", name=str(location)),
            "table": table,
            "location": str(location),
            "format": fmt,
            "carries": Carries.KEY,
            "strategy": Strategy.DELETE_BY_KEY,
            "columns": (),
            "lineage": (),
            "reason": "",
            "match": match,
            **more,
        }
    )


@dataclass(frozen=True)
class Tables:
    """One copy for each variant, all with history."""

    iceberg: Copy
    delta: Copy
    nested: Copy
    csv: Copy


@dataclass(frozen=True)
class HudiTables:
    """The same for Hudi, which not every profile has."""

    cow: Copy
    mor: Copy


@pytest.fixture(scope="session")
def tables(spark: SparkSession, spark_estate: SparkEstate) -> Tables:
    """The person is logically deleted from each versioned table; branch and tag of the Iceberg one still have them."""
    delete = _delete(spark)
    spark.sql(
        "CREATE TABLE lake.verify.t (user_id BIGINT, name STRING, phone STRING, merchant_id BIGINT) USING iceberg "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    spark.sql(f"INSERT INTO lake.verify.t SELECT /*+ COALESCE(1) */ * FROM {ROWS}")
    spark.sql("ALTER TABLE lake.verify.t CREATE BRANCH audit")
    spark.sql("ALTER TABLE lake.verify.t CREATE TAG q3")
    spark.sql(delete.format("lake.verify.t"))
    places = {name: spark_estate.folder(f"verify/{name}") for name in ("delta", "nested", "csv")}
    spark.sql(
        f"CREATE TABLE delta.`{places['delta']}` (user_id BIGINT, name STRING, phone STRING, merchant_id BIGINT) "
        "USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.enableChangeDataFeed'='true')"
    )
    spark.sql(f"INSERT INTO delta.`{places['delta']}` SELECT /*+ COALESCE(1) */ * FROM {ROWS}")
    spark.sql(
        f"MERGE INTO delta.`{places['delta']}` t USING verify_keys k ON t.phone = k.phone WHEN MATCHED THEN DELETE"
    )
    nested = spark.sql(
        "SELECT named_struct('id', user_id, 'phone', phone) AS payer, map('m', merchant_id) AS extra, "
        f"to_json(named_struct('who', named_struct('id', user_id))) AS payload, merchant_id FROM {ROWS}"
    )
    nested.coalesce(1).write.parquet(str(places["nested"]))
    spark.sql(f"SELECT * FROM {ROWS}").coalesce(1).write.csv(str(places["csv"]), header=True, compression="gzip")
    return Tables(
        iceberg=a_copy(ICEBERG, spark_estate.base / "warehouse/lake/verify/t", "lake.verify.t"),
        delta=a_copy(DELTA, places["delta"]),
        nested=a_copy(Format.PARQUET, places["nested"], match=NESTED),
        csv=a_copy(Format.CSV, places["csv"]),
    )


@pytest.fixture(scope="session")
def hudi_tables(spark: SparkSession, spark_estate: SparkEstate) -> HudiTables:
    """The person is logically deleted from both kinds."""
    delete = _delete(spark)
    places = {name: spark_estate.folder(f"verify/{name}") for name in ("cow", "mor")}
    spark.sql("CREATE DATABASE IF NOT EXISTS verify")
    for kind in ("cow", "mor"):
        spark.sql(
            f"CREATE TABLE verify.{kind} (user_id BIGINT, name STRING, phone STRING, merchant_id BIGINT) USING hudi "
            f"LOCATION '{places[kind]}' TBLPROPERTIES (type='{kind}', primaryKey='phone', "
            "'hoodie.metadata.record.index.enable'='true', 'hoodie.metadata.index.column.stats.enable'='true')"
        )
        spark.sql(f"INSERT INTO verify.{kind} SELECT /*+ COALESCE(1) */ * FROM {ROWS}")
        spark.sql(f"UPDATE verify.{kind} SET name = 'Ravi K' WHERE user_id = 3")
        spark.sql(delete.format(f"verify.{kind}"))
    return HudiTables(cow=a_copy(HUDI, places["cow"]), mor=a_copy(HUDI, places["mor"]))


def _delete(spark: SparkSession) -> str:
    """A DELETE that leaves the person to older states, for the name of a table."""
    frame_of_rows(spark, [(PHONE,)], "phone string").createOrReplaceTempView("verify_keys")
    return "DELETE FROM {} WHERE phone IN (SELECT phone FROM verify_keys)"
