"""Every byte of a container is decoded, searched as it stands, or unread: before, between and behind what it holds."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable

import cramjam
import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyarrow import orc

from pii_tracer.model.datasets import KeySet
from pii_tracer.scan.decode import dispatch
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.support import OTHER_PHONE, OTHER_USER, PERSON_SCHEMA, PHONE, USER, avro, parquet, scan

Make = Callable[[bytes], bytes]


def _gzip(data: bytes, name: bytes = b"", comment: bytes = b"", extra: bytes = b"") -> bytes:
    flags = (4 if extra else 0) | (8 if name else 0) | (16 if comment else 0)
    head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6)
    head += struct.pack("<H", len(extra)) + extra if extra else b""
    head += (name + b"\0" if name else b"") + (comment + b"\0" if comment else b"")
    return head + gzip.compress(data)[10:]


def _lz4(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def _zip(data: bytes, name: str = "a.txt", method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        archive.writestr(name, data)
        archive.writestr("b/other.txt", b"nothing")
        archive.comment = comment
    return sink.getvalue()


def _tar(data: bytes, name: str = "a.txt") -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for called, content in ((name, data), ("b/other.txt", b"nothing")):
            info = tarfile.TarInfo(called)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return sink.getvalue()


def _npy(data: bytes, kind: str) -> bytes:
    sink = io.BytesIO()
    np.save(sink, np.array(["x", data.decode()] if kind == "U" else [b"x", data], kind), allow_pickle=False)
    return sink.getvalue()


def _arrow(data: bytes, compression: str | None, *, stream: bool = True) -> bytes:
    table, sink = pa.table({"c": ["x", data.decode()]}), io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _skipped(data: bytes) -> bytes:
    return b"\x53\x2a\x4d\x18" + struct.pack("<I", len(data)) + data


def _snappy_chunk(kind: int, data: bytes) -> bytes:
    return bytes([kind]) + len(data).to_bytes(3, "little") + data


def _stale_zip(data: bytes) -> bytes:
    """A member that the directory no longer names, as updating leaves it."""
    former, archive = _zip(data), _zip(b"nothing")
    entry = former[: former.index(b"PK\x03\x04", 4)]
    end = archive.rindex(b"PK\x05\x06")
    at = struct.unpack_from("<I", archive, end + 16)[0]
    moved = archive[end : end + 16] + struct.pack("<I", at + len(entry)) + archive[end + 20 :]
    return archive[:at] + entry + archive[at:end] + moved


STREAMS: dict[str, Make] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
    "lz4": _lz4,
    "zlib": zlib.compress,
    "snappy framing": lambda data: bytes(cramjam.snappy.compress(data)),
    "zip": _zip,
    "zip, stored": lambda data: _zip(data, method=zipfile.ZIP_STORED),
    "zip, bzip2": lambda data: _zip(data, method=zipfile.ZIP_BZIP2),
    "tar": _tar,
    "npz": lambda data: _zip(_npy(data, "U"), "a.npy"),
    "npy": lambda data: _npy(data, "U"),
    "npy, bytes": lambda data: _npy(data, "S"),
    "arrow stream": lambda data: _arrow(data, None),
    "arrow stream, zstd": lambda data: _arrow(data, "zstd"),
    "arrow file, lz4": lambda data: _arrow(data, "lz4", stream=False),
    "utf-32": lambda data: data.decode().encode("utf-32"),
    "utf-32-be": lambda data: b"\0\0\xfe\xff" + data.decode().encode("utf-32-be"),
}
SOME = b"nothing of hers"

BESIDE: dict[str, Make] = {
    "gzip, name": lambda data: _gzip(SOME, name=data),
    "gzip, comment": lambda data: _gzip(SOME, comment=data),
    "gzip, extra field": lambda data: _gzip(SOME, extra=data),
    "gzip, second header": lambda data: gzip.compress(SOME) + _gzip(SOME, name=data),
    "gzip, behind zeros": lambda data: gzip.compress(SOME) + bytes(70_000) + data,
    "zstd, skipped first": lambda data: _skipped(data) + zstandard.compress(SOME),
    "zstd, skipped last": lambda data: zstandard.compress(SOME) + _skipped(data),
    "lz4, skipped": lambda data: _lz4(SOME) + _skipped(data),
    "snappy framing, padding": lambda data: bytes(cramjam.snappy.compress(SOME)) + _snappy_chunk(0xFE, data),
    "zip, comment": lambda data: _zip(SOME, comment=data),
    "zip, name": lambda data: _zip(SOME, data.decode()),
    "zip, before": lambda data: data + _zip(SOME),
    "tar, name": lambda data: _tar(SOME, data.decode()),
    "pdf": lambda data: b"%PDF-1.7\n<<>>stream\r\n" + zlib.compress(b"BT [(" + data + b")] TJ ET") + b"\nendstream",
    **{
        f"{name}, behind": lambda data, make=make: make(SOME) + data  # type: ignore[misc]
        for name, make in STREAMS.items()
        if not name.startswith(("utf", "arrow file"))
    },
}


@pytest.mark.parametrize("name", STREAMS)
def test_what_a_container_holds_is_read(name: str) -> None:
    for text, red in ((f"to {PHONE} of", True), (f"to {OTHER_PHONE} of", False)):
        found = scan("a.bin", STREAMS[name](text.encode()))
        assert (bool(found.strong), found.unread) == (red, ()), name


@pytest.mark.parametrize("outer", [name for name in STREAMS if not name.startswith(("npy", "utf", "arrow"))])
def test_containers_in_containers(outer: str) -> None:
    if outer == "npz":
        return
    for name, make in STREAMS.items():
        for text, red in ((PHONE, True), (OTHER_PHONE, False)):
            found = scan("a.bin", STREAMS[outer](make(text.encode())) if not _wide(name) else make(text.encode()))
            assert (bool(found.strong), found.unread) == (red, ()), (outer, name)


def _wide(name: str) -> bool:
    return name.startswith("utf")


@pytest.mark.parametrize("name", BESIDE)
def test_what_stands_beside_is_read(name: str) -> None:
    for text, red in ((PHONE, True), (OTHER_PHONE, False)):
        found = scan("a.bin", BESIDE[name](text.encode()))
        assert bool(found.strong) == red, name
        assert bool(found.unread) == (name == "pdf"), name


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_behind_another_is_read_or_unread(name: str) -> None:
    """What nobody can read behind a container, or a container that is cut, is never clean."""
    if name.startswith(("utf", "arrow file")):
        return
    data = STREAMS[name](SOME)
    assert scan("a.bin", data + b"\x00\xff\x81").unread
    assert scan("a.bin", data + zlib.compress(PHONE.encode())).hits
    cut = 700 if name == "tar" else len(data) * 2 // 3  # behind its members a tar has zeros
    assert scan("a.bin", data[:cut]).unread


@pytest.mark.parametrize(
    "name", ["zstd, skipped first", "zstd, skipped last", "lz4, skipped", "snappy framing, padding"]
)
@pytest.mark.parametrize("packed", ["gzip", "zlib", "zstd", "zip", "tar"])
def test_what_readers_pass_over_may_be_packed(name: str, packed: str) -> None:
    for text, red in ((PHONE, True), (OTHER_PHONE, False)):
        found = scan("a.bin", BESIDE[name](STREAMS[packed](text.encode())))
        assert (bool(found.strong), found.unread) == (red, ()), name


def test_decoders_are_chosen_by_bytes_before_names() -> None:
    table = pa.table({"phone": [PHONE], "id": [USER]})
    for suffix in (".snappy", ".deflate", ".lz4", ".br", ".gz", ".csv", ".lzma"):
        found = scan(f"part-1{suffix}", parquet(table, compression="zstd"))
        assert (found.decoded_as, found.unread) == ("parquet", ())
        assert found.strong
        assert (
            scan(f"a{suffix}", avro(PERSON_SCHEMA, [{"phone": PHONE, "id": 1}], codec="deflate")).decoded_as == "avro"
        )
        found = scan(f"notes{suffix}", f"for {PHONE}".encode())
        assert found.strong
        assert not found.unread


def test_a_metadata_block_of_brotli_is_searched() -> None:
    """Readers pass over it (RFC 7932, section 9.2); its bytes lie in the file as they are."""
    for phone, found in ((PHONE, True), (OTHER_PHONE, False)):
        head = 0b0101100 | len(phone) - 1 << 7
        block = head.to_bytes(2, "little") + phone.encode() + b"\x03"
        result = scan("a.css.br", block)
        assert (bool(result.hits), result.unread) == (found, ())


def test_brotli_is_told_by_its_name() -> None:
    for phone, red in ((PHONE, True), (OTHER_PHONE, False)):
        found = scan("a.csv.br", bytes(cramjam.brotli.compress(f"phone,id\n{phone},{OTHER_USER}\n".encode())))
        assert (bool(found.strong), found.unread) == (red, ())


def test_documents_of_office_are_read_as_they_are_shown() -> None:
    """A spreadsheet keeps a phone's number as a double, and a word in runs of letters."""
    digits = "".join(c for c in PHONE if c.isdigit())
    sheet = f'<?xml version="1.0"?><c r="A1"><v>{digits}</v></c>'
    runs = (
        f"<w:p><w:r><w:t>to {PHONE[:9]}</w:t></w:r><w:r><w:rPr/><w:t xml:space='preserve'>{PHONE[9:]}</w:t></w:r></w:p>"
    )
    for text in (sheet, runs):
        assert scan("a.xlsx", _zip(text.encode(), "xl/a.xml")).strong
        other = text.replace(digits[-2:], "54").replace(PHONE[-2:], "54")
        assert scan("a.xlsx", _zip(other.encode(), "xl/a.xml")).hits == ()


