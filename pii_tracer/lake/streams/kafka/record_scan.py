"""Scan the records of a topic: keys, values, headers. One `FileScan` for each partition, hashed over what was read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from pii_tracer.config.kafka import RecordFormat, RecordPart, Topic
from pii_tracer.lake.streams.kafka.records import (
    FRAME_BYTES,
    KEY,
    VALUE,
    Record,
    Schemas,
    Undecodable,
    decode,
)
from pii_tracer.scan.hit_collector import Collector
from pii_tracer.scan.hits import FileScan, Form, Hit
from pii_tracer.scan.rows.composite_keys import UnknownRowsError
from pii_tracer.scan.value_forms import Patterns

OnRecord = Callable[[Record, tuple[Hit, ...]], None]


class _Partition:
    """What was read of one partition so far."""

    def __init__(self, patterns: Patterns) -> None:
        self.collector = Collector(patterns)
        self.digest = hashlib.sha256()
        self.size = 0
        self.records = 0

    def take(self, record: Record, found: Collector) -> None:
        for part in _framed(record):
            self.digest.update(part)
            self.size += len(part)
        self.records += 1
        self.collector.merge(found)


def scan_topic(
    records: Iterable[Record],
    topic: Topic,
    partitions: int,
    patterns: Patterns,
    schemas: Schemas,
    on_record: OnRecord | None = None,
) -> tuple[FileScan, ...]:
    """Search every record. What is not encoded as declared is searched as raw bytes and unread, never clean.

    on_record: is told each record with its hits.
    """
    parts = [_Partition(patterns) for _ in range(partitions)]
    for record in records:
        found = scan_record(record, topic, patterns, schemas)
        parts[record.partition].take(record, found)
        if on_record is not None:
            on_record(record, found.hits())
    decoded = f"kafka > {topic.value.format.value}"
    return tuple(
        FileScan(
            path=f"{patterns.mask(topic.name)}/{number}",
            size=part.size,
            sha256=part.digest.hexdigest(),
            decoded_as=decoded,
            hits=part.collector.hits(),
            unread=part.collector.reasons,
        )
        for number, part in enumerate(parts)
    )


def scan_record(record: Record, topic: Topic, patterns: Patterns, schemas: Schemas) -> Collector:
    """The hits of one record, labelled `key`, `value.$.member`, `header.name`."""
    found = Collector(patterns)
    for column, part, data in ((KEY, topic.key, record.key), (VALUE, topic.value, record.value)):
        if data is not None:
            _part(found, column, part or RecordPart(format=RecordFormat.STRING), data, schemas)
    _whole_keys(found, record, topic, schemas)
    for name, content in record.headers:
        label = f"header.{patterns.mask(name)}"
        found.string(name, "record header", label)
        if content is not None:
            _text(found, content, "record header", label)
    return found


def _whole_keys(found: Collector, record: Record, topic: Topic, schemas: Schemas) -> None:
    """Keys of several columns, which no bytes show: the record is compared as a row."""
    keys = found.patterns.key_columns.rows
    if keys is None:
        return
    row = {}
    try:
        for column, part, data in ((KEY, topic.key, record.key), (VALUE, topic.value, record.value)):
            if part is not None and data is not None:
                row[column] = decode(part, data, column, schemas)
        terms = keys.found_in(row, found.patterns.whole_keys)
    except (Undecodable, UnknownRowsError) as error:
        found.unread(str(error))
        return
    for term in terms:
        found.add(term.key_set, Form.TEXT, "record", term.label())


def _part(found: Collector, column: str, part: RecordPart, data: bytes, schemas: Schemas) -> None:
    where = f"record {column}"
    try:
        decoded = decode(part, data, column, schemas)
    except Undecodable as error:
        found.unread(str(error))
        _text(found, data, where, column)
        return
    if part.format is RecordFormat.AVRO:
        found.cell(decoded, where, f"{column}.$")
    elif part.format is RecordFormat.PROTOBUF:
        _protobuf(found, decoded, data, where, column)
    else:
        _text(found, data[FRAME_BYTES:] if part.framed else data, where, column)


def _protobuf(found: Collector, decoded: Any, data: bytes, where: str, column: str) -> None:
    """What was decoded, and the bytes: another schema can make numbers of a text and still fit."""
    members = found.inner()
    members.cell(decoded, where, f"{column}.$")
    whole = found.inner()
    whole.merge(members)
    whole.rest(memoryview(data), where, read=[range(len(data))])
    found.merge(members)
    found.merge(whole, unless_seen_in=members)


def _text(found: Collector, data: bytes, where: str, column: str) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        found.binary(data, where, column)
        return
    found.string(text, where, column)
    found.packed_number(data, where, column)  # the bytes of many a number are text


def _framed(record: Record) -> Iterable[bytes]:
    """The record's content with the length of each part in front, so that two contents never look alike."""
    contents = [record.key, record.value]
    for name, content in record.headers:
        contents += [name.encode(), content]
    yield f"{record.offset},{record.timestamp},{len(record.headers)};".encode()
    for content in contents:
        yield b"-;" if content is None else f"{len(content)};".encode() + content
