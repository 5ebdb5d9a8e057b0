"""Arrays of NumPy, also those inside `.npz`
(https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pii_tracer.scan.decode.arrow import search_leaf
from pii_tracer.scan.decode.file_kind import FileKind, Part
from pii_tracer.scan.decode.table_metadata import Role
from pii_tracer.scan.hit_collector import Collector

_MAGIC = b"\x93NUMPY"


class NpyError(ValueError):
    """The array cannot be read; the message says why, without content."""


def decode(data: memoryview, collector: Collector, role: Role) -> None:
    """Search one array, field by field, and its bytes as they stand.

    Raises:
        NpyError: cut short, or it holds objects of Python, which are not loaded.
    """
    collector.raw(data, "raw bytes")
    array, _ = _read(data)
    for label, values in _fields(array, "data"):
        _search(values, label, collector)


def _read(data: memoryview) -> tuple[Any, int]:
    """The array, and where it ends."""
    source = io.BytesIO(data)
    try:
        array = np.load(source, allow_pickle=False)
    except (ValueError, EOFError, OSError, MemoryError, OverflowError) as error:
        raise NpyError(f"a NumPy array that cannot be read without running code: {type(error).__name__}") from None
    return array, source.tell()


def _fields(array: Any, label: str) -> Iterator[tuple[str, Any]]:
    if array.dtype.names:
        for name in array.dtype.names:
            yield from _fields(array[name], name)
    elif array.dtype.subdtype is None:
        yield label, np.ravel(array)


def _search(values: Any, label: str, collector: Collector) -> None:
    kind = values.dtype.kind
    if kind in "iu" and values.dtype.itemsize == 1:
        collector.binary(values.tobytes(), "data", label)
    if kind == "U":
        search_leaf(pa.array(values.tolist(), pa.large_string()), collector, "data", label)
    elif kind in "SV":
        for value in values.tolist():
            collector.binary(bytes(value).rstrip(b"\0"), "data", label)
    elif kind in "iuf":
        native = values.astype(values.dtype.newbyteorder("="))
        search_leaf(
            pa.array(native if native.dtype.itemsize <= 8 else native.astype(np.float64)), collector, "data", label
        )
    elif kind not in "bmMc":
        raise NpyError("a NumPy array of a type that is not known")


def _behind(data: memoryview) -> Iterator[Part]:
    _, end = _read(data)
    if end < len(data):
        yield Part("", (data[end:],))


KIND = FileKind(
    name="npy",
    rank=11,
    fits=lambda data: bytes(data[: len(_MAGIC)]) == _MAGIC,
    starts=(_MAGIC,),
    decode=decode,
    errors=(NpyError,),
    parts=_behind,
)
