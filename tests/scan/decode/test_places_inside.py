"""Further places that docs/verifier.md names: red with the person in it, green with the bystander's twin."""

from __future__ import annotations

import gzip
import io
import json
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.scan.decode.test_places import FILLER, MANIFEST, TABLE_SCHEMA
from tests.scan.support import (
    HASHES,
    LONG,
    OTHER_PHONE,
    OTHER_USER,
    PERSON_SCHEMA,
    PHONE,
    USER,
    avro,
    build_patterns,
    hudi_block,
    hudi_records,
    orc_lz4,
    parquet,
    scan,
)

Place = Callable[[str, int], tuple[str, bytes]]


def _pages(codec: str, version: str) -> Place:
    def make(phone: str, user: int) -> tuple[str, bytes]:
        table = pa.table({"c": [FILLER[0], phone, FILLER[1]], "n": [1, user, 2]})
        options = {"compression": codec, "data_page_version": version, "use_dictionary": False}
        return "a.parquet", parquet(table, write_statistics=False, **options)

    return make


def _page_index(phone: str, user: int) -> tuple[str, bytes]:
    """Hand-made: only the bounds in the column index, which lies behind the last page, are the person's."""
    data = parquet(pa.table({"c": [FILLER[0]] * 3}), compression="zstd", use_dictionary=False, write_page_index=True)
    (chunk,) = [pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)]
    end = chunk.data_page_offset + chunk.total_compressed_size
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert data[end:footer].count(FILLER[0].encode()) == 2
    return "a.parquet", data[:end] + data[end:footer].replace(FILLER[0].encode(), phone.encode()) + data[footer:]


def _bloom(phone: str, user: int) -> tuple[str, bytes]:
    """A bloom filter says nothing by itself; what stands behind the pages, where it lies, is searched as it is."""
    data = parquet(pa.table({"c": [1]}), compression="zstd")
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return "a.parquet", data[:footer] + b"\0\1\2" + phone.encode() + b"\0" + data[footer:]


def _orc(kind: str) -> Place:
    def make(phone: str, user: int) -> tuple[str, bytes]:
        sink = io.BytesIO()
        table = pa.table({"phone": [phone] * 9_000 + ["+99"] * 9_000, "id": [user] * 18_000})
        orc.write_table(table, sink, compression=kind, row_index_stride=1_000, stripe_size=65_536)
        return "a.orc", sink.getvalue()

    return make


def _avro(codec: str) -> Place:
    return lambda phone, user: ("a.avro", avro(PERSON_SCHEMA, [{"phone": phone, "id": user}], codec=codec))


def _manifest(codec: str) -> Place:
    def make(phone: str, user: int) -> tuple[str, bytes]:
        bounds = [{"key": 1, "value": struct.pack("<q", user)}, {"key": 3, "value": phone.encode()}]
        file = {"file_path": "data/a.parquet", "file_size_in_bytes": USER, "lower_bounds": bounds}
        return "metadata/m0.avro", avro(MANIFEST, [{"status": 1, "data_file": file}], {"schema": TABLE_SCHEMA}, codec)

    return make


_SUMMARY = {"type": "record", "name": "r508", "fields": [{"name": "lower_bound", "type": ["null", "bytes"]}]}
LIST: dict[str, Any] = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string"},
        {"name": "manifest_length", "type": "long"},
        {"name": "partitions", "type": {"type": "array", "items": _SUMMARY}},
    ],
}


def _manifest_list(phone: str, user: int) -> tuple[str, bytes]:
    bounds = [{"lower_bound": phone.encode()}, {"lower_bound": struct.pack("<q", user)}]
    row = {"manifest_path": "m0.avro", "manifest_length": USER, "partitions": bounds}
    return "metadata/snap-1.avro", avro(LIST, [row], codec="deflate")


def _iceberg_json(packed: bool) -> Place:
    def make(phone: str, user: int) -> tuple[str, bytes]:
        properties = {"comment": f"asked for by {phone}", "size": str(USER)}
        body = json.dumps({"format-version": 2, "properties": properties, "last-updated-ms": USER}).encode()
        name = "metadata/v2.gz.metadata.json" if packed else "metadata/v2.metadata.json"
        return name, gzip.compress(body) if packed else body

    return make


def _parsed_statistics(phone: str, user: int) -> tuple[str, bytes]:
    stats = pa.struct(
        [("numRecords", pa.int64()), ("maxValues", pa.struct([("phone", pa.string()), ("id", pa.int64())]))]
    )
    kind = pa.struct([("path", pa.string()), ("size", pa.int64()), ("stats_parsed", stats)])
    row = {"path": "p", "size": USER, "stats_parsed": {"numRecords": USER, "maxValues": {"phone": phone, "id": user}}}
    table = pa.table({"add": pa.array([row], kind)})
    return "_delta_log/_sidecars/3a0.parquet", parquet(table, compression="zstd", write_statistics=False)


def _checkpoint_json(phone: str, user: int) -> tuple[str, bytes]:
    stats = json.dumps({"minValues": {"phone": phone, "id": user}})
    lines = [{"checkpointMetadata": {"version": USER}}, {"add": {"path": "p", "size": USER, "stats": stats}}]
    return "_delta_log/2.checkpoint.9b1.json", "\n".join(map(json.dumps, lines)).encode()


