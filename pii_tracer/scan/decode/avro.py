"""Avro: rows of people, Iceberg manifests and manifest lists, Hudi timelines.

Iceberg's bounds are bytes in its single-value serialisation (https://iceberg.apache.org/spec/, appendix D); entries
with status 2 (DELETED) keep theirs, so they count like any other.
"""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

from pii_tracer.scan.decode.avro_container import AvroError, open_container
from pii_tracer.scan.decode.file_kind import FileKind
from pii_tracer.scan.decode.table_metadata import Role, walk
from pii_tracer.scan.hit_collector import Collector

_BOUND_MAPS = ("lower_bounds", "upper_bounds")


def decode(data: memoryview, collector: Collector, role: Role) -> None:
    """Search one Avro object container file.

    Raises:
        AvroError: cut short, corrupt, or packed with a codec that is not known.
    """
    container = open_container(data)
    for key, value in container.metadata.items():
        collector.prose(key, "avro metadata")
        collector.binary(value, "avro metadata", None)
    collector.raw(container.sync, "raw bytes")  # any sixteen bytes
    schema = container.schema
    rows = container.records()
    name = schema.get("name", "") if isinstance(schema, dict) else ""
    if name == "manifest_entry":
        types = _field_types(container.metadata.get("schema"))
        for entry in rows:
            _manifest_entry(entry, types, collector)
    elif name == "manifest_file":
        for entry in rows:
            _manifest_file(entry, collector)
    else:
        for row in rows:
            if role is Role.ENGINE:
                walk(row, collector, "avro metadata")
            else:
                collector.cell(row, "data", None)


def _manifest_entry(entry: dict[str, Any], types: dict[int, tuple[str, str]], collector: Collector) -> None:
    file = dict(entry["data_file"])
    place = "manifest entry (DELETED)" if entry.get("status") == 2 else "manifest entry"
    with collector.describing(file.get("file_path"), file.get("file_size_in_bytes")):
        for key in _BOUND_MAPS:
            for field_id, bound in _items(file.pop(key, None)):
                name, kind = types.get(field_id, (f"field {field_id}", "binary"))
                collector.bound(read_value(bound, kind), f"{place}, bounds", name)
                if kind != "string":
                    collector.raw(bound, f"{place}, bounds", name)
    partition = file.pop("partition", None) or {}
    for name, value in partition.items():
        collector.cell(value, f"{place}, partition", name)
    walk(file, collector, place)


def _manifest_file(entry: dict[str, Any], collector: Collector) -> None:
    item = dict(entry)
    for summary in item.pop("partitions", None) or ():
        for key in ("lower_bound", "upper_bound"):
            if summary.get(key):
                _untyped(summary[key], collector)
    walk(item, collector, "manifest list")


def _untyped(bound: bytes, collector: Collector) -> None:
    """A manifest list does not carry the schema: the bound is tried as text and as a number."""
    if len(bound) in (4, 8) and abs(int.from_bytes(bound, "little", signed=True)) < 10_000:
        return  # a bucket's or a day's number is no identifier
    collector.binary(bound, "manifest list, bounds", "partition")


def _items(bounds: Any) -> list[tuple[int, bytes]]:
    """Maps with whole-number keys are arrays of key and value in Avro."""
    if isinstance(bounds, dict):
        return [(int(key), value) for key, value in bounds.items()]
    return [(item["key"], item["value"]) for item in bounds or ()]


def read_value(data: bytes, kind: str) -> Any:
    """One value in Iceberg's single-value serialisation; bytes where the type is not one that can hold a key."""
    if kind == "string":
        return data.decode("utf-8", "replace")
    if kind in ("int", "long") and len(data) in (4, 8):
        return int.from_bytes(data, "little", signed=True)
    if kind in ("float", "double") and len(data) in (4, 8):
        return struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
    if kind.startswith("decimal("):
        scale = int(kind.rstrip(")").split(",")[1])
        return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale)
    return data


def _field_types(schema: str | bytes | None) -> dict[int, tuple[str, str]]:
    """Field id to (label, type) from the table schema that a manifest carries in its header."""
    types: dict[int, tuple[str, str]] = {}
    if schema:
        _collect(json.loads(schema), "", types)
    return types


def _collect(node: Any, label: str, types: dict[int, tuple[str, str]]) -> None:
    if not isinstance(node, dict):
        return
    for field in node.get("fields", ()):
        name = f"{label}.{field['name']}" if label else field["name"]
        _typed(field["id"], field["type"], name, types)
    for part, suffix in (("element", ""), ("key", ".key"), ("value", ".value")):
        if f"{part}-id" in node:
            _typed(node[f"{part}-id"], node[part], label + suffix, types)


def _typed(field_id: int, kind: Any, label: str, types: dict[int, tuple[str, str]]) -> None:
    if isinstance(kind, str):
        types[field_id] = (label, kind)
    else:
        _collect(kind, label, types)


KIND = FileKind(
    name="avro",
    rank=2,
    fits=lambda data: bytes(data[:4]) == b"Obj\x01",
    starts=(b"Obj\x01",),
    decode=decode,
    errors=(AvroError,),
)
