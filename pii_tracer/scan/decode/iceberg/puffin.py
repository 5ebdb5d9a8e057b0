"""Puffin: blobs and footer (https://iceberg.apache.org/puffin-spec/). Deletion vectors hold row positions only."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pyarrow as pa

from pii_tracer.scan.decode.file_kind import FileKind
from pii_tracer.scan.hit_collector import Collector

MAGIC = b"PFA1"
_VECTOR = "deletion-vector-v1"
_BITMAP = b"\xd1\xd3\x39\x64"


class PuffinError(ValueError):
    """The bytes are no Puffin file this reader knows."""


def decode(data: memoryview, collector: Collector) -> None:
    """Search one Puffin file.

    Raises:
        PuffinError: cut short or of another layout.
    """
    collector.raw(data, "raw bytes")
    footer = _footer(data)
    collector.text(json.dumps(footer, ensure_ascii=False), "puffin footer")
    for blob in footer.get("blobs", ()):
        start, size = blob.get("offset"), blob.get("length")
        if not isinstance(start, int) or not isinstance(size, int) or start + size > len(data):
            raise PuffinError("Puffin blob of impossible size")
        content = bytes(data[start : start + size])
        if blob.get("compression-codec"):
            content = _unpack(content, blob["compression-codec"])
        collector.raw(content, "puffin blob")
        if blob.get("type") != _VECTOR or not is_vector(content):
            collector.unread(
                "a Puffin blob that is not a deletion vector; it may contain hashes of values (a sketch), or other data"
            )


def is_vector(content: bytes) -> bool:
    """Whether a blob is a bitmap of row positions from end to end: its size, its magic, and its CRC-32
    (https://iceberg.apache.org/puffin-spec/#deletion-vector-v1-blob-type)."""
    size = int.from_bytes(content[:4], "big")
    body, checksum = content[4 : 4 + size], content[4 + size :]
    return body[:4] == _BITMAP and zlib.crc32(body).to_bytes(4, "big") == checksum


def _footer(data: memoryview) -> dict[str, Any]:
    if len(data) < 16 or bytes(data[-4:]) != MAGIC:
        raise PuffinError("Puffin file without its magic bytes at the end")
    flags = int.from_bytes(data[-8:-4], "little")
    size = int.from_bytes(data[-12:-8], "little", signed=True)
    if size < 0 or size + 16 > len(data):
        raise PuffinError("Puffin footer of impossible size")
    payload = bytes(data[-12 - size : -12])
    if flags & 1:
        payload = _unpack(payload, "lz4")
    try:
        footer = json.loads(payload)
    except ValueError:
        raise PuffinError("Puffin footer that is not JSON") from None
    if not isinstance(footer, dict):
        raise PuffinError("Puffin footer that is not an object")
    return footer


def _unpack(content: bytes, codec: str) -> bytes:
    if codec not in ("lz4", "zstd"):
        raise PuffinError("Puffin blob with an unknown compression")
    try:
        with pa.CompressedInputStream(pa.BufferReader(content), codec) as stream:
            return bytes(stream.read())
    except (pa.ArrowException, OSError):
        raise PuffinError("Puffin blob that cannot be unpacked") from None


KIND = FileKind(
    name="puffin",
    rank=4,
    fits=lambda data: bytes(data[: len(MAGIC)]) == MAGIC,
    starts=(MAGIC,),
    decode=lambda data, collector, role: decode(data, collector),
    errors=(PuffinError,),
)
