"""Metadata that engines write: Delta logs and checkpoints, Iceberg metadata, Hudi timelines.

Full of numbers that mean no person (sizes, counts, times, ids), so weak numbers count only in the fields that hold
data: minima and maxima, partition values, and free text such as a recorded predicate.
"""

from __future__ import annotations

import json
from decimal import Decimal
from enum import Enum
from typing import Any

from pii_tracer.scan.collect import Collector, member

_BOUNDS = frozenset({"minValues", "maxValues", "minValue", "maxValue"})
_PARTITIONS = frozenset({"partitionValues", "partitionValues_parsed", "partition"})
_FREE_TEXT = frozenset({"operationParameters", "predicate", "userMetadata", "query"})


class Role(Enum):
    """What a file is for: rows of people, or an engine's notes about files."""

    DATA = "data"
    ENGINE = "engine"


def role_of(path: str) -> Role:
    """Engine metadata by its place in the table's folder."""
    parts = path.replace("\\", "/").split("/")
    name = parts[-1]
    if "_delta_log" in parts[:-1] or name.endswith(".metadata.json"):
        return Role.ENGINE
    if ".hoodie" in parts[:-1]:
        inside = parts[len(parts) - 1 - parts[::-1].index(".hoodie") :]
        return Role.DATA if len(inside) > 2 and inside[1] == "metadata" else Role.ENGINE
    return Role.ENGINE if name == ".hoodie_partition_metadata" else Role.DATA


def walk(value: Any, collector: Collector, where: str, column: str | None = None, *, free: bool = False) -> None:
    """Search one parsed document or row of engine metadata."""
    if isinstance(value, dict):
        owner = value.get("columnName") if isinstance(value.get("columnName"), str) else None
        for key, item in value.items():
            collector.text(str(key), where)
            if key in _BOUNDS:
                bounds(item, collector, owner)
            elif key in _PARTITIONS:
                collector.cell(_pairs(item), "partition value", None)
            else:
                walk(item, collector, where, column, free=free or key in _FREE_TEXT)
    elif isinstance(value, (list, tuple)):
        for item in value:
            walk(item, collector, where, column, free=free)
    elif isinstance(value, str):
        _text(value, collector, where, free)
    elif isinstance(value, (bytes, bytearray)):
        collector.raw(bytes(value), where)


def _text(value: str, collector: Collector, where: str, free: bool) -> None:
    if value.lstrip()[:1] in ("{", "["):
        try:
            parsed = json.loads(value, parse_float=Decimal)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, (dict, list)):
            collector.raw(value.encode(), where)
            walk(parsed, collector, where, free=free)
            return
    if value.isdigit() and not free:
        collector.raw(value.encode(), where)
    else:
        collector.text(value, where, tiny=free)


def _pairs(item: Any) -> Any:
    """Arrow gives a map as pairs, JSON as an object."""
    if isinstance(item, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in item):
        return dict(item)
    return item


def bounds(item: Any, collector: Collector, column: str | None) -> None:
    """Minima or maxima: `{column: bound}`, nested for structs, or one bound of a known column."""
    if isinstance(item, dict):
        for key, value in item.items():
            if column is not None and key in ("value", "wrapper"):  # an Avro union's wrapper record
                bounds(value, collector, column)
            else:
                bounds(value, collector, f"{column}.{member(key)}" if column else str(key))
    elif isinstance(item, (list, tuple)):
        for value in item:
            bounds(value, collector, column)
    else:
        collector.bound(item, "statistics", column)
