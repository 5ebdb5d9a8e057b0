"""ORC: all columns through the reader, and the file's tail (footer, statistics, user metadata), which is compressed.

Tail layout: https://orc.apache.org/specification/ORCv1/, "File Tail": the last byte is the postscript's length; the
postscript names footer length (1), compression (2), metadata length (5). Compressed sections come in chunks with a
header of three bytes: length * 2 + 1 when the chunk is stored as it is.
"""

from __future__ import annotations

import zlib

import pyarrow as pa
import pyarrow.orc as orc

from pii_tracer.scan.decode.arrow import search_batch
from pii_tracer.scan.decode.cells import cell_search
from pii_tracer.scan.decode.compressed_streams import raw
from pii_tracer.scan.decode.file_kind import FileKind
from pii_tracer.scan.decode.orc_column_spans import bounds_apart, columns_of, fields, streams_apart
from pii_tracer.scan.false_cell_hits import gaps
from pii_tracer.scan.hit_collector import Collector

_STRIPES = 3
_EVENTS = frozenset({"operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"})
_NONE, _ZLIB, _RAW = 0, 1, {2: "snappy", 4: "lz4"}


def decode(data: memoryview, collector: Collector) -> None:
    """Search one ORC file.

    Raises:
        pa.ArrowException, OSError: the file cannot be read to its end.
    """
    file = orc.ORCFile(pa.BufferReader(pa.py_buffer(data)))
    for stripe in range(file.nstripes):
        search_batch(_rows_alone(file.read_stripe(stripe)), collector, "data")
    for key, value in dict(file.metadata or {}).items():
        collector.binary(key, "key-value metadata", None)
        collector.binary(value, "key-value metadata", None)
    try:
        footer, metadata, kind = _tail(data)
        columns = columns_of(footer, collector)
        apart = list(streams_apart(data, footer, columns, lambda part: _unpack(part, kind)))
        if columns:  # what is in the tail is given below
            apart.append((range(file.content_length, len(data)), frozenset().union(*columns.values())))
        sections = [
            (part, bounds_apart(part, columns, collector, footer=part is footer)) for part in (footer, metadata)
        ]
    except (IndexError, KeyError, ValueError, StopIteration, zlib.error, pa.ArrowException):
        collector.unread("ORC tail (statistics and user metadata) that cannot be decoded")
        apart, sections, footer = [], [], b""
    if file.compression == "UNCOMPRESSED":
        collector.rest(data, "raw bytes", read=[range(3, file.content_length)], apart=apart)
    else:
        # the tail as well: what is in it is given below, or said not to be
        collector.rest(data, "raw bytes", packed=[range(3, len(data) - 1 - data[-1])], apart=apart)
    _between(data, footer, file.content_length, collector)
    for section, bounds in sections:
        collector.rest(memoryview(section), "statistics", apart=bounds)


def _rows_alone(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of a table, where Hive keeps its rows as events of transactions (https://orc.apache.org/docs/acid.html)."""
    if frozenset(batch.schema.names) != _EVENTS or not pa.types.is_struct(batch.schema.field("row").type):
        return batch
    rows = batch.column("row")
    return pa.RecordBatch.from_arrays(rows.flatten(), names=[field.name for field in rows.type])


def _between(data: memoryview, footer: bytes, end: int, collector: Collector) -> None:
    """What lies between the stripes, where no reader looks."""
    stripes = []
    for number, at, stop in fields(footer, 0, len(footer)):
        if number == _STRIPES:
            told = {n: value for n, value, _ in fields(footer, at, stop)}
            stripes.append(range(told.get(1, 0), sum(told.get(n, 0) for n in (1, 2, 3, 4))))
    stripes.sort(key=lambda part: part.start)
    for gap in gaps(stripes, range(len(b"ORC"), end)) if footer else ():
        cell_search.search_unexplained(bytes(data[gap.start : gap.stop]), "raw bytes", collector)


def _tail(data: memoryview) -> tuple[bytes, bytes, int]:
    """Footer, metadata, and how they are packed."""
    size = data[-1]
    end = len(data) - 1 - size
    script = {number: value for number, value, stop in fields(bytes(data[end : end + size]), 0, size) if stop < 0}
    kind, footer, metadata = script.get(2, _NONE), script.get(1, 0), script.get(5, 0)
    if footer <= 0 or footer + metadata > end:
        raise ValueError("tail of impossible size")
    told = _unpack(bytes(data[end - footer : end]), kind)
    return told, _unpack(bytes(data[end - footer - metadata : end - footer]), kind), kind


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
    starts=(b"ORC",),
    decode=lambda data, collector, role: decode(data, collector),
)
