"""The file of a graph: a head, a list of lengths, the arrays. Written by `pack`, mapped by `unpack`.

    magic 16 bytes | format version u32 | length of the list u32 | length of the file u64 | SHA-256 of all the rest
    list of lengths, JSON | arrays in the order of the list, each from a multiple of 64 bytes on

All numbers little-endian. Equal arrays give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pii_tracer.common.plurals import counted
from pii_tracer.lineage.graph.arrays import (
    Columnar,
    columnar_of,
    fault,
    layout,
)
from pii_tracer.model.errors import LineageError

FORMAT_VERSION = 3
MAGIC = b"pii-tracer graph"
_HEAD = struct.Struct("<16sIIQ32s")
_ALIGNED = 64
_AGAIN = "harvest again"


def pack(made: Columnar) -> tuple[list[bytes | memoryview], str]:
    """The bytes of a file in pieces, and their digest (`sha256:…`)."""
    arrays = dict(made.arrays())
    listed = json.dumps({name: len(array) for name, array in arrays.items()}, separators=(",", ":")).encode()
    body: list[bytes | memoryview] = [listed, _padding(_HEAD.size + len(listed))]
    for name, dtype in layout().items():
        data = np.ascontiguousarray(arrays[name], dtype)
        body += [data.data.cast("B") if len(data) else b"", _padding(data.nbytes)]
    length = _HEAD.size + sum(len(piece) for piece in body)
    digest = _digest(FORMAT_VERSION, len(listed), length, body)
    head = _HEAD.pack(MAGIC, FORMAT_VERSION, len(listed), length, digest)
    return [head, *body], f"sha256:{digest.hex()}"


def _padding(length: int) -> bytes:
    return bytes(-length % _ALIGNED)


def _digest(version: int, listed: int, length: int, body: list[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256(struct.pack("<IIQ", version, listed, length))
    for piece in body:
        digest.update(piece)
    return digest.digest()


def unpack(data: memoryview, where: str) -> tuple[Columnar, str]:
    """The arrays of a file, not copied, and its digest. where: for messages.

    Raises:
        LineageError: no graph, of another version, cut, or changed since it was written.
    """
    if bytes(data[: len(MAGIC)]) != MAGIC[: len(data)] or not len(data):
        old = bytes(data[:1]) == b"{"
        what = "the lineage graph has an older format" if old else "the file is not a lineage graph"
        raise LineageError(what, where=where, todo=_AGAIN)
    if len(data) < _HEAD.size:
        raise LineageError("the lineage graph is truncated", where=where, todo=_AGAIN)
    _, version, listed, length, digest = _HEAD.unpack(data[: _HEAD.size])
    _known(version, where)
    if length != len(data) or listed > length - _HEAD.size:
        raise LineageError(
            f"the lineage graph has {counted(len(data), 'byte')} instead of {length:,}", where=where, todo=_AGAIN
        )
    if _digest(version, listed, length, [data[_HEAD.size :]]) != digest:
        raise LineageError("the lineage graph was changed after it was written", where=where, todo=_AGAIN)
    try:
        made = columnar_of(dict(_arrays(data, json.loads(bytes(data[_HEAD.size : _HEAD.size + listed])), listed)))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise LineageError("the lineage graph is broken: its list of lengths", where=where, todo=_AGAIN) from None
    wrong = fault(made)
    if wrong:
        raise LineageError(f"the lineage graph is broken: {wrong}", where=where, todo=_AGAIN)
    return made, f"sha256:{digest.hex()}"


def _known(version: int, where: str) -> None:
    if version > FORMAT_VERSION:
        raise LineageError(
            f"the lineage graph has format {version}, but this program supports only up to {FORMAT_VERSION}",
            where=where,
            todo="use the newer pii-tracer, or run `pii-tracer harvest` again",
        )
    if version < FORMAT_VERSION:
        raise LineageError("the lineage graph has an older format", where=where, todo=_AGAIN)


def _arrays(data: memoryview, lengths: Any, listed: int) -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
    at = _HEAD.size + listed
    for name, dtype in layout().items():
        at += -at % _ALIGNED
        count = lengths[name]
        if not isinstance(count, int) or count < 0:
            raise ValueError(name)
        yield name, np.frombuffer(data[at : at + count * dtype.itemsize], dtype)
        at += count * dtype.itemsize
