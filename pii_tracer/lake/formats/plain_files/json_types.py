"""Rows of JSON whose values change their type from line to line, in the types that Spark infers.

https://spark.apache.org/docs/latest/sql-data-sources-json.html; `compatibleType` in JsonInferSchema.scala: whole
numbers and others are double, whatever else differs is text, of objects and lists as they are written. Arrow, which
reads lines that are alike much faster, refuses these.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from pii_tracer.scan.rows.json_documents import json_values

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 16_384
_LONG = 2**63
_MARK = b"\xef\xbb\xbf"
_PLAIN = frozenset({str, float, bool, type(None)})


class TwiceError(ValueError):
    """An object has a member twice, and readers differ in which one counts."""


class Shape:
    """Types by column, and the columns in which an object or a list takes turns with something else.

    unlike: ways to text and to a number with a fraction or an exponent, which readers write differently as text; of
    other formats, those that two files have as types between which readers differ.
    """

    def __init__(self) -> None:
        self.types: dict[str, pa.DataType] = {}
        self.mixed: set[str] = set()
        self.unlike: set[tuple[str, ...]] = set()

    def add(self, types: Iterable[tuple[str, pa.DataType]]) -> None:
        """Types of further rows."""
        import pyarrow as pa

        for name, kind in types:
            known = self.types.get(name, pa.null())
            if kind != known or name not in self.types:
                self.types[name] = self._both(known, kind, (name,))

    def read(self, stream: IO[bytes]) -> None:
        """All rows of a file.

        Raises:
            ValueError: a row is not a JSON object, or has a member twice.
        """
        seen: set[tuple[str, Hashable]] = set()  # of millions of values few are of another kind than one before
        for row in _objects(stream):
            for name, value in row.items():
                sign = (name, _sign(value))
                if sign not in seen:
                    seen.add(sign)
                    self.add([(name, self._kind(value, (name,)))])

    def _kind(self, value: Any, way: tuple[str, ...]) -> pa.DataType:
        import pyarrow as pa

        if isinstance(value, dict):
            return pa.struct([(name, self._kind(member, (*way, name))) for name, member in value.items()])
        if isinstance(value, list):
            inner = pa.null()
            for item in value:
                inner = self._both(inner, self._kind(item, way), way)
            return pa.list_(inner)
        if value is None:
            return pa.null()
        if isinstance(value, bool):
            return pa.bool_()
        if isinstance(value, int) and not _is_long(value):
            return pa.int64()
        return pa.float64() if isinstance(value, float) else pa.string()

    def _both(self, one: pa.DataType, other: pa.DataType, way: tuple[str, ...]) -> pa.DataType:
        import pyarrow as pa

        if one == other or pa.types.is_null(other):
            return one
        if pa.types.is_null(one):
            return other
        if pa.types.is_struct(one) and pa.types.is_struct(other):
            fields = {field.name: field.type for field in one}
            for field in other:
                fields[field.name] = self._both(fields.get(field.name, pa.null()), field.type, (*way, field.name))
            return pa.struct(list(fields.items()))
        if pa.types.is_list(one) and pa.types.is_list(other):
            return pa.list_(self._both(one.value_type, other.value_type, way))
        if {one, other} == {pa.int64(), pa.float64()}:
            return pa.float64()
        if pa.types.is_nested(one) or pa.types.is_nested(other):
            self.mixed.add(way[0])
        if pa.types.is_floating(one) or pa.types.is_floating(other):
            self.unlike.add(way)
        return pa.string()


def line_count(stream: IO[bytes]) -> int | None:
    """How many lines have something, if each begins and ends as an object does; None otherwise.

    A reader that finds as many rows has read an object in each line: inside of an object, a sign follows another one.
    """
    found = 0
    for line in _bytes_of_lines(stream):
        if shown := line.removeprefix(_MARK).strip():
            if not (shown.startswith(b"{") and shown.endswith(b"}")):
                return None
            found += 1
    return found


def rows(stream: IO[bytes], columns: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Table:
    """The rows of a file, with those of these columns that any file has. types: as of `Shape`, over all files.

    Raises:
        ValueError: as `Shape.read`.
    """
    import pyarrow as pa

    schema = pa.schema([(name, types[name]) for name in columns if name in types])
    objects, batches = _objects(stream), []
    while some := list(islice(objects, _ROWS)):
        cells = [pa.array([_cell(row.get(f.name), f.type) for row in some], f.type) for f in schema]
        # a table without columns has lost how many rows it had
        batches.append(pa.record_batch(cells, schema) if cells else pa.record_batch({"": pa.nulls(len(some))}))
    return pa.Table.from_batches(batches, batches[0].schema if batches else schema)


def _sign(value: Any) -> Hashable:
    """What values of one kind have in common."""
    kind: type = type(value)
    if kind in _PLAIN:
        return kind
    if isinstance(value, dict):
        return ("{}", *((name, _sign(member)) for name, member in value.items()))
    if isinstance(value, list):
        return ("[]", *dict.fromkeys(map(_sign, value)))
    return _is_long(value)


def _is_long(value: int) -> bool:
    """Whether a whole number is none of 64 bits."""
    return not -_LONG <= value < _LONG


def _cell(value: Any, kind: pa.DataType) -> Any:
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_struct(kind):
        return {field.name: _cell(value.get(field.name), field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_cell(item, kind.value_type) for item in value]
    return value


def _objects(stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    for row in json_values(_lines(stream), _DECODER):
        if not isinstance(row, dict):
            raise ValueError("a row is not a JSON object")
        yield row


def _lines(stream: IO[bytes]) -> Iterator[str]:
    return (line.decode("utf-8-sig") for line in _bytes_of_lines(stream))


def _bytes_of_lines(stream: IO[bytes]) -> Iterator[bytes]:
    # Arrow's streams have no lines of their own
    carried = b""
    while piece := stream.read(1 << 20):
        *lines, carried = (carried + piece).split(b"\n")
        yield from (line + b"\n" for line in lines)
    yield carried


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise TwiceError
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_members)
