"""Each reason for which a file is written again as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from executors.formats.plain_files.parquet_surgery.layout import Layout
from executors.formats.plain_files.parquet_surgery.recipe import Recipe
from executors.formats.plain_files.parquet_surgery.unsuited import Reason, Unsuited
from pii_tracer.common.thrift import BINARY, LIST, STRUCT, Fields
from tests.executors.formats.plain_files.parquet_surgery.support import (
    PERSON,
    chunk,
    edited,
    erased,
    group,
    meta,
    parquet,
    put,
    rows,
)

PLAIN: dict[str, Any] = {"write_page_index": False}
FILTER: dict[str, Any] = {"bloom_filter_options": {"mail": {"ndv": 20}}}


def _swapped(footer: Fields) -> None:
    groups = footer[4][1][1]
    groups[2], groups[3] = groups[3], groups[2]


def _without_logical_type(footer: Fields) -> None:
    del footer[2][1][1][3][10]


def _by_ieee(footer: Fields) -> None:
    footer[7][1][1][1] = {2: (STRUCT, {})}


def _longer(fields: Fields, number: int, by: int = 1) -> None:
    put(fields, number, fields[number][1] + by)


REFUSED: dict[Reason, tuple[dict[str, Any], Callable[[Fields], None]]] = {
    Reason.VERSION: ({}, lambda footer: put(footer, 1, 3)),
    Reason.UNKNOWN_FIELD: ({}, lambda footer: put(meta(footer, 3), 99, 4)),
    Reason.CHUNK_TEXTS: ({}, lambda footer: put(meta(footer, 0), 8, (STRUCT, []), LIST)),
    Reason.OUTSIDE: ({}, lambda footer: put(chunk(footer, 0), 6, 10**9)),
    Reason.ORDER: (PLAIN, _swapped),
    Reason.PAGES: (PLAIN, lambda footer: _longer(meta(footer, 3, 2), 7)),
    Reason.BLOOM: (FILTER, lambda footer: _longer(meta(footer, 0), 15, -1)),
    Reason.SCHEMA: ({}, _without_logical_type),
    Reason.COLUMN_ORDERS: (PLAIN, _by_ieee),
    Reason.NAMED: ({}, lambda footer: put(footer, 6, f"job of {PERSON}".encode())),
}


@pytest.mark.parametrize("reason", REFUSED, ids=lambda reason: reason.name)
def test_is_written_again_as_a_whole(reason: Reason) -> None:
    options, edit = REFUSED[reason]
    data = parquet(**options)
    assert isinstance(erased(data).made, Recipe)
    other = edited(data, edit, junk=bytes(10))
    kept = erased(other)
    assert kept.made is reason
    assert kept.data is not None
    assert rows(kept.data) == [row for row in rows(other) if row["mail"] != PERSON]
    assert PERSON.encode() not in kept.data


UNREADABLE: dict[Reason, Callable[[Fields], None]] = {
    Reason.ENCRYPTED: lambda footer: put(footer, 8, {}, STRUCT),
    Reason.OTHER_FILES: lambda footer: put(chunk(footer, 1), 1, b"part-1.parquet", BINARY),
    Reason.OVERLAP: lambda footer: put(meta(footer, 3), 9, meta(footer, 2)[9][1] + 1),
    Reason.UNKNOWN_FIELD: lambda footer: put(group(footer, 2), 12, 7),
}


@pytest.mark.parametrize("reason", UNREADABLE, ids=lambda reason: reason.name)
def test_is_not_taken_apart(reason: Reason) -> None:
    """What other code refuses or reads wrong before a whole rewrite: asked of the footer itself."""
    data = parquet(use_dictionary=False, **PLAIN)
    Layout.of(memoryview(data))
    with pytest.raises(Unsuited) as refused:
        Layout.of(memoryview(edited(data, UNREADABLE[reason])))
    assert refused.value.reason is reason


def test_an_encrypted_column_is_not_taken_apart() -> None:
    for number in (8, 9):
        data = edited(parquet(), lambda footer, n=number: put(chunk(footer, 2), n, b"", BINARY))  # type: ignore[misc]
        with pytest.raises(Unsuited, match=Reason.ENCRYPTED.value):
            Layout.of(memoryview(data))


def test_no_footer() -> None:
    data = parquet()
    for broken in (
        b"",
        data[:-1],
        b"PAR2" + data[4:],
        data[:-8] + b"\xff\xff\xff\x7fPAR1",
        data[:-9] + b"\x01" + data[-8:],
    ):
        with pytest.raises(Unsuited, match=Reason.NO_FOOTER.value):
            Layout.of(memoryview(broken))


def test_numbers_that_are_longer_than_they_need_be() -> None:
    """A footer that is not written back byte for byte may have what the reader did not see."""
    data = parquet()
    size = int.from_bytes(data[-8:-4], "little")
    start = len(data) - 8 - size
    assert data[start : start + 2] == b"\x15\x04"
    longer = data[:start] + b"\x15\x84\x00" + data[start + 2 : -8] + (size + 1).to_bytes(4, "little") + b"PAR1"
    assert erased(longer).made is Reason.NOT_CANONICAL


def test_an_offset_index_that_names_no_page() -> None:
    data = parquet()
    found = Layout.of(memoryview(data)).groups[3].chunks[1].offset_index
    assert found is not None
    at = found.start + 3  # behind the list's head and the first field's
    other = data[:at] + bytes([data[at] ^ 2]) + data[at + 1 :]
    assert erased(other).made is Reason.INDEX


def test_every_row_group_changes() -> None:
    assert erased(parquet(row_group_size=100)).made is Reason.EVERY_GROUP
