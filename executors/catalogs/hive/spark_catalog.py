"""A Hive metastore as Spark's: Iceberg's tables by its catalog, all others by their places."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from executors.catalogs.base import CatalogOnSpark, warehouse
from pii_tracer.config.catalogs import Catalog
from pii_tracer.config.estate_file import Estate


class HiveOnSpark(CatalogOnSpark):
    """https://iceberg.apache.org/docs/latest/spark-configuration/#catalog-configuration"""

    other_formats = True

    def options(self, name: str, catalog: Catalog, base: Path) -> Mapping[str, str]:
        named = {"warehouse": warehouse(catalog.warehouse, base)} if catalog.warehouse else {}
        return {"type": "hive", "uri": str(catalog.uri), **named}

    def through_hadoop(self, estate: Estate) -> bool:
        # discovery reads tables on file systems; a table's own `io-impl` must not lead elsewhere
        return True
