"""Catalogs in a SQL database (https://iceberg.apache.org/docs/latest/jdbc/), SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import Capability, CatalogText, Listing, TableCatalog
from pii_tracer.lake.catalogs.default_table_format import SQL_PROPERTIES, TABLES

SQLITE = "sqlite:///"


class SqlCatalogs(TableCatalog):
    """One table of the database has a row for each table and view. It is only read."""

    no_swap = None
    capabilities = frozenset({Capability.TABLES, Capability.VIEWS, Capability.TEXTS})
    needed = frozenset({"uri", "warehouse"})
    uri = r"(sqlite:///|postgresql://)[^@\s?]+"
    drafted_name = "core"
    default_format = TABLES
    text_remedy = f"ALTER NAMESPACE … UNSET PROPERTIES, or the database's own tools for the rows of {SQL_PROPERTIES}"
    swept = True

    def drafted(self, place: str) -> dict[str, str] | None:
        """A file is named from the folder in which the command is typed, as all files are there."""
        found = super().drafted(place)
        return {"uri": f"{SQLITE}{sqlite_file(place, Path.cwd())}"} if found and place.startswith(SQLITE) else found

    def own_names(self, name: str, catalog: Catalog, base: Path) -> tuple[str, ...]:
        from pii_tracer.lake.catalogs.sql.tables import catalogs_there

        return catalogs_there(name, catalog, base)

    def tables(self, name: str, catalog: Catalog, base: Path) -> Listing:
        from pii_tracer.lake.catalogs.sql.tables import list_sql

        return list_sql(name, catalog, base)

    def texts(self, name: str, catalog: Catalog, base: Path) -> Iterator[CatalogText]:
        from pii_tracer.lake.catalogs.sql.tables import texts_of

        return texts_of(name, catalog, base)


def sqlite_file(uri: str, base: Path) -> Path | None:
    """The file of a `sqlite:///` URI, relative to the estate file's folder; None for other databases."""
    return (base / uri.removeprefix(SQLITE)).resolve() if uri.startswith(SQLITE) else None
