"""A REST catalog as Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from executors.catalogs.base import CatalogOnSpark
from pii_tracer.config.catalogs import Catalog
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.catalogs.rest.tables import credentials


class RestOnSpark(CatalogOnSpark):
    """https://iceberg.apache.org/docs/latest/spark-configuration/#catalog-configuration"""

    with_secrets = True

    def options(self, name: str, catalog: Catalog, base: Path) -> Mapping[str, str]:
        named = {"warehouse": catalog.warehouse} if catalog.warehouse else {}
        return {"type": "rest", "uri": str(catalog.uri), **named, **credentials(name)}

    def through_hadoop(self, estate: Estate) -> bool:
        # else the format's own client of S3, where its jar is, which the estate file's `s3` says nothing to
        return estate.s3 is not None or bool(estate.object_stores)
