"""What cannot be searched is unread with a reason, never clean."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

from pii_tracer.model.datasets import KeySet
from pii_tracer.model.errors import ScanError
from pii_tracer.scan.decode import compression
from pii_tracer.scan.folder_content_hashes import fingerprint
from pii_tracer.scan.folder_scan import scan_tree
from pii_tracer.scan.value_forms import build_patterns
from tests.scan.decode.test_places import PLACES
from tests.scan.support import BOTH, PERSON_SCHEMA, PHONE, avro, hfile, hudi_block, hudi_records, parquet, scan, write

CUT = [
    "parquet data page",
    "orc zlib",
    "avro deflate",
    "csv gzip",
    "csv bzip2",
    "csv xz",
    "csv zstd",
    "csv lz4",
    "csv hadoop snappy",
    "hudi log avro block",
    "hfile key, gzip",
    "hfile column statistics",
    "puffin blob",
    "iceberg manifest bound",
]


@pytest.mark.parametrize("place", CUT)
def test_a_file_cut_short_is_unread(place: str) -> None:
    name, data = PLACES[place](PHONE, 1)
    for size in (len(data) - 1, len(data) * 3 // 4):
        assert scan(name, data[:size]).unread, size


def test_every_cut_of_a_log_file_is_unread_or_whole_blocks() -> None:
    block = hudi_block(3, hudi_records(PERSON_SCHEMA, [{"phone": "x", "id": 1}]), PERSON_SCHEMA)
    for size in range(1, len(block)):
        assert scan(".f_1.log.1_0-1-1", (block + block)[: len(block) + size]).unread


def test_zeroed_page_is_unread() -> None:
    data = bytearray(parquet(pa.table({"c": ["somebody"] * 100}), compression="zstd"))
    data[8:40] = bytes(32)
    assert scan("a.parquet", bytes(data)).unread


def test_encrypted_and_unknown_files_are_unread() -> None:
    assert scan("a.parquet", b"PARE" + os.urandom(200) + b"PARE").unread
    assert scan("a.bin", os.urandom(4096)).unread
    assert scan("backup.parquet", b"\0\1\2\3" * 100).unread
    assert scan("counts.bin", b"\0\1\2\3\xff" * 100).unread == ("a format that no decoder knows",)


def test_values_of_unknown_files_are_found_where_their_bytes_show_them() -> None:
    for shown in (PHONE.encode(), PHONE.encode("utf-16-be"), PHONE.encode().hex().encode()):
        assert scan("a.bin", b"\x00\xff\xfe\x80" + shown).hits


def test_an_archive_bomb_is_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LIMIT", 1000)
    for pack, name in ((gzip.compress, "a.gz"), (zstandard.compress, "a.zst")):
        assert scan(name, pack(b"0" * 1001)).unread
        assert not scan(name, pack(b"0" * 1000)).unread


def test_nested_too_deep_is_unread() -> None:
    data = b"text"
    for _ in range(8):
        data = gzip.compress(data)
    assert scan("a.gz", data).unread


def test_hfile_values_without_a_schema_are_unread() -> None:
    assert scan("a.hfile", hfile([(b"k", b"\x02\x04")], None, gz=True)).unread


def test_a_block_its_writer_marked_corrupt_is_unread() -> None:
    assert scan(".f_1.log.1_0-1-1", hudi_block(2, b"\0\1")).unread
    assert scan(".f_1.log.1_0-1-1", hudi_block(9, b"\0\1")).unread


def test_a_codec_that_is_not_known_is_unread() -> None:
    data = avro(PERSON_SCHEMA, [{"phone": None, "id": 1}]).replace(b"null", b"nuul", 1)
    assert scan("a.avro", data.replace(b"avro.codec\x08null", b"avro.codec\x08zzzz")).unread


@pytest.mark.parametrize("codec", ["null", "zstandard"])
def test_what_stands_in_an_avro_block_behind_its_records_is_not_clean(codec: str) -> None:
    """The block says one record and holds two: no reader gives the second."""
    rows = [{"phone": None, "id": 1}, {"phone": PHONE, "id": 2}]
    data = avro(PERSON_SCHEMA, rows, codec=codec)
    head, sync, block = data.partition(b"0123456789abcdef")
    assert block[0] == 4
    result = scan("a.avro", head + sync + b"\x02" + block[1:])
    assert result.unread == ("an Avro block with bytes after its last record",)


def test_tree_has_hidden_files_links_and_empty_files(tmp_path: Path) -> None:
    write(tmp_path, "t/.hidden/.part-0.csv", f"a\n{PHONE}\n".encode())
    write(tmp_path, "t/empty", b"")
    write(tmp_path, "elsewhere/secret.txt", PHONE.encode())
    (tmp_path / "t/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "t/link.txt").symlink_to(tmp_path / "elsewhere/secret.txt")
    os.mkfifo(tmp_path / "t/pipe")
    result = scan_tree(tmp_path / "t", BOTH)
    assert [f.path for f in result.files] == [".hidden/.part-0.csv", "empty", "link.txt", "linked", "pipe"]
    assert [f.path for f in result.with_person] == [".hidden/.part-0.csv"]
    assert {u.split(":")[0] for u in result.unread} == {"link.txt", "linked", "pipe"}
    assert result.files[1].decoded_as == "empty"
    assert scan_tree(tmp_path / "t", BOTH) == result
    assert [f.path for f in fingerprint(tmp_path / "t")] == [".hidden/.part-0.csv", "empty"]
    assert fingerprint(tmp_path / "t")[0].sha256 == result.files[0].sha256


def test_engine_role_comes_from_the_whole_path(tmp_path: Path) -> None:
    """Scanning the log folder by itself reads it as the log it is."""
    name, data = PLACES["delta log statistics"](PHONE, 1)
    write(tmp_path, name, data)
    (file,) = scan_tree(tmp_path / "_delta_log", BOTH).files
    assert file.decoded_as == "engine json"


def test_a_missing_folder_and_an_empty_search_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ScanError, match="the folder to scan does not exist"):
        scan_tree(tmp_path / "gone", BOTH)
    with pytest.raises(ScanError, match="no values"):
        build_patterns([KeySet(name="phone", origin="phone", weak=False, values=())])


def test_large_files_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values across the border of two windows, and formats read from a map instead of memory."""
    monkeypatch.setattr("pii_tracer.scan.folder_scan.WINDOW", 1)
    monkeypatch.setattr("pii_tracer.scan.hit_collector.WINDOW", 7)
    write(tmp_path, "a.bin", b"\x00\xff" * 20 + PHONE.encode() + b"\x00\xff" * 20)
    write(tmp_path, "b.parquet", PLACES["parquet data page"](PHONE, 1)[1])
    write(tmp_path, "c.avro", PLACES["avro deflate"](PHONE, 1)[1])
    result = scan_tree(tmp_path, BOTH)
    assert len(result.with_person) == 3
    assert result.unread == ("a.bin: a format that no decoder knows",)


def test_what_stands_behind_a_deflate_stream_is_read_or_unread() -> None:
    """Hadoop's reader ends with the first stream; its bytes do not."""
    first, mine = zlib.compress(b"uid,phone\n1,2\n"), zlib.compress(f"2,{PHONE}\n".encode())
    assert scan("a.csv.deflate", first + mine).hits
    assert scan("a.csv.deflate", first + f"no stream {PHONE}".encode()).hits
    assert scan("a.csv.deflate", first + b"no stream \xff\0\x80").unread
    assert scan("a.csv.deflate", first + mine[:-5]).unread
