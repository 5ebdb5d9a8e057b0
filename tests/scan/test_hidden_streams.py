"""Bytes that a text or a cell holds packed: found, or the file is unverified. Never clean."""

from __future__ import annotations

import base64
import binascii
import bz2
import gzip
import json
import lzma
import os
import random
import struct
import time
import uuid
import zlib
from collections.abc import Callable

import cramjam
import numpy as np
import pyarrow as pa
import pytest
import zstandard

from pii_tracer.scan.decode.text import _as_shown
from tests.scan.decode.test_compressed_cells import SCHEMA as BYTES
from tests.scan.support import BOTH, OTHER_PHONE, PHONE, avro, parquet, scan
from tests.scan.test_altered_forms import FILLER
from tests.scan.test_altered_forms import SCHEMA as TEXTS

Pack = Callable[[bytes], bytes]
PACKERS: dict[str, Pack] = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "zstd": zstandard.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "raw deflate": lambda data: zlib.compress(data)[2:-4],
    "brotli": lambda data: bytes(cramjam.brotli.compress(data)),
    "snappy": lambda data: bytes(cramjam.snappy.compress_raw(data)),
    "lz4 block with its size": lambda data: bytes(cramjam.lz4.compress_block(data)),
    "size and zlib": lambda data: struct.pack("<I", len(data)) + zlib.compress(data),
    "header and gzip": lambda data: b"\x08\x01HDR\0" + gzip.compress(data),
    "header and deflate": lambda data: b"\x08\x01HDR\0" + zlib.compress(data)[2:-4],
    "gzip cut short": lambda data: gzip.compress(data)[:-9],
    "encrypted": lambda data: random.Random(len(data)).randbytes(len(data)),
}
WRITINGS: dict[str, Callable[[bytes], str]] = {
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64 for urls": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
    "base64 in lines": lambda data: base64.encodebytes(data).decode(),
    "base64 behind a name": lambda data: f"blob_{base64.b64encode(data).decode()}",
    "base64 twice": lambda data: base64.b64encode(base64.b64encode(data)).decode(),
    "base64 of json": lambda data: base64.b64encode(json.dumps({"b": data.hex()}).encode()).decode(),
    "hex": bytes.hex,
    "hex in capitals": lambda data: "0x" + data.hex().upper(),
}
MARKED: dict[str, Callable[[bytes], str]] = {
    "escapes": repr,
    "list": lambda data: str(list(data)),
    "uuencode": lambda data: (
        "begin 644 a\n"
        + "".join(binascii.b2a_uu(data[at : at + 45]).decode() for at in range(0, len(data), 45))
        + "`\nend\n"
    ),
}
CELLS: dict[str, Callable[[bytes], tuple[str, bytes]]] = {
    "parquet": lambda cell: ("a.parquet", parquet(pa.table({"c": pa.array([b"x", cell], pa.binary())}))),
    "parquet, plain": lambda cell: (
        "a.parquet",
        parquet(pa.table({"c": pa.array([b"x", cell], pa.binary())}), use_dictionary=False, write_statistics=False),
    ),
    "avro": lambda cell: ("a.avro", avro(BYTES, [{"c": b"x"}, {"c": cell}])),
}
TEXT_PLACES: dict[str, Callable[[str], tuple[str, bytes]]] = {
    "csv": lambda text: ("a.csv", f'id,note\n1,"{text}"\n'.encode()),
    "long csv": lambda text: ("a.csv", "\n".join(["id,note", *(f"1,{f}" for f in FILLER), f'2,"{text}"\n']).encode()),
    "json": lambda text: ("a.json", json.dumps({"id": 1, "p": text}).encode()),
    "text": lambda text: ("a.log", f"got {text} from it\n".encode()),
    "parquet": lambda text: ("a.parquet", parquet(pa.table({"c": [*FILLER, text]}), compression="zstd")),
    "parquet, plain": lambda text: ("a.parquet", parquet(pa.table({"c": [*FILLER, text]}), use_dictionary=False)),
    "avro": lambda text: ("a.avro", avro(TEXTS, [{"c": text}])),
    "delta log": lambda text: ("_delta_log/0.json", json.dumps({"commitInfo": {"userMetadata": text}}).encode()),
    "key-value metadata": lambda text: (
        "a.parquet",
        parquet(pa.table({"c": [1]}).replace_schema_metadata({"n": text})),
    ),
}


def _document(phone: str) -> bytes:
    """Longer than what is too short to be told from words."""
    return json.dumps({"to": phone, "of": [f"somebody else {n * 7919}" for n in range(12)]}).encode()


@pytest.mark.parametrize("place", CELLS)
@pytest.mark.parametrize("packer", PACKERS)
def test_a_packed_cell_is_never_clean(packer: str, place: str) -> None:
    found = scan(*CELLS[place](PACKERS[packer](_document(PHONE))), BOTH)
    assert found.strong or found.unread
    if packer not in ("gzip cut short", "encrypted"):
        assert found.strong
        assert not scan(*CELLS[place](PACKERS[packer](_document(OTHER_PHONE))), BOTH).strong


