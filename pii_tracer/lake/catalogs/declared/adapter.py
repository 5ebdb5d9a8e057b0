"""Tables that the estate file itself names, for Spark's session catalog."""

from __future__ import annotations

from pii_tracer.lake.catalogs.base import TableCatalog


class DeclaredTables(TableCatalog):
    """The estate file has its tables; there is nobody to ask."""

    no_swap = "it has no catalog that names a table's metadata file"
    optional = frozenset({"tables"})
