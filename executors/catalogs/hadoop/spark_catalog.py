"""A folder of tables as Spark's catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from executors.catalogs.base import CatalogOnSpark
from executors.catalogs.hadoop.metadata_pointer import FolderPointer
from executors.catalogs.metadata_pointer import MetadataPointer
from pii_tracer.config.catalogs import Catalog


class FolderOnSpark(CatalogOnSpark):
    """https://iceberg.apache.org/docs/latest/spark-configuration/#catalog-configuration"""

    def options(self, name: str, catalog: Catalog, base: Path) -> Mapping[str, str]:
        return {"type": "hadoop", "warehouse": str(base / str(catalog.warehouse))}

    def metadata_pointer(
        self, name: str, catalog: Catalog, base: Path, parts: tuple[str, ...], newest: Callable[[], Path]
    ) -> MetadataPointer | None:
        return FolderPointer(newest)
