"""Tables of the AWS Glue Data Catalog: Iceberg, Delta, Hudi and plain files, with their partitions.

https://docs.aws.amazon.com/glue/latest/webapi/API_Table.html. A table is a Hive metastore's in other words, and is told
by the same marks (`hive.table_kind_detection`). Iceberg: https://iceberg.apache.org/docs/latest/aws/#glue-catalog;
Delta: https://docs.aws.amazon.com/athena/latest/ug/delta-lake-tables.html; Hudi:
https://hudi.apache.org/docs/syncing_aws_glue_data_catalog/. One that is not known, or whose files are no plain ones, is
a gap, and its files are never read as a plain table's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError, PaginationError

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.aws_errors import error_code, remedy
from pii_tracer.lake.catalogs.base import Listing
from pii_tracer.lake.catalogs.hive.table_kind_detection import (
    Kept,
    Refused,
    is_view,
    lies_inside,
    parameters_of,
    place_of,
)
from pii_tracer.lake.catalogs.hive.table_walk import PartitionEntry, TableWalk
from pii_tracer.model.gap_kinds import GapKind

_ANSWERS = {
    "get_databases": "DatabaseList",
    "get_tables": "TableList",
    "get_partitions": "Partitions",
    "get_table_versions": "TableVersions",
}


def glue_client(catalog: Catalog) -> Any:
    """A client of the catalog's region; credentials as boto3 finds them."""
    return boto3.client("glue", region_name=catalog.region, endpoint_url=catalog.endpoint_url)


def pages(client: Any, operation: str, **arguments: str) -> Iterator[Mapping[str, Any]]:
    """Everything that an operation answers, page by page.

    Raises:
        ClientError, BotoCoreError: it is refused, or nobody answers.
    """
    tokens = set[str]()
    for page in client.get_paginator(operation).paginate(**arguments):
        yield from page[_ANSWERS[operation]]
        token = page.get("NextToken") or ""
        if token in tokens:  # the library compares with the last one alone
            raise PaginationError(message="the list repeats an earlier page")
        tokens |= {token} - {""}


def databases_of(client: Any, catalog: Catalog) -> tuple[str, ...]:
    """The databases that the estate file names, or all. Raises as `pages`."""
    return catalog.databases or tuple(sorted(d["Name"] for d in pages(client, "get_databases")))


def list_glue(name: str, catalog: Catalog) -> Listing:
    """Every table of the named databases, or of all. What is refused is a gap; the rest is read."""
    client = glue_client(catalog)
    walk = _Walk(name, client)
    try:
        databases = databases_of(client, catalog)
    except (BotoCoreError, ClientError) as error:
        walk.gap(
            f"the databases cannot be listed ({error_code(error)}): the catalog's tables are unknown{grant(error)}"
        )
        return walk.listing()
    for database in databases:
        try:
            tables = list(pages(client, "get_tables", DatabaseName=database))
        except (BotoCoreError, ClientError) as error:
            walk.gap(f"the tables of the database cannot be listed ({error_code(error)}){grant(error)}", database)
            continue
        for table in tables:
            walk.told(database, table)
    return walk.listing()


def grant(error: Exception) -> str:
    """What the owner does about a refusal; nothing for other failures."""
    rights = (
        "glue:GetDatabases, GetTables, GetTableVersions, GetPartitions and GetColumnStatistics…, and in Lake Formation"
        " DESCRIBE and SELECT"
    )
    return remedy(error_code(error), rights)


def as_metastore(table: Mapping[str, Any]) -> Any:
    """A table, or a partition, in the words of a Hive metastore. Glue does not ask for a table's type: one without is
    a table with rows."""
    return SimpleNamespace(
        tableType=table.get("TableType") or "EXTERNAL_TABLE",
        parameters=table.get("Parameters"),
        partitionKeys=[
            SimpleNamespace(name=key["Name"], type=key.get("Type")) for key in table.get("PartitionKeys") or ()
        ],
        values=table.get("Values"),
        viewOriginalText=table.get("ViewOriginalText"),
        viewExpandedText=table.get("ViewExpandedText"),
        sd=_storage(table.get("StorageDescriptor")),
    )


def _storage(told: Mapping[str, Any] | None) -> Any:
    if told is None:
        return None
    serde = told.get("SerdeInfo") or {}
    return SimpleNamespace(
        location=told.get("Location"),
        cols=[SimpleNamespace(name=c["Name"], type=c.get("Type")) for c in told.get("Columns") or ()],
        inputFormat=told.get("InputFormat"),
        parameters=told.get("Parameters"),
        storedAsSubDirectories=told.get("StoredAsSubDirectories"),
        serdeInfo=SimpleNamespace(
            parameters=serde.get("Parameters"), serializationLib=serde.get("SerializationLibrary")
        ),
    )


class _Walk(TableWalk):
    move = "aws glue update-partition"

    def __init__(self, name: str, client: Any) -> None:
        super().__init__(name)
        self._client = client

    def told(self, database: str, table: Mapping[str, Any]) -> None:
        """One table or view."""
        parts = (database, str(table["Name"]))
        if table.get("TargetTable"):
            reason = (
                "a link to a table of a different catalog or account, which cannot be read and may contain a person. "
                "Declare the target table in the estate file, or waive this gap"
            )
            self.gap(reason, *parts, kind=GapKind.REMOTE_TABLE)
            return
        told = as_metastore(table)
        if is_view(told):
            self.view(parts, told)
            return
        kept = self.table(parts, told)
        if isinstance(kept, Refused) or kept.plain:
            self._projected(parts, told, kept)

    def _projected(self, parts: tuple[str, str], table: Any, kept: Kept | Refused) -> None:
        """Athena makes up the partitions of some tables by a template, which may lead out of the folder
        (https://docs.aws.amazon.com/athena/latest/ug/partition-projection-setting-up.html)."""
        template = parameters_of(table).get("storage.location.template", "").partition("${")[0]
        if not template or lies_inside(template, place_of(table.sd) or ""):
            return
        around = template[: template.rfind("/") + 1]  # nobody knows how deep in it they lie
        if isinstance(kept, Refused):
            self._opaque[-1] = replace(self._opaque[-1], elsewhere=(*self._opaque[-1].elsewhere, around))
        else:
            self._entries[-1] = replace(self._entries[-1], elsewhere=(*self._entries[-1].elsewhere, around))
            self.gap(
                "its partitions are outside the table's folder (`storage.location.template`), so the plan does not "
                "erase them: declare each as a table, or move them into the table's folder",
                *parts,
                kind=GapKind.EXTERNAL_FILES,
            )

    def partitions(self, parts: tuple[str, str], table: Any) -> list[PartitionEntry]:
        """Each partition that Glue names."""
        found: list[PartitionEntry] = []
        if not table.partitionKeys:
            return found
        try:
            for partition in pages(self._client, "get_partitions", DatabaseName=parts[0], TableName=parts[1]):
                found.append(PartitionEntry.of(table, as_metastore(partition)))
        except (BotoCoreError, ClientError) as error:
            self.gap(f"its partitions cannot be listed ({error_code(error)}){grant(error)}", *parts)
        return found
