"""Where an ORC file keeps what it says of one column: its streams in the stripes, and its bounds in the tail.

https://orc.apache.org/specification/ORCv1/, "File Tail" and "Stripes"; messages are those of `orc_proto.proto`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pii_tracer.scan.cells_left_out import Apart
from pii_tracer.scan.hit_collector import Collector

_STRIPES, _TYPES, _STATISTICS = 3, 4, 7
_TEXT = 4
Part = tuple[int, int, int]
"""A field of a message: its number, and where its content starts and ends; of a number the number, and -1."""
NoKeys = dict[int, frozenset[str]]
"""By a column's number: the key sets that it holds none of."""


def fields(data: bytes, start: int, end: int) -> Iterator[Part]:
    """The fields of a message.

    Raises:
        IndexError, ValueError: it is none.
    """
    while start < end:
        tag, start = varint(data, start)
        if tag & 7 == 0:
            value, start = varint(data, start)
            yield tag >> 3, value, -1
            continue
        size, start = varint(data, start) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], start)
        if start + size > end:
            raise ValueError("a field is truncated")
        yield tag >> 3, start, start + size
        start += size


def varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def columns_of(footer: bytes, collector: Collector) -> NoKeys:
    """The top-level columns that hold another system's numbers. Raises as `fields`."""
    keys = collector.patterns.key_columns
    if not keys.not_keys:
        return {}
    root = next((at, end) for number, at, end in fields(footer, 0, len(footer)) if number == _TYPES)
    inside = list(fields(footer, *root))
    ids: list[int] = []
    for number, at, end in inside:
        if number == 2 and end < 0:
            ids.append(at)
        while number == 2 and at < end:
            value, at = varint(footer, at)
            ids.append(value)
    names = [footer[at:end].decode() for number, at, end in inside if number == 3]
    return {i: sets for i, name in zip(ids, names, strict=True) if (sets := keys.no_keys_in(name))}


def streams_apart(data: memoryview, footer: bytes, columns: NoKeys, unpack: Callable[[bytes], bytes]) -> Apart:
    """Where the streams of some columns lie in the file. Raises as `fields`."""
    apart = []
    for number, at, end in fields(footer, 0, len(footer)) if columns else ():
        if number != _STRIPES:
            continue
        told = {n: value for n, value, _ in fields(footer, at, end)}
        start, last = told[1], told[1] + told.get(2, 0) + told.get(3, 0)
        stripe = unpack(bytes(data[last : last + told[4]]))
        for kind, first, stop in fields(stripe, 0, len(stripe)):
            if kind == 1:
                stream = {n: value for n, value, _ in fields(stripe, first, stop)}
                if sets := columns.get(stream.get(2, 0)):
                    apart.append((range(start, start + stream[3]), sets))
                start += stream[3]
    return apart


def bounds_apart(section: bytes, columns: NoKeys, collector: Collector, *, footer: bool) -> Apart:
    """Where in the footer, or in the metadata, bounds of some columns are exactly a key. Raises as `fields`."""
    whole = [(0, len(section))]
    groups = whole if footer else [(at, end) for number, at, end in fields(section, 0, len(section)) if number == 1]
    apart = []
    for group in groups if columns else ():
        wanted = _STATISTICS if footer else 1
        statistics = [(at, end) for number, at, end in fields(section, *group) if number == wanted]
        for column, part in enumerate(statistics):
            texts = [(at, end) for number, at, end in fields(section, *part) if number == _TEXT and column in columns]
            for at, end in (bound for text in texts for _, *bound in fields(section, *text) if bound[1] >= 0):
                cell = section[at:end].decode("utf-8", "replace")
                if sets := columns[column].intersection(collector.patterns.of_cell(cell)):
                    apart.append((range(at, end), sets))
    return apart
