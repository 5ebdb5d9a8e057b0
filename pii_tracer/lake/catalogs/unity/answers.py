"""What Unity Catalog's REST interface answers, as far as it is read: an answer of other types is an error.

https://docs.unitycatalog.io/ (api/all.yaml of the open-source server), https://docs.databricks.com/api/workspace/tables.
Fields that are not named here are kept as they come: servers have more of them than each other.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
Properties = dict[str, str]

_SET_BY_THE_SERVER = frozenset(
    {"created_at", "updated_at", "deleted_at", "id", "metastore_id", "table_id", "schema_id", "volume_id", "catalog_id"}
)


class Answer(BaseModel):
    """Base of every part of an answer. No value is made to fit its type."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    def texts(self) -> dict[str, Any]:
        """What people wrote of it, and everything else that it says but numbers of the server's own."""
        return self.model_dump(exclude=set(_SET_BY_THE_SERVER), exclude_none=True)


class Named(Answer):
    """Something with a name. browse_only: the account sees that it is there, and not all of what it is."""

    name: Name
    comment: str | None = None
    browse_only: bool | None = None


class CatalogInfo(Named):
    """A catalog. catalog_type: only Databricks says it."""

    catalog_type: str | None = None
    properties: Properties | None = None


class SchemaInfo(Named):
    """A schema of a catalog."""

    catalog_name: Name
    properties: Properties | None = None


class ColumnInfo(Answer):
    """A column of a table or view. partition_index: which of the table's partition columns it is."""

    name: str
    type_text: str | None = None
    partition_index: int | None = None
    comment: str | None = None


class TableInfo(Named):
    """A table or view. view_definition: SQL, and YAML of a metric view. created_at: in milliseconds since 1970."""

    catalog_name: Name
    schema_name: Name
    table_type: str | None = None
    data_source_format: str | None = None
    storage_location: str | None = None
    view_definition: str | None = None
    columns: list[ColumnInfo] | None = None
    properties: Properties | None = None
    created_at: int | None = None


class VolumeInfo(Named):
    """A volume: a folder of files."""

    catalog_name: Name
    schema_name: Name
    storage_location: str | None = None


class ExternalLocationInfo(Named):
    """A place that tables and volumes may lie in."""

    url: str | None = None


class TagAssignment(Answer):
    """A tag of a catalog, schema, table, column or volume."""

    tag_key: str
    tag_value: str | None = None
