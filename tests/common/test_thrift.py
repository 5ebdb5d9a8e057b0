"""Footers and page headers: which fields there are is told without reading what they hold."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_tracer.common.parquet_file_checks import is_encrypted
from pii_tracer.common.thrift import INTEGER as NUMBER
from pii_tracer.common.thrift import Fields, Thrift, ThriftError, written
from tests.scan.support import parquet


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


INTEGER = st.integers(0, 2**64 - 1).map(varint)
BINARY = st.binary(max_size=200).map(lambda data: varint(len(data)) + data)
SCALARS = st.one_of(
    st.tuples(st.sampled_from([4, 5, 6]), INTEGER),
    st.tuples(st.just(7), st.binary(min_size=8, max_size=8)),
    st.tuples(st.just(8), BINARY),
    st.tuples(st.just(3), st.binary(min_size=1, max_size=1)),
    st.tuples(st.sampled_from([1, 2]), st.just(b"")),
)
NUMBERS = st.lists(st.integers(1, 40), unique=True, max_size=6)


def listed(kind: int, items: list[bytes]) -> tuple[int, bytes]:
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + varint(len(items))
    return 9, head + b"".join(items)


def structure(values: list[tuple[int, bytes]], numbers: list[int]) -> bytes:
    out, last = b"", 0
    for number, (kind, content) in zip(numbers, values, strict=False):
        short = 0 < number - last < 16
        out += bytes([number - last << 4 | kind]) if short else bytes([kind]) + varint(number * 2)
        out, last = out + content, number
    return out + b"\0"


def nested(inner: st.SearchStrategy[tuple[int, bytes]]) -> st.SearchStrategy[tuple[int, bytes]]:
    structs = st.builds(structure, st.lists(inner, max_size=6), NUMBERS)
    return st.one_of(
        structs.map(lambda content: (12, content)),
        st.lists(structs, max_size=20).map(lambda items: listed(12, items)),
        st.lists(INTEGER, max_size=20).map(lambda items: listed(6, items)),
        st.lists(BINARY, max_size=20).map(lambda items: listed(8, items)),
        st.lists(st.sampled_from([b"\1", b"\2"]), max_size=20).map(lambda items: listed(1, items)),
    )


@given(st.lists(st.recursive(SCALARS, nested, max_leaves=12), max_size=6), NUMBERS, st.binary(max_size=3))
def test_the_fields_that_are_there_are_told_whatever_they_hold(
    values: list[tuple[int, bytes]], numbers: list[int], behind: bytes
) -> None:
    data = structure(values, numbers)
    for read in (Thrift.struct, Thrift.numbers):
        reader = Thrift(data + behind)
        assert set(read(reader)) == set(numbers[: len(values)])
        assert reader.position == len(data)
        if len(data) > 1:
            with pytest.raises(ThriftError):
                read(Thrift(data[:-1]))


@given(st.binary(max_size=120))
def test_what_is_a_structure_to_the_reader_is_one_to_the_one_that_passes_over(data: bytes) -> None:
    try:
        whole = set(Thrift(data).struct())
    except ThriftError:
        return
    assert Thrift(data).numbers() == whole


def test_a_footer_that_names_an_algorithm_is_of_an_encrypted_file() -> None:
    """Hand-made: an algorithm and its key's metadata are put behind the last field, as the specification has them."""
    plain = parquet(pa.table({f"c{n}": ["a", None, "b"] if n % 2 else [1, 2, 3] for n in range(40)}), row_group_size=1)
    size = int.from_bytes(plain[-8:-4], "little")
    footer = plain[-8 - size : -8]
    assert not is_encrypted(memoryview(plain))
    assert set(Thrift(footer).struct()) >= {1, 2, 3, 4, 6, 7}
    footer = footer[:-1] + b"\x1c" + b"\x1c\x28\x03abc\0\0" + b"\x18\x02id" + b"\0"
    told = plain[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert is_encrypted(memoryview(told))


@settings(max_examples=50)
@given(st.lists(st.recursive(SCALARS, nested, max_leaves=12), max_size=6), NUMBERS)
def test_fields_are_written_as_they_were_read(values: list[tuple[int, bytes]], numbers: list[int]) -> None:
    """Known or not, in whatever order: nothing that a footer has is lost."""
    data = structure(values, numbers)
    reader = Thrift(data)
    fields = reader.fields()
    assert written(fields) == data
    assert (reader.position, set(fields)) == (len(data), set(Thrift(data).struct()))


def test_numbers_of_both_signs_are_written_as_they_were_read() -> None:
    fields: Fields = {
        n: (NUMBER, value) for n, value in enumerate((0, -1, 1, 63, -64, 64, 2**63 - 1, -(2**63)), start=1)
    }
    assert Thrift(written(fields)).fields() == fields
    assert Thrift(written(fields)).struct() == {number: value for number, (_, value) in fields.items()}


def test_a_field_that_is_there_twice_is_no_structure_of_ours() -> None:
    with pytest.raises(ThriftError):
        Thrift(bytes([0x16, 2, 0x06, 2, 4, 0])).fields()


def test_footers_and_indexes_of_arrow_are_written_as_they_were_read() -> None:
    plain = parquet(
        pa.table({"a": ["x", None], "b": [[True], None], "c": [1.5, 2.5]}), row_group_size=1, write_page_index=True
    )
    footer = plain[-8 - int.from_bytes(plain[-8:-4], "little") : -8]
    assert written(Thrift(footer).fields()) == footer
