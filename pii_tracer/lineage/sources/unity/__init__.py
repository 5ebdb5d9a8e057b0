"""Lineage that Databricks noted itself: the system tables `table_lineage` and `column_lineage`."""
