"""A folder that names its tables by their place in it (https://iceberg.apache.org/docs/latest/spark-configuration/)."""

from __future__ import annotations

from pathlib import Path

from pii_tracer.lake.catalogs.base import Capability, TableCatalog
from pii_tracer.lake.catalogs.default_table_format import TABLES


class FolderCatalog(TableCatalog):
    """Discovery walks its warehouse as a root; there is nothing else to ask."""

    no_swap = None
    capabilities = frozenset({Capability.FOLDERS})
    needed = frozenset({"warehouse"})
    default_format = TABLES

    def warehouse_around(self, table: Path) -> Path | None:
        """Two folders above a table; only tables that such catalogs made have the file that hints at the version."""
        return table.parent.parent if (table / "metadata" / "version-hint.text").exists() else None
