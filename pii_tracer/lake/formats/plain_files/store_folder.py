"""Bare folders of a store that steps can erase: data files of one format without a log, each a whole of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.plain_files.data_file import StoredFile, parts_below, stored_file, stored_text
from pii_tracer.lake.formats.plain_files.table_state import told_by
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.object_tables import without_day
from pii_tracer.lake.stores.remote_path import RemoteFile
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.hive_text.layout import TextTable, text_at, text_properties
from pii_tracer.model.locations import object_uri

P = TypeVar("P", S3Path, RemoteFile)


@dataclass(frozen=True)
class Bare:
    """A bare folder. files: its data files, as they are read; paths: of the same."""

    state: TableState
    files: Sequence[StoredFile]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(file.path.path for file in self.files if isinstance(file.path, RemoteFile))


@dataclass(frozen=True)
class StoredFolder:
    """A folder as it was listed. root: the folder itself. snapshot: changes when a file comes, goes or is written.
    table: its name, where it is declared. text: of a table of text by columns, how its files are read.
    """

    dataset: DatasetId
    root: RemoteFile
    files: Sequence[RemoteFile]
    snapshot: str
    table: str | None = None
    text: TextTable | None = None


def look_at_folder(folder: StoredFolder) -> Bare | str:
    """What a folder is, or why no step can write its files again."""
    try:
        files, others = data_files_of(folder.root, ((one, one.length()) for one in folder.files), folder.text)
        if others:
            what = counted(len(others), "file")
            where = in_no_partition(folder.root, others[0])
            return f"it contains {what} other than data files that engines read: {others[0].name}{where}"
        if not files:
            return "it contains no data file"
        formats = sorted({str(file.format) for file in files})
        if len(formats) > 1:
            return f"it contains files of several formats ({', '.join(formats)})"
        told = told_by(folder.root, files)
    except EstateError as error:
        return "; ".join(filter(None, (error.what, error.todo)))
    except OSError as error:
        return f"its files cannot be read ({type(error).__name__})"
    if told.apart:
        return told.apart
    state = TableState(
        dataset=folder.dataset,
        table=folder.table,
        location=str(folder.root),
        format=files[0].format,
        snapshot=folder.snapshot,
        bytes=sum(file.length() for file in folder.files),
        properties=text_properties(folder.text) | told.properties,
        **told.fields,
    )
    return Bare(state, files)


def objects_below(
    folder: S3Path, listed: Iterable[tuple[str, int, int]], text: TextTable | None = None
) -> tuple[list[StoredFile], list[S3Path]]:
    """As `data_files_of`, of a folder in S3. listed: what lies in it, as its `walk` tells."""
    above = object_uri(folder.location.bucket, folder.location.prefix)
    found = ((folder / name.removeprefix(above), size) for name, size, _ in listed)
    return data_files_of(folder, found, text, dated=True)


def data_files_of(
    folder: P, listed: Iterable[tuple[P, int]], text: TextTable | None = None, *, dated: bool = False
) -> tuple[list[StoredFile], list[P]]:
    """Data files as engines read them, and everything else there that has bytes. listed: each with its size. dated:
    whether those in folders of days, such as `2026/11/30`, count: where each file is read and written by itself.

    Raises:
        EstateError: a file of text has a codec that is not read here, or is no text.
        OSError: S3 refuses. StoreError: another store does.
    """
    files, others = [], []
    for path, size in listed:
        file = _data_file(folder, path, text, dated) if size else None
        if file:
            files.append(file)
        elif size:
            others.append(path)
    return files, others


def in_no_partition(folder: S3Path | RemoteFile, path: S3Path | RemoteFile) -> str:
    """What is to be said of a file behind its name, if no engine reads it because of the folder that it lies in."""
    *folders, _ = parts_below(folder, path)
    if all("=" in part for part in folders):
        return ""
    return ", in a folder that is not `column=value`. Declare each such folder as a separate table"


def _data_file(
    folder: S3Path | RemoteFile, path: S3Path | RemoteFile, table: TextTable | None, dated: bool
) -> StoredFile | None:
    *folders, last = parts_below(folder, path)
    if last.startswith((".", "_")):
        return None
    if table is None:
        rest = [part for part in folders if "=" not in part]
        return stored_file(path) if not rest or (dated and not without_day("/".join(rest))) else None
    text = text_at(table, "", "/".join((*folders, last)))
    return stored_text(path, text) if text else None
