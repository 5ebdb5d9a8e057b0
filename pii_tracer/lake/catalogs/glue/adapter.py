"""The AWS Glue Data Catalog (https://docs.aws.amazon.com/glue/latest/dg/catalog-and-crawler.html)."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import Capability, Listing, TableCatalog
from pii_tracer.lake.catalogs.catalog_types import TABLES


class GlueCatalogs(TableCatalog):
    """Tables of every format; credentials are found as boto3 finds them."""

    capabilities = frozenset({Capability.TABLES, Capability.VIEWS, Capability.TABLE_VERSIONS})
    needed = frozenset({"region"})
    optional = frozenset({"endpoint_url", "databases", "warehouse"})
    default_format = TABLES

    def tables(self, name: str, catalog: Catalog, base: Path) -> Listing:
        from pii_tracer.lake.catalogs.glue.tables import list_glue

        return list_glue(name, catalog)
