"""Every place the scanner claims to read: red with the person in it, green with the bystander's twin."""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import io
import json
import lzma
import struct
import urllib.parse
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from tests.scan.support import (
    BOTH,
    OTHER_PHONE,
    OTHER_USER,
    PERSON_SCHEMA,
    PHONE,
    USER,
    avro,
    avro_value,
    hfile,
    hudi_block,
    hudi_records,
    parquet,
    places,
    scan,
)

Place = Callable[[str, int], tuple[str, bytes]]
FILLER = ["+91 90000 00001", "+91 99999 99998"]


def _column(values: list[Any], kind: pa.DataType, **options: Any) -> bytes:
    return parquet(pa.table({"c": pa.array(values, kind)}), **options)


def _data_page(phone: str, user: int) -> tuple[str, bytes]:
    values = [FILLER[0], phone, FILLER[1]]
    return "a.parquet", _column(values, pa.string(), use_dictionary=False, compression="zstd", write_statistics=False)


def _dictionary_page(phone: str, user: int) -> tuple[str, bytes]:
    return "a.parquet", _column([phone] * 50, pa.string(), compression="zstd", write_statistics=False)


def _statistics_only(phone: str, user: int) -> tuple[str, bytes]:
    """Hand-made: the pages hold somebody else, only the footer's bounds hold the value."""
    data = _column([FILLER[0]] * 3, pa.string(), use_dictionary=False, compression="zstd")
    assert data.count(FILLER[0].encode()) >= 2
    return "a.parquet", data.replace(FILLER[0].encode(), phone.encode())


def _key_value(phone: str, user: int) -> tuple[str, bytes]:
    table = pa.table({"c": [1]}).replace_schema_metadata({"note": f"for {phone}"})
    return "a.parquet", parquet(table, compression="zstd")


def _struct(phone: str, user: int) -> tuple[str, bytes]:
    kind = pa.struct([("inner", pa.struct([("phone", pa.string())]))])
    return "a.parquet", _column([{"inner": {"phone": phone}}], kind, compression="zstd", write_statistics=False)


def _list(phone: str, user: int) -> tuple[str, bytes]:
    return "a.parquet", _column([[FILLER[0], phone]], pa.list_(pa.string()), compression="zstd", write_statistics=False)


def _map_key(phone: str, user: int) -> tuple[str, bytes]:
    kind = pa.map_(pa.string(), pa.int32())
    return "a.parquet", _column([[(phone, 1)]], kind, compression="zstd", write_statistics=False)


def _map_value(phone: str, user: int) -> tuple[str, bytes]:
    kind = pa.map_(pa.string(), pa.int64())
    return "a.parquet", _column([[("k", user)]], kind, compression="zstd", write_statistics=False)


def _bigint(phone: str, user: int) -> tuple[str, bytes]:
    return "a.parquet", _column([1, user], pa.int64(), write_statistics=False)


def _decimal(phone: str, user: int) -> tuple[str, bytes]:
    return "a.parquet", _column([Decimal(user)], pa.decimal128(20, 2), write_statistics=False)


def _double(phone: str, user: int) -> tuple[str, bytes]:
    return "a.parquet", _column([float(user)], pa.float64(), write_statistics=False)


def _number_statistics(phone: str, user: int) -> tuple[str, bytes]:
    data = _column([77] * 3, pa.int64(), use_dictionary=False, compression="zstd")
    return "a.parquet", data.replace(struct.pack("<q", 77), struct.pack("<q", user))


def _payload(phone: str, user: int) -> tuple[str, bytes]:
    payload = json.dumps({"user_id": user, "amount": "12.50"})
    return "a.parquet", _column([payload], pa.string(), compression="zstd", write_statistics=False)


def _binary(phone: str, user: int) -> tuple[str, bytes]:
    return "a.parquet", _column([b"\x00\xff" + phone.encode()], pa.binary(), compression="zstd")


def _orc(compression: str) -> Place:
    def make(phone: str, user: int) -> tuple[str, bytes]:
        import io

        from pyarrow import orc

        sink = io.BytesIO()
        orc.write_table(pa.table({"phone": [phone], "id": [user]}), sink, compression=compression)
        return "a.orc", sink.getvalue()

    return make


def _avro(codec: str) -> Place:
    def make(phone: str, user: int) -> tuple[str, bytes]:
        return "a.avro", avro(PERSON_SCHEMA, [{"phone": phone, "id": user}], codec=codec)

    return make


MANIFEST: dict[str, Any] = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int"},
        {
            "name": "data_file",
            "type": {
                "type": "record",
                "name": "r2",
                "fields": [
                    {"name": "file_path", "type": "string"},
                    {"name": "file_size_in_bytes", "type": "long"},
                    {
                        "name": "lower_bounds",
                        "type": {
                            "type": "array",
                            "items": {
                                "type": "record",
                                "name": "k1",
                                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
                            },
                        },
                    },
                ],
            },
        },
    ],
}
TABLE_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "user_id", "type": "long"},
            {
                "id": 2,
                "name": "payer",
                "type": {"type": "struct", "fields": [{"id": 3, "name": "phone", "type": "string"}]},
            },
        ],
    }
)


