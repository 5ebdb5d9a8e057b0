"""How a Parquet file is made, by its footer: whether anything in it is encrypted, and whether its rows are its own."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pyarrow.parquet as pq

from pii_tracer.common.thrift import Thrift, ThriftError

_ENCRYPTION_ALGORITHM = 8


def is_encrypted(data: memoryview) -> bool:
    """Whether a column or the footer is encrypted: a footer that is ends in `PARE`, one that is not names the algorithm
    (https://parquet.apache.org/docs/file-format/data-pages/encryption/).
    """
    if bytes(data[-4:]) == b"PARE":
        return True
    length = int.from_bytes(data[-8:-4], "little")
    try:
        return _ENCRYPTION_ALGORITHM in Thrift(bytes(data[max(0, len(data) - 8 - length) : -8])).numbers()
    except ThriftError:
        return False  # then it is no footer either, and the reader says so


def is_encrypted_file(path: Path) -> bool:
    """The same of a file on disk.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        if not stream.seek(0, os.SEEK_END):
            return False
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
            return is_encrypted(data)


def other_files(meta: pq.FileMetaData) -> bool:
    """Whether any row group lies in another file, as all of a folder's do in its summary `_metadata`
    (`ColumnChunk.file_path`, https://parquet.apache.org/docs/file-format/metadata/).
    """
    groups = (meta.row_group(number) for number in range(meta.num_row_groups))
    return any(group.column(index).file_path for group in groups for index in range(group.num_columns))
