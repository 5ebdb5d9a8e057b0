"""The estate's catalogs as Iceberg's in Spark, and the jars that some of them need.

https://iceberg.apache.org/docs/latest/spark-configuration/#catalog-configuration; what each type of catalogs asks for
stands in `executors/catalogs/`.
"""

from __future__ import annotations

from pathlib import Path

from executors.catalogs.registry import spark_catalog_of, spark_catalogs
from pii_tracer.config.estate_file import Estate

ICEBERG_AWS = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
_AWS_CLASS = "software.amazon.awssdk.services.glue.GlueClient"
_HADOOP_IO = "org.apache.iceberg.hadoop.HadoopFileIO"

# Spark's own pattern knows passwords and tokens; what a REST catalog calls `credential` is one too
_REDACTED = "(?i)secret|password|token|credential|access[.]?key"


def catalog_conf(estate: Estate, base: Path) -> dict[str, str]:
    """`spark.sql.catalog.*` of every catalog that Spark reads through Iceberg. base: folder of the estate file."""
    conf: dict[str, str] = {}
    for name, catalog in estate.catalogs.items():
        adapter = spark_catalog_of(catalog.type)
        options = dict(adapter.options(name, catalog, base))
        if not options:
            continue
        if adapter.through_hadoop(estate):
            options["io-impl"] = _HADOOP_IO
        # the table cache would hide another process's commits
        options["cache-enabled"] = "false"
        prefix = f"spark.sql.catalog.{name}"
        conf[prefix] = "org.apache.iceberg.spark.SparkCatalog"
        conf |= {f"{prefix}.{key}": value for key, value in options.items()}
    if any(adapter.with_secrets for adapter in spark_catalogs(estate)):
        conf["spark.redaction.regex"] = _REDACTED
    return conf


def catalog_packages(estate: Estate) -> dict[str, str]:
    """Jars beside the table formats' that the estate's catalogs need, as Maven coordinates, each with a class of it."""
    found: dict[str, str] = {}
    for catalog in estate.catalogs.values():
        adapter = spark_catalog_of(catalog.type)
        found |= adapter.drivers(catalog)
        if adapter.aws_client:
            found[ICEBERG_AWS] = _AWS_CLASS
    return found
