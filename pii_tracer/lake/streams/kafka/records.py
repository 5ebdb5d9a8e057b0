"""Kafka records: what one is, how its bytes are decoded, and whether it is a person's by the declared fields.

A match over records names two columns, `key` and `value`; members of JSON are reached by `JsonAccess`. What cannot be
decoded is an error of that record, never a record of somebody else.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pii_tracer.config.kafka import RecordFormat, RecordPart, Topic
from pii_tracer.lake.streams.kafka.protobuf_messages import (
    ProtobufError,
    Schema,
    Unwritten,
    read_message,
)
from pii_tracer.model.datasets import JsonAccess, KeyPart, Match, MatchTerm
from pii_tracer.model.keys_as_text import joined, split

KEY, VALUE = "key", "value"

_FRAME = struct.Struct(">bI")
"""Magic byte 0 and the schema's id, big-endian
(https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format)."""
FRAME_BYTES = _FRAME.size


class Undecodable(Exception):
    """A record that is not what the estate file says. Its text names the kind of trouble, never content."""


@dataclass(frozen=True)
class Record:
    """One record. timestamp: milliseconds since 1970, as the broker gives it; key and value may be None."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None = field(repr=False)
    value: bytes | None = field(repr=False)
    headers: tuple[tuple[str, bytes | None], ...] = field(default=(), repr=False)


class Schemas(Protocol):
    """Where parsed schemas come from (`estate.kafka_schemas`).

    Each gives the writer's schema; `schema_id` None for the one of a part without framing. Raises `Undecodable`.
    """

    def avro(self, part: RecordPart, schema_id: int | None) -> Any: ...

    def protobuf(self, part: RecordPart, schema_id: int | None) -> Schema: ...


def decode(part: RecordPart, data: bytes, what: str, schemas: Schemas) -> Any:
    """Text, JSON with all its numbers as text, or what an Avro datum or a Protobuf message holds.

    Raises:
        Undecodable: other bytes than declared, or an unknown schema.
    """
    schema_id, body = _unframed(part, data, what)
    if part.format is RecordFormat.AVRO:
        return _avro(schemas.avro(part, schema_id), body, what)
    if part.format is RecordFormat.PROTOBUF:
        return _protobuf(schemas.protobuf(part, schema_id), part.message, body, what)
    try:
        text = body.decode()
        return text if part.format is RecordFormat.STRING else json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        raise Undecodable(f"the {what} is not {part.format.value}") from None


def _unframed(part: RecordPart, data: bytes, what: str) -> tuple[int | None, bytes]:
    if not part.framed:
        return None, data
    if len(data) < _FRAME.size or data[0] != 0:
        raise Undecodable(f"the {what} has no schema id in front")
    return _FRAME.unpack_from(data)[1], data[_FRAME.size :]


def _avro(schema: Any, body: bytes, what: str) -> Any:
    from fastavro import schemaless_reader

    stream = io.BytesIO(body)
    try:
        decoded = schemaless_reader(stream, schema, None)
    except Exception:  # fastavro meets foreign bytes with whatever error they lead to
        raise Undecodable(f"the {what} is not avro of its schema") from None
    if stream.read(1):
        raise Undecodable(f"the {what} is not avro of its schema")
    return decoded


def _protobuf(schema: Schema, message: str | None, body: bytes, what: str) -> Any:
    """message: None where the record tells by its index which it is."""
    try:
        if message is None:
            message, body = schema.unframed(body)
        return read_message(schema, message, body)
    except ProtobufError as error:
        raise Undecodable(f"the {what} {error}") from None


def leaf(decoded: Any, path: tuple[str, ...], what: str) -> str | None:
    """The scalar at a path as text, None where it is missing or null.

    Raises:
        Undecodable: a list stands on the way (the record may be several people's), or no scalar at its end.
    """
    for name in path:
        if isinstance(decoded, list):
            raise Undecodable(f"a declared member of the {what} lies in a list")
        if not isinstance(decoded, dict):
            return None
        decoded = decoded.get(name)
    if isinstance(decoded, (dict, list)):
        raise Undecodable(f"a declared member of the {what} is not a single value")
    if isinstance(decoded, bytes):
        try:
            return decoded.decode()
        except UnicodeDecodeError:
            raise Undecodable(f"a declared member of the {what} is binary") from None
    if isinstance(decoded, bool):
        return str(decoded).lower()
    return decoded if decoded is None or isinstance(decoded, str) else str(decoded)


