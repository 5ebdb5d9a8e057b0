"""A SQL catalog as Spark's, and the JDBC drivers of its databases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from executors.catalogs.base import CatalogOnSpark, warehouse
from executors.catalogs.metadata_pointer import MetadataPointer
from executors.catalogs.sql.metadata_pointer import SqlPointer
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import secret
from pii_tracer.lake.catalogs.sql.adapter import SQLITE, sqlite_file

SQLITE_JDBC = "org.xerial:sqlite-jdbc:3.46.1.3"
POSTGRES_JDBC = "org.postgresql:postgresql:42.7.4"


class SqlOnSpark(CatalogOnSpark):
    """https://iceberg.apache.org/docs/latest/jdbc/"""

    with_secrets = True

    def options(self, name: str, catalog: Catalog, base: Path) -> Mapping[str, str]:
        login = {"jdbc.user": secret(name, "USER"), "jdbc.password": secret(name, "PASSWORD")}
        file = sqlite_file(str(catalog.uri), base)
        return {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{file}" if file else f"jdbc:{catalog.uri}",
            "warehouse": warehouse(str(catalog.warehouse), base),
            **{key: value for key, value in login.items() if value},
        }

    def drivers(self, catalog: Catalog) -> Mapping[str, str]:
        if str(catalog.uri).startswith(SQLITE):
            return {SQLITE_JDBC: "org.sqlite.JDBC"}
        return {POSTGRES_JDBC: "org.postgresql.Driver"}

    def metadata_pointer(
        self, name: str, catalog: Catalog, base: Path, parts: tuple[str, ...], newest: Callable[[], Path]
    ) -> MetadataPointer | None:
        return SqlPointer(name, str(catalog.uri), base, parts)