def manifest(status: int, bounds: dict[int, bytes]) -> bytes:
    """An Iceberg manifest with one entry."""
    items = [{"key": key, "value": value} for key, value in bounds.items()]
    file = {"file_path": "data/a.parquet", "file_size_in_bytes": USER, "lower_bounds": items}
    return avro(MANIFEST, [{"status": status, "data_file": file}], {"schema": TABLE_SCHEMA}, "deflate")


def _manifest_bound(status: int) -> Place:
    def make(phone: str, user: int) -> tuple[str, bytes]:
        return "metadata/m0.avro", manifest(status, {1: struct.pack("<q", user), 3: phone.encode()})

    return make


def _packed(pack: Callable[[bytes], bytes], suffix: str) -> Place:
    def make(phone: str, user: int) -> tuple[str, bytes]:
        return f"part-0.csv{suffix}", pack(f"phone,user_id\n{FILLER[0]},1\n{phone},{user}\n".encode())

    return make


def _lz4(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def _hadoop_snappy(data: bytes) -> bytes:
    chunk = pa.compress(data, "snappy", asbytes=True)
    return struct.pack(">ii", len(data), len(chunk)) + chunk


def _delta_stats(phone: str, user: int) -> str:
    stats = {"numRecords": 2, "minValues": {"phone": FILLER[0], "id": 1}, "maxValues": {"phone": phone, "id": user}}
    return json.dumps(stats)


def _delta_json(phone: str, user: int) -> tuple[str, bytes]:
    add = {"add": {"path": "part-0.parquet", "size": USER, "stats": _delta_stats(phone, user)}}
    return "_delta_log/00000000000000000001.json", (json.dumps({"commitInfo": {}}) + "\n" + json.dumps(add)).encode()


def _delta_crc(phone: str, user: int) -> tuple[str, bytes]:
    body = {"tableSizeBytes": USER, "allFiles": [{"path": "p", "stats": _delta_stats(phone, user)}]}
    return "_delta_log/00000000000000000001.crc", json.dumps(body).encode()


def _delta_checkpoint(phone: str, user: int) -> tuple[str, bytes]:
    kind = pa.struct([("path", pa.string()), ("size", pa.int64()), ("stats", pa.string())])
    row = {"path": "p", "size": USER, "stats": _delta_stats(phone, user)}
    table = pa.table({"add": pa.array([row], kind)})
    return "_delta_log/2.checkpoint.parquet", parquet(table, compression="zstd", write_statistics=False)


def _delta_predicate(phone: str, user: int) -> tuple[str, bytes]:
    info = {"commitInfo": {"operation": "DELETE", "operationParameters": {"predicate": f'["(id#192L = {user})"]'}}}
    return "_delta_log/00000000000000000002.json", json.dumps(info).encode()


def _log_data(phone: str, user: int) -> tuple[str, bytes]:
    content = hudi_records(PERSON_SCHEMA, [{"phone": phone, "id": user}])
    return ".f1_2026.log.1_0-1-1", hudi_block(3, content, PERSON_SCHEMA)


def _log_parquet(phone: str, user: int) -> tuple[str, bytes]:
    content = parquet(pa.table({"phone": [phone], "id": [user]}), compression="zstd", write_statistics=False)
    return ".f1_2026.log.1_0-1-1", hudi_block(5, content, PERSON_SCHEMA)


def _log_delete(phone: str, user: int) -> tuple[str, bytes]:
    payload = b"\x02\x02" + bytes([len(phone) * 2]) + phone.encode() + b"\x02\x00\x04\x00"
    return ".f1_2026.log.2_0-1-1", hudi_block(1, struct.pack(">ii", 3, len(payload)) + payload)


def _log_delete_kryo(phone: str, user: int) -> tuple[str, bytes]:
    text = phone.encode()
    payload = b"\x01\x00" + text[:-1] + bytes([text[-1] | 128])
    return ".f1_2026.log.2_0-1-1", hudi_block(1, struct.pack(">ii", 2, len(payload)) + payload)


def _log_delete_number(phone: str, user: int) -> tuple[str, bytes]:
    payload = b"\x02\x02" + bytes([14]) + str(user).encode() + b"\x02\x00\x04\x00"
    return ".f1_2026.log.2_0-1-1", hudi_block(1, struct.pack(">ii", 3, len(payload)) + payload)


def _hfile_key(gz: bool) -> Place:
    def make(phone: str, user: int) -> tuple[str, bytes]:
        return ".hoodie/metadata/record_index/r.hfile", hfile([(phone.encode(), b"")], None, gz=gz)

    return make


COLUMN_STATS: dict[str, Any] = {
    "type": "record",
    "name": "HoodieMetadataRecord",
    "fields": [
        {"name": "key", "type": "string"},
        {
            "name": "ColumnStatsMetadata",
            "type": {
                "type": "record",
                "name": "HoodieMetadataColumnStats",
                "fields": [
                    {"name": "columnName", "type": "string"},
                    {
                        "name": "maxValue",
                        "type": {
                            "type": "record",
                            "name": "LongWrapper",
                            "fields": [{"name": "value", "type": "long"}],
                        },
                    },
                    {"name": "totalSize", "type": "long"},
                ],
            },
        },
    ],
}


def column_stats(user: int) -> bytes:
    """A record of the `column_stats` partition."""
    stats = {"columnName": "user_id", "maxValue": {"value": user}, "totalSize": USER}
    return avro_value(COLUMN_STATS, {"key": "k", "ColumnStatsMetadata": stats})


def _hfile_stats(phone: str, user: int) -> tuple[str, bytes]:
    return ".hoodie/metadata/column_stats/c.hfile", hfile([(b"k", column_stats(user))], COLUMN_STATS, gz=True)


def _log_hfile(phone: str, user: int) -> tuple[str, bytes]:
    inner = hfile([(b"k", column_stats(user))], None, gz=True)
    return ".hoodie/metadata/column_stats/.c_2026.log.1_0-1-1", hudi_block(4, inner, COLUMN_STATS)


def _puffin(phone: str, user: int) -> tuple[str, bytes]:
    vector = b"\xd1\xd3\x39\x64" + phone.encode()
    blob = struct.pack(">I", len(vector)) + vector + zlib.crc32(vector).to_bytes(4, "big")
    blob = zstandard.compress(blob)
    footer = json.dumps(
        {"blobs": [{"type": "deletion-vector-v1", "offset": 4, "length": len(blob), "compression-codec": "zstd"}]}
    ).encode()
    tail = b"PFA1" + footer + struct.pack("<ii", len(footer), 0) + b"PFA1"
    return "data/a.puffin", b"PFA1" + blob + tail


def _text(form: Callable[[str], str], name: str = "notes.log") -> Place:
    return lambda phone, user: (name, f"start {form(phone)} end".encode())


def _embedded_base64(shift: int) -> Callable[[str], str]:
    return lambda phone: base64.b64encode(b"x" * shift + phone.encode() + b" more").decode()


PLACES: dict[str, Place] = {
    "parquet data page": _data_page,
    "parquet dictionary page": _dictionary_page,
    "parquet statistics only": _statistics_only,
    "parquet number statistics only": _number_statistics,
    "parquet key-value metadata": _key_value,
    "parquet nested struct": _struct,
    "parquet list": _list,
    "parquet map key": _map_key,
    "parquet map value": _map_value,
    "parquet bigint": _bigint,
    "parquet decimal": _decimal,
    "parquet double": _double,
    "parquet json payload": _payload,
    "parquet binary": _binary,
    "orc zlib": _orc("zlib"),
    "orc snappy": _orc("snappy"),
    "orc zstd": _orc("zstd"),
    "avro deflate": _avro("deflate"),
    "avro zstandard": _avro("zstandard"),
    "avro snappy": _avro("snappy"),
    "iceberg manifest bound": _manifest_bound(1),
    "iceberg DELETED manifest entry": _manifest_bound(2),
    "csv": _packed(bytes, ""),
    "csv gzip": _packed(gzip.compress, ".gz"),
    "csv gzip of several members": _packed(lambda d: gzip.compress(d[:20]) + gzip.compress(d[20:]), ".gz"),
    "csv bzip2": _packed(bz2.compress, ".bz2"),
    "csv xz": _packed(lzma.compress, ".xz"),
    "csv zstd": _packed(zstandard.compress, ".zst"),
    "csv zstd of several frames": _packed(lambda d: zstandard.compress(d[:20]) + zstandard.compress(d[20:]), ".zst"),
    "csv lz4": _packed(_lz4, ".lz4"),
    "csv hadoop snappy": _packed(_hadoop_snappy, ".snappy"),
    "json lines": lambda phone, user: ("a.json", f'{{"phone": "{phone}"}}\n{{"id": {user}}}\n'.encode()),
    "json with escapes": lambda p, u: ("a.json", json.dumps({"phone": p}).replace("+", "\\u002b").encode()),
    "delta log statistics": _delta_json,
    "delta crc": _delta_crc,
    "delta checkpoint statistics": _delta_checkpoint,
    "delta predicate": _delta_predicate,
    "hudi log avro block": _log_data,
    "hudi log parquet block": _log_parquet,
    "hudi log delete block": _log_delete,
    "hudi log delete block, kryo": _log_delete_kryo,
    "hudi log delete block, number": _log_delete_number,
    "hudi log hfile block": _log_hfile,
    "hfile key, gzip": _hfile_key(True),
    "hfile key, none": _hfile_key(False),
    "hfile column statistics": _hfile_stats,
    "puffin blob": _puffin,
    "text": _text(str),
    "text, hidden file": _text(str, "._SUCCESS"),
    "text, upper case": _text(str.upper),
    "url-encoded": _text(lambda p: urllib.parse.quote(p, safe="")),
    "url-encoded, plus": _text(urllib.parse.quote_plus),
    "hex": _text(lambda p: p.encode().hex()),
    "md5": _text(lambda p: hashlib.md5(p.encode()).hexdigest()),
    "sha1": _text(lambda p: hashlib.sha1(p.encode()).hexdigest()),
    "sha256, upper case": _text(lambda p: hashlib.sha256(p.encode()).hexdigest().upper()),
    "base64, alignment 0": _text(_embedded_base64(0)),
    "base64, alignment 1": _text(_embedded_base64(1)),
    "base64, alignment 2": _text(_embedded_base64(2)),
    "utf-16": lambda phone, user: ("a.txt", phone.encode("utf-16")),
    "csv in windows-1252": lambda phone, user: (
        "a.csv",
        f"id,name,phone\n{user},Zoë – “Zo”,{phone}\n".encode("cp1252"),
    ),
    "text in iso 8859-1": lambda phone, user: ("a.txt", f"Zoë\x81 {phone} {user}".encode("latin-1")),
    "object key": lambda phone, user: (f"archive/phone={urllib.parse.quote(phone)}/a.txt", b"nothing"),
    "partition folder": lambda phone, user: (f"t/user_id={user}/a.txt", b"nothing"),
}


@pytest.mark.parametrize("place", PLACES)
def test_red_with_the_person_green_with_the_twin(place: str) -> None:
    name, data = PLACES[place](PHONE, USER)
    red = scan(name, data)
    assert red.hits, place
    assert not red.unread
    name, data = PLACES[place](OTHER_PHONE, OTHER_USER)
    green = scan(name, data)
    assert not green.hits, (place, green.hits)
    assert not green.unread


@pytest.mark.parametrize("place", PLACES)
def test_no_value_in_what_a_scan_says(place: str) -> None:
    name, data = PLACES[place](PHONE, USER)
    said = scan(name, data).model_dump_json()
    assert PHONE not in said
    assert urllib.parse.quote(PHONE) not in said
    assert f"={USER}/" not in said
    assert PHONE not in repr(BOTH)


def test_bounds_are_attributed_to_their_columns() -> None:
    hits = places(scan("metadata/m0.avro", manifest(2, {1: struct.pack("<q", USER), 3: PHONE.encode()})))
    assert ("user_id", "manifest entry (DELETED), bounds", "user_id") in hits
    assert ("phone", "manifest entry (DELETED), bounds", "payer.phone") in hits
    assert ("user_id", "statistics", "id") in places(scan(*_delta_json(PHONE, USER)))
    assert ("user_id", "statistics", "id") in places(scan(*_delta_checkpoint(PHONE, USER)))
    assert ("user_id", "statistics", "user_id") in places(scan(*_hfile_stats(PHONE, USER)))
    assert ("user_id", "data", "c.$.user_id") in places(scan(*_payload(PHONE, USER)))
    assert ("user_id", "data", "user_id") in places(scan(*_packed(gzip.compress, ".gz")(PHONE, USER)))
    assert ("user_id", "file path", "user_id") in places(scan(f"t/user_id={USER}/a.txt", b""))


def test_rows_of_a_transactional_table_of_hives_have_its_columns() -> None:
    """Numbers of transactions and rows are nobody's (https://orc.apache.org/docs/acid.html)."""
    events = {
        "operation": pa.array([0], pa.int32()),
        "originalTransaction": pa.array([USER], pa.int64()),
        "bucket": pa.array([536870912], pa.int32()),
        "rowId": pa.array([USER], pa.int64()),
        "currentTransaction": pa.array([USER], pa.int64()),
        "row": pa.array([{"who": OTHER_USER, "phone": PHONE}]),
    }
    assert {place for place in places(scan("bucket_00000", orc_of(pa.table(events)))) if place[1] == "data"} == {
        ("phone", "data", "phone")
    }
    other = pa.table({key: column for key, column in events.items() if key != "rowId"})
    assert ("phone", "data", "row.phone") in places(scan("bucket_00000", orc_of(other)))


def orc_of(table: pa.Table) -> bytes:
    """An ORC file's bytes."""
    from pyarrow import orc

    sink = io.BytesIO()
    orc.write_table(table, sink)
    return sink.getvalue()
