"""Protobuf schemas: from a descriptor set that `protoc` wrote, or from the files of a schema registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from pii_tracer.lake.streams.kafka.protobuf_messages import (
    Kind,
    Member,
    Message,
    Schema,
)

_NAMES = (
    "any",
    "api",
    "descriptor",
    "duration",
    "empty",
    "field_mask",
    "source_context",
    "struct",
    "timestamp",
    "type",
    "wrappers",
)
_BUILT_IN = {
    file.name: file.serialized_pb for file in (import_module(f"google.protobuf.{n}_pb2").DESCRIPTOR for n in _NAMES)
}
"""Files that every compiler brings along, so that registries do not keep them."""


class SchemaError(Exception):
    """A schema that is none. Its text is for people."""


def schema_of_set(data: bytes) -> Schema:
    """The schema in a serialized `FileDescriptorSet`. Message indexes count in the one file that no other imports.

    Raises:
        SchemaError: other bytes, an import that is missing, or a schema that contradicts itself.
    """
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(data)
    except DecodeError:
        raise SchemaError("the schema is not a descriptor set") from None
    imported = {name for one in files.file for name in (*one.dependency, *one.option_dependency)}
    roots = [one.name for one in files.file if one.name not in imported]
    if not roots:
        raise SchemaError("the schema is not a descriptor set")
    return _schema(files.file, roots[0] if len(roots) == 1 else None)


def schema_of_files(files: Mapping[str, bytes], main: str) -> Schema:
    """The schema in serialized `FileDescriptorProto`s, by the name under which they are imported.

    Raises:
        SchemaError: as `schema_of_set`.
    """
    parsed = []
    for name, data in files.items():
        try:
            parsed.append(descriptor_pb2.FileDescriptorProto.FromString(data))
        except DecodeError:
            raise SchemaError("a file of it is not a descriptor") from None
        parsed[-1].name = name
    return _schema(parsed, main)


def imports_of(data: bytes) -> frozenset[str]:
    """The files that a serialized `FileDescriptorProto` imports, without those that need not be fetched.

    Raises:
        SchemaError: other bytes.
    """
    try:
        parsed = descriptor_pb2.FileDescriptorProto.FromString(data)
    except DecodeError:
        raise SchemaError("a file of it is not a descriptor") from None
    return frozenset(parsed.dependency) - frozenset(_BUILT_IN)


def _schema(files: Sequence[Any], main: str | None) -> Schema:
    by_name = {name: descriptor_pb2.FileDescriptorProto.FromString(data) for name, data in _BUILT_IN.items()}
    by_name |= {one.name: one for one in files}
    pool, added = DescriptorPool(), dict[str, None]()
    for one in files:
        _add(pool, by_name, one.name, added, ())
    messages = {}
    for name in added:
        for path, _ in _types(by_name[name].message_type, by_name[name].package):
            messages[path] = _message(pool, path)
    return Schema(messages=messages, indexes=_indexes(by_name[main]) if main is not None else {})


def _add(pool: Any, files: Mapping[str, Any], name: str, added: dict[str, None], through: tuple[str, ...]) -> None:
    if name in added:
        return
    if name not in files:
        raise SchemaError(f"the descriptor set lacks {name}, which it imports (protoc needs --include_imports)")
    if name in through:
        raise SchemaError(f"{name} imports itself")
    for dependency in files[name].dependency:
        _add(pool, files, dependency, added, (*through, name))
    try:
        pool.AddSerializedFile(files[name].SerializeToString())
    except (TypeError, ValueError):  # each implementation has its own for a file that contradicts itself
        raise SchemaError(f"{name} contradicts itself") from None
    added[name] = None


def _types(types: Sequence[Any], package: str) -> Iterator[tuple[str, Any]]:
    """Full names of message types, those within others too."""
    for one in types:
        name = f"{package}.{one.name}" if package else one.name
        yield name, one
        yield from _types(one.nested_type, name)


def _message(pool: Any, name: str) -> Message:
    descriptor = pool.FindMessageTypeByName(name)
    map_entry = bool(descriptor.GetOptions().map_entry)
    members = {one.number: _member(one, one.name, map_entry) for one in descriptor.fields}
    if descriptor.is_extendable:
        extensions = pool.FindAllExtensions(descriptor)
        members |= {one.number: _member(one, f"[{one.full_name}]", map_entry) for one in extensions}
    return Message(name=name, members=members, map_entry=map_entry)


def _member(one: Any, name: str, map_entry: bool) -> Member:
    kind = Kind(one.type)
    silent = not one.has_presence or one.has_default_value or (map_entry and one.message_type is None)
    return Member(
        name=name,
        kind=kind,
        repeated=one.is_repeated,
        required=one.is_required,
        message=one.message_type.full_name if one.message_type is not None else None,
        oneof=one.containing_oneof.name if one.containing_oneof is not None else None,
        unwritten=_default(one, kind) if silent and not one.is_repeated else None,
        enum={value.number: value.name for value in one.enum_type.values} if kind is Kind.ENUM else {},
    )


def _default(one: Any, kind: Kind) -> str:
    value = one.default_value
    if kind is Kind.ENUM:
        return str(one.enum_type.values_by_number[value].name)
    if kind is Kind.BYTES:
        return str(value.decode("utf-8", "replace"))
    return str(value).lower() if kind is Kind.BOOL else str(value)


def _indexes(file: Any) -> dict[tuple[int, ...], frozenset[str]]:
    """Message index -> types that writers mean by it.

    Some count the types that the compiler makes for maps and groups, some do not.
    """
    found: dict[tuple[int, ...], set[str]] = {}
    for without in (frozenset(), frozenset({"map"}), frozenset({"map", "group"})):
        for path, name in _indexed(file.message_type, file.package, (), frozenset(), without):
            found.setdefault(path, set()).add(name)
    return {path: frozenset(names) for path, names in found.items()}


def _indexed(
    types: Sequence[Any], package: str, above: tuple[int, ...], groups: frozenset[str], without: frozenset[str]
) -> Iterator[tuple[tuple[int, ...], str]]:
    """groups: names of the types here that the compiler made for groups."""
    counted = [
        one
        for one in types
        if not ("map" in without and one.options.map_entry) and not ("group" in without and one.name in groups)
    ]
    for number, one in enumerate(counted):
        name = f"{package}.{one.name}" if package else one.name
        yield (*above, number), name
        inner = frozenset(f.type_name.rpartition(".")[2] for f in one.field if f.type == Kind.GROUP)
        yield from _indexed(one.nested_type, name, (*above, number), inner, without)
