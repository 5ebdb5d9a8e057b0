"""Bytes in a file without a name, so that nothing of them stays on the disk, whatever happens to the process.

The file has the owner's rights alone (O_TMPFILE, or unlinked as soon as it is made).
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable


def in_unnamed_file(chunks: Iterable[bytes]) -> memoryview:
    """All chunks, one after the other. The file goes with the last view of them.

    Raises:
        OSError: it cannot be written.
    """
    with tempfile.TemporaryFile() as file:
        written = 0
        for chunk in chunks:
            written += file.write(chunk)
        file.flush()
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if written else memoryview(b"")


def in_sparse_file(size: int, pieces: Iterable[tuple[int, bytes]]) -> memoryview:
    """So many bytes, those of the pieces at their offsets, zeros elsewhere. The file goes with the last view of them.

    Raises:
        OSError: it cannot be written.
    """
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        for offset, piece in pieces:
            file.seek(offset)
            file.write(piece)
        file.flush()
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
