"""The estate file's part about lineage: where it is read from."""

from __future__ import annotations

from pydantic import Field, model_validator
from typing_extensions import Self

from pii_tracer.model.datasets import Frozen
from pii_tracer.model.locations import WEB_ADDRESS


class QueryLog(Frozen):
    """A log of executed SQL: JSON lines (also gzip) or Parquet files, or a folder of them.

    sql, database, time, status: names of columns. succeeded: values of `status` that mean it ran to its end; a
    statement with any other one may have written. dialect: of this log, the estate's where it is missing.
    """

    path: str
    sql: str = "sql"
    dialect: str | None = None
    database: str | None = None
    time: str | None = None
    status: str | None = None
    succeeded: tuple[str, ...] = ("SUCCESS", "SUCCEEDED", "FINISHED", "COMPLETED", "COMPLETE", "OK")


class EventTopic(Frozen):
    """A Kafka topic that OpenLineage events are sent to. properties_file: as for a cluster under `kafka`."""

    bootstrap: str
    topic: str
    properties_file: str | None = None


class Marquez(Frozen):
    """A Marquez server whose events are read. A key for it is taken from PII_TRACER_MARQUEZ_KEY."""

    url: str = Field(pattern=WEB_ADDRESS)


class GlueDatabase(Frozen):
    """A database of the AWS Glue Data Catalog. catalog: how Spark SQL calls the catalog, where not by default."""

    database: str
    region: str
    catalog: str | None = None
    endpoint_url: str | None = Field(default=None, pattern=WEB_ADDRESS)


class UnityLineage(Frozen):
    """Lineage that Databricks noted in `system.access.table_lineage` and `column_lineage`.

    catalog, warehouse: the catalog of the estate file whose workspace is asked, and the id of its SQL warehouse.
    tables, columns: in place of these, exported files of the two tables, or folders of them. told_elsewhere: what ran
    (`JOB 41`, or all of a type: `DBSQL_QUERY`) whose SQL or events are given by another source, by the owner's word. Of
    these, rows whose values another source leads the same way add nothing.
    """

    catalog: str | None = None
    warehouse: str | None = Field(default=None, pattern=r"^[0-9A-Za-z_-]{1,64}$")
    tables: str | None = None
    columns: str | None = None
    told_elsewhere: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        asked, exported = (self.catalog, self.warehouse), (self.tables, self.columns)
        if not (all(asked) and not any(exported)) and not (self.tables and not any(asked)):
            raise ValueError("give either `catalog` and `warehouse`, or `tables` (with `columns` if needed)")
        return self


class SameDataset(Frozen):
    """Two names of one dataset, by the owner's word; without names, of everything in two namespaces."""

    from_: str = Field(alias="from", min_length=1)
    name: str | None = None
    to: str = Field(min_length=1)
    to_name: str | None = None

    @model_validator(mode="after")
    def _both_names(self) -> Self:
        if (self.name is None) != (self.to_name is None):
            raise ValueError("`name` and `to_name` work only together; give both or neither")
        return self


class LineageSources(Frozen):
    """Where lineage is harvested from.

    events: files or folders of OpenLineage events; sql: files or folders; dbt: target folders or `manifest.json` files.
    kafka and marquez are read into the project's own event log. dialect: of SQL that does not name its own.
    schemas: JSON files with the columns of tables; glue: catalogs that know columns and places of tables.
    same: names of one dataset that events use. unity: system tables of Databricks.
    """

    events: tuple[str, ...] = ()
    sql: tuple[str, ...] = ()
    dialect: str = "spark"
    kafka: tuple[EventTopic, ...] = ()
    marquez: Marquez | None = None
    dbt: tuple[str, ...] = ()
    queries: tuple[QueryLog, ...] = ()
    schemas: tuple[str, ...] = ()
    glue: tuple[GlueDatabase, ...] = ()
    same: tuple[SameDataset, ...] = ()
    unity: tuple[UnityLineage, ...] = ()
