"""Text longer than a block is read block by block, and says the same as when it is read whole."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from pii_tracer.scan.decode import dispatch
from pii_tracer.scan.folder_scan import scan_file
from tests.scan.support import BOTH, OTHER_PHONE, OTHER_USER, PHONE, USER, scan

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda d: zstandard.compress(d[:300]) + zstandard.compress(d[300:]),
}


def _csv(phone: str, user: int) -> bytes:
    lines = [f"+91 90000 {n:05d},{n}" for n in range(200)]
    lines[150] = f"{phone},{user}"
    return ("phone,user_id\n" + "\n".join(lines)).encode()


def _json(phone: str, user: int) -> bytes:
    lines = [json.dumps({"note": "é", "user_id": n}) for n in range(200)]
    lines[150] = json.dumps({"phone": phone, "user_id": user}).replace("+", "\\u002b")
    return "\n".join(lines).encode()


def _log(phone: str, user: int) -> bytes:
    return b"".join(b"line %d\n" % n for n in range(300)) + f"call {phone} of {user}".encode()


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize(("name", "make"), [("a.csv", _csv), ("a.json", _json), ("a.log", _log)])
def test_blocks_say_what_the_whole_says(
    monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[[str, int], bytes], suffix: str
) -> None:
    data = PACKERS[suffix](make(PHONE, USER))
    whole = scan(name + suffix, data)
    for block in (64, 257, 4_000):
        monkeypatch.setattr(dispatch, "BLOCK", block)
        found = scan(name + suffix, data)
        assert found.hits == whole.hits
        assert (found.unread, found.decoded_as) == ((), whole.decoded_as)
        assert {hit.key_set for hit in found.hits} == {"phone", "user_id"}
        twin = scan(name + suffix, PACKERS[suffix](make(OTHER_PHONE, OTHER_USER)))
        assert (twin.hits, twin.unread) == ((), ())


def test_cells_that_a_block_may_have_cut_belong_to_no_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line behind a broken cell has its numbers in other columns: told as theirs, they could be excused."""
    row = f'"a long\nnote, with {USER} in it",7,{USER}'
    data = ("note,merchant_id,user_id\n" + "x,1,2\n" * 99 + row + "\n" + "x,1,2\n" * 99).encode()
    for block in range(60, 760, 7):
        monkeypatch.setattr(dispatch, "BLOCK", block)
        columns = {hit.column for hit in scan("a.csv", data).hits}
        assert columns
        assert "merchant_id" not in columns


@pytest.mark.parametrize("suffix", [suffix for suffix in PACKERS if suffix])
def test_a_long_text_cut_short_is_unread(monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(dispatch, "BLOCK", 256)
    data = PACKERS[suffix](_csv(OTHER_PHONE, OTHER_USER))
    for size in (len(data) - 1, len(data) * 3 // 4):
        assert scan("a.csv" + suffix, data[:size]).unread


def test_what_cannot_be_read_in_blocks_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """One document over many lines, UTF-16, and text that ends in bytes that are none."""
    monkeypatch.setattr(dispatch, "BLOCK", 256)
    document = json.dumps([{"n": n} for n in range(99)] + [{"phone": PHONE}], indent=1).replace("+", "\\u002b")
    assert scan("a.json", document.encode()).hits
    assert scan("a.csv", _csv(PHONE, 1).decode().encode("utf-16")).hits
    broken = scan("a.csv", _csv(OTHER_PHONE, 1) + b"\n\xff\xfe\x00\xff" + PHONE.encode())
    assert broken.hits
    assert broken.unread


def test_memory_follows_the_block_and_not_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(dispatch, "BLOCK", 1 << 19)
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for start in range(0, 600_000, 1_000):
            stream.write(b"".join(b"%d,%092d\n" % (n, n) for n in range(start, start + 1_000)))
    tracemalloc.start()
    result = scan_file(tmp_path, path.name, path, BOTH)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (result.hits, result.unread) == ((), ())
    assert peak < 60_000_000 / 2
