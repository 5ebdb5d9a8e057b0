"""Protobuf messages, read so that every byte of one is accounted for.

Source of the format: https://protobuf.dev/programming-guides/encoding/. Usual parsers take the last of several values
for one member and pass over members that their schema does not know. What they pass over stays in the bytes and can be
anybody's, so here it is an error. The schema comes from `estate.protobuf_schemas`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

DEEPEST = 100
"""Messages within messages, as other parsers allow by default (https://protobuf.dev/programming-guides/proto-limits/)."""

_ANY = "google.protobuf.Any"
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_NOT_OF_IT = "is not protobuf of its schema"
_UNKNOWN = "has a member that its schema does not know: name a newer schema"


class ProtobufError(Exception):
    """Bytes that are not of the schema. Its text goes on behind "the value", and never has content."""


class Kind(IntEnum):
    """Types of fields, by their numbers in `FieldDescriptorProto.Type`."""

    DOUBLE = 1
    FLOAT = 2
    INT64 = 3
    UINT64 = 4
    INT32 = 5
    FIXED64 = 6
    FIXED32 = 7
    BOOL = 8
    STRING = 9
    GROUP = 10
    MESSAGE = 11
    BYTES = 12
    UINT32 = 13
    ENUM = 14
    SFIXED32 = 15
    SFIXED64 = 16
    SINT32 = 17
    SINT64 = 18


class _Wire(IntEnum):
    VARINT = 0
    I64 = 1
    LEN = 2
    GROUP = 3
    END = 4
    I32 = 5


_FIXED = {
    Kind.DOUBLE: struct.Struct("<d"),
    Kind.FLOAT: struct.Struct("<f"),
    Kind.FIXED64: struct.Struct("<Q"),
    Kind.FIXED32: struct.Struct("<I"),
    Kind.SFIXED64: struct.Struct("<q"),
    Kind.SFIXED32: struct.Struct("<i"),
}
_INTEGERS = {
    Kind.INT64: range(-(1 << 63), 1 << 63),
    Kind.SINT64: range(-(1 << 63), 1 << 63),
    Kind.UINT64: range(1 << 64),
    Kind.INT32: range(-(1 << 31), 1 << 31),
    Kind.SINT32: range(-(1 << 31), 1 << 31),
    Kind.ENUM: range(-(1 << 31), 1 << 31),
    Kind.UINT32: range(1 << 32),
    Kind.BOOL: range(2),
}
_WIRES = {
    **dict.fromkeys(_INTEGERS, _Wire.VARINT),
    **{kind: _Wire.I64 if layout.size == 8 else _Wire.I32 for kind, layout in _FIXED.items()},
    Kind.STRING: _Wire.LEN,
    Kind.BYTES: _Wire.LEN,
    Kind.MESSAGE: _Wire.LEN,
    Kind.GROUP: _Wire.GROUP,
}


class Unwritten(str):
    """The default of a member that is not in the bytes, as text. Nobody can tell whether its writer meant it."""

    __slots__ = ()


@dataclass(frozen=True)
class Member:
    """A field of a message. message: the name of its type. oneof: of which only one member is written.

    unwritten: what readers are given where it is not in the bytes and nobody sees whether it was set.
    """

    name: str
    kind: Kind
    repeated: bool = False
    required: bool = False
    message: str | None = None
    oneof: str | None = None
    unwritten: str | None = None
    enum: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Message:
    """A message type: its members by their number."""

    name: str
    members: Mapping[int, Member]
    map_entry: bool = False


@dataclass(frozen=True)
class Schema:
    """Message types by full name. indexes: types that a registry's message index can mean; several are no answer."""

    messages: Mapping[str, Message]
    indexes: Mapping[tuple[int, ...], frozenset[str]]

    def has(self, message: str, path: tuple[str, ...]) -> bool:
        """Whether a path of member names can be one of the message; maps and `Any` may have any member."""
        name: str | None = message
        for number, part in enumerate(path):
            if name is None or name in _WRAPPERS:
                return False
            if name == _ANY:
                return True
            known = self.messages[name]
            if not known.map_entry:
                member = next((m for m in known.members.values() if m.name == part), None)
            else:  # the part is a key; what stands under it is the entry's value
                member = known.members.get(2)
            if member is None:
                return False
            name = member.message
            if number == len(path) - 1:
                return name is None or name in _WRAPPERS
        return False

    def unframed(self, data: bytes) -> tuple[str, bytes]:
        """The message type that the indexes in front of a registered record mean, and what stands behind them.

        https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format:
        their number and each of them as zigzag varints; a single 0 stands for the file's first message.

        Raises:
            ProtobufError: no such message, or one that writers do not agree about.
        """
        reader = _Reader(data)
        count = _zigzag(reader.varint())
        if not 0 <= count <= DEEPEST:
            raise ProtobufError("has no message index of its schema")
        path = tuple(_zigzag(reader.varint()) for _ in range(count)) or (0,)
        names = self.indexes.get(path, frozenset())
        if len(names) > 1:
            raise ProtobufError("has a message index that can mean more than one type")
        for name in names:
            return name, reader.rest()
        raise ProtobufError("has no message index of its schema")


def read_message(schema: Schema, name: str, data: bytes) -> Any:
    """What a message holds: members by name, numbers as numbers, enums by name, maps as dicts, wrappers as their value.

    Raises:
        ProtobufError: bytes that are not of the type, or that a reader of this schema would pass over.
    """
    return _message(schema, schema.messages[name], _Reader(data), 0)


class _Reader:
    """A position in bytes."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def more(self) -> bool:
        return self._at < len(self._data)

    def rest(self) -> bytes:
        return self._data[self._at :]

    def take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) < size:
            raise ProtobufError(_NOT_OF_IT)
        self._at += size
        return piece

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
        if byte >= 128 or value >> 64:
            raise ProtobufError(_NOT_OF_IT)
        return value

    def tag(self) -> tuple[int, int]:
        tag = self.varint()
        if not 8 <= tag < 1 << 32:
            raise ProtobufError(_NOT_OF_IT)
        return tag >> 3, tag & 7


def _message(schema: Schema, message: Message, reader: _Reader, depth: int, group: int | None = None) -> Any:
    """group: the number of the field, whose end is then awaited."""
    if depth > DEEPEST:
        raise ProtobufError("has messages too deep within each other")
    found: dict[Any, Any] = {}
    chosen: set[str] = set()
    while reader.more:
        number, wire = reader.tag()
        if wire == _Wire.END and number == group:
            group = None
            break
        member = message.members.get(number)
        if member is None:
            raise ProtobufError(_UNKNOWN)
        if member.oneof is not None:
            if member.oneof in chosen:
                raise ProtobufError("has more than one member of a oneof")
            chosen.add(member.oneof)
        for value in _values(schema, member, number, wire, reader, depth):
            _put(schema, found, member, value)
    if group is not None:
        raise ProtobufError(_NOT_OF_IT)
    return _shaped(schema, message, found, depth)


def _put(schema: Schema, found: dict[Any, Any], member: Member, value: Any) -> None:
    if not member.repeated:
        if member.name in found:
            raise ProtobufError("has a member twice")
        found[member.name] = value
    elif member.message is not None and schema.messages[member.message].map_entry:
        entries = found.setdefault(member.name, {})
        if value["key"] in entries:
            raise ProtobufError("has a key twice in a map")
        entries[value["key"]] = value["value"]
    else:
        found.setdefault(member.name, []).append(value)


def _values(schema: Schema, member: Member, number: int, wire: int, reader: _Reader, depth: int) -> Iterator[Any]:
    """What stands behind a tag: one value, or those of a packed list, which readers take for any list of numbers."""
    expected = _WIRES[member.kind]
    if wire == expected:
        yield _value(schema, member, number, reader, depth)
    elif wire == _Wire.LEN and member.repeated and expected in (_Wire.VARINT, _Wire.I64, _Wire.I32):
        packed = _Reader(reader.take(reader.varint()))
        while packed.more:
            yield _value(schema, member, number, packed, depth)
    else:
        raise ProtobufError(_UNKNOWN)


def _value(schema: Schema, member: Member, number: int, reader: _Reader, depth: int) -> Any:
    kind = member.kind
    if kind in _INTEGERS:
        return _integer(member, reader.varint())
    if kind in _FIXED:
        return _FIXED[kind].unpack(reader.take(_FIXED[kind].size))[0]
    if kind is Kind.GROUP:
        return _message(schema, schema.messages[member.message or ""], reader, depth + 1, number)
    data = reader.take(reader.varint())
    if kind is Kind.BYTES:
        return data
    if kind is Kind.MESSAGE:
        return _message(schema, schema.messages[member.message or ""], _Reader(data), depth + 1)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtobufError(_NOT_OF_IT) from None


def _integer(member: Member, raw: int) -> int | bool | str:
    kind = member.kind
    if kind in (Kind.SINT32, Kind.SINT64):
        value = _zigzag(raw)
    elif kind in (Kind.INT32, Kind.INT64, Kind.ENUM):
        value = raw - (1 << 64) if raw >> 63 else raw
    else:
        value = raw
    if value not in _INTEGERS[kind]:
        raise ProtobufError(_NOT_OF_IT)
    if kind is Kind.ENUM:
        return member.enum.get(value, value)
    return bool(value) if kind is Kind.BOOL else value


def _zigzag(raw: int) -> int:
    return raw >> 1 ^ -(raw & 1)


def _shaped(schema: Schema, message: Message, found: dict[Any, Any], depth: int) -> Any:
    """A message's members with what is not in the bytes."""
    for member in message.members.values():
        if member.name in found:
            continue
        if member.required:
            raise ProtobufError(_NOT_OF_IT)
        if member.unwritten is not None:
            found[member.name] = Unwritten(member.unwritten)
        elif message.map_entry:  # a value that is a message, and empty
            found[member.name] = _message(schema, schema.messages[member.message or ""], _Reader(b""), depth + 1)
    if message.name in _WRAPPERS:  # it is there, so that its value was meant
        value = found["value"]
        return str(value) if isinstance(value, Unwritten) else value
    return _unpacked(schema, found, depth) if message.name == _ANY else found


def _unpacked(schema: Schema, found: dict[Any, Any], depth: int) -> dict[Any, Any]:
    """An `Any` with its message in place of the bytes."""
    data = found.get("value")
    if not isinstance(data, bytes):
        return found
    kind = schema.messages.get(found["type_url"].rpartition("/")[2])
    if kind is None:
        raise ProtobufError("contains a field of type `Any` whose message type is not in the schema")
    return {**found, "value": _message(schema, kind, _Reader(data), depth + 1)}
