"""Iceberg REST catalogs (https://iceberg.apache.org/rest-catalog-spec/)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import Capability, CatalogText, Listing, TableCatalog
from pii_tracer.lake.catalogs.default_table_format import TABLES


class RestCatalogs(TableCatalog):
    """`warehouse` is what the server calls it, and no place."""

    no_swap = (
        "its server rejects a change that gives an existing snapshot a different list of files, and cannot replace a "
        "table in one step"
    )
    capabilities = frozenset({Capability.TABLES, Capability.VIEWS, Capability.TEXTS})
    needed = frozenset({"uri"})
    optional = frozenset({"warehouse"})
    uri = r"https?://[^@\s?#]+"
    drafted_name = "rest"
    default_format = TABLES
    text_remedy = (
        "the catalog's interface to remove properties of a namespace, such as ALTER NAMESPACE … UNSET PROPERTIES; DROP"
        " VIEW and CREATE VIEW, since a changed view keeps its former versions"
    )
    swept = True

    def drafted(self, place: str) -> dict[str, str] | None:
        """An address, but for one that ends as another interface's does."""
        return None if place.rstrip("/").endswith(("/v2", "/unity-catalog")) else super().drafted(place)

    def tables(self, name: str, catalog: Catalog, base: Path) -> Listing:
        from pii_tracer.lake.catalogs.rest.tables import list_rest

        return list_rest(name, catalog)

    def texts(self, name: str, catalog: Catalog, base: Path) -> Iterator[CatalogText]:
        from pii_tracer.lake.catalogs.rest.tables import texts_of

        return texts_of(name, catalog)
