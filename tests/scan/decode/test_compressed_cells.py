"""Cells of bytes that are compressed streams: an application's own, below the format's codec."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest
import zstandard
from pyarrow import orc

from pii_tracer.scan.decode import compressed_streams
from pii_tracer.scan.decode.cells import cell_search
from tests.scan.support import OTHER_PHONE, OTHER_USER, PHONE, USER, avro, parquet, places, scan


def _lz4(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(data)
        stream.flush()
    return bytes(sink.getvalue())


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "zlib, fast": lambda data: zlib.compress(data, 1),
    "zlib, best": lambda data: zlib.compress(data, 9),
    "zstd": zstandard.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lz4": _lz4,
    "twice": lambda data: zlib.compress(gzip.compress(data)),
}
AS_IT_STANDS = {("phone", "data", "c"), ("phone", "raw bytes", None)}
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "c", "type": ["null", "bytes"]}]}


def _orc(cells: list[bytes | None]) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.table({"c": pa.array(cells, pa.binary())}), sink)
    return sink.getvalue()


@pytest.mark.parametrize("name", PACKERS)
def test_what_a_cell_holds_is_searched(name: str) -> None:
    pack = PACKERS[name]
    for phone, user, red in ((PHONE, USER, True), (OTHER_PHONE, OTHER_USER, False)):
        cells = [b"nothing", None, b"", pack(json.dumps({"to": {"phone": phone}, "uid": user}).encode())]
        table = pa.table({"c": pa.array(cells, pa.binary())})
        files = {
            "a.parquet": parquet(table, write_statistics=False),
            "b.parquet": parquet(table, use_dictionary=False, compression="zstd", write_statistics=False),
            "c.avro": avro(SCHEMA, [{"c": cell} for cell in cells]),
            "d.orc": _orc(cells),
        }
        for file, data in files.items():
            found = scan(file, data)
            wanted = {("phone", "data", "c.$.to.phone"), ("user_id", "data", "c.$.uid")} if red else set()
            # what a codec cannot make shorter stands as it is, too
            assert (places(found) - AS_IT_STANDS, found.unread) == (wanted, ()), file


def test_an_entry_of_a_dictionary_that_no_row_uses() -> None:
    for phone, red in ((PHONE, True), (OTHER_PHONE, False)):
        cells = pa.array([zlib.compress(phone.encode()), b"x", b"y"], pa.binary()).dictionary_encode()
        found = scan("a.parquet", parquet(pa.table({"c": cells}).slice(1), write_statistics=False))
        assert places(found) == ({("phone", "dictionary page", "c")} if red else set())


def test_bytes_that_only_begin_like_one_are_searched_as_they_stand() -> None:
    """A hash begins like anything: what cannot be unpacked is no stream, and no reason to call a file unread."""
    for start in sorted(compressed_streams.STARTS):
        for tail, red in ((PHONE.encode(), True), (bytes(30), False)):
            table = pa.table({"c": pa.array([start + tail], pa.binary())})
            found = scan("a.parquet", parquet(table, use_dictionary=False, write_statistics=False))
            assert (bool(found.hits), found.unread) == (red, ())


def test_one_that_is_too_large_is_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_search, "CELL", 1000)
    for pack in PACKERS.values():
        table = pa.table({"c": pa.array([pack(bytes(1001))], pa.binary())})
        assert scan("a.parquet", parquet(table)).unread
        table = pa.table({"c": pa.array([pack(bytes(1000))], pa.binary())})
        assert not scan("a.parquet", parquet(table)).unread
