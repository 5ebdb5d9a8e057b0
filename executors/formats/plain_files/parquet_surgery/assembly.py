"""Put a file together by its recipe; the system copies what stays, where it can."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO

from executors.formats.plain_files.parquet_surgery.recipe import File, Recipe

_AT_ONCE = 1 << 20
_SHORTER = "a file became shorter while it was copied"


def assemble(recipe: Recipe, files: Mapping[File, IO[bytes] | memoryview], sink: IO[bytes]) -> None:
    """Write the new file into an empty sink. files: open, or their bytes where they are in memory.

    Raises:
        OSError: as the file system says, or a file ends before the recipe does.
    """
    at = 0
    for piece in recipe.pieces:
        if isinstance(piece, bytes):
            sink.seek(at)
            sink.write(piece)
        else:
            _copy(files[piece.file], piece.extent, sink, at)
        at += len(piece)
    sink.flush()


def _copy(source: IO[bytes] | memoryview, extent: range, sink: IO[bytes], at: int) -> None:
    if isinstance(source, memoryview):
        if extent.stop > len(source):
            raise OSError(_SHORTER)
        sink.seek(at)
        sink.write(source[extent.start : extent.stop])
        return
    sink.flush()
    done = _system_copy(source, extent, sink, at)
    source.seek(extent.start + done)
    sink.seek(at + done)
    while done < len(extent):
        read = source.read(min(_AT_ONCE, len(extent) - done))
        if not read:
            raise OSError(_SHORTER)
        sink.write(read)
        done += len(read)


def _system_copy(source: IO[bytes], extent: range, sink: IO[bytes], at: int) -> int:
    """How many bytes the system copied by itself: none in memory, across file systems, or before Linux 4.5."""
    done = 0
    try:
        while done < len(extent):
            copied = os.copy_file_range(
                source.fileno(), sink.fileno(), len(extent) - done, extent.start + done, at + done
            )
            if not copied:
                break
            done += copied
    except (OSError, AttributeError):  # what is left is copied plainly, and fails there if it must
        pass
    return done
