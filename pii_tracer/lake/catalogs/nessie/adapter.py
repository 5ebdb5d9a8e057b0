"""Nessie (https://projectnessie.org/guides/): a catalog with branches, tags and commits over all tables."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import Capability, Listing, TableCatalog
from pii_tracer.lake.catalogs.default_table_format import TABLES


class NessieCatalogs(TableCatalog):
    """`ref` is the branch that plain table names mean; the server's default branch where it is not given."""

    no_swap = "each commit of Nessie references the previous metadata file, and so the old files"
    capabilities = frozenset({Capability.TABLES, Capability.VIEWS, Capability.REFERENCES, Capability.TABLE_VERSIONS})
    needed = frozenset({"uri", "warehouse"})
    optional = frozenset({"ref"})
    uri = r"https?://[^@\s?#]+/v2/?"
    drafted_name = "nessie"
    default_format = TABLES

    def tables(self, name: str, catalog: Catalog, base: Path) -> Listing:
        from pii_tracer.lake.catalogs.nessie.tables import list_nessie

        return list_nessie(name, catalog)