class RecordMatcher:
    """Tells whose a record is. values: by key set name. Holds values of persons: never printed.

    keyless: records may lack the declared key, as nothing but tombstones needs one. Their value tells whose they are.
    """

    def __init__(
        self,
        topic: Topic,
        match: Match,
        values: Mapping[str, frozenset[str]],
        schemas: Schemas,
        *,
        keyless: bool = False,
    ) -> None:
        self._topic = topic
        self._keyless = keyless
        self._values = values
        self._schemas = schemas
        self._key = [t for t in match.terms if t.column == KEY and not t.beside]
        self._value = [t for t in match.terms if t.column == VALUE and not t.beside]
        self._whole = [t for t in match.terms if t.beside]
        names = {t.key_set for t in self._whole}
        self._persons = {name: tuple(split(value) for value in values[name]) for name in names}

    def __repr__(self) -> str:
        return f"RecordMatcher({self._topic.name})"

    def matches(self, record: Record) -> bool:
        """Whether the record is a person's: by its key, or by its value where it has one; by a key of several columns
        where all of them are the person's. Null in one is nobody.

        Raises:
            Undecodable: key or value are not what the estate file declares.
        """
        decoded = self._decoded(record)
        singly = ((KEY, self._key), (VALUE, self._value))
        found = [self._any(terms, decoded[what], what) for what, terms in singly if what in decoded]
        return any([*found, *(self._is_whole(term, decoded) for term in self._whole)])

    def _decoded(self, record: Record) -> dict[str, Any]:
        """The record's key and value, as far as it has them."""
        decoded = {}
        if self._topic.key is None:
            if record.key is not None:
                raise Undecodable("the record has a key and the estate file declares none")
        elif record.key is not None:
            decoded[KEY] = decode(self._topic.key, record.key, KEY, self._schemas)
        elif not self._keyless:
            raise Undecodable("the record has no key")
        if record.value is not None:
            decoded[VALUE] = decode(self._topic.value, record.value, VALUE, self._schemas)
        return decoded

    def _is_whole(self, term: MatchTerm, decoded: Mapping[str, Any]) -> bool:
        """Whether all columns of a key are one person's.

        Raises:
            Undecodable: a member is not there at all, and the others are a person's: it can be hers, or anybody's of
                another tenant.
        """
        if VALUE not in decoded and any(part.column == VALUE for part in term.parts):
            return False  # a tombstone
        known = [_stands(decoded.get(part.column), path_of(part)) for part in term.parts]
        texts = [leaf(decoded.get(part.column), path_of(part), part.column) for part in term.parts]
        if any(known) and not all(known):
            there = [(at, text) for at, text in enumerate(texts) if known[at]]
            if any(all(person[at] == text for at, text in there) for person in self._persons[term.key_set]):
                raise Undecodable("a declared member of a key of several columns is missing")
            return False
        if joined(texts) not in self._values[term.key_set]:
            return False
        if any(isinstance(text, Unwritten) for text in texts):
            raise Undecodable("a declared member is not written, and it is unknown whether it was meant")
        return True

    def _any(self, terms: list[MatchTerm], decoded: Any, what: str) -> bool:
        found = [self._is_of(term, leaf(decoded, path_of(term), what), what) for term in terms]
        return any(found)

    def _is_of(self, term: MatchTerm, found: str | None, what: str) -> bool:
        if found not in self._values[term.key_set]:
            return False
        if isinstance(found, Unwritten):  # it can be the person's, or of a writer who set nothing
            raise Undecodable(f"a declared member of the {what} is not written, and it is unknown whether it was meant")
        return True


def _stands(decoded: Any, path: tuple[str, ...]) -> bool:
    """Whether a member is there, if only as null; with no path, whether there is anything."""
    if not path:
        return decoded is not None
    for name in path:
        if not isinstance(decoded, dict) or name not in decoded:
            return False
        decoded = decoded[name]
    return True


def path_of(term: KeyPart) -> tuple[str, ...]:
    """The JSON path of a term; empty for the whole text."""
    return tuple(name for access in term.access if isinstance(access, JsonAccess) for name in access.path)
