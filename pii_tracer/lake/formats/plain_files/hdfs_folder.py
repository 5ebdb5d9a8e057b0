"""Bare folders in HDFS that steps can erase: data files of one format without a log, each a whole of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from pii_tracer.lake.formats.plain_files.data_file import StoredFile, stored_file
from pii_tracer.lake.formats.plain_files.table_state import told_by
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.stores.hdfs.hdfs_path import HdfsPath
from pii_tracer.lake.stores.hdfs.places import HdfsPlace
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from pii_tracer.model.errors import EstateError


@dataclass(frozen=True)
class Bare:
    """A bare folder. files: paths of its data files."""

    state: TableState
    files: frozenset[str]


def look_at_folder(client: WebHdfs, place: HdfsPlace, table: str | None) -> Bare | str:
    """What a folder in HDFS is, or why no step can write its files again. table: its name, where it is declared."""
    root = HdfsPath(client, place.location.path)
    try:
        files, others = _sorted(client, place)
        if others:
            return f"{len(others)} file(s) in it are no data files, or engines do not read them: {others[0]}"
        if not files:
            return "no data file lies in it"
        formats = sorted({str(file.format) for file in files})
        if len(formats) > 1:
            return f"files of several formats lie in it ({', '.join(formats)})"
        told = told_by(root, files)
    except EstateError as error:
        return "; ".join(filter(None, (error.what, error.todo)))
    except OSError as error:
        return f"its files cannot be read ({type(error).__name__})"
    if told.apart:
        return told.apart
    state = TableState(
        dataset=place.location.dataset,
        table=table,
        location=str(place.location),
        format=files[0].format,
        snapshot=place.fingerprint(),
        bytes=sum(file.size for file in place.files),
        **told.fields,
    )
    return Bare(state, frozenset(file.path.path for file in files if isinstance(file.path, HdfsPath)))


def _sorted(client: WebHdfs, place: HdfsPlace) -> tuple[list[StoredFile], list[str]]:
    """Data files as engines read them, and the names of everything else that has bytes."""
    files, others = [], []
    for one in place.files:
        *folders, last = PurePosixPath(one.path).relative_to(place.location.path).parts or ("",)
        plain = not last.startswith((".", "_")) and all("=" in part for part in folders)
        file = stored_file(HdfsPath(client, one.path, one.size)) if one.size and plain else None
        if file:
            files.append(file)
        elif one.size:
            others.append(last)
    return files, others
