"""Columns and places of the tables of a Glue database, as the AWS Glue Data Catalog tells them.

https://docs.aws.amazon.com/glue/latest/webapi/API_GetTables.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pii_tracer.config.lineage import GlueDatabase
from pii_tracer.lake.catalogs.glue.tables import pages
from pii_tracer.lake.stores.aws_clients import aws_client, refusals_as
from pii_tracer.model.datasets import Column
from pii_tracer.model.errors import LineageError


@dataclass(frozen=True)
class GlueTable:
    """A table with the name Spark SQL calls it by. location: where it lies; None of views and links."""

    name: str
    columns: tuple[Column, ...]
    location: str | None


def tables_of(database: GlueDatabase) -> Iterator[GlueTable]:
    """Every table of a database; columns of partitions come last. Credentials are found as boto3 finds them.

    Raises:
        LineageError: the catalog cannot be read.
    """
    refused = refusals_as(
        LineageError,
        f"the Glue database {database.database} cannot be read",
        where=f"lineage.glue, region {database.region}",
        todo="check the database's name, the region and the permission glue:GetTables",
    )
    with refused:
        client = aws_client("glue", database.region, database.endpoint_url)
        tables = list(pages(client, "get_tables", DatabaseName=database.database))
    for table in tables:
        name = f"{database.database}.{table['Name']}"
        storage = table.get("StorageDescriptor") or {}
        columns = [*(storage.get("Columns") or ()), *(table.get("PartitionKeys") or ())]
        yield GlueTable(
            name=f"{database.catalog}.{name}" if database.catalog else name,
            columns=tuple(Column(name=c["Name"], type=c.get("Type") or "") for c in columns),
            location=storage.get("Location") or None,
        )