DOCUMENTS = {
    "odt, a span": '<text:p>{0}<text:span text:style-name="T1">{1}</text:span> {2}</text:p>',
    "odt, blanks": '<text:p>{0}{1}<text:s text:c="2"/>{2}</text:p>',
    "odt, a tab": "<text:p>{0}{1}<text:tab/>{2}</text:p>",
    "odt, a line": "<text:p>{0}{1}<text:line-break/>{2}</text:p>",
    "docx, a tab": "<w:r><w:t>{0}{1}</w:t></w:r><w:r><w:tab/><w:t>{2}</w:t></w:r>",
    "docx, a line": "<w:r><w:t>{0}{1}</w:t><w:br/><w:t>{2}</w:t></w:r>",
    "pptx, a line": "<a:r><a:t>{0}{1}</a:t></a:r><a:br/><a:r><a:t>{2}</a:t></a:r>",
    "xlsx, letters by number": "<si><t>{0}{1}_x0020_{2}</t></si>",
    "xlsx, a formula": '<c><f>CONCATENATE("{0}{1} ","{2}")</f></c>',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_marks_of_office_that_stand_in_a_value_do_not_hide_it(name: str) -> None:
    patterns = build_patterns([KeySet(name="n", origin="n", weak=False, values=(("s", "Aoife Lindqvist"),))])
    for words, found in ((("Ao", "ife", "Lindqvist"), True), (("Ao", "ife", "Lindgren"), False)):
        text = '<?xml version="1.0"?><d>' + DOCUMENTS[name].format(*words) + "</d>"
        assert bool(scan("a.bin", _zip(text.encode(), "content.xml"), patterns).hits) == found


@pytest.mark.parametrize("mail", ["ann.lee＠mail.example", "ann．lee＠mail．example", "ann。lee＠mail。example"])
def test_signs_of_full_width_in_an_address_do_not_hide_it(mail: str) -> None:
    patterns = build_patterns([KeySet(name="n", origin="n", weak=False, values=(("s", "ann.lee@mail.example"),))])
    assert scan("a.txt", f"to {mail}, today".encode(), patterns).hits
    assert not scan("a.txt", f"to {mail}, today".replace("lee", "leo").encode(), patterns).hits


def test_bombs_are_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "TOTAL", 100_000)
    monkeypatch.setattr(dispatch, "MEMBERS", 3)
    assert scan("a.zip", _zip(bytes(200_000))).unread
    assert scan("a.zip", _zip(gzip.compress(b" " * 200_000), "a.gz")).unread
    nested = _zip(_zip(_zip(b" " * 60_000)))
    assert scan("a.zip", nested).unread


