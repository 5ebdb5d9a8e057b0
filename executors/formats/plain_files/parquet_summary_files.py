"""Summaries of Parquet folders: `_metadata` repeats the footers of all files, with their smallest and largest values.

Hazard F7. Readers that trust it (dask, pyarrow's `parquet_dataset`, old parquet-mr) take row groups by place, and
skip by their statistics (https://arrow.apache.org/docs/python/parquet.html#writing-metadata-and-common-metadata-files).
Once a file is written again both are wrong. There is nothing in it that the files do not tell themselves, so it goes
before the first of them is swapped: at no moment does one stand beside files it does not describe. `_common_metadata`
holds a schema and nothing of rows, and stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from executors.engine.local_files import files_below
from executors.formats.plain_files.arrow_match import BY_HAND
from pii_tracer.common.atomic_files import sync_folder
from pii_tracer.common.parquet_file_checks import is_encrypted_file, other_files
from pii_tracer.lake.formats.plain_files.table_state import SUMMARY
from pii_tracer.model.errors import RunError

_MAGIC = (b"PAR1", b"PARE")


def refuse_unreadable(folder: Path) -> None:
    """Raise `RunError` for a summary that cannot be read: whether it tells of the files here, or holds rows of its own,
    is not known.
    """
    for _ in _summaries(folder):
        pass


def stale(folder: Path, changing: Collection[Path] = ()) -> list[Path]:
    """Summaries at any depth that do not say what the files say. changing: files that are about to be written again.

    Raises:
        RunError: as `refuse_unreadable`.
    """
    return [
        path
        for path, meta in _summaries(folder)
        if any(file.is_relative_to(path.parent) for file in changing) or not _true(path, meta)
    ]


def remove_stale(folder: Path, changing: Collection[Path] = ()) -> int:
    """Remove those summaries; says how many. Readers fall back to the files' own footers.

    Raises:
        RunError: as `stale`.
    """
    found = stale(folder, changing)
    for path in found:
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        path.unlink()
        sync_folder(path.parent)
    return len(found)


def _summaries(folder: Path) -> Iterator[tuple[Path, pq.FileMetaData]]:
    for path in files_below(folder):
        if path.name != SUMMARY or not _is_parquet(path):
            continue
        try:
            # pyarrow ends the process when it is asked for an encrypted column
            meta = None if is_encrypted_file(path) else pq.read_metadata(path)
        except Exception:  # the library's messages can quote the file
            meta = None
        if meta is None:
            raise RunError("the summary of a Parquet folder cannot be read", where=SUMMARY, todo=BY_HAND)
        if other_files(meta):
            yield path, meta


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) in _MAGIC


def _true(path: Path, meta: pq.FileMetaData) -> bool:
    """Whether each file that the summary names is there, with the very row groups that it tells of."""
    told: dict[str, list[str]] = {}
    for number in range(meta.num_row_groups):
        group = meta.row_group(number)
        told.setdefault(group.column(0).file_path, []).append(_shown(group))
    for name, groups in told.items():
        file = path.parent / name
        try:
            if is_encrypted_file(file):
                return False
            own = pq.read_metadata(file)
            if [_shown(own.row_group(number)) for number in range(own.num_row_groups)] != groups:
                return False
        except (OSError, ValueError):  # it is not there, or no such file
            return False
    return True


def _shown(group: Any) -> str:
    """A row group without the file that it is in. NaN is not equal to itself: what prints alike is compared."""
    told = group.to_dict()
    return repr(told | {"columns": [{**column, "file_path": ""} for column in told["columns"]]})
