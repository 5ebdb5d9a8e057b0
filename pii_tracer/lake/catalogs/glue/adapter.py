"""The AWS Glue Data Catalog (https://docs.aws.amazon.com/glue/latest/dg/catalog-and-crawler.html)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import Capability, CatalogText, Listing, TableCatalog
from pii_tracer.lake.catalogs.default_table_format import TABLES


class GlueCatalogs(TableCatalog):
    """Tables of every format; credentials are found as boto3 finds them."""

    no_swap = "Glue replaces metadata files under its own lock or version, which the tool does not support"
    capabilities = frozenset({Capability.TABLES, Capability.VIEWS, Capability.TEXTS, Capability.TABLE_VERSIONS})
    needed = frozenset({"region"})
    optional = frozenset({"endpoint_url", "databases", "warehouse"})
    drafted_name = "glue"
    default_format = TABLES
    text_remedy = (
        "aws glue update-table with the corrected text, and --skip-archive; aws glue batch-delete-table-version for an"
        " old version; aws glue delete-column-statistics-for-table, or -for-partition; aws glue delete-partition of an"
        " empty one"
    )

    def drafted(self, place: str) -> dict[str, str] | None:
        """`glue:REGION`."""
        found = re.fullmatch(r"glue:([a-z0-9-]+)", place)
        return {"region": found.group(1)} if found else None

    def tables(self, name: str, catalog: Catalog, base: Path) -> Listing:
        from pii_tracer.lake.catalogs.glue.tables import list_glue

        return list_glue(name, catalog)

    def texts(self, name: str, catalog: Catalog, base: Path) -> Iterator[CatalogText]:
        from pii_tracer.lake.catalogs.glue.texts import texts_of

        return texts_of(catalog)
