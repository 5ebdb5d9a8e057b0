"""Whether the quotas of HDFS have room for what an erasure writes, asked before a plan is made.

HDFS checks a quota when a file is made (one more name) and when each of its blocks is (a whole block for each replica,
https://hadoop.apache.org/docs/r3.3.4/hadoop-project-dist/hadoop-hdfs/HdfsQuotaAdminGuide.html). A quota that the user
may not look at is not known: HDFS then refuses in the middle of a step, which can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.hdfs.webhdfs import Room, WebHdfs
from planners.copies.scan_evidence import HdfsRead

_NO_ROOM = Room(None, None)
_UNTOLD = frozenset({"AccessControlException", "IllegalArgumentException", "UnsupportedOperationException"})
_OF_ENGINES = 10
"""Names that an engine adds to a table beside its data files: a commit, and files of metadata."""


@dataclass(frozen=True)
class Need:
    """What a step adds before it takes anything away: names, and bytes of all replicas."""

    names: int
    size: int


def crowded(client: WebHdfs, files: Sequence[HdfsRead], room: Callable[[str], Room], *, by_engine: bool) -> str | None:
    """The first quota, from the files' folders up to the root, without room to write some files again; None of others.

    by_engine: the old files stay until all are written. room: asks for that of a folder, which is asked once.
    """
    if not files:
        return None
    try:
        found = [(folder, room(folder)) for folder in _ways_up(files)]
    except StoreError as error:
        return f"it is not known whether a quota has room for a rewrite: {error.what}"
    limited = [(folder, left) for folder, left in found if left != _NO_ROOM]
    if not limited:
        return None
    size_of = cache(partial(_size, client))
    for folder, left in limited:
        try:
            need = _need(size_of, [file for file in files if _is_in(file, folder)], by_engine)
        except StoreError as error:
            return f"{folder} has a quota, and what a rewrite needs is not known: {error.what}"
        if left.names is not None and left.names < need.names:
            return _told(folder, counted(max(left.names, 0), "more name"), counted(need.names, "name"))
        if left.size is not None and left.size < need.size:
            size = f"{counted(need.size, 'byte')} for all replicas"
            return _told(folder, counted(max(left.size, 0), "more byte"), size)
    return None


def room_in(client: WebHdfs, folder: str) -> Room:
    """What the quotas of a folder leave, as far as the user may look at them and HDFS is new enough to tell.

    Raises:
        StoreError: HDFS does not answer, or not now.
    """
    try:
        return client.room(folder)
    except StoreError as error:
        if error.code in _UNTOLD:
            return _NO_ROOM
        raise


def _told(folder: str, left: str, need: str) -> str:
    return (
        f"the quota of {folder} leaves {left}, and to write files there again needs {need}: raise it, or make room,"
        " then plan again"
    )


def _need(size_of: Callable[[HdfsRead], int], files: Iterable[HdfsRead], by_engine: bool) -> Need:
    sizes = [size_of(file) for file in files]
    if by_engine:
        return Need(len(sizes) + _OF_ENGINES, sum(sizes))
    return Need(1, max(sizes, default=0))


def _size(client: WebHdfs, file: HdfsRead) -> int:
    """Of a new file with the bytes of an old one, in whole blocks."""
    rights = client.rights(file.path)
    return -(-max(file.size, 1) // rights.block_size) * rights.block_size * rights.replication


def _is_in(file: HdfsRead, folder: str) -> bool:
    return file.path.startswith(f"{folder.rstrip('/')}/")


def _ways_up(files: Iterable[HdfsRead]) -> list[str]:
    """The folders that some files lie in, the innermost first."""
    found = set[str]()
    for file in files:
        parts = file.path.split("/")[1:-1]
        found.update("/" + "/".join(parts[:depth]) for depth in range(len(parts) + 1))
    return sorted(found, key=lambda folder: (-len(folder.split("/")), folder))
