"""The pages of a Parquet column chunk: where their headers and bodies lie, and what the dictionary page holds.

Page headers are Thrift (https://parquet.apache.org/docs/file-format/, `parquet.thrift`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pii_tracer.common.thrift import Thrift, ThriftError

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_INNER = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
_DICTIONARY_ENCODINGS = frozenset({2, 8})
_WHOLE_ENCODINGS = frozenset({0, 6})
"""PLAIN and DELTA_LENGTH_BYTE_ARRAY: each text stands in one piece (https://parquet.apache.org/docs/file-format/data-pages/encodings/)."""
_CODECS = {"SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "BROTLI": "brotli", "LZ4": "lz4_raw"}
_NUMBERS = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8"}
_HEADER = 1 << 16


class PageError(ValueError):
    """The bytes are no chain of pages that this reader knows."""


@dataclass(frozen=True)
class Page:
    """One page. values: how many it says it has; levels: bytes of the body in front that no codec packs; packed:
    whether the chunk's codec packs the others.
    """

    kind: int
    body: range
    plain_size: int
    values: int
    encoding: int | None
    levels: int = 0
    packed: bool = True

    @property
    def is_dictionary(self) -> bool:
        """Whether it holds the chunk's distinct values."""
        return self.kind == _DICTIONARY

    @property
    def coded(self) -> bool:
        """Whether its values are numbers of dictionary entries."""
        return self.encoding in _DICTIONARY_ENCODINGS

    @property
    def stands(self) -> bool:
        """Whether each text in it, if any, stands in one piece in what the page unpacks to."""
        return self.is_dictionary or self.coded or self.encoding in _WHOLE_ENCODINGS


def pages(data: memoryview, start: int, end: int, values: int) -> tuple[Page, ...]:
    """The pages of a chunk that reaches from `start` to `end` and has so many values.

    Raises:
        PageError: they do not fill the chunk, or do not have these values.
    """
    found, position = [], start
    while position < end:
        page = _page(data, position, end)
        found.append(page)
        position = page.body.stop
    if position != end or sum(page.values for page in found if not page.is_dictionary) != values:
        raise PageError("pages whose total size or number of values differs from their column chunk")
    return tuple(found)


def plain(data: memoryview, page: Page, codec: str) -> memoryview:
    """A page's content, unpacked; without the levels that a page of version 2 has in front, which are no text.

    Raises:
        PageError: a codec that only the reader knows, or content that does not unpack.
    """
    body = data[page.body.start + page.levels : page.body.stop]
    if codec == "UNCOMPRESSED" or not page.packed or not len(body):
        return body
    if codec not in _CODECS:
        raise PageError("an unsupported codec")
    try:
        return memoryview(pa.decompress(body, page.plain_size - page.levels, _CODECS[codec]))
    except (pa.ArrowException, OSError, ValueError):
        raise PageError("a page that cannot be unpacked") from None


def numbers(content: memoryview, kind: str, length: int, scale: int | None, wanted: Collection[int]) -> set[int]:
    """Which whole numbers stand in a dictionary page's content, of some.

    kind: physical type; length: of a value where that is fixed; scale: of a decimal, None where it is none.
    Decimals of any length have it in front, as four bytes.
    """
    if kind in _NUMBERS and not scale:
        array = np.frombuffer(content, _NUMBERS[kind], len(content) // np.dtype(_NUMBERS[kind]).itemsize)
        sought = np.array([n for n in wanted if -(2**63) <= n < 2**63], np.int64)
        values = pa.array(array)
        # compared in the column's own type: a key above 2**53 has no double of its own, as in the rows
        return {
            int(value)
            for value in pc.filter(values, pc.is_in(values, pa.array(sought.astype(array.dtype)))).to_pylist()
        } & set(wanted)
    size = np.dtype(_NUMBERS[kind]).itemsize if kind in _NUMBERS else length
    varied = kind == "BYTE_ARRAY"
    if scale is None or not (varied or size > 0):
        return set()
    order: Literal["little", "big"] = "little" if kind in _NUMBERS else "big"
    unscaled = {number * 10**scale: number for number in wanted}
    pieces = _varied(content) if varied else _fixed(content, size)
    return {unscaled[n] for n in (int.from_bytes(piece, order, signed=True) for piece in pieces) if n in unscaled}


def _fixed(content: memoryview, size: int) -> Iterator[memoryview]:
    return (content[at : at + size] for at in range(0, len(content) - size + 1, size))


def _varied(content: memoryview) -> Iterator[memoryview]:
    at = 0
    while at + 4 <= len(content):
        start, at = at + 4, at + 4 + int.from_bytes(content[at : at + 4], "little")
        yield content[start:at]


def _page(data: memoryview, position: int, end: int) -> Page:
    header: dict[int, Any]
    reader = Thrift(bytes(data[position : min(end, position + _HEADER)]))
    try:
        header = reader.struct()
    except ThriftError:
        raise PageError("a page without a header") from None
    body = position + reader.position
    kind, plain_size, size = header.get(1), header.get(2), header.get(3)
    inner = header.get(_INNER.get(kind, 0)) if isinstance(kind, int) else None
    if (
        not isinstance(kind, int)
        or not isinstance(inner, dict)
        or not isinstance(size, int)
        or not isinstance(plain_size, int)
    ):
        raise PageError("a page of a kind that is not known")
    values, encoding = inner.get(1), inner.get(4 if kind == _DATA_V2 else 2)
    if not isinstance(values, int) or size < 0 or plain_size < 0 or body + size > end:
        raise PageError("the header of a page has an impossible size")
    levels = [inner.get(number, 0) for number in (5, 6)] if kind == _DATA_V2 else []
    if any(not isinstance(n, int) or n < 0 for n in levels) or sum(levels) > min(size, plain_size):
        raise PageError("a page with invalid levels")
    packed = kind != _DATA_V2 or inner.get(7, True) is True
    return Page(kind, range(body, body + size), plain_size, values, encoding, sum(levels), packed)
