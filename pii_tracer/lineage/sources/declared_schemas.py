"""Schemas that no event and no table tells: files of them, and the AWS Glue Data Catalog.

https://docs.aws.amazon.com/glue/latest/webapi/API_GetTables.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pii_tracer.config.lineage import GlueDatabase
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lineage.dataset_names import Identities
from pii_tracer.lineage.sql.parse_lines import schemas_of
from pii_tracer.model.errors import LineageError
from pii_tracer.model.identities import Column, DatasetId


@dataclass(frozen=True)
class Catalogued:
    """What a catalog knows: where its tables lie, and their columns, by the name Spark SQL calls them."""

    aliases: Mapping[str, DatasetId] = field(default_factory=dict)
    schemas: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)


def schema_files(places: Sequence[str], base: Path) -> dict[str, tuple[Column, ...]]:
    """Columns by table, from JSON files `{"table": ["column", {"name": …, "type": …}, …]}`.

    Raises:
        LineageError: a file is missing, or is not of that form.
    """
    found: dict[str, tuple[Column, ...]] = {}
    for place in places:
        for table, columns in _read(base / place).items():
            if table in found:
                raise LineageError(
                    f"two schema files tell the columns of {table}", where=place, todo="keep one of the two"
                )
            found[table] = columns
    return found


def _read(file: Path) -> dict[str, tuple[Column, ...]]:
    form = 'write {"table": ["column", …]}'
    try:
        data = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise LineageError(
            f"the schema file cannot be read ({type(error).__name__})", where=str(file), todo=form
        ) from None
    if not isinstance(data, dict):
        raise LineageError("the schema file is not a JSON object", where=str(file), todo=form)
    found = {t: tuple(Column(name=n, type=k) for n, k in columns) for t, columns in schemas_of(data).items()}
    empty = next((t for t, columns in found.items() if not columns or not all(c.name for c in columns)), None)
    if empty is not None:
        raise LineageError(f"the columns of {empty} are not a list of names", where=str(file), todo=form)
    return found


def glue_tables(databases: Sequence[GlueDatabase]) -> Catalogued:
    """Tables of Glue databases. Credentials are found as boto3 finds them.

    Raises:
        LineageError: the catalog cannot be read; nothing is taken from it then.
    """
    aliases: dict[str, DatasetId] = {}
    schemas: dict[str, tuple[Column, ...]] = {}
    named = Identities({})
    for database in databases:
        for table in _tables(database):
            name = f"{database.database}.{table['Name']}"
            name = f"{database.catalog}.{name}" if database.catalog else name
            storage = table.get("StorageDescriptor") or {}
            columns = [*(storage.get("Columns") or ()), *(table.get("PartitionKeys") or ())]
            schemas[name] = tuple(Column(name=c["Name"], type=c.get("Type") or "") for c in columns)
            if storage.get("Location"):
                aliases[name] = named.of_path(storage["Location"])
    return Catalogued(aliases, schemas)


def _tables(database: GlueDatabase) -> Iterator[Mapping[str, Any]]:
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client = boto3.client("glue", region_name=database.region, endpoint_url=database.endpoint_url)
        for page in client.get_paginator("get_tables").paginate(DatabaseName=database.database):
            yield from page["TableList"]
    except (BotoCoreError, ClientError) as error:
        raise LineageError(
            f"the Glue database {database.database} cannot be read: {error_code(error)}",
            where=f"lineage.glue, region {database.region}",
            todo="check its name, the region and the permission glue:GetTables",
        ) from None
