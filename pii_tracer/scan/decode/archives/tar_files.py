"""Tar archives: members, and the blocks around them
(https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html)."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator

import numpy as np

from pii_tracer.scan.decode.compressed_streams import PackedError, stream_of
from pii_tracer.scan.decode.file_kind import FileKind, Part

_BLOCK = 512
_PIECE = 1 << 20


def parts(data: memoryview) -> Iterator[Part]:
    """Headers, members and what lies behind them.

    Raises:
        PackedError: cut short, or of a layout that is not known.
    """
    position = 0
    try:
        with tarfile.open(fileobj=stream_of(data), mode="r:") as archive:
            for member in archive:
                start, end = member.offset_data, member.offset_data
                if member.isreg():
                    end += member.size
                    if member.issparse() or end > len(data):
                        raise PackedError("a member of a tar archive is truncated or sparse")
                yield Part("", (data[position:start],), own=True)
                if end > start:
                    yield Part(member.name, (data[at : min(end, at + _PIECE)] for at in range(start, end, _PIECE)))
                position = min(len(data), -(-end // _BLOCK) * _BLOCK)
                yield Part("", (data[end:position],), own=True)
    except (tarfile.TarError, ValueError, OSError):
        raise PackedError("an unreadable tar archive") from None
    rest = np.flatnonzero(np.frombuffer(data[position:], np.uint8)).tolist() if position < len(data) else []
    for first in rest[:1]:
        yield Part("", (data[position + first :],))


KIND = FileKind(
    name="tar",
    rank=19,
    fits=lambda data: bytes(data[257:262]) == b"ustar",
    parts=parts,
    errors=(PackedError,),
)
