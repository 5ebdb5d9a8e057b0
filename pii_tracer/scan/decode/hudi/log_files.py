"""Hudi log files: data blocks (Avro, HFile, Parquet, CDC), delete blocks, command blocks.

Layout (https://hudi.apache.org/learn/tech-specs-1point0/#log-files): magic `#HUDI#`, block size 8, version 4, type 4,
header map, content size 8, content, footer map, total size 8; numbers big-endian. Maps: count 4, then per entry id 4,
size 4, text.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import fastavro

from pii_tracer.scan.decode import parquet
from pii_tracer.scan.decode.cells import cell_search
from pii_tracer.scan.decode.file_kind import FileKind
from pii_tracer.scan.decode.hudi import hfile
from pii_tracer.scan.decode.table_metadata import Role
from pii_tracer.scan.hit_collector import Collector

MAGIC = b"#HUDI#"
_SCHEMA = 2
COMMAND, DELETE, CORRUPT, AVRO, HFILE, PARQUET, CDC = range(7)


class HudiLogError(ValueError):
    """The bytes are no Hudi log this reader knows; the message says why, without content."""


@dataclass(frozen=True)
class LogBlock:
    """One block. header: metadata by its id (2 is the schema)."""

    kind: int
    header: dict[int, bytes]
    content: bytes
    footer: dict[int, bytes]


def decode(data: memoryview, collector: Collector) -> None:
    """Search every block of a log file.

    Raises:
        HudiLogError: cut short, or a block type that is not known.
    """
    for block in blocks(data):
        for value in (*block.header.values(), *block.footer.values()):
            collector.raw(value, "log block header")
            cell_search.search_unexplained(value, "log block header", collector)
        _block(block, collector)
    collector.rest(data, "raw bytes", read=[range(len(data))])


def blocks(data: memoryview) -> Iterator[LogBlock]:
    """Every block.

    Raises:
        HudiLogError: as `decode`.
    """
    position = 0
    while position < len(data):
        if bytes(data[position : position + 6]) != MAGIC:
            raise HudiLogError("Hudi log block without its magic bytes")
        try:
            size, version, kind = struct.unpack_from(">qii", data, position + 6)
            if version != 1:
                raise HudiLogError(f"Hudi log format version {version} is not known")
            header, start = _map(data, position + 22)
            length = struct.unpack_from(">q", data, start)[0]
            content = bytes(data[start + 8 : start + 8 + length])
            footer, _ = _map(data, start + 8 + length)
        except (struct.error, OverflowError):
            raise HudiLogError("a Hudi log block is truncated") from None
        if size < 24 or length < 0 or len(content) != length or position + 14 + size > len(data):
            raise HudiLogError("Hudi log block of impossible size")
        yield LogBlock(kind, header, content, footer)
        position += 14 + size


def _map(data: memoryview, position: int) -> tuple[dict[int, bytes], int]:
    count = struct.unpack_from(">i", data, position)[0]
    position += 4
    entries = {}
    for _ in range(count):
        name, size = struct.unpack_from(">ii", data, position)
        if size < 0:
            raise HudiLogError("Hudi log block header of impossible size")
        entries[name] = bytes(data[position + 8 : position + 8 + size])
        position += 8 + size
    return entries, position


def _block(block: LogBlock, collector: Collector) -> None:
    schema = block.header.get(_SCHEMA, b"").decode("utf-8", "replace")
    if block.kind in (AVRO, CDC):
        for record in _records(block.content, schema):
            collector.cell(record, "log block data", None)
    elif block.kind == DELETE:
        _delete(block.content, collector)
    elif block.kind == HFILE:
        hfile.decode(memoryview(block.content), collector, "log block hfile", schema)
    elif block.kind == PARQUET:
        parquet.decode(memoryview(block.content), collector, Role.DATA, "log block data")
    elif block.kind == COMMAND:
        collector.raw(block.content, "log block command")
    elif block.kind == CORRUPT:
        collector.raw(block.content, "log block data")
        collector.unread("a Hudi log block that its writer marked as corrupt")
    else:
        raise HudiLogError("Hudi log block of an unknown type")


def _records(content: bytes, schema: str) -> Iterator[Any]:
    """Avro data block: version 4, number of records 4, then per record size 4 and Avro bytes."""
    try:
        parsed = fastavro.parse_schema(json.loads(schema))
        _, count = struct.unpack_from(">ii", content, 0)
        position = 8
        for _ in range(count):
            size = struct.unpack_from(">i", content, position)[0]
            record = content[position + 4 : position + 4 + size]
            if size < 0 or len(record) != size:
                raise HudiLogError("a Hudi data block is truncated")
            yield fastavro.schemaless_reader(io.BytesIO(record), parsed, None)
            position += 4 + size
    except HudiLogError:
        raise
    except (struct.error, ValueError, EOFError, KeyError, IndexError, TypeError) as error:
        raise HudiLogError(f"Hudi data block that does not follow its schema: {type(error).__name__}") from None


def _delete(content: bytes, collector: Collector) -> None:
    """Delete block: version 4, size 4, record keys in Avro (version 3) or Kryo.

    Both write keys as plain text; Kryo sets the high bit of a key's last character
    (https://github.com/EsotericSoftware/kryo, `Output.writeString`).
    """
    cell_search.search_unexplained(content[8:], "log block delete", collector)
    # what follows a key is a length, which can look like one more digit: no ends are seen here
    _keys(content[8:], collector)
    if struct.unpack_from(">i", content, 0)[0] < 3:
        cleared = bytes(byte & 127 for byte in content[8:])
        _keys(cleared, collector)


def _keys(content: bytes, collector: Collector) -> None:
    collector.raw(content, "log block delete", "_hoodie_record_key")
    collector.text(content, "log block delete", "_hoodie_record_key", tiny=True, strong=False)


KIND = FileKind(
    name="hudi log",
    rank=3,
    fits=lambda data: bytes(data[: len(MAGIC)]) == MAGIC,
    starts=(MAGIC,),
    decode=lambda data, collector, role: decode(data, collector),
    errors=(HudiLogError,),
)
