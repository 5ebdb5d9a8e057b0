"""What a metastore itself keeps of databases and tables: comments, properties, views' texts, statistics, partitions.

No delete of rows changes any of it. Statistics have the least and the greatest value of a column, Spark's among the
table's properties (`spark.sql.statistics.colStats.COLUMN.min`), Hive's in a place of their own.
https://github.com/apache/hive/blob/rel/release-2.3.9/metastore/if/hive_metastore.thrift (`ColumnStatisticsData`)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from pii_tracer.config.catalogs import Catalog
from pii_tracer.lake.catalogs.base import CatalogText
from pii_tracer.lake.catalogs.hive.client import Metastore
from pii_tracer.lake.catalogs.hive.security import Security
from pii_tracer.lake.catalogs.hive.table_kind_detection import parameters_of
from pii_tracer.lake.catalogs.hive.tables import batches, databases_of, partitions_of, tables_of

PROPERTIES = "properties and comments"
VIEW = "text of a view"
PARTITIONS = "names and properties of partitions"
STATISTICS = "column statistics"

_PART = re.compile(r"(.+)\.part\.(\d+)\Z")
_SPARK = re.compile(r"spark\.sql\.statistics\.colstats\.(.+)\.(min|max|histogram)\Z")
_EPOCH = date(1970, 1, 1)
_SPAN = 3_000_000
"""Days around 1970 that a date can be told of."""


def texts_of(catalog: Catalog) -> Iterator[CatalogText]:
    """Every text of the named databases, or of all. What is refused is told as unread.

    Raises:
        EstateError: the client library is not installed.
    """
    with Metastore(str(catalog.uri), Security.of(catalog)) as store:
        try:
            databases = catalog.databases or databases_of(store)
        except Exception as error:  # the client lets errors of many families through
            yield CatalogText((), PROPERTIES, unread=type(error).__name__)
            return
        for database in databases:
            yield from _database(store, database)


def _database(store: Metastore, database: str) -> Iterator[CatalogText]:
    try:
        made = store.ask("get_database", database)
        yield CatalogText((database,), PROPERTIES, [made.description, made.locationUri, dict(parameters_of(made))])
        for name, table in tables_of(store, database):
            if table is None:
                yield CatalogText((database, name), PROPERTIES, unread="the metastore does not describe it")
            else:
                yield from _table(store, (database, name), table)
    except Exception as error:
        yield CatalogText((database,), PROPERTIES, unread=type(error).__name__)


def _table(store: Metastore, parts: tuple[str, str], table: Any) -> Iterator[CatalogText]:
    properties, bounds, unread = split_parameters(parameters_of(table))
    fields = [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]
    yield CatalogText(parts, PROPERTIES, [properties, *_of_storage(table.sd), *({f.name: f.comment} for f in fields)])
    if table.viewOriginalText or table.viewExpandedText:
        yield CatalogText(parts, VIEW, {"query": [table.viewOriginalText, table.viewExpandedText]})
    if bounds:
        yield CatalogText(parts, STATISTICS, bounds)
    if unread:
        yield CatalogText(parts, STATISTICS, unread="a histogram of Spark's")
    if str(table.tableType) == "VIRTUAL_VIEW":
        return
    columns = [str(field.name) for field in (table.sd and table.sd.cols) or ()]
    if table.partitionKeys:
        yield from _partitions(store, parts, [str(key.name) for key in table.partitionKeys], columns)
    else:
        yield from _statistics(store, parts, columns)


def split_parameters(parameters: Mapping[str, str]) -> tuple[dict[str, str], list[dict[str, Any]], bool]:
    """Parameters by what they are: properties; bounds; and whether a histogram is among them, which nobody reads here.

    parameters: a table's or a partition's, by their names in small letters. Long texts are put
    together again: Spark cuts them into `NAME.part.0`, `NAME.part.1` …"""
    whole: dict[str, dict[int, str]] = {}
    rest: dict[str, str] = {}
    bounds: list[dict[str, Any]] = []
    histogram = False
    for key, value in parameters.items():
        if part := _PART.match(key):
            whole.setdefault(part[1], {})[int(part[2])] = value
        elif (told := _SPARK.match(key)) and told[2] == "histogram":
            histogram = True
        elif told:
            bounds.append({"columnName": told[1], f"{told[2]}Value": value})
        else:
            rest[key] = value
    histogram |= any(_SPARK.match(key) for key in whole)
    joined = {key: "".join(found[at] for at in sorted(found)) for key, found in whole.items()}
    return {**rest, **joined}, bounds, histogram


def _of_storage(storage: Any) -> list[Any]:
    if storage is None:
        return []
    skewed = storage.skewedInfo
    names = (skewed and skewed.skewedColNames) or ()
    values = (skewed and skewed.skewedColValues) or ()
    return [
        storage.location,
        parameters_of(storage),
        parameters_of(storage.serdeInfo),
        *({"partition": dict(zip(names, row, strict=False))} for row in values),
    ]


def _partitions(store: Metastore, parts: tuple[str, str], keys: list[str], columns: list[str]) -> Iterator[CatalogText]:
    names = []
    try:
        for name, partition in partitions_of(store, *parts):
            names.append(name)
            if partition is None:
                yield CatalogText(parts, PARTITIONS, unread="the metastore does not describe it")
                continue
            properties, bounds, unread = split_parameters(parameters_of(partition))
            values = {"partition": dict(zip(keys, partition.values or (), strict=False))}
            yield CatalogText(parts, PARTITIONS, [name, values, properties, *_of_storage(partition.sd)])
            if bounds or unread:
                yield CatalogText(parts, STATISTICS, bounds, unread="a histogram of Spark's" if unread else None)
    except Exception as error:
        yield CatalogText(parts, PARTITIONS, unread=type(error).__name__)
        return
    for batch in batches(names):
        yield from _statistics(store, parts, columns, list(batch))


def _statistics(
    store: Metastore, parts: tuple[str, str], columns: list[str], partitions: list[str] | None = None
) -> Iterator[CatalogText]:
    from hive_metastore.ttypes import PartitionsStatsRequest, TableStatsRequest

    if not columns:
        return
    try:
        if partitions is None:
            asked = TableStatsRequest(dbName=parts[0], tblName=parts[1], colNames=columns)
            found = store.ask("get_table_statistics_req", asked).tableStats or ()
        else:
            of = PartitionsStatsRequest(dbName=parts[0], tblName=parts[1], colNames=columns, partNames=partitions)
            told = store.ask("get_partitions_statistics_req", of).partStats or {}
            found = [one for each in told.values() for one in each]
        bounds = [bound for one in found if (bound := _bound(one))]
    except Exception as error:
        yield CatalogText(parts, STATISTICS, unread=type(error).__name__)
        return
    if bounds:
        yield CatalogText(parts, STATISTICS, bounds)


def _bound(told: Any) -> dict[str, Any] | None:
    """The least and greatest value of a column, of those types that have them: texts have lengths and counts alone."""
    data = told.statsData
    for kind in ("longStats", "doubleStats", "decimalStats", "dateStats", "timestampStats"):
        found = getattr(data, kind, None)
        if found is not None:
            low, high = _value(found.lowValue), _value(found.highValue)
            return {"columnName": str(told.colName), "minValue": low, "maxValue": high}
    return None


def _value(value: Any) -> Any:
    if hasattr(value, "unscaled"):
        return Decimal(int.from_bytes(value.unscaled or b"\0", "big", signed=True)).scaleb(-int(value.scale or 0))
    if hasattr(value, "daysSinceEpoch"):
        days = int(value.daysSinceEpoch)
        return (_EPOCH + timedelta(days)).isoformat() if -_SPAN < days < _SPAN and days > -719_000 else None
    if hasattr(value, "secondsSinceEpoch"):
        return int(value.secondsSinceEpoch)
    return value
