"""What the types of catalogs and their tables are called: all but Glue and the estate file have Iceberg tables."""

from __future__ import annotations

from pii_tracer.config.catalogs import CatalogType
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG

TABLES = ICEBERG
"""The format of the tables in warehouses, and in SQL, REST and Nessie catalogs."""

WAREHOUSE = CatalogType.ICEBERG_HADOOP
"""A folder that names its tables by their place in it (https://iceberg.apache.org/docs/latest/spark-configuration/)."""
SQL = CatalogType.ICEBERG_SQL
REST = CatalogType.ICEBERG_REST

NESSIE_TABLE = "ICEBERG_TABLE"
NESSIE_VIEW = "ICEBERG_VIEW"
"""Kinds of contents as Nessie's API calls them."""
SQL_TABLES = "iceberg_tables"
SQL_KIND = "iceberg_type"
"""The database's table of a SQL catalog, and its column that tells tables from views."""
