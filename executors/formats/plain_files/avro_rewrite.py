"""Avro container files without a person's rows: the other records are kept byte for byte, block by block.

Header, schema, codec and sync marker stay as they are; blocks without the person are copied as they stand. Where a hold
keeps columns the person's records stay: fields that are held byte for byte, the others as their union's null.
https://avro.apache.org/docs/1.11.1/specification/#object-container-files
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import cramjam
import fastavro
import zstandard

from executors.formats.plain_files.arrow_match import BY_HAND, Keys, RowsError, missing_terms
from executors.formats.plain_files.compression import unsnapped
from executors.formats.plain_files.row_masking import places
from executors.formats.plain_files.row_match import has_column, is_persons
from executors.formats.plain_files.stored_file import Stored
from pii_tracer.model.datasets import Match
from pii_tracer.model.plan import Mask

_HEADER: dict[str, Any] = {
    "type": "record",
    "name": "org.apache.avro.file.Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}


@dataclass(frozen=True)
class _Head:
    """The opened file's header. raw: its bytes as they stand."""

    raw: bytes
    schema: Any
    columns: list[str]
    codec: str
    sync: bytes


@dataclass(frozen=True)
class _Block:
    """A block's bytes as they stand, and its records with their own bytes."""

    raw: bytes
    records: tuple[tuple[bytes, Any], ...]


def survey(path: Stored, match: Match, keys: Keys, mask: Mask | None = None) -> tuple[int, int, tuple[str, ...]]:
    """Rows before and those that stay as they are, and labels of match terms whose column the schema does not have.

    Raises:
        RowsError: not a whole Avro file of records, an unknown codec, or no column of the match exists.
    """
    before = after = 0
    with path.open("rb") as stream:
        head = _head(stream)
        missing = missing_terms(match, has_column(head.columns, match))
        for block in _blocks(stream, head):
            before += len(block.records)
            after += sum(_kept(head, record, match, keys, mask) == record[0] for record in block.records)
    return before, after, missing


def write(path: Stored, target: Stored, match: Match, keys: Keys, mask: Mask | None = None) -> None:
    """Write the records that stay; a block that loses all of its records goes."""
    with path.open("rb") as stream, target.open("wb") as out:
        head = _head(stream)
        out.write(head.raw)
        for block in _blocks(stream, head):
            kept = [data for record in block.records if (data := _kept(head, record, match, keys, mask)) is not None]
            if kept == [data for data, _ in block.records]:
                out.write(block.raw)
            elif kept:
                packed = _pack(b"".join(kept), head.codec)
                out.write(_number(len(kept)) + _number(len(packed)) + packed + head.sync)


def compare(path: Stored, target: Stored, match: Match, keys: Keys, mask: Mask | None = None) -> None:
    """Read back: the same header, and the same records byte for byte in the same order.

    Raises:
        RowsError: something differs.
    """
    with path.open("rb") as old, target.open("rb") as new:
        head, written = _head(old), _head(new)
        if head != written:
            raise RowsError("the header of the rewritten file differs from the original", todo=BY_HAND)
        records = (data for block in _blocks(new, written) for data, _ in block.records)
        for block in _blocks(old, head):
            for record in block.records:
                data = _kept(head, record, match, keys, mask)
                if data is not None and next(records, None) != data:
                    raise RowsError("the rewritten file does not contain all rows that must be kept", todo=BY_HAND)
        if next(records, None) is not None:
            raise RowsError("the rewritten file has rows that the original did not have", todo=BY_HAND)


def _kept(head: _Head, record: tuple[bytes, Any], match: Match, keys: Keys, mask: Mask | None) -> bytes | None:
    """What takes the place of a record: itself, None for nothing, or what is held of it."""
    data, row = record
    if not is_persons(row, match, keys):
        return data
    return None if mask is None else _blanked(head, data, row, mask)


