"""Protobuf is read as its own library reads it, and no byte of a record is passed over."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import any_pb2, descriptor_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st

from pii_tracer.lake.streams.kafka.protobuf_messages import (
    ProtobufError,
    Schema,
    Unwritten,
    read_message,
)
from pii_tracer.lake.streams.kafka.protobuf_schemas import SchemaError, schema_of_set
from tests.protobufsupport import COMMON, LEDGER, ORDER, descriptor_set, message

SHOP = schema_of_set(descriptor_set(COMMON, ORDER))
OLD = schema_of_set(descriptor_set(LEDGER))
EMPTY_ENTRY = message("old.Entry", owner=1).SerializeToString()

int32, int64 = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
uint64 = st.integers(0, (1 << 64) - 1)
words = st.text(st.characters(codec="utf-8"), max_size=8)
people = st.fixed_dictionaries({}, optional={"id": int64, "mail": words})
orders = st.fixed_dictionaries(
    {},
    optional={
        "user": people,
        "price": st.floats(allow_nan=False),
        "friends": st.lists(int64, max_size=3),
        "seen_by": st.dictionaries(int64, people, max_size=3),
        "phone": uint64,
        "state": st.integers(0, 1),
        "buyer": st.fixed_dictionaries({"value": int64}),
        "at": st.fixed_dictionaries({"seconds": st.integers(0, 1 << 33), "nanos": int32}),
        "seal": st.binary(max_size=8),
        "delta": int32,
        "paid": st.booleans(),
        "item": st.lists(st.fixed_dictionaries({"sku": words}), max_size=3),
        "shop_id": st.integers(0, (1 << 32) - 1),
        "share": st.lists(st.floats(width=32, allow_nan=False), max_size=3),
        "row": int32,
        "big": uint64,
        "near": int64,
        "port": int32,
        "note": st.lists(words, max_size=2),
    },
)


def written(members: dict[str, Any]) -> Any:
    seen_by = members.get("seen_by", {})
    made = message("shop.Order", **{k: v for k, v in members.items() if k != "seen_by"})
    for key, person in seen_by.items():
        made.seen_by[key].SetInParent()
        for name, value in person.items():
            setattr(made.seen_by[key], name, value)
    return made


def plain(value: Any) -> Any:
    """What was read, without the defaults that are not in the bytes."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if not isinstance(v, Unwritten)}
    return [plain(v) for v in value] if isinstance(value, list) else value


def seen(made: Any) -> Any:
    """The same from the library's own reading."""
    if made.DESCRIPTOR.full_name == "google.protobuf.Int64Value":
        return made.value or "0"  # empty, and there
    found: dict[str, Any] = {}
    for one, value in made.ListFields():
        if one.message_type is not None and one.message_type.GetOptions().map_entry:
            found[one.name] = {k: seen(v) for k, v in value.items()}
        elif one.message_type is not None:
            found[one.name] = [seen(v) for v in value] if one.is_repeated else seen(value)
        elif one.enum_type is not None:
            found[one.name] = one.enum_type.values_by_number[value].name
        else:
            found[one.name] = list(value) if one.is_repeated else value
    return found


@given(orders)
def test_what_the_library_writes_is_read_as_the_library_reads_it(members: dict[str, Any]) -> None:
    made = written(members)
    data = made.SerializeToString()
    found = read_message(SHOP, "shop.Order", data)
    assert plain(found) == seen(type(made).FromString(data))


@given(orders, st.data())
def test_bytes_that_are_accepted_hide_nothing_from_the_library_either(members: dict[str, Any], data: Any) -> None:
    made = written(members)
    whole = bytearray(made.SerializeToString())
    at = data.draw(st.integers(0, len(whole)))
    changed = bytes(whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + data.draw(st.integers(0, 4)) :])
    try:
        found = read_message(SHOP, "shop.Order", changed)
    except ProtobufError:
        return
    other = type(made).FromString(changed)
    assert not len(UnknownFieldSet(other))
    assert repr(found_numbers(found)) == repr(
        found_numbers(read_message(SHOP, "shop.Order", other.SerializeToString()))
    )


