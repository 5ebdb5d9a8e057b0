"""Metadata that engines write: Delta logs and checkpoints, Iceberg metadata, Hudi timelines.

Full of numbers that mean no person (sizes, counts, times, ids), so weak numbers count only in the fields that hold
data: minima and maxima, partition values, and free text such as a recorded predicate.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any

from pii_tracer.scan.cells_left_out import times_shown
from pii_tracer.scan.decode.cells.json_members import member
from pii_tracer.scan.decode.table_traces import table_traces
from pii_tracer.scan.hit_collector import Collector

_COLUMN = "columnName"
"""Whose the bounds beside it are."""
_BOUNDS = frozenset({"minValues", "maxValues", "minValue", "maxValue"})
_PARTITIONS = frozenset({"partitionValues", "partitionValues_parsed", "partition"})
PARTITION = "partition value"
"""`Hit.where` of a value by which an engine keeps rows together."""
_FREE_TEXT = frozenset({"operationParameters", "predicate", "userMetadata", "query"})

_OF_COLUMN = re.compile(r"\A(?:add|remove)\.(?:stats_parsed\.(?:minValues|maxValues)|partitionValues_parsed)\.(.+)\Z")
"""Columns of Delta's checkpoints that hold bounds or partition values of one of the table's."""
_OF_COLUMNS = frozenset({"add.partitionValues.value", "remove.partitionValues.value"})
"""Those that hold the partition values of all of them."""


class Role(Enum):
    """What a file is for: rows of people, or an engine's notes about files."""

    DATA = "data"
    ENGINE = "engine"


def role_of(path: str) -> Role:
    """Engine metadata by its place in the table's folder."""
    parts = path.replace("\\", "/").split("/")
    return Role.ENGINE if any(traces.is_metadata(parts) for traces in table_traces()) else Role.DATA


def walk(value: Any, collector: Collector, where: str, column: str | None = None, *, free: bool = False) -> None:
    """Search one parsed document or row of engine metadata."""
    if isinstance(value, dict):
        if "path" in value and "size" in value:  # what Delta notes of a file
            with collector.describing(value["path"], value["size"]):
                _members(value, collector, where, column, free=free)
        else:
            _members(value, collector, where, column, free=free)
    elif isinstance(value, (list, tuple)):
        for item in value:
            walk(item, collector, where, column, free=free)
    elif isinstance(value, str):
        _text(value, collector, where, free)
    elif isinstance(value, (bytes, bytearray)):
        collector.raw(bytes(value), where)


def _members(value: dict[str, Any], collector: Collector, where: str, column: str | None, *, free: bool) -> None:
    owner = value[_COLUMN] if isinstance(value.get(_COLUMN), str) else None
    for key, item in value.items():
        collector.text(str(key), where)
        if key in _BOUNDS:
            bounds(item, collector, owner)
        elif key in _PARTITIONS:
            collector.cell(_pairs(item), PARTITION, None)
        else:
            walk(item, collector, where, column, free=free or key in _FREE_TEXT)


def digests_of_parts(document: Any, holds: Callable[[Any], bool]) -> Iterator[str]:
    """SHA-256 of each smallest part of a parsed document that holds a value, with the names above it.

    The rest of a document changes with each commit, and so does its order. holds: searches a document as `walk` does,
    to which the names above a part say what a number is. What holds a value only together is one part.
    """
    left: list[tuple[Any, _Names]] = [(document, ())]
    while left:
        part, above = left.pop()
        inner = _inner(part)
        holding = {key for key, (item, name) in inner.items() if holds(_alone(item, (*above, name)))}
        for key in holding:
            item, name = inner[key]
            if isinstance(part, dict) and holds(_alone(None, (*above, name))):
                yield _digest(_alone(item, (*above, name)))
            else:
                left.append((item, (*above, name)))
        rest = _alone(_without(part, holding), above)
        if holds(rest):
            yield _digest(rest)


_Name = Callable[[Any], Any]
"""Makes of a part the dict or list that has nothing else in it."""
_Names = tuple[_Name, ...]


def _inner(part: Any) -> dict[Any, tuple[Any, _Name]]:
    """By key or position: what is directly in a part."""
    if isinstance(part, dict):
        column = {_COLUMN: part[_COLUMN]} if _COLUMN in part else {}
        return {key: (item, partial(_named, column, key)) for key, item in part.items()}
    return {at: (item, _listed) for at, item in enumerate(part)} if isinstance(part, (list, tuple)) else {}


def _named(column: dict[str, Any], key: Any, item: Any) -> dict[Any, Any]:
    return {**column, key: item}


def _listed(item: Any) -> list[Any]:
    return [item]


def _alone(part: Any, above: _Names) -> Any:
    for name in reversed(above):
        part = name(part)
    return part


def _without(part: Any, gone: Collection[Any]) -> Any:
    if isinstance(part, dict):
        return {key: item for key, item in part.items() if key not in gone}
    if isinstance(part, (list, tuple)) and gone:
        return [item for at, item in enumerate(part) if at not in gone]
    return part


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()


def _text(value: str, collector: Collector, where: str, free: bool) -> None:
    if value.lstrip()[:1] in ("{", "["):
        try:
            parsed = json.loads(value, parse_float=Decimal)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, (dict, list)):
            inner = collector.inner()
            walk(parsed, inner, where, free=free)
            collector.merge(inner)
            collector.prose(value, where, whole=inner.quoted, left=inner.left.shown_in(value))
            return
    if value.isdigit() and not free:
        collector.prose(value, where)
    else:
        folders = Counter() if free else collector.left.folders(value, where)
        whole = None if free else collector.patterns.key_columns.of_path
        collector.text(value, where, tiny=free, whole=whole, left=folders)


def _pairs(item: Any) -> Any:
    """Arrow gives a map as pairs, JSON as an object."""
    if isinstance(item, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in item):
        return dict(item)
    return item


def engine_bound(value: str, collector: Collector, label: str) -> None:
    """A minimum or maximum of a column of an engine's own table (a checkpoint): of bounds, partition values, paths.

    Its rows were searched before: a map's values are of many columns, and only the rows tell of which.
    """
    keys, told = collector.patterns.key_columns, _OF_COLUMN.search(label)
    if value.lstrip()[:1] == "{":
        try:
            inner = Collector(collector.patterns)
            walk(json.loads(value, parse_float=Decimal), inner, "statistics")
            collector.prose(value, "statistics", label, whole=inner.quoted, left=inner.left.shown_in(value))
            return
        except (ValueError, RecursionError):
            pass  # cut: no cell of it is told from another
    whole = keys.of_cell(told.group(1), cut=True) if told else keys.of_path
    whole = collector.decoded if label in _OF_COLUMNS else whole
    none = no_keys_in(label, collector).intersection(collector.patterns.of_cell(value))
    left = times_shown(collector.patterns, none, value) + collector.left.folders(value, "statistics")
    if value.lstrip()[:1] == "{":
        left += collector.begun(value)
    collector.prose(value, "statistics", label, whole=whole, left=left)


def no_keys_in(label: str, collector: Collector) -> frozenset[str]:
    """The key sets that a column of an engine's own table holds none of; asked when its rows were searched.

    Partition values are of many columns: where all that equal a key in the rows are of columns of other numbers, so are
    the bounds of these values.
    """
    if label in _OF_COLUMNS:
        return collector.left.names_in(PARTITION)
    told = _OF_COLUMN.search(label)
    return collector.patterns.key_columns.no_keys_in(told.group(1) if told else None)


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