def _blanked(head: _Head, data: bytes, row: Any, mask: Mask) -> bytes:
    """The record with nulls for what goes, read back.

    Raises:
        RowsError: a field cannot be null, the plan does not name one, or the record would be read otherwise.
    """
    gone = places(head.columns, mask)
    fields = head.schema["fields"]
    kinds = [field["type"] if isinstance(field["type"], list) else [] for field in fields]
    stuck = [head.columns[n] for n in gone if "null" not in kinds[n]]
    if stuck:
        raise RowsError(
            f"{', '.join(stuck)} cannot become NULL in this file: the type is not a union with null", todo="plan again"
        )
    new, start = b"", 0
    for number in range(len(fields)):
        # a field can use a type that one before it names: read them together
        first = {"type": "record", "name": head.schema["name"], "fields": fields[: number + 1]}
        stream = io.BytesIO(data)
        fastavro.schemaless_reader(stream, first, None)
        new += _number(kinds[number].index("null")) if number in gone else data[start : stream.tell()]
        start = stream.tell()
    wanted = {name: None if n in gone else row[name] for n, name in enumerate(head.columns)}
    # NaN is not equal to itself: compare what prints alike
    if [repr(again) for _, again in _records(new, 1, head.schema)] != [repr(wanted)]:
        raise RowsError("an Avro record cannot be parsed reliably", todo=BY_HAND)
    return new


def _head(stream: IO[bytes]) -> _Head:
    header: Any = fastavro.schemaless_reader(stream, _HEADER, None)
    size = stream.tell()
    if header["magic"] != b"Obj\x01":
        raise RowsError("the file is not an Avro container", todo=BY_HAND)
    stream.seek(0)
    schema = json.loads(header["meta"]["avro.schema"])
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise RowsError("the schema of the Avro file is not a record", todo=BY_HAND)
    return _Head(
        raw=stream.read(size),
        schema=fastavro.parse_schema(schema),
        columns=[field["name"] for field in schema["fields"]],
        codec=header["meta"].get("avro.codec", b"null").decode("ascii"),
        sync=header["sync"],
    )


def _blocks(stream: IO[bytes], head: _Head) -> Iterator[_Block]:
    while True:
        start = stream.tell()
        if not stream.read(1):
            return
        stream.seek(start)
        count, size = _long(stream), _long(stream)
        packed, sync = stream.read(size), stream.read(16)
        end = stream.tell()
        if count < 0 or size < 0 or len(packed) != size or sync != head.sync:
            raise RowsError("the Avro file is truncated", todo=BY_HAND)
        records = tuple(_records(_unpack(packed, head.codec), count, head.schema))
        stream.seek(start)
        yield _Block(stream.read(end - start), records)


def _records(data: bytes, count: int, schema: Any) -> Iterator[tuple[bytes, Any]]:
    stream = io.BytesIO(data)
    for _ in range(count):
        start = stream.tell()
        row: Any = fastavro.schemaless_reader(stream, schema, None)
        yield data[start : stream.tell()], row
    if stream.tell() != len(data):
        raise RowsError("an Avro block contains more bytes than its records", todo=BY_HAND)


def _long(stream: IO[bytes]) -> int:
    value = shift = 0
    while True:
        byte = stream.read(1)
        if not byte or shift > 63:
            raise RowsError("the Avro file is truncated", todo=BY_HAND)
        value |= (byte[0] & 127) << shift
        shift += 7
        if byte[0] < 128:
            return (value >> 1) ^ -(value & 1)


def _number(value: int) -> bytes:
    value, out = value << 1, b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def _unpack(data: bytes, codec: str) -> bytes:
    if codec == "null":
        return data
    if codec == "deflate":
        return zlib.decompress(data, wbits=-15)
    if codec == "snappy":
        return _unsnap(data)
    if codec == "zstandard":
        return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(data))
    if codec == "bzip2":
        return bz2.decompress(data)
    if codec == "xz":
        return lzma.decompress(data)
    raise RowsError("the Avro file's codec is not supported", todo=BY_HAND)


def _unsnap(data: bytes) -> bytes:
    """Raw Snappy with the CRC-32 of the plain bytes behind it."""
    plain = unsnapped(data[:-4])
    if zlib.crc32(plain) != int.from_bytes(data[-4:], "big"):
        raise RowsError("an Avro block has a wrong checksum", todo=BY_HAND)
    return plain


def _pack(data: bytes, codec: str) -> bytes:
    if codec == "deflate":
        packer = zlib.compressobj(wbits=-15)
        return packer.compress(data) + packer.flush()
    if codec == "snappy":
        return bytes(cramjam.snappy.compress_raw(data)) + zlib.crc32(data).to_bytes(4, "big")
    if codec == "zstandard":
        return zstandard.ZstdCompressor().compress(data)
    if codec == "bzip2":
        return bz2.compress(data)
    return lzma.compress(data) if codec == "xz" else data
