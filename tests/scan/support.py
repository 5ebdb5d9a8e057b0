"""An invented person, a bystander who looks like them, and short ways to scan bytes."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.folder_scan import scan_bytes
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.value_forms import Patterns, build_patterns

PHONE, OTHER_PHONE = "+91 98450 12345", "+91 98450 12354"
USER, OTHER_USER = 8841302, 8841303
LONG = "3f1d6a80c2e94b57a1c08d2e6f9b4735d8e0a1b2c3d4e5f60718293a4b5c6d7e"

PHONES = KeySet(name="phone", origin="phone", weak=False, values=(("subj_1", PHONE),))
USERS = KeySet(name="user_id", origin="user_id", weak=True, values=(("subj_1", str(USER)),))
HASHES = KeySet(name="user_hash", origin="user_id", weak=False, values=(("subj_1", LONG),))

STRONG = build_patterns([PHONES])
BOTH = build_patterns([PHONES, USERS])


def scan(name: str, data: bytes, patterns: Patterns = BOTH) -> FileScan:
    """One object from memory."""
    return scan_bytes(name, data, patterns)


def places(result: FileScan) -> set[tuple[str, str, str | None]]:
    """(key set, where, column) of every hit."""
    return {(hit.key_set, hit.where, hit.column) for hit in result.hits}


def parquet(table: pa.Table, **options: Any) -> bytes:
    """A Parquet file's bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def avro(schema: dict[str, Any], rows: list[Any], metadata: dict[str, str] | None = None, codec: str = "null") -> bytes:
    """An Avro container's bytes."""
    sink = io.BytesIO()
    plain = "null" if codec in _PACKERS else codec
    fastavro.writer(sink, schema, rows, codec=plain, metadata=metadata, sync_marker=SYNC)
    if codec not in _PACKERS:
        return sink.getvalue()
    header, _, _ = sink.getvalue().partition(SYNC)
    header = header.replace(b"avro.codec\x08null", b"avro.codec" + _zigzag(len(codec)) + codec.encode())
    block = _PACKERS[codec](b"".join(avro_value(schema, row) for row in rows))
    return header + SYNC + _zigzag(len(rows)) + _zigzag(len(block)) + block + SYNC


def _snappy(data: bytes) -> bytes:
    return bytes(pa.compress(data, "snappy", asbytes=True)) + zlib.crc32(data).to_bytes(4, "big")


def _zigzag(number: int) -> bytes:
    return _varint(number * 2)


SYNC = b"0123456789abcdef"
_PACKERS: dict[str, Callable[[bytes], bytes]] = {"zstandard": zstandard.compress, "snappy": _snappy}


def avro_value(schema: dict[str, Any], row: Any) -> bytes:
    """One Avro datum without container."""
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), row)
    return sink.getvalue()


PERSON_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "person",
    "fields": [{"name": "phone", "type": ["null", "string"]}, {"name": "id", "type": "long"}],
}


def hudi_block(kind: int, content: bytes, schema: dict[str, Any] | None = None) -> bytes:
    """One block of a Hudi log file."""
    header = {0: b"20261121095024066"} | ({2: json.dumps(schema).encode()} if schema else {})
    packed = struct.pack(">i", len(header))
    packed += b"".join(struct.pack(">ii", key, len(value)) + value for key, value in header.items())
    body = struct.pack(">ii", 1, kind) + packed + struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    return b"#HUDI#" + struct.pack(">q", len(body) + 8) + body + struct.pack(">q", len(body) + 22)


def hudi_records(schema: dict[str, Any], rows: list[Any]) -> bytes:
    """Content of an Avro data block."""
    data = [avro_value(schema, row) for row in rows]
    return struct.pack(">ii", 3, len(data)) + b"".join(struct.pack(">i", len(d)) + d for d in data)


def hfile(entries: list[tuple[bytes, bytes]], schema: dict[str, Any] | None, *, gz: bool) -> bytes:
    """An HFile with one data block, a file info block and a trailer."""
    data = b""
    for key, value in entries:
        inner = struct.pack(">h", len(key)) + key + b"\0" + struct.pack(">q", 2**63 - 1) + b"\x04"
        data += struct.pack(">ii", len(inner), len(value)) + inner + value + b"\0"
    info = b"PBUF"
    if schema:
        text = json.dumps(schema).encode()
        pair = b"\x0a" + _varint(6) + b"schema" + b"\x12" + _varint(len(text)) + text
        message = b"\x0a" + _varint(len(pair)) + pair
        info += _varint(len(message)) + message
    else:
        info += b"\0"
    return _hblock(b"DATABLK*", data, gz) + _hblock(b"FILEINF2", info, gz) + b'TRABLK"$'.ljust(4096, b"\0")


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _hblock(magic: bytes, data: bytes, gz: bool) -> bytes:
    packer = zlib.compressobj(wbits=31)
    payload = packer.compress(data) + packer.flush() if gz else data
    checksum = b"\0\0\0\0"
    header = struct.pack(">8siiqBii", magic, len(payload) + 4, len(data), -1, 1, 16384, len(payload) + 33)
    return header + payload + checksum


def write(root: Path, name: str, data: bytes) -> None:
    """A file below a root, folders made."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def orc_lz4(table: pa.Table) -> bytes:
    """An ORC file whose tail is compressed with LZ4, as the Java writer does it; Arrow's stores it as it is."""
    from pyarrow import orc

    sink = io.BytesIO()
    orc.write_table(table, sink, compression="lz4", dictionary_key_size_threshold=0.8)
    data = sink.getvalue()
    script = data[-1 - data[-1] : -1]
    assert script[0] == 0x08
    assert script.endswith(b"\x82\xf4\x03\x03ORC")
    values, position, fields = {}, 0, []
    while position < len(script) - 7:
        tag, (value, position) = script[position], _number(script, position + 1)
        if tag & 7 == 2:
            fields.append((tag, _varint(value) + script[position : position + value]))
            position += value
        else:
            values[tag >> 3] = value
            fields.append((tag, b""))
    end = len(data) - 1 - len(script)
    footer, metadata = data[end - values[1] : end], data[end - values[1] - values[5] : end - values[1]]
    packed = {1: _lz4_chunk(footer), 5: _lz4_chunk(metadata)}
    again = b"".join(
        bytes([tag]) + (rest or _varint(len(packed[tag >> 3]) if tag >> 3 in packed else values[tag >> 3]))
        for tag, rest in fields
    )
    again += script[-7:]
    return data[: end - values[1] - values[5]] + packed[5] + packed[1] + again + bytes([len(again)])


def _lz4_chunk(stored: bytes) -> bytes:
    size = int.from_bytes(stored[:3], "little")
    assert size & 1
    assert len(stored) == 3 + (size >> 1)
    block = bytes(pa.compress(stored[3:], "lz4_raw", asbytes=True))
    return (len(block) * 2).to_bytes(3, "little") + block


def _number(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[position] & 127) << shift
        position, shift = position + 1, shift + 7
        if data[position - 1] < 128:
            return value, position
