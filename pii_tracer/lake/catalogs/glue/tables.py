"""Tables of the AWS Glue Data Catalog: Iceberg, Delta, Hudi and plain files.

https://docs.aws.amazon.com/glue/latest/webapi/API_Table.html; how engines mark their formats:
https://iceberg.apache.org/docs/latest/aws/#glue-catalog (`table_type`, `metadata_location`),
https://docs.aws.amazon.com/athena/latest/ug/delta-lake-tables.html (`spark.sql.sources.provider`, `table_type`),
https://hudi.apache.org/docs/syncing_aws_glue_data_catalog/ (input formats of `org.apache.hudi`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.catalogs.base import (
    CatalogEntry,
    Listing,
    catalog_gap,
    sql_name,
)
from pii_tracer.lake.catalogs.glue.marks import GlueMarks
from pii_tracer.lake.formats.base import TableFormat
from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.lake.inventory import InventoryGap
from pii_tracer.model.datasets import Format
from pii_tracer.model.gap_kinds import GapKind

_PLAIN = {"parquet": Format.PARQUET, "orc": Format.ORC, "avro": Format.AVRO, "csv": Format.CSV, "json": Format.JSON}


def list_glue(name: str, catalog: Catalog) -> Listing:
    """Every table of the named databases, or of all. A database that is refused is a gap; the others are read."""
    client = boto3.client("glue", region_name=catalog.region, endpoint_url=catalog.endpoint_url)
    entries: list[CatalogEntry] = []
    gaps: list[InventoryGap] = []
    try:
        databases = catalog.databases or tuple(sorted(d["Name"] for d in _pages(client, "get_databases")))
    except (BotoCoreError, ClientError) as error:
        reason = f"the databases cannot be listed ({error_code(error)}): the catalog's tables are unknown"
        return Listing((), (catalog_gap(name, GapKind.CATALOG_UNREADABLE, reason),))
    for database in databases:
        try:
            tables = list(_pages(client, "get_tables", DatabaseName=database))
        except (BotoCoreError, ClientError) as error:
            reason = f"the tables of the database cannot be listed ({error_code(error)})"
            gaps.append(catalog_gap(name, GapKind.CATALOG_UNREADABLE, reason, database))
            continue
        for table in tables:
            found = _entry(name, database, table)
            if isinstance(found, CatalogEntry):
                entries.append(found)
            elif found is not None:
                gaps.append(found)
    return Listing(tuple(entries), tuple(gaps))


def _pages(client: Any, operation: str, **arguments: str) -> Iterator[Mapping[str, Any]]:
    answer = {"get_databases": "DatabaseList", "get_tables": "TableList"}[operation]
    for page in client.get_paginator(operation).paginate(**arguments):
        yield from page[answer]


def _entry(name: str, database: str, table: Mapping[str, Any]) -> CatalogEntry | InventoryGap | None:
    """Views hold no data: None. What is registered and cannot be told apart is a gap."""
    parts = (database, str(table["Name"]))
    if table.get("TargetTable"):
        reason = "a link to a table of another catalog or account: whether it holds a person cannot be told here"
        return catalog_gap(name, GapKind.REMOTE_TABLE, reason, *parts)
    if table.get("TableType") == "VIRTUAL_VIEW":
        return None
    parameters = {key.lower(): str(value) for key, value in (table.get("Parameters") or {}).items()}
    storage = table.get("StorageDescriptor") or {}
    marks = GlueMarks(
        provider=parameters.get("spark.sql.sources.provider", "").lower(),
        table_type=parameters.get("table_type", "").lower(),
        classification=parameters.get("classification", "").lower(),
        reader=str(storage.get("InputFormat") or "").lower(),
    )
    adapter = _adapter(marks)
    if adapter and adapter.registered_by_metadata:
        metadata = parameters.get("metadata_location")
        return CatalogEntry(sql_name(name, *parts), parts, adapter.name, storage.get("Location"), metadata)
    kind = adapter.name if adapter else _plain(marks)
    serde = (storage.get("SerdeInfo") or {}).get("Parameters") or {}
    # Spark keeps the path of a data source table beside the serializer; Location may be a placeholder
    location = serde.get("path") or storage.get("Location")
    if kind is None or not location:
        return catalog_gap(name, GapKind.UNKNOWN_TABLE, "a registered table of a format that is not known here", *parts)
    # Spark knows tables of other formats by its session catalog
    return CatalogEntry(sql_name(*parts), parts, kind, location)


def _adapter(marks: GlueMarks) -> TableFormat | None:
    """The table format whose marks these are. One that is named by its metadata file goes before the others."""
    adapters = sorted(table_formats(), key=lambda one: not one.registered_by_metadata)
    return next((one for one in adapters if one.is_in_glue(marks)), None)


def _plain(marks: GlueMarks) -> Format | None:
    return next((kind for word, kind in _PLAIN.items() if word in marks.words or word in marks.reader), None)
