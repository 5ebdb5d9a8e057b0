"""Protobuf schemas for tests, as `protoc` would compile them; the same messages written by Protobuf's own library."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, text_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

COMMON = """
name: "common.proto" package: "shop" syntax: "proto3"
message_type { name: "Person"
  field { name: "id" number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 }
  field { name: "mail" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING }
}
"""
ORDER = """
name: "order.proto" package: "shop" syntax: "proto3"
dependency: "common.proto" dependency: "google/protobuf/wrappers.proto"
dependency: "google/protobuf/timestamp.proto" dependency: "google/protobuf/any.proto"
message_type { name: "Shop"
  field { name: "id" number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 }
}
message_type { name: "Order"
  field { name: "user" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".shop.Person" }
  field { name: "price" number: 2 label: LABEL_OPTIONAL type: TYPE_DOUBLE }
  field { name: "friends" number: 3 label: LABEL_REPEATED type: TYPE_INT64 }
  field { name: "seen_by" number: 4 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".shop.Order.SeenByEntry" }
  field { name: "phone" number: 5 label: LABEL_OPTIONAL type: TYPE_FIXED64 oneof_index: 0 }
  field { name: "letter" number: 6 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 }
  field { name: "state" number: 7 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".shop.State" }
  field { name: "buyer" number: 8 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "at" number: 9 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" }
  field { name: "more" number: 10 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".google.protobuf.Any" }
  field { name: "seal" number: 11 label: LABEL_OPTIONAL type: TYPE_BYTES }
  field { name: "delta" number: 12 label: LABEL_OPTIONAL type: TYPE_SINT32 }
  field { name: "paid" number: 13 label: LABEL_OPTIONAL type: TYPE_BOOL }
  field { name: "item" number: 14 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".shop.Order.Item" }
  field { name: "shop_id" number: 15 label: LABEL_OPTIONAL type: TYPE_UINT32 }
  field { name: "share" number: 16 label: LABEL_REPEATED type: TYPE_FLOAT }
  field { name: "row" number: 17 label: LABEL_OPTIONAL type: TYPE_INT32 }
  field { name: "big" number: 18 label: LABEL_OPTIONAL type: TYPE_UINT64 }
  field { name: "near" number: 19 label: LABEL_OPTIONAL type: TYPE_SINT64 }
  field { name: "port" number: 20 label: LABEL_OPTIONAL type: TYPE_SFIXED32 }
  field { name: "note" number: 21 label: LABEL_REPEATED type: TYPE_STRING }
  oneof_decl { name: "contact" }
  nested_type { name: "SeenByEntry" options { map_entry: true }
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".shop.Person" }
  }
  nested_type { name: "Item"
    field { name: "sku" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
  }
}
enum_type { name: "State" value { name: "NEW" number: 0 } value { name: "SENT" number: 1 } }
"""
LEDGER = """
name: "ledger.proto" package: "old" syntax: "proto2"
message_type { name: "Entry"
  field { name: "owner" number: 1 label: LABEL_REQUIRED type: TYPE_INT64 }
  field { name: "teller" number: 2 label: LABEL_OPTIONAL type: TYPE_INT32 default_value: "7" }
  field { name: "visit" number: 3 label: LABEL_REPEATED type: TYPE_GROUP type_name: ".old.Entry.Visit" }
  field { name: "sums" number: 4 label: LABEL_REPEATED type: TYPE_SINT64 }
  nested_type { name: "Visit" field { name: "guest" number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 } }
  extension_range { start: 100 end: 200 }
}
extension { name: "nurse" number: 100 label: LABEL_OPTIONAL type: TYPE_INT64 extendee: ".old.Entry" }
"""


def file(text: str) -> Any:
    """A `FileDescriptorProto` from its text."""
    return text_format.Parse(text, descriptor_pb2.FileDescriptorProto())


def descriptor_set(*texts: str) -> bytes:
    """What `protoc --descriptor_set_out` writes; well-known files are left out, as without their sources."""
    return descriptor_pb2.FileDescriptorSet(file=[file(text) for text in texts]).SerializeToString()


def _pool() -> DescriptorPool:
    from google.protobuf import any_pb2, timestamp_pb2, wrappers_pb2

    pool = DescriptorPool()
    for module in (any_pb2, timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    for text in (COMMON, ORDER, LEDGER):
        pool.AddSerializedFile(file(text).SerializeToString())
    return pool


POOL = _pool()


def message(name: str, **members: Any) -> Any:
    """A message of the library's own."""
    return GetMessageClass(POOL.FindMessageTypeByName(name))(**members)


def order(user: int, mail: str, **more: Any) -> bytes:
    """An order of somebody, written by the library."""
    return message("shop.Order", user={"id": user, "mail": mail}, price=1.5, **more).SerializeToString()


def framed(schema_id: int, index: bytes, body: bytes) -> bytes:
    """A registered record."""
    return b"\0" + schema_id.to_bytes(4, "big") + index + body