def found_numbers(value: Any) -> Any:
    """Without the difference between a default in the bytes and one that is not."""
    if isinstance(value, dict):
        return sorted(((str(k), found_numbers(v)) for k, v in value.items()), key=repr)
    if isinstance(value, list):
        return [found_numbers(v) for v in value]
    return str(value).lower().replace("-0.0", "0.0") if not isinstance(value, bytes) else value.decode("latin-1")


FRIENDS = message("shop.Order", friends=[990000000077, 5]).SerializeToString()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xa2\x06\x01x", "schema does not know"),
        (b"\x0a\x04\xa2\x06\x01x", "schema does not know"),
        (b"\x22\x04\x08\x05\x18\x09", "schema does not know"),
        (b"\x12\x01x", "schema does not know"),
        (b"\x0a\x02\x08\x05\x0a\x02\x08\x06", "twice"),
        (b"\x58\x01", "schema does not know"),
        (b"\x78\x05\x78\x06", "twice"),
        (b"\x29" + bytes(8) + b"\x32\x01x", "oneof"),
        (b"\x22\x02\x08\x05\x22\x02\x08\x05", "key twice"),
        (FRIENDS[:-1], "not protobuf"),
        (b"\x0a\x7f", "not protobuf"),
        (FRIENDS + b"\0", "not protobuf"),
        (b"\x88\x01" + b"\xff" * 9 + b"\x7f", "not protobuf"),
        (b"\x88\x01\x80\x80\x80\x80\x10", "not protobuf"),
        (b"\x68\x02", "not protobuf"),
        (b"\xaa\x01\x01\xff", "not protobuf"),
        (b"\x0c", "schema does not know"),
        (b"\x52\x05\x0a\x01x\x12\x00", "message type is not in the schema"),
    ],
    ids=[
        "another member",
        "one within a message",
        "one within a map",
        "another type of it",
        "a message twice",
        "a number for bytes",
        "a number twice",
        "two of a oneof",
        "a key of a map twice",
        "cut",
        "a length beyond the end",
        "more behind it",
        "a number too long",
        "a number too large for 32 bits",
        "a truth of two",
        "no UTF-8",
        "an end without a group",
        "an Any of an unknown type",
    ],
)
def test_what_a_reader_would_pass_over_is_told(data: bytes, reason: str) -> None:
    with pytest.raises(ProtobufError, match=reason):
        read_message(SHOP, "shop.Order", data)


def test_lists_of_numbers_are_read_packed_and_unpacked() -> None:
    assert FRIENDS[0] == 0x1A
    unpacked = b"".join(b"\x18" + FRIENDS[2:8] if n == 0 else b"\x18\x05" for n in range(2))
    for data in (FRIENDS, unpacked, FRIENDS + b"\x18\x05"):
        assert read_message(SHOP, "shop.Order", data)["friends"][:2] == [990000000077, 5]


def test_an_any_is_unpacked() -> None:
    inner = message("shop.Person", id=990000000077)
    made = message("shop.Order")
    made.more.Pack(inner)
    found = read_message(SHOP, "shop.Order", made.SerializeToString())
    assert found["more"]["value"]["id"] == 990000000077


def test_a_default_that_is_not_in_the_bytes_is_told_apart() -> None:
    found = read_message(SHOP, "shop.Order", b"")
    assert isinstance(found["shop_id"], Unwritten)
    assert (found["shop_id"], found["state"], found["paid"], found["seal"]) == ("0", "NEW", "false", "")
    assert not {"user", "phone", "friends", "seen_by", "buyer"} & set(found)
    empty = read_message(SHOP, "shop.Order", b"\x42\x00")["buyer"]
    assert empty == "0"
    assert not isinstance(empty, Unwritten)


def test_proto2_groups_extensions_defaults_and_required_members() -> None:
    made = message("old.Entry", owner=1, visit=[{"guest": 990000000077}], sums=[-3])
    (nurse,) = made.DESCRIPTOR.file.extensions_by_name.values()
    made.Extensions[nurse] = 990000000078
    found = read_message(OLD, "old.Entry", made.SerializeToString())
    assert found["visit"] == [{"guest": 990000000077}]
    assert found["[old.nurse]"] == 990000000078
    assert found["sums"] == [-3]
    assert found["teller"] == "7"
    assert isinstance(found["teller"], Unwritten)
    with pytest.raises(ProtobufError):
        read_message(OLD, "old.Entry", b"")
    with pytest.raises(ProtobufError):
        read_message(OLD, "old.Entry", EMPTY_ENTRY + b"\x1b\x08\x05")


