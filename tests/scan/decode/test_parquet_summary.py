"""A Parquet folder's `_metadata`: a footer alone, whose row groups lie in other files."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.scan.support import OTHER_PHONE, OTHER_USER, PHONE, USER, parquet, places, scan


def summary(phone: str, user: int) -> bytes:
    table = pa.table({"c": [phone], "n": [user]})
    meta = pq.read_metadata(io.BytesIO(parquet(table)))
    meta.set_file_path("part-0.parquet")
    sink = io.BytesIO()
    meta.write_metadata_file(sink)
    return sink.getvalue()


def test_the_bounds_in_it_are_read_and_nothing_is_missed() -> None:
    found = scan("_metadata", summary(PHONE, USER))
    assert found.unread == ()
    assert places(found) >= {("phone", "statistics", "c"), ("user_id", "statistics", "n")}
    other = scan("_metadata", summary(OTHER_PHONE, OTHER_USER))
    assert (other.hits, other.unread) == ((), ())


@pytest.mark.parametrize("behind", [b"\0" * 9, PHONE.encode()])
def test_one_with_more_than_a_footer_in_it_is_not_read(behind: bytes) -> None:
    data = summary(OTHER_PHONE, OTHER_USER)
    found = scan("_metadata", data[:4] + behind + data[4:])
    assert len(found.unread) == 1
    assert bool(found.hits) == (behind == PHONE.encode())
