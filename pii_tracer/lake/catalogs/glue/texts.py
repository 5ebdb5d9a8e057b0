"""What Glue itself keeps of databases and tables: comments, parameters, texts of views, statistics, partitions; and of
every old version of a table, which `update-table` archives, as much.

No delete of rows changes any of it.
https://docs.aws.amazon.com/glue/latest/webapi/API_GetTableVersions.html,
https://docs.aws.amazon.com/glue/latest/webapi/API_ColumnStatisticsData.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from pii_tracer.common.parallel_map import several
from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.catalogs.base import CatalogText
from pii_tracer.lake.catalogs.glue.tables import databases_of, glue_client, grant, pages
from pii_tracer.lake.catalogs.hive.texts import PARTITIONS, PROPERTIES, STATISTICS, VIEW, split_parameters

_OLD = "old versions"
"""Without their numbers: each update of a table makes one more, with the same texts."""

_REFUSED = (BotoCoreError, ClientError)
_AT_ONCE = 100
"""Columns whose statistics one request may ask for."""
_VIEW = ("ViewOriginalText", "ViewExpandedText", "ViewDefinition")
_OF_GLUE = frozenset({"CreateTime", "UpdateTime", "LastAccessTime", "LastAnalyzedTime", "VersionId", "CatalogId"})
"""Set by Glue alone."""
_BOUNDED = ("LongColumnStatisticsData", "DoubleColumnStatisticsData", "DecimalColumnStatisticsData",
            "DateColumnStatisticsData")  # fmt: skip


def texts_of(catalog: Catalog) -> Iterator[CatalogText]:
    """Every text of the named databases, or of all. What is refused is told as unread."""
    client = glue_client(catalog)
    try:
        databases = databases_of(client, catalog)
    except _REFUSED as error:
        yield CatalogText((), PROPERTIES, unread=_why(error))
        return
    for database in databases:
        try:
            made = client.get_database(Name=database)["Database"]
            yield CatalogText((database,), PROPERTIES, _own(made))
            for table in pages(client, "get_tables", DatabaseName=database):
                yield from _table(client, (database, str(table["Name"])), table)
        except _REFUSED as error:
            yield CatalogText((database,), PROPERTIES, unread=_why(error))


def _why(error: Exception) -> str:
    return error_code(error) + grant(error)


def _own(told: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key not in _OF_GLUE}


def _table(client: Any, parts: tuple[str, str], table: Mapping[str, Any]) -> Iterator[CatalogText]:
    yield from _told(parts, table, "")
    yield from _versions(client, parts, str(table.get("VersionId") or ""))
    if table.get("TableType") == "VIRTUAL_VIEW" or table.get("TargetTable"):
        return
    columns = [str(column["Name"]) for column in (table.get("StorageDescriptor") or {}).get("Columns") or ()]
    keys = [str(key["Name"]) for key in table.get("PartitionKeys") or ()]
    yield from _statistics(partial(client.get_column_statistics_for_table, **_named(parts)), parts, columns)
    if keys:
        yield from _partitions(client, parts, keys, columns)


def _named(parts: tuple[str, str]) -> dict[str, str]:
    return {"DatabaseName": parts[0], "TableName": parts[1]}


def _told(parts: tuple[str, str], table: Mapping[str, Any], which: str) -> Iterator[CatalogText]:
    """One state of a table. which: of which versions, to be put before what it is."""
    given = {str(key).lower(): str(value) for key, value in (table.get("Parameters") or {}).items()}
    properties, bounds, unread = split_parameters(given)
    rest = {key: value for key, value in _own(table).items() if key not in (*_VIEW, "Parameters")}
    yield CatalogText(parts, which + PROPERTIES, [properties, rest])
    view = [table[key] for key in _VIEW if table.get(key)]
    if view:
        yield CatalogText(parts, which + VIEW, {"query": view})
    if bounds or unread:
        yield CatalogText(parts, which + STATISTICS, bounds, unread="a histogram of Spark's" if unread else None)


def _versions(client: Any, parts: tuple[str, str], current: str) -> Iterator[CatalogText]:
    try:
        for version in pages(client, "get_table_versions", **_named(parts)):
            if str(version.get("VersionId")) != current:
                yield from _told(parts, version.get("Table") or {}, f"{_OLD}: ")
    except _REFUSED as error:
        yield CatalogText(parts, _OLD, unread=_why(error))


def _partitions(client: Any, parts: tuple[str, str], keys: list[str], columns: list[str]) -> Iterator[CatalogText]:
    asked = []
    try:
        for partition in pages(client, "get_partitions", **_named(parts)):
            values = [str(value) for value in partition.get("Values") or ()]
            asked.append(values)
            given = {str(key).lower(): str(value) for key, value in (partition.get("Parameters") or {}).items()}
            properties, bounds, unread = split_parameters(given)
            told = {"partition": dict(zip(keys, values, strict=False))}
            rest = {key: value for key, value in _own(partition).items() if key not in ("Parameters", "Values")}
            yield CatalogText(parts, PARTITIONS, [told, properties, rest])
            if bounds or unread:
                yield CatalogText(parts, STATISTICS, bounds, unread="a histogram of Spark's" if unread else None)
    except _REFUSED as error:
        yield CatalogText(parts, PARTITIONS, unread=_why(error))
        return

    def of_one(values: list[str]) -> list[CatalogText]:
        ask = partial(client.get_column_statistics_for_partition, PartitionValues=values, **_named(parts))
        return list(_statistics(ask, parts, columns))

    for texts in several(of_one, asked):
        yield from texts


def _statistics(ask: Any, parts: tuple[str, str], columns: Sequence[str]) -> Iterator[CatalogText]:
    bounds: list[dict[str, Any]] = []
    for start in range(0, len(columns), _AT_ONCE):
        try:
            answer = ask(ColumnNames=list(columns[start : start + _AT_ONCE]))
        except _REFUSED as error:
            yield CatalogText(parts, STATISTICS, unread=_why(error))
            continue
        bounds += [bound for one in answer.get("ColumnStatisticsList") or () if (bound := _bound(one))]
        # of a column that nobody has counted
        wrong = {str((one.get("Error") or {}).get("ErrorCode")) for one in answer.get("Errors") or ()}
        for code in sorted(wrong - {"EntityNotFoundException"}):
            yield CatalogText(parts, STATISTICS, unread=code)
    if bounds:
        yield CatalogText(parts, STATISTICS, bounds)


def _bound(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """The least and greatest value of a column, of those types that have them: texts have lengths and counts alone."""
    data = told.get("StatisticsData") or {}
    found = next((data[kind] for kind in _BOUNDED if data.get(kind)), None)
    if found is None:
        return None
    low, high = (_value(found.get(side)) for side in ("MinimumValue", "MaximumValue"))
    return {"columnName": str(told.get("ColumnName")), "minValue": low, "maxValue": high}


def _value(value: Any) -> Any:
    if isinstance(value, Mapping):  # a decimal
        from decimal import Decimal

        number = int.from_bytes(value.get("UnscaledValue") or b"\0", "big", signed=True)
        return Decimal(number).scaleb(-int(value.get("Scale") or 0))
    return value.date().isoformat() if hasattr(value, "date") else value