def test_messages_without_end_within_each_other_are_refused() -> None:
    data = b""
    schema = schema_of_set(
        descriptor_set(
            'name: "n.proto" syntax: "proto3" message_type { name: "N"'
            ' field { name: "n" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".N" } }'
        )
    )
    for _ in range(200):
        size = len(data)
        data = b"\x0a" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + data
    with pytest.raises(ProtobufError, match="too deep"):
        read_message(schema, "N", data)


@pytest.mark.parametrize(
    ("path", "fits"),
    [
        ("user.id", True),
        ("buyer", True),
        ("seen_by.5.mail", True),
        ("more.value.id", True),
        ("user", False),
        ("userid", False),
        ("buyer.value", False),
        ("shop_id.x", False),
        ("seen_by.5", False),
    ],
)
def test_a_declared_path_is_looked_up_in_the_schema(path: str, fits: bool) -> None:
    assert SHOP.has("shop.Order", tuple(path.split("."))) is fits


INDEXED: list[tuple[Schema, bytes, str]] = [
    (SHOP, b"\0", "shop.Shop"),
    (SHOP, b"\x02\x00", "shop.Shop"),
    (SHOP, b"\x02\x02", "shop.Order"),
    (OLD, b"\0", "old.Entry"),
]


@pytest.mark.parametrize(("schema", "index", "name"), INDEXED)
def test_a_message_index_means_the_type_that_it_counts_to(schema: Schema, index: bytes, name: str) -> None:
    assert schema.unframed(index + b"rest") == (name, b"rest")


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        (b"", "not protobuf"),
        (b"\x01\x00", "no message index"),
        (b"\x02\x09", "no message index"),
        (b"\x02\x08", "no message index"),
        (b"\x04\x02\x04", "no message index"),
        (b"\x04\x02\x00", "more than one type"),
    ],
    ids=["nothing", "not zigzag", "below zero", "beyond the file", "beyond the message", "beside a map's own type"],
)
def test_a_message_index_that_means_nothing_is_told(index: bytes, reason: str) -> None:
    with pytest.raises(ProtobufError, match=reason):
        SHOP.unframed(index)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a descriptor set"),
        (b"\xff\xff", "not a descriptor set"),
        (descriptor_set(ORDER), "lacks common.proto, which it imports"),
        (descriptor_set(ORDER, COMMON.replace("Person", "Robot")), "contradicts itself"),
        (
            descriptor_set('name: "a" dependency: "b"', 'name: "b" dependency: "a"', 'name: "c" dependency: "a"'),
            "itself",
        ),
    ],
    ids=["nothing", "other bytes", "an import is missing", "a type is missing", "in a circle"],
)
def test_a_schema_that_is_none_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        schema_of_set(data)


def test_the_order_of_files_and_whether_well_known_ones_are_among_them_do_not_matter() -> None:
    assert schema_of_set(descriptor_set(ORDER, COMMON)) == SHOP
    whole = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set(ORDER, COMMON))
    for module in (any_pb2, timestamp_pb2, wrappers_pb2):
        module.DESCRIPTOR.CopyToProto(whole.file.add())
    assert schema_of_set(whole.SerializeToString()) == SHOP


def test_a_file_of_an_edition_is_read_by_its_features() -> None:
    text = """
        name: "e.proto" syntax: "editions" edition: EDITION_2023
        message_type { name: "E"
          field { name: "id" number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 }
          field { name: "bare" number: 2 label: LABEL_OPTIONAL type: TYPE_INT64
                  options { features { field_presence: IMPLICIT } } }
          field { name: "in" number: 3 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".E"
                  options { features { message_encoding: DELIMITED } } }
        }
    """
    schema = schema_of_set(descriptor_set(text))
    assert read_message(schema, "E", b"\x1b\x08\x05\x10\x06\x1c") == {
        "in": {"id": 5, "bare": 6},
        "bare": Unwritten("0"),
    }


def test_the_library_refuses_what_is_cut_too() -> None:
    with pytest.raises(DecodeError):
        message("shop.Order").ParseFromString(FRIENDS[:-1])
