"""Arrow's own files and streams, Feather's second version among them
(https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from pii_tracer.scan.decode.arrow import search_batch, search_leaf, unused_entries
from pii_tracer.scan.decode.cells.hidden_arrow_values import search_hidden
from pii_tracer.scan.decode.compressed_streams import stream_of
from pii_tracer.scan.decode.file_kind import FileKind, Part
from pii_tracer.scan.decode.parquet_footer import search_entry
from pii_tracer.scan.decode.table_metadata import Role
from pii_tracer.scan.hit_collector import Collector

_FILE, _STREAM = b"ARROW1\0\0", b"\xff\xff\xff\xff"
_LARGEST = 1 << 28


def _fits(data: memoryview) -> bool:
    if bytes(data[:8]) == _FILE:
        return True
    # a stream begins with the length of its schema, a flatbuffer whose root lies behind a small offset
    length, root = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8))
    return bytes(data[:4]) == _STREAM and 0 < length < min(len(data), _LARGEST) and length % 8 == 0 and root < length


def decode(data: memoryview, collector: Collector, role: Role) -> None:
    """Search every batch, and all bytes as they stand: metadata, and what no batch shows.

    Raises:
        pa.ArrowException, OSError: it cannot be read to its end.
    """
    if bytes(data[:8]) == _FILE:
        with pa.ipc.open_file(stream_of(data)) as file:
            _metadata(file.schema, collector)
            for number in range(file.num_record_batches):
                batch, beside = file.get_batch_with_custom_metadata(number)
                _batch(batch, beside, collector)
    else:
        with pa.ipc.open_stream(stream_of(data)) as stream:
            _metadata(stream.schema, collector)
            for batch, beside in stream.iter_batches_with_custom_metadata():
                _batch(batch, beside, collector)
    collector.rest(data, "raw bytes", read=[range(len(data))])


def _metadata(schema: pa.Schema, collector: Collector) -> None:
    """Entries of the schema and of its fields at any depth: their values may be compressed."""
    _entries(schema.metadata, collector)
    fields = list(schema)
    while fields:
        field = fields.pop()
        _entries(field.metadata, collector)
        fields += [field.type.field(index) for index in range(field.type.num_fields)]


def _entries(metadata: Mapping[bytes, bytes] | None, collector: Collector) -> None:
    for value in (metadata or {}).values():
        search_entry(value, collector)


def _batch(batch: pa.RecordBatch, beside: Mapping[bytes, bytes] | None, collector: Collector) -> None:
    _entries(beside, collector)
    search_batch(batch, collector, "data")
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for label, entries in unused_entries(column, name):
            search_leaf(entries, collector, "dictionary page", label)
    search_hidden(batch, collector)


def _behind(data: memoryview) -> Iterator[Part]:
    """What stands behind the end of a stream; a file ends with its magic."""
    if bytes(data[:8]) == _FILE:
        return
    source = stream_of(data)
    with pa.ipc.open_stream(source) as stream:
        for _ in stream:
            pass
        end = source.tell()
    if end < len(data):
        yield Part("", (data[end:],))


KIND = FileKind(name="arrow ipc", rank=10, fits=_fits, decode=decode, parts=_behind, starts=(_FILE, _STREAM))
