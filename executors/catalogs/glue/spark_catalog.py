"""The AWS Glue Data Catalog as Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from executors.catalogs.base import CatalogOnSpark, warehouse
from pii_tracer.config.catalogs import Catalog
from pii_tracer.config.estate_file import Estate


class GlueOnSpark(CatalogOnSpark):
    """https://iceberg.apache.org/docs/latest/aws/#glue-catalog"""

    aws_client = True
    other_formats = True

    def options(self, name: str, catalog: Catalog, base: Path) -> Mapping[str, str]:
        endpoint = {"glue.endpoint": catalog.endpoint_url} if catalog.endpoint_url else {}
        return {
            "type": "glue",
            "client.region": str(catalog.region),
            "warehouse": warehouse(catalog.warehouse or "spark-warehouse", base),
            **endpoint,
        }

    def through_hadoop(self, estate: Estate) -> bool:
        # discovery reads tables on file systems; the default would only read S3
        return True
