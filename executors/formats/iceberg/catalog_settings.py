"""Spark settings of an estate's catalogs, and the jars that some of them need.

https://iceberg.apache.org/docs/latest/spark-configuration/#catalog-configuration,
https://iceberg.apache.org/docs/latest/jdbc/, https://iceberg.apache.org/docs/latest/aws/#glue-catalog,
https://iceberg.apache.org/docs/latest/nessie/
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.catalog_lookup import secret, sqlite_file
from pii_tracer.lake.catalogs.rest.tables import credentials

SQLITE_JDBC = "org.xerial:sqlite-jdbc:3.46.1.3"
POSTGRES_JDBC = "org.postgresql:postgresql:42.7.4"
ICEBERG_AWS = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
CLASSES = {
    SQLITE_JDBC: "org.sqlite.JDBC",
    POSTGRES_JDBC: "org.postgresql.Driver",
    ICEBERG_AWS: "software.amazon.awssdk.services.glue.GlueClient",
}
"""What each of these jars has to bring."""
_HADOOP_IO = "org.apache.iceberg.hadoop.HadoopFileIO"

# Spark's own pattern knows passwords and tokens; what a REST catalog calls `credential` is one too
_WITH_SECRETS = (CatalogType.ICEBERG_REST, CatalogType.ICEBERG_SQL, CatalogType.NESSIE)
_REDACTED = "(?i)secret|password|token|credential|access[.]?key"


def catalog_conf(estate: Estate, base: Path) -> dict[str, str]:
    """`spark.sql.catalog.*` of every catalog that Spark reads through Iceberg. base: folder of the estate file."""
    conf: dict[str, str] = {}
    for name, catalog in estate.catalogs.items():
        settings = _settings(name, catalog, base)
        if settings and catalog.type is CatalogType.ICEBERG_REST and estate.s3 is not None:
            # else Iceberg's own client of S3, where its jar is, which the estate file's `s3` says nothing to
            settings = {**settings, "io-impl": _HADOOP_IO}
        if settings:
            prefix = f"spark.sql.catalog.{name}"
            conf[prefix] = "org.apache.iceberg.spark.SparkCatalog"
            # the table cache would hide another process's commits
            conf |= {f"{prefix}.{key}": value for key, value in {**settings, "cache-enabled": "false"}.items()}
    if any(c.type in _WITH_SECRETS for c in estate.catalogs.values()):
        conf["spark.redaction.regex"] = _REDACTED
    return conf


def catalog_packages(estate: Estate) -> tuple[str, ...]:
    """Jars beside the table formats' that the estate's catalogs need, as Maven coordinates."""
    found = set()
    for catalog in estate.catalogs.values():
        if catalog.type is CatalogType.GLUE:
            found.add(ICEBERG_AWS)
        elif catalog.type is CatalogType.ICEBERG_SQL:
            found.add(SQLITE_JDBC if str(catalog.uri).startswith("sqlite:") else POSTGRES_JDBC)
    return tuple(sorted(found))


def _settings(name: str, catalog: Catalog, base: Path) -> Mapping[str, str]:
    if catalog.type is CatalogType.ICEBERG_HADOOP:
        return {"type": "hadoop", "warehouse": str(base / str(catalog.warehouse))}
    if catalog.type is CatalogType.ICEBERG_REST:
        warehouse = {"warehouse": catalog.warehouse} if catalog.warehouse else {}
        return {"type": "rest", "uri": str(catalog.uri), **warehouse, **credentials(name)}
    if catalog.type is CatalogType.ICEBERG_SQL:
        login = {"jdbc.user": secret(name, "USER"), "jdbc.password": secret(name, "PASSWORD")}
        return {
            "type": "jdbc",
            "uri": _jdbc(str(catalog.uri), base),
            "warehouse": _warehouse(str(catalog.warehouse), base),
            **{key: value for key, value in login.items() if value},
        }
    if catalog.type is CatalogType.GLUE:
        endpoint = {"glue.endpoint": catalog.endpoint_url} if catalog.endpoint_url else {}
        return {
            "type": "glue",
            "client.region": str(catalog.region),
            "warehouse": _warehouse(catalog.warehouse or "spark-warehouse", base),
            # discovery reads tables on file systems; the default would only read S3
            "io-impl": _HADOOP_IO,
            **endpoint,
        }
    if catalog.type is CatalogType.NESSIE:
        token = secret(name, "TOKEN")
        bearer = {"authentication.type": "BEARER", "authentication.token": token} if token else {}
        return {
            "type": "nessie",
            "uri": str(catalog.uri),
            "warehouse": _warehouse(str(catalog.warehouse), base),
            **({"ref": catalog.ref} if catalog.ref else {}),
            **bearer,
        }
    return {}


def _jdbc(uri: str, base: Path) -> str:
    file = sqlite_file(uri, base)
    return f"jdbc:sqlite:{file}" if file else f"jdbc:{uri}"


def _warehouse(text: str, base: Path) -> str:
    return text if ":/" in text else str(base / text)
