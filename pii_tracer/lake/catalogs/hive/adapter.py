"""The Hive metastore (https://hive.apache.org/docs/latest/admin/adminmanual-metastore-administration/)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import Capability, CatalogText, Listing, TableCatalog


class HiveCatalogs(TableCatalog):
    """Tables of every format, asked over Thrift. `uri` may name several servers of one metastore, as
    `hive.metastore.uris` does."""

    no_swap = "the metastore replaces metadata files under its own lock, which the tool does not support"
    capabilities = frozenset({Capability.TABLES, Capability.VIEWS, Capability.TEXTS})
    needed = frozenset({"uri"})
    optional = frozenset({"databases", "warehouse", "kerberos", "kerberos_service", "tls", "ca", "hiveserver2"})
    uri: ClassVar[str | None] = r"thrift://[^@\s,/?#]+(,thrift://[^@\s,/?#]+)*"
    drafted_name = "hive"
    text_remedy = (
        "ALTER TABLE … UNSET TBLPROPERTIES, CHANGE COLUMN … COMMENT, ALTER VIEW … AS; ALTER TABLE … UPDATE STATISTICS"
        " FOR COLUMN … SET, or ANALYZE TABLE … FOR COLUMNS after the erasure; DROP PARTITION of an empty one"
    )

    def tables(self, name: str, catalog: Catalog, base: Path) -> Listing:
        from pii_tracer.lake.catalogs.hive.tables import list_hive

        return list_hive(name, catalog)

    def texts(self, name: str, catalog: Catalog, base: Path) -> Iterator[CatalogText]:
        from pii_tracer.lake.catalogs.hive.texts import texts_of

        return texts_of(catalog)