@pytest.mark.parametrize("place", TEXT_PLACES)
@pytest.mark.parametrize("packer", PACKERS)
def test_packed_bytes_that_a_text_writes_down_are_never_clean(packer: str, place: str) -> None:
    for writing, write in WRITINGS.items():
        found = scan(*TEXT_PLACES[place](write(PACKERS[packer](_document(PHONE)))), BOTH)
        assert found.strong or found.unread, writing


@pytest.mark.parametrize("place", TEXT_PLACES)
@pytest.mark.parametrize("writing", MARKED)
def test_gzip_in_other_writings_is_found(writing: str, place: str) -> None:
    for phone, red in ((PHONE, True), (OTHER_PHONE, False)):
        text = MARKED[writing](gzip.compress(_document(phone), mtime=0))
        found = scan(*TEXT_PLACES[place](text), BOTH)
        assert bool(found.strong) is red or ("csv" in place and found.unread)  # its quotes end the cell


@pytest.mark.parametrize(
    "text",
    [
        "{\\rtf1\\ansi Call \\'2b91 98450\\'2012345 now\\par}",
        "{\\rtf1\\ansi Call \\u43?91 98450\\u32?12345 now}",
        "{\\rtf1\\ansi Call +91 98{\\b 450} 12345 now}",
        '<!DOCTYPE r [<!ENTITY a "+91 98"><!ENTITY b "&a;450">]><r>&b; 12345</r>',
        "<r>+91 98<![CDATA[450 12345]]></r>",
    ],
)
def test_marks_of_documents_part_no_value(text: str) -> None:
    for place in ("json", "text", "parquet", "avro"):
        assert scan(*TEXT_PLACES[place](text), BOTH).strong, place
        assert not scan(*TEXT_PLACES[place](text.replace("12345", "12354")), BOTH).strong, place


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE r [<!ENTITY % a SYSTEM "a.dtd">%a;]><r/>',
        "-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n",
        "$ANSIBLE_VAULT;1.1;AES256\n3132\n",
    ],
)
def test_what_cannot_be_read_in_a_text_is_named(text: str) -> None:
    for place in ("json", "text", "parquet", "avro"):
        assert scan(*TEXT_PLACES[place](text), BOTH).unread, place


@pytest.mark.parametrize("mark", ["<!--", "<?", "<b ", "<text:s ", "<w:tab ", "</t><x"])
def test_a_long_row_of_marks_without_an_end_takes_no_time(mark: str) -> None:
    """Each begin was read up to the end of the text: a file of one megabyte stopped a scan for hours."""
    text = f"<r>+91 98<!-- a\n -->450<? b\n ?> 1<b x>2</b>345</r>{mark * (60_000 // len(mark))}"
    before = time.process_time()
    assert "+91 98450 12345" in _as_shown(text)
    assert time.process_time() - before < 6


def test_ordinary_columns_are_not_unverified() -> None:
    """Digests, numbers of things, vectors, signatures and long paths are no packed bytes."""
    draw = random.Random(5)
    rows = 1000
    table = pa.table(
        {
            "sha256": [draw.randbytes(32).hex() for _ in range(rows)],
            "sha512 in base64": [base64.b64encode(draw.randbytes(64)).decode() for _ in range(rows)],
            "uuid": [str(uuid.UUID(bytes=draw.randbytes(16))) for _ in range(rows)],
            "path": [f"/warehouse/sales_db/orders_by_region-v{n}/year_2026/month_11/part-{n:05}" * 2 for n in range(rows)],
            "signature": [base64.b64encode(draw.randbytes(256)).decode() for _ in range(rows)],
            "digest": pa.array([draw.randbytes(32) for _ in range(rows)], pa.binary()),
            "fixed": pa.array([draw.randbytes(16) for _ in range(rows)], pa.binary(16)),
            "vector": pa.array([np.array([draw.gauss(0, 1) for _ in range(64)], "<f4").tobytes()] * rows, pa.binary()),
            "record": pa.array([b"\x0a\x10" + draw.randbytes(16) + b"\x12\x06paid up" for _ in range(rows)], pa.binary()),
        }
    )  # fmt: skip
    for how in ({}, {"use_dictionary": False}):
        found = scan("a.parquet", parquet(table, **how), BOTH)
        assert (found.hits, found.unread) == ((), ())
    assert scan("a.csv", "\n".join(["h", *table["sha256"].to_pylist()]).encode(), BOTH).unread == ()


def test_bytes_between_column_chunks_are_not_clean() -> None:
    """A row group that no footer names, and a stream that nobody refers to."""
    data = parquet(pa.table({"c": [1]}))
    footer = 8 + int.from_bytes(data[-8:-4], "little")
    for part in (gzip.compress(_document(PHONE)), os.urandom(300)):
        found = scan("a.parquet", data[:-footer] + part + data[-footer:], BOTH)
        assert found.strong or found.unread
