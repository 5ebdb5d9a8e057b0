"""HFile version 3, as Hudi's metadata table uses it: blocks, keys and Avro values.

Layout: https://github.com/apache/hudi/blob/master/hudi-io/hfile_format.md. Every block has a header of 33 bytes:
magic 8, size on disk without header 4, uncompressed size 4, previous offset 8, checksum type 1, bytes per checksum 4,
size on disk with header and without checksums 4. The file ends in a trailer of 4096 bytes.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import fastavro

from pii_tracer.scan.decode.file_kind import FileKind
from pii_tracer.scan.decode.table_metadata import bounds, walk
from pii_tracer.scan.hit_collector import Collector

HEADER = 33
TRAILER = 4096
TRAILER_MAGIC = b'TRABLK"$'
DATA_MAGIC = b"DATABLK*"
_INFO_MAGIC = b"FILEINF2"
_SCHEMA = b"schema"
_KEY = "_hoodie_record_key"
_RECORD_INDEX = 5
"""`type` of a record of the record level index (https://hudi.apache.org/learn/tech-specs-1point0/#record-level-indices)."""


class HFileError(ValueError):
    """The bytes are no HFile this reader knows; the message says why, without content."""


@dataclass(frozen=True)
class Block:
    """One block, decompressed."""

    magic: bytes
    data: bytes


def is_hfile(data: memoryview) -> bool:
    """By the trailer's magic; an HFile without entries has no data block to begin with."""
    return len(data) >= TRAILER and bytes(data[-TRAILER : -TRAILER + 8]) == TRAILER_MAGIC


def decode(data: memoryview, collector: Collector, where: str = "hfile", schema: str | None = None) -> None:
    """Search one HFile: raw blocks, keys, and values decoded with the file's own Avro schema (or the one given).

    Raises:
        HFileError: not an HFile, cut short, or an unknown compression.
    """
    found = list(blocks(data))
    own = next((s for b in found if b.magic == _INFO_MAGIC if (s := _schema(b.data)) is not None), None)
    parsed = _parse(own or schema)
    for block in found:
        if block.magic == DATA_MAGIC:
            for key, value in _pairs(block.data):
                record = _value(value, parsed, collector, where)
                whole = collector.patterns.key_columns.of_cell(_KEY) if _indexes_rows(record) else None
                collector.text(key, f"{where} key", _KEY, tiny=True, whole=whole)
    for block in found:
        collector.rest(memoryview(block.data), f"{where} block", read=[range(len(block.data))])
    collector.rest(data, "raw bytes", read=[range(len(data))])  # headers, checksums and the trailer, too


def blocks(data: memoryview) -> Iterator[Block]:
    """Every block before the trailer.

    Raises:
        HFileError: as `decode`.
    """
    if not is_hfile(data):
        raise HFileError("HFile without a trailer")
    position, end = 0, len(data) - TRAILER
    while position < end:
        if end - position < HEADER:
            raise HFileError("an HFile is truncated in a block header")
        magic, disk, plain, _, _, _, with_header = struct.unpack_from(">8siiqBii", data, position)
        if disk < 0 or plain < 0 or with_header < HEADER or position + HEADER + disk > end:
            raise HFileError("HFile block of impossible size")
        yield Block(magic, _unpack(bytes(data[position + HEADER : position + with_header]), plain))
        position += HEADER + disk


def _unpack(payload: bytes, size: int) -> bytes:
    if len(payload) == size and payload[:2] != b"\x1f\x8b":
        return payload
    try:
        plain = zlib.decompress(payload, wbits=31) if payload else b""
    except zlib.error:
        raise HFileError("HFile block with a compression other than NONE or GZ, or corrupt") from None
    if len(plain) != size:
        raise HFileError("the unpacked size of an HFile block differs from its header")
    return plain


def _pairs(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Key content and value of each entry; behind each value stands one byte of MVCC timestamp (zero in Hudi)."""
    position = 0
    while position < len(data):
        if len(data) - position < 8:
            raise HFileError("an HFile entry is truncated")
        key_size, value_size = struct.unpack_from(">ii", data, position)
        start = position + 8
        if key_size < 2 or value_size < 0 or start + key_size + value_size > len(data):
            raise HFileError("HFile entry of impossible size")
        content = struct.unpack_from(">h", data, start)[0]
        yield data[start + 2 : start + 2 + content], data[start + key_size : start + key_size + value_size]
        position = start + key_size + value_size + 1


def _value(value: bytes, schema: Any, collector: Collector, where: str) -> Any:
    if not value:
        return None
    if schema is None:
        collector.unread("HFile values whose schema is missing")
        return None
    try:
        record = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
    except (EOFError, ValueError, IndexError, KeyError, TypeError, StopIteration, struct.error):
        collector.unread("HFile values that do not follow the file's schema")
        return None
    metadata_record(record, collector, where)
    return record


def _indexes_rows(record: Any) -> bool:
    """Whether a record's key is the key of a row; others' are paths and digests."""
    return isinstance(record, dict) and record.get("type") == _RECORD_INDEX


def metadata_record(record: Any, collector: Collector, where: str) -> None:
    """A record of Hudi's metadata table (or of anything else in an HFile)."""
    if not isinstance(record, dict):
        collector.cell(record, where, None)
        return
    for name, item in record.items():
        if name == "key" and isinstance(item, str):
            collector.string(item, f"{where} key", _KEY, known=_indexes_rows(record))
        elif isinstance(item, dict) and isinstance(item.get("columnName"), str):
            for bound in ("minValue", "maxValue"):
                bounds(item.get(bound), collector, item["columnName"])
            walk({k: v for k, v in item.items() if k not in ("minValue", "maxValue")}, collector, where)
        else:
            walk(item, collector, where)


def _schema(info: bytes) -> str | None:
    """The `schema` entry of the file info: `PBUF`, then a length-delimited InfoProto of byte pairs."""
    if info[:4] != b"PBUF":
        return None
    size, position = _varint(info, 4)
    for _, entry in _fields(info[position : position + size]):
        pair = dict(_fields(entry))
        if pair.get(1) == _SCHEMA:
            return pair.get(2, b"").decode("utf-8", "replace")
    return None


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Length-delimited fields of a protobuf message (the only kind in an InfoProto)."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        if tag & 7 != 2:
            raise HFileError("HFile file info of an unknown layout")
        size, position = _varint(data, position)
        yield tag >> 3, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise HFileError("an HFile's file info is truncated")
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def _parse(schema: str | None) -> Any:
    if not schema:
        return None
    try:
        return fastavro.parse_schema(json.loads(schema))
    except (ValueError, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
        raise HFileError(f"the Avro schema cannot be read: {type(error).__name__}") from None


KIND = FileKind(
    name="hfile",
    rank=5,
    fits=lambda data: is_hfile(data) or bytes(data[: len(DATA_MAGIC)]) == DATA_MAGIC,
    decode=lambda data, collector, role: decode(data, collector),
    errors=(HFileError,),
)
