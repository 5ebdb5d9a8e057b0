"""One Spark session for the whole suite, over an estate with the Iceberg catalog `lake`.

Import both fixtures into a folder's conftest: `from tests.sparksession import spark, spark_estate`. However many
folders do so, one process has one session and one estate folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from executors.catalogs.sql.spark_catalog import SQLITE_JDBC
from executors.engine.spark_session import open_session
from executors.engine.version_profiles import installed_profile
from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.estate_file import Estate, Spark
from pii_tracer.config.lineage import LineageSources
from pii_tracer.config.subjects import Subject
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from tests.servers import PROMPT_HDFS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["HAS_HUDI", "SparkEstate", "forget_tables", "rows_at", "small_spark", "spark", "spark_estate"]


HAS_HUDI = installed_profile().opens(HUDI)
"""Whether the installed Spark has a bundle of Hudi (docs/stack.md)."""


_SMALL = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    **{f"spark.hadoop.{name}": value for name, value in PROMPT_HDFS.items()},
}
"""Little memory, one task a stage, no waiting."""


def small_spark(conf: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What an estate file of a test says under `spark`: the installed profile, little of everything, further settings."""
    return {"profile": installed_profile().name, "conf": {**_SMALL, **(conf or {})}}


KEPT = frozenset({"default", "discovery", "verify", "prod", "dev"})
"""Databases that Spark cannot be without, and those of fixtures that serve several files."""


def forget_tables() -> None:
    """Drop the names that a file's tests made known to this process' session: estates of others have the same ones.

    A process of pii-tracer has one estate, and refuses a name that leads to another place.
    """
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        return
    for row in spark.sql("SHOW DATABASES IN spark_catalog").collect():
        if row.namespace not in KEPT:
            spark.sql(f"DROP DATABASE spark_catalog.`{row.namespace}` CASCADE")
    for row in spark.sql("SET").collect():
        if row.key.startswith("spark.pii-tracer."):
            spark.conf.unset(row.key)


def rows_at(spark: SparkSession, table: str, kind: str, ref: str) -> DataFrame:
    """An Iceberg table's rows at a branch or tag: readers of Spark 4 know Spark's own option alone.

    SQL's `VERSION AS OF` cannot be analysed in a session that has Delta's extension, too.
    """
    option = kind if spark.version.startswith("3.") else "versionAsOf"
    return spark.read.option(option, ref).table(table)


@dataclass(frozen=True)
class SparkEstate:
    """The estate of the shared session; `base` stands for the folder of its estate file."""

    estate: Estate
    base: Path

    def folder(self, name: str) -> Path:
        """Folder for path-based tables and bare files, beside the warehouse."""
        path = self.base / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


@pytest.fixture(scope="session")
def spark_estate(tmp_path_factory: pytest.TempPathFactory) -> SparkEstate:
    """An estate named `suite`: Iceberg catalog `lake` under `warehouse/lake`, everything else by path."""
    base = tmp_path_factory.getbasetemp() / "suite-estate"
    base.mkdir(exist_ok=True)
    estate = Estate(
        version=1,
        estate="suite",
        environment="local",
        spark=Spark(
            profile=installed_profile().name,
            master="local[2]",
            conf={
                **_SMALL,
                # a session cannot get the driver of a SQL catalog later on
                "spark.jars.packages": ",".join((*installed_profile().packages, SQLITE_JDBC)),
            },
        ),
        catalogs={"lake": Catalog(type=CatalogType.ICEBERG_HADOOP, warehouse="warehouse/lake")},
        roots=("warehouse", "files"),
        lineage=LineageSources(),
        subjects=(Subject(name="customer", source="lake.prod.customers", key="uid"),),
    )
    return SparkEstate(estate, base)


@pytest.fixture(scope="session")
def spark(spark_estate: SparkEstate) -> SparkSession:
    """The shared session; its JVM ends with the test process."""
    return open_session(spark_estate.estate, spark_estate.base)