def test_members_that_cannot_be_read_are_unread() -> None:
    data = bytearray(_zip(SOME))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert scan("a.zip", bytes(data)).unread
    assert scan("a.zip", _stale_zip(PHONE.encode())).unread
    objects = io.BytesIO()
    np.save(objects, np.array([{"a": 1}], object), allow_pickle=True)
    assert scan("a.npy", objects.getvalue()).unread
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.txt", SOME)
    assert scan("a.zip", sink.getvalue()).unread


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "bzip2", "xz"])
def test_bytes_behind_the_stream_in_an_avro_block_are_not_clean(codec: str) -> None:
    pack: dict[str, Make] = {
        "deflate": lambda data: zlib.compress(data)[2:-4],
        "zstandard": zstandard.compress,
        "bzip2": bz2.compress,
        "xz": lzma.compress,
    }
    plain = avro(PERSON_SCHEMA, [{"phone": None, "id": 1}])
    head, sync, block = plain.partition(b"0123456789abcdef")
    head = head.replace(b"avro.codec\x08null", b"avro.codec" + bytes([2 * len(codec)]) + codec.encode())
    body = block[2 : 2 + block[1] // 2]
    for behind, clean in ((b"", True), (b"more", False)):
        packed = pack[codec](body) + behind
        length = bytes([2 * len(packed) & 127 | 128, 2 * len(packed) >> 7])
        found = scan("a.avro", head + sync + b"\x02" + length + packed + sync)
        assert (not found.unread) is clean


def _orc(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(pa.table({"v": [data.decode()] * 300}), sink, compression="zlib")
    return bytes(sink.getvalue())


FILES: dict[str, Make] = {
    "zip": _zip,
    "zip behind a program": lambda data: b"#!/bin/sh\n" * 60 + _zip(data),
    "tar": lambda data: _tar(gzip.compress(data)),
    "parquet": lambda data: parquet(
        pa.table({"v": pa.array([data.decode()])}), compression="gzip", write_statistics=False
    ),
    "orc": _orc,
    "zip in a zip": lambda data: _zip(_zip(data), "a.zip"),
    "parquet in a cell": lambda data: parquet(pa.table({"v": pa.array([_zip(data)], pa.binary())})),
    "gzip of a zip": lambda data: gzip.compress(_zip(data)),
}


@pytest.mark.parametrize("file", FILES)
def test_a_cell_that_is_a_whole_file_is_searched_as_one(file: str) -> None:
    """A document that a table keeps in a column of bytes: nothing of the person stands in these bytes."""
    mine, others = (FILES[file](f"call {phone} back".encode()) for phone in (PHONE, OTHER_PHONE))
    assert PHONE.encode() not in mine
    for cell, found in ((mine, True), (others, False)):
        plain = pa.array([b"nothing", cell, None, b"x" * 700], pa.binary())
        for column in (plain, pa.array([[None, cell]], pa.list_(pa.binary())), pa.array([{"b": cell}])):
            scanned = scan("t.parquet", parquet(pa.table({"doc": column})))
            assert bool(scanned.hits) is found
            assert not scanned.unread


def test_a_cell_that_only_begins_like_a_file_is_named() -> None:
    broken = _zip(b"call somebody back" * 20)[:-40]
    assert scan("t.parquet", parquet(pa.table({"doc": pa.array([broken], pa.binary())}))).unread


def _with_entries(value: bytes, place: str, *, file: bool) -> bytes:
    entry = {b"k": value}
    inner = pa.field("item", pa.string(), metadata=entry if place == "nested field" else None)
    kind = pa.list_(inner)
    field = pa.field("a", kind, metadata=entry if place == "field" else None)
    schema = pa.schema([field], metadata=entry if place == "schema" else None)
    sink = io.BytesIO()
    with (pa.ipc.new_file if file else pa.ipc.new_stream)(sink, schema) as writer:
        batch = pa.record_batch([pa.array([["x"]], kind)], schema=schema)
        writer.write_batch(batch, custom_metadata=entry if place == "batch" else None)
    return sink.getvalue()


@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("place", ["schema", "field", "nested field", "batch"])
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, lambda data: base64.b64encode(gzip.compress(data))])
def test_arrow_s_own_entries_are_unpacked(pack: Callable[[bytes], bytes], place: str, file: bool) -> None:
    assert scan("a.arrow", _with_entries(pack(PHONE.encode()), place, file=file)).hits
    assert not scan("a.arrow", _with_entries(pack(b"nobody"), place, file=file)).hits
    found = scan("a.arrow", _with_entries(random.Random(7).randbytes(200), place, file=file))
    assert found.unread
