"""ORC: all columns through the reader, and the file's tail (footer, statistics, user metadata), which is compressed.

Tail layout: https://orc.apache.org/specification/ORCv1/, "File Tail": the last byte is the postscript's length; the
postscript names footer length (1), compression (2), metadata length (5). Compressed sections come in chunks with a
header of three bytes: length * 2 + 1 when the chunk is stored as it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.orc as orc

from pii_tracer.scan.decode.arrow import search_batch
from pii_tracer.scan.decode.file_kind import FileKind
from pii_tracer.scan.decode.streams import raw
from pii_tracer.scan.hit_collector import Collector

_NONE, _ZLIB, _RAW = 0, 1, {2: "snappy", 4: "lz4"}


def decode(data: memoryview, collector: Collector) -> None:
    """Search one ORC file.

    Raises:
        pa.ArrowException, OSError: the file cannot be read to its end.
    """
    file = orc.ORCFile(pa.BufferReader(pa.py_buffer(data)))
    for stripe in range(file.nstripes):
        search_batch(file.read_stripe(stripe), collector, "data")
    if file.compression == "UNCOMPRESSED":
        collector.rest(data, "raw bytes", read=[range(3, file.content_length)])
    else:
        # the tail as well: what is in it is given below, or said not to be
        collector.rest(data, "raw bytes", packed=[range(3, len(data) - 1 - data[-1])])
    try:
        for section in _tail(data):
            collector.rest(memoryview(section), "statistics")
    except (IndexError, ValueError, zlib.error, pa.ArrowException):
        collector.unread("ORC tail (statistics and user metadata) that cannot be decoded")


def _tail(data: memoryview) -> Iterator[bytes]:
    size = data[-1]
    end = len(data) - 1 - size
    script = dict(_varints(bytes(data[end : end + size])))
    kind, footer, metadata = script.get(2, _NONE), script.get(1, 0), script.get(5, 0)
    if footer <= 0 or footer + metadata > end:
        raise ValueError("tail of impossible size")
    yield _unpack(bytes(data[end - footer : end]), kind)
    yield _unpack(bytes(data[end - footer - metadata : end - footer]), kind)


def _varints(data: bytes) -> Iterator[tuple[int, int]]:
    """Number fields of a protobuf message; others are stepped over."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        value, position = _varint(data, position)
        if tag & 7 == 2:
            position += value
        else:
            yield tag >> 3, value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def _unpack(data: bytes, kind: int) -> bytes:
    if kind == _NONE:
        return data
    out, position = b"", 0
    while position < len(data):
        head = int.from_bytes(data[position : position + 3], "little")
        chunk = data[position + 3 : position + 3 + (head >> 1)]
        out += chunk if head & 1 else _chunk(chunk, kind)
        position += 3 + (head >> 1)
    return out


def _chunk(chunk: bytes, kind: int) -> bytes:
    if kind == _ZLIB:
        return zlib.decompress(chunk, wbits=-15)
    if kind == 5:  # ZSTD
        with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
            return bytes(stream.read())
    if kind not in _RAW:
        raise ValueError("compression of the tail is not known")
    return raw(_RAW[kind], chunk)


KIND = FileKind(
    name="orc",
    rank=1,
    fits=lambda data: bytes(data[:3]) == b"ORC",
    decode=lambda data, collector, role: decode(data, collector),
)
