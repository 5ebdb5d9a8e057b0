"""State of streaming queries: the person's key and texts stand in memory's own layout, within Spark's own LZ4 stream."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scan.support import OTHER_PHONE, OTHER_USER, PHONE, USER, places, scan

NAME = "ckpt/state/0/0/2.delta"


def lz4_blocks(data: bytes, size: int = 64) -> bytes:
    """As lz4-java writes: blocks of so many bytes, raw where packing does not pay; an empty one last."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    out = b""
    for piece in pieces:
        packed = bytes(pa.compress(piece, "lz4_raw", asbytes=True))
        method, packed = (0x26, packed) if len(packed) < len(piece) else (0x16, piece)
        out += b"LZ4Block" + struct.pack("<BIII", method, len(packed), len(piece), 0) + packed
    return out + b"LZ4Block" + struct.pack("<BIII", 0x16, 0, 0, 0)


def row(*values: int | float | str | bytes) -> bytes:
    """An `UnsafeRow`; bytes are a nested row."""
    fixed, tail = b"\0" * 8, b""
    for value in values:
        if isinstance(value, int):
            fixed += struct.pack("<q", value)
        elif isinstance(value, float):
            fixed += struct.pack("<d", value)
        else:
            text = value if isinstance(value, bytes) else value.encode()
            start = 8 + 8 * len(values) + len(tail)
            fixed += struct.pack("<q", start << 32 | len(text))
            tail += text + b"\0" * (-len(text) % 8)
    return fixed + tail


def state(*pairs: tuple[bytes, bytes | None]) -> bytes:
    out = b""
    for key, value in pairs:
        out += struct.pack(">i", len(key)) + key
        out += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return out + struct.pack(">i", -1)


ROWS = {
    "text": lambda phone, user: row(7, phone),
    "text of whole words": lambda phone, user: row("12345678", phone),
    "number": lambda phone, user: row(user, "x"),
    "number as double": lambda phone, user: row(float(user)),
    "number as text beside text": lambda phone, user: row("ninetyni", str(user), "x"),
    "nested": lambda phone, user: row(1, row(row(phone), user)),
    "array of ints": lambda phone, user: row(struct.pack("<qqii", 2, 0, 5, user)),
}


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("where", ["key", "value", "removed"])
def test_red_with_the_person_green_with_the_twin(shape: str, where: str) -> None:
    for phone, user, seen in ((PHONE, USER, True), (OTHER_PHONE, OTHER_USER, False)):
        mine, other = ROWS[shape](phone, user), row(5, "somebody")
        pair = {"key": (mine, other), "value": (other, mine), "removed": (mine, None)}[where]
        result = scan(NAME, lz4_blocks(state((other, other), pair, (other, other))))
        assert bool(result.hits) is seen, result
        assert {place[1] for place in places(result)} <= {"streaming state"}
        assert result.unread == ()
        assert result.decoded_as == "lz4 blocks > streaming state"


def test_a_changelog_of_rocksdb_has_its_version_in_front_of_each_row() -> None:
    pair = (b"\0" + row(USER, PHONE), b"\0" + row(3))
    result = scan("q/state/1/0/7.changelog", lz4_blocks(state(pair)))
    assert {hit.key_set for hit in result.hits} == {"phone", "user_id"}
    assert result.unread == ()


def test_the_schema_of_a_state_is_not_unread_and_rocksdbs_own_files_are() -> None:
    assert scan("q/state/0/0/_metadata/schema", b"\0\x02v2\0\x04{}").unread == ()
    assert scan("q/state/0/0/SSTs/1.sst", b"\0\1\2\3").unread


def test_compressed_bytes_alone_do_not_show_the_person() -> None:
    """What a search of the file's own bytes sees: nothing."""
    written = lz4_blocks(
        state(*[(row(n, f"+91 98450 1{n}"), row(n)) for n in range(20)], (row(USER, PHONE), row(1))), 4096
    )
    assert PHONE.encode() not in written
    assert scan(NAME, written).hits


@given(st.integers(1, 400))
def test_every_cut_is_unread(cut: int) -> None:
    whole = lz4_blocks(state((row(USER, PHONE), row(1)), (row(2, "x" * 90), row(3))))
    assert scan(NAME, whole[: max(0, len(whole) - cut)] or b"x\0").unread


def test_another_layout_is_unread() -> None:
    for content in (b"v2\0\0\0\1x", state((b"odd", None)), state((row(1), None)) + b"more"):
        assert scan(NAME, lz4_blocks(content)).unread
    assert scan("a.bin", lz4_blocks(state((row(1), None)))).unread == ("a format that no decoder knows",)
    assert not scan("a.txt", lz4_blocks(b"some text")).unread
