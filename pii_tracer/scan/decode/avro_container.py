"""Avro object container files, block by block (https://avro.apache.org/docs/1.11.1/specification/#object-container-files).

fastavro decodes the records; the container is read here, so that
a file that ends anywhere but behind a sync marker is an error.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro
import zstandard

from pii_tracer.scan.decode.compressed_streams import raw, stream_of

_HEADER: dict[str, Any] = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
_FAILURES = (struct.error, ValueError, EOFError, KeyError, IndexError, TypeError, StopIteration, OverflowError)


class AvroError(ValueError):
    """The bytes are no whole Avro file; the message says why, without content."""


@dataclass(frozen=True)
class Container:
    """An opened file. metadata: the header's entries; schema: the writer's, as JSON gives it; sync: the marker that
    ends its blocks.
    """

    metadata: Mapping[str, bytes]
    schema: Any
    _data: memoryview
    _start: int
    sync: bytes

    def records(self) -> Iterator[Any]:
        """Every record of every block.

        Raises:
            AvroError: cut short, corrupt, or packed with a codec that is not known.
        """
        parsed = _guarded(fastavro.parse_schema, self.schema, "schema")
        codec = self.metadata.get("avro.codec", b"null").decode("ascii", "replace")
        position = self._start
        while position < len(self._data):
            count, position = _long(self._data, position)
            size, position = _long(self._data, position)
            end = position + size
            if count < 0 or size < 0 or bytes(self._data[end : end + 16]) != self.sync:
                raise AvroError("an Avro block is truncated or has no sync marker")
            stream = io.BytesIO(_unpack(bytes(self._data[position:end]), codec))
            for _ in range(count):
                try:
                    yield fastavro.schemaless_reader(stream, parsed, None)
                except _FAILURES as error:
                    raise AvroError(f"Avro record that does not follow its schema: {type(error).__name__}") from None
            if stream.read(1):
                raise AvroError("an Avro block with bytes after its last record")
            position = end + 16


def open_container(data: memoryview) -> Container:
    """Read the header.

    Raises:
        AvroError: no Avro file, or cut short in its header.
    """
    stream = stream_of(data)
    header: Any = _guarded(lambda schema: fastavro.schemaless_reader(stream, schema, None), _HEADER, "header")
    schema = _guarded(json.loads, header["meta"].get("avro.schema", b""), "schema")
    return Container(header["meta"], schema, data, stream.tell(), header["sync"])


def _guarded(act: Any, argument: Any, what: str) -> Any:
    try:
        return act(argument)
    except (*_FAILURES, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
        raise AvroError(f"Avro {what} that cannot be read: {type(error).__name__}") from None


def _long(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise AvroError("an Avro block is truncated")
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), position


def _unpack(block: bytes, codec: str) -> bytes:
    try:
        if codec == "null":
            return block
        if codec == "deflate":
            return _whole(zlib.decompressobj(wbits=-15), block)
        if codec == "snappy":
            return _snappy(block)
        if codec == "zstandard":
            return _whole(zstandard.ZstdDecompressor().decompressobj(), block)
        if codec == "bzip2":
            return _whole(bz2.BZ2Decompressor(), block)
        if codec == "xz":
            return _whole(lzma.LZMADecompressor(), block)
    except (zlib.error, zstandard.ZstdError, lzma.LZMAError, OSError, EOFError, ValueError):
        raise AvroError(f"Avro block that cannot be unpacked ({codec})") from None
    raise AvroError("Avro block with a codec that is not known")


def _whole(decoder: Any, block: bytes) -> bytes:
    """What is behind the stream in a block is read by nobody: then the block is not."""
    content: bytes = decoder.decompress(block)
    # fastavro leaves a part of zlib's checksum behind the stream
    checksum = zlib.adler32(content).to_bytes(4, "big")
    if not decoder.eof or not checksum.startswith(decoder.unused_data):
        raise ValueError("a block that is not one stream")
    return content


def _snappy(block: bytes) -> bytes:
    """Raw Snappy with a CRC-32 of the content behind it."""
    content = raw("snappy", block[:-4])
    if zlib.crc32(content) != int.from_bytes(block[-4:], "big"):
        raise AvroError("Avro block with a wrong checksum")
    return content
