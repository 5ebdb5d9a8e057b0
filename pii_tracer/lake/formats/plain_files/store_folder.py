"""Bare folders of a store that steps can erase: data files of one format without a log, each a whole of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pii_tracer.common.plurals import counted
from pii_tracer.lake.formats.plain_files.data_file import StoredFile, parts_below, stored_file
from pii_tracer.lake.formats.plain_files.table_state import told_by
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.stores.remote_file import RemoteFile
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError


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
    table: its name, where it is declared.
    """

    dataset: DatasetId
    root: RemoteFile
    files: Sequence[RemoteFile]
    snapshot: str
    table: str | None = None


def look_at_folder(folder: StoredFolder) -> Bare | str:
    """What a folder is, or why no step can write its files again."""
    try:
        files, others = _sorted(folder.root, folder.files)
        if others:
            return f"it contains {counted(len(others), 'file')} other than data files that engines read: {others[0]}"
        if not files:
            return "no data file lies in it"
        formats = sorted({str(file.format) for file in files})
        if len(formats) > 1:
            return f"files of several formats lie in it ({', '.join(formats)})"
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
        **told.fields,
    )
    return Bare(state, files)


def _sorted(root: RemoteFile, listed: Iterable[RemoteFile]) -> tuple[list[StoredFile], list[str]]:
    """Data files as engines read them, and the names of everything else that has bytes."""
    files, others = [], []
    for one in listed:
        *folders, last = parts_below(root, one)
        plain = not last.startswith((".", "_")) and all("=" in part for part in folders)
        file = stored_file(one) if one.length() and plain else None
        if file:
            files.append(file)
        elif one.length():
            others.append(last)
    return files, others
