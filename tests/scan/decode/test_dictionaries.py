"""Dictionary pages, page headers and what lies between pages: searched although no row shows it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.scan.decode.parquet_pages import PageError, pages
from pii_tracer.scan.folder_scan import scan_file
from tests.scan.support import BOTH, OTHER_PHONE, OTHER_USER, PHONE, USER, parquet, scan

KINDS = [pa.int64(), pa.int32(), pa.float64(), pa.decimal128(9, 2), pa.decimal128(20, 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_in_a_dictionary_that_no_row_uses_are_found(kind: pa.DataType) -> None:
    """Hand-made: the bit-packed numbers of the entries are set to the other entry for all eight rows."""
    clean = {}
    for key in (USER, OTHER_USER):
        small = pa.types.is_decimal(kind) and kind.precision == 9
        table = pa.table(
            {"uid": pa.array([Decimal(n) if pa.types.is_decimal(kind) else n for n in (key, *[5] * 7)], kind)}
        )
        data = parquet(table, compression="none", write_statistics=False, store_decimal_as_integer=small)
        assert data.count(b"\x03\xfe") == 1
        data = data.replace(b"\x03\xfe", b"\x03\xff")
        assert pq.read_table(pa.BufferReader(data))["uid"].cast(pa.int64()).to_pylist() == [5] * 8
        result = scan("a.parquet", data)
        clean[key] = not result.hits
        assert {hit.where for hit in result.hits} <= {"dictionary page of numbers"}
        assert not result.unread
    assert clean == {USER: False, OTHER_USER: True}


@pytest.mark.parametrize("compression", ["snappy", "gzip", "zstd", "brotli", "lz4", "none"])
@pytest.mark.parametrize("coded", [True, False])
def test_page_headers_are_searched_and_packed_bodies_are_read(compression: str, coded: bool) -> None:
    """The bounds stand plain in the headers of the pages; a twin of the person's is clean in all codecs."""
    for phone, red in ((PHONE, True), (OTHER_PHONE, False)):
        table = pa.table({"c": ["+91 90000 00001"] * 500})
        data = parquet(table, compression=compression, use_dictionary=coded, write_statistics=True)
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        head, foot = data[:footer], data[footer:]
        result = scan("a.parquet", head.replace(b"+91 90000 00001", phone.encode(), 1) + foot)
        assert bool(result.hits) is red
        assert not result.unread or compression == "none"


def test_a_chunk_whose_pages_do_not_add_up_is_searched_as_it_stands() -> None:
    data = memoryview(parquet(pa.table({"c": ["a", "b"]}), compression="zstd"))
    column = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(0)
    start = column.dictionary_page_offset
    found = pages(data, start, start + column.total_compressed_size, 2)
    assert [page.is_dictionary for page in found] == [True, False]
    for end, values in ((start + column.total_compressed_size, 3), (start + column.total_compressed_size - 1, 2)):
        with pytest.raises(PageError):
            pages(data, start, end, values)
    with pytest.raises(PageError):
        pages(data, start + 1, start + column.total_compressed_size, 2)


def test_memory_follows_a_batch_of_rows_and_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, pa.schema([("id", pa.int64()), ("text", pa.string())]), compression="zstd") as writer:
        for group in range(60):
            ids = range(group * 10_000, (group + 1) * 10_000)
            writer.write_table(pa.table({"id": ids, "text": [f"{n:>100}" for n in ids]}))
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        result = scan_file(tmp_path, path.name, path, BOTH)
    finally:
        pa.set_memory_pool(before)
    assert (result.hits, result.unread) == ((), ())
    whole = 60 * 10_000 * 116
    assert pool.max_memory() < whole / 3
