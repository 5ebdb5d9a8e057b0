"""What the tables of catalogs are called: all but Glue, metastores and the estate file have Iceberg tables."""

from __future__ import annotations

from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG

TABLES = ICEBERG
"""The format of the tables in warehouses, and in SQL, REST and Nessie catalogs."""

NESSIE_TABLE = "ICEBERG_TABLE"
NESSIE_VIEW = "ICEBERG_VIEW"
"""Kinds of contents as Nessie's API calls them."""
SQL_TABLES = "iceberg_tables"
SQL_KIND = "iceberg_type"
SQL_PROPERTIES = "iceberg_namespace_properties"
"""The database's table of a SQL catalog, and its column that tells tables from views."""