def _partition_values(phone: str, user: int) -> tuple[str, bytes]:
    add = {"add": {"path": "p", "size": USER, "partitionValues": {"phone": phone, "id": str(user)}}}
    return "_delta_log/00000000000000000003.json", json.dumps(add).encode()


def _timeline(folder: str) -> Place:
    """Hudi's commits: Avro or JSON on the timeline; archived ones in Parquet, in one packed column of bytes."""

    def make(phone: str, user: int) -> tuple[str, bytes]:
        commit = json.dumps({"extraMetadata": {"note": f"key {phone}"}, "totalWriteBytes": USER}).encode()
        if folder == "timeline":
            return ".hoodie/timeline/20261121095024066.commit", commit
        if folder == "archived":
            content = hudi_records(PERSON_SCHEMA, [{"phone": phone, "id": user}])
            return ".hoodie/archived/.commits_.archive.1_1-0-1", hudi_block(3, content, PERSON_SCHEMA)
        table = pa.table({"instantTime": ["2026"], "metadata": pa.array([commit], pa.binary())})
        return ".hoodie/timeline/history/1_2_0.parquet", parquet(table, compression="gzip", write_statistics=False)

    return make


def _hadoop_lz4(data: bytes) -> bytes:
    """Two blocks, one of them of two chunks, as Spark writes text with `lz4`."""
    out = b""
    for block in (data[: len(data) // 2], data[len(data) // 2 :]):
        out += struct.pack(">i", len(block))
        for piece in (block[:50], block[50:]):
            chunk = bytes(pa.compress(piece, "lz4_raw", asbytes=True))
            out += struct.pack(">i", len(chunk)) + chunk
    return out


PLACES: dict[str, Place] = {
    **{f"parquet data page, {codec}": _pages(codec, "1.0") for codec in ("none", "snappy", "gzip", "brotli", "lz4")},
    **{f"parquet data page v2, {codec}": _pages(codec, "2.0") for codec in ("none", "snappy", "zstd")},
    "parquet page index": _page_index,
    "parquet, behind the pages": _bloom,
    "orc lz4": _orc("lz4"),
    "orc lz4, tail too": lambda phone, user: ("a.orc", orc_lz4(pa.table({"phone": [phone] * 99, "id": [user] * 99}))),
    "orc none": _orc("uncompressed"),
    "avro null": _avro("null"),
    "avro bzip2": _avro("bzip2"),
    "avro xz": _avro("xz"),
    **{f"iceberg manifest bounds, {codec}": _manifest(codec) for codec in ("null", "deflate", "zstandard", "snappy")},
    "iceberg manifest list bounds": _manifest_list,
    "iceberg metadata.json": _iceberg_json(False),
    "iceberg metadata.json, gzip": _iceberg_json(True),
    "delta sidecar, parsed statistics": _parsed_statistics,
    "delta v2 checkpoint as json": _checkpoint_json,
    "delta partition values": _partition_values,
    "hudi timeline": _timeline("timeline"),
    "hudi archived timeline, parquet": _timeline("history"),
    "hudi archived timeline, log": _timeline("archived"),
    "json gzip": lambda p, u: ("a.json.gz", gzip.compress(json.dumps({"phone": p, "id": u}).encode())),
    "csv hadoop lz4": lambda p, u: ("part-0.csv.lz4", _hadoop_lz4(f"phone,id\n{FILLER[0]},1\n{p},{u}\n".encode() * 9)),
    "csv, hidden": lambda p, u: (".part-0.csv", f"phone,id\n{p},{u}\n".encode()),
}


@pytest.mark.parametrize("place", PLACES)
def test_red_with_the_person_green_with_the_twin(place: str) -> None:
    red, green = scan(*PLACES[place](PHONE, USER)), scan(*PLACES[place](OTHER_PHONE, OTHER_USER))
    assert red.hits, place
    assert not red.unread
    assert not green.hits, (place, green.hits)
    assert not green.unread
    assert PHONE not in red.model_dump_json()


def test_hashes_that_lineage_recorded_are_values_like_others() -> None:
    patterns = build_patterns([HASHES])
    for text in (LONG, LONG.upper(), f"user={LONG};"):
        data = parquet(pa.table({"h": [text]}), compression="zstd", write_statistics=False)
        assert scan("a.parquet", data, patterns).hits
        twin = text.replace("3f1d", "3f1e").replace("3F1D", "3F1E")
        assert not scan("a.parquet", parquet(pa.table({"h": [twin]}), compression="zstd"), patterns).hits


def test_orc_tails_in_every_codec_are_searched() -> None:
    """The bounds of a text column stand in the tail, which is compressed as the rows are."""
    for place in ("orc lz4, tail too", "orc lz4", "orc none"):
        result = scan(*PLACES[place](PHONE, USER))
        assert any(hit.where == "statistics" for hit in result.hits), place
        assert not result.unread
    for kind in ("zlib", "snappy", "zstd"):
        result = scan(*_orc(kind)(PHONE, USER))
        assert any(hit.where == "statistics" for hit in result.hits), kind


def test_every_cut_of_a_hadoop_lz4_file_is_unread() -> None:
    name, data = PLACES["csv hadoop lz4"](OTHER_PHONE, OTHER_USER)
    for size in (len(data) - 1, len(data) // 2, 5):
        assert scan(name, data[:size]).unread, size
