"""Views of an Iceberg REST catalog, and what the catalog keeps of them beside.

A view has a query in one or more dialects, and keeps its former versions (https://iceberg.apache.org/view-spec/).
"""

from __future__ import annotations

from typing import Any

from pii_tracer.lake.catalogs.base import CatalogView, sql_name
from pii_tracer.model.datasets import Column

_DIALECTS = ("spark", "databricks", "trino", "presto", "athena", "hive", "snowflake", "duckdb", "bigquery")
"""Those of engines that have such views, as the parser of SQL calls them. The first one that a view has is read."""


def view_of(catalog: str, parts: tuple[str, ...], view: Any) -> CatalogView | None:
    """A view with its query. view: as the client has it. None where its name cannot be written, or no query is in a
    dialect that is known here."""
    metadata, name = view.metadata, sql_name(catalog, *parts)
    current = next((one for one in metadata.versions if one.version_id == metadata.current_version_id), None)
    if current is None or name is None:
        return None
    queries = {one.root.dialect.lower(): one.root.sql for one in current.representations}
    dialect = next((one for one in _DIALECTS if queries.get(one, "").strip()), None)
    if dialect is None:
        return None
    schema = next((one for one in metadata.schemas if one.schema_id == current.schema_id), None)
    columns = tuple(Column(name=field.name, type=str(field.field_type)) for field in schema.fields) if schema else ()
    written_in = (current.default_catalog or catalog, *current.default_namespace)
    return CatalogView(catalog, name, queries[dialect], dialect, written_in, columns)


def document_of(view: Any) -> dict[str, Any]:
    """What the catalog keeps of a view, its former versions too, as catalogs' texts are searched."""
    metadata = view.metadata
    # those in other columns, too
    fields = [[one.find_field(number) for number in sorted(one.field_ids)] for one in metadata.schemas]
    return {
        "query": [one.root.sql for version in metadata.versions for one in version.representations],
        "properties": metadata.properties,
        "summary": [version.summary for version in metadata.versions],
        "columns": [[field.name, field.doc or ""] for schema in fields for field in schema],
    }
