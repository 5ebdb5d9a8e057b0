"""Tables that the estate file itself names, for Spark's session catalog."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import Capability, CatalogEntry, Listing, TableCatalog
from pii_tracer.model.locations import is_remote, local_path


class DeclaredTables(TableCatalog):
    """The estate file has its tables; there is nobody to ask. Those of text with options are listed as if of a catalog:
    no file of theirs tells how it is read."""

    no_swap = "no catalog has the metadata file of the table"
    optional = frozenset({"tables"})
    capabilities = frozenset({Capability.TABLES})

    def tables(self, name: str, catalog: Catalog, base: Path) -> Listing:
        entries = []
        for table in catalog.tables:
            if (text := table.text) is not None:
                parts = tuple(table.name.removeprefix("spark_catalog.").split("."))
                place = table.location
                place = place if is_remote(place) else str((base / local_path(place)).resolve())
                entries.append(CatalogEntry(table.name, parts, table.format, place, text=text, keys=text.keys))
        return Listing(tuple(entries), ())
