"""Unity Catalog, of Databricks or of the open-source server (https://docs.unitycatalog.io/)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import Capability, CatalogText, Listing, TableCatalog


class UnityCatalogs(TableCatalog):
    """One metastore with all its catalogs, or those that `databases` names. Tables are called as SQL calls them there,
    `catalog.schema.table`, whatever the estate file calls the metastore."""

    no_swap = "it names no metadata file of a table"
    capabilities = frozenset({Capability.TABLES, Capability.VIEWS, Capability.TEXTS})
    needed = frozenset({"uri"})
    optional = frozenset({"databases"})
    uri = r"https?://[^@\s?#]+/api/2\.1/unity-catalog/?"
    drafted_name = "unity"
    text_remedy = (
        "COMMENT ON …, ALTER TABLE … ALTER COLUMN … COMMENT, ALTER TABLE … UNSET TBLPROPERTIES, ALTER … UNSET TAGS,"
        " ALTER VIEW … AS"
    )

    def tables(self, name: str, catalog: Catalog, base: Path) -> Listing:
        from pii_tracer.lake.catalogs.unity.tables import list_unity

        return list_unity(name, catalog)

    def texts(self, name: str, catalog: Catalog, base: Path) -> Iterator[CatalogText]:
        from pii_tracer.lake.catalogs.unity.texts import texts_of

        return texts_of(name, catalog)
