"""Files in HDFS as a search reads them, or knows them from an earlier one: the NameNode says what a file is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import ClassVar

from pii_tracer.app.stored_places.row_counts import RowCounts
from pii_tracer.common.parallel_map import several
from pii_tracer.common.unnamed_file import in_unnamed_file
from pii_tracer.lake.stores.base import StoreError
from pii_tracer.lake.stores.hdfs.hdfs_path import file_checksum, pieces
from pii_tracer.lake.stores.hdfs.places import HdfsFile, HdfsKind, HdfsPlace
from pii_tracer.lake.stores.hdfs.webhdfs import WebHdfs
from pii_tracer.lake.stores.object_places.version_types import VersionState
from pii_tracer.model.errors import EstateError
from pii_tracer.scan.folder_scan import scan_bytes, scan_object, with_name
from pii_tracer.scan.hits import FileScan
from pii_tracer.scan.incremental_search import LedgerSearchers
from pii_tracer.scan.search_workers import KnownByStore, Searchers, Stamp, place_in_store
from pii_tracer.scan.value_forms import Patterns
from pii_tracer.verify.stores.stored_files import unread_file

_OPEN = (
    "the file is open for writing. Stop the writer, or release its lease (`hdfs debug recoverLease -path …`), then plan"
    " again"
)
_OTHER = "it was written, or replaced, while it was read: plan again when nothing writes there"
_ASKED_AT_ONCE = 8

Takes = Callable[["HeldFile", memoryview], Iterable[str]]
"""Is given a file that was read; returns why a part of it is unread."""


def fetch(client: WebHdfs, file: HdfsFile, kept: bool) -> memoryview:
    """The bytes of a file, in a file without a name here. kept: in a snapshot, where nothing is ever written.

    Raises:
        EstateError: refused, gone, another one than was listed, or open for writing.
    """
    if not kept and client.is_open(file.path):
        raise EstateError(_OPEN)
    data = in_unnamed_file(pieces(client, file.path, file.size))
    _raise_if_other(client, file)
    if len(data) != file.size:
        raise StoreError("the file's content ends early", "Cut", where=client.name)
    return data


def _raise_if_other(client: WebHdfs, file: HdfsFile) -> None:
    now = client.status(file.path)
    if (now.file_id, now.size, now.modified) != (file.file_id, file.size, file.modified):
        raise EstateError(_OTHER)


@dataclass(frozen=True)
class HeldFile:
    """A file, or an empty folder, as it was listed. identity: as of `identity_of`, where it was asked."""

    state: ClassVar = VersionState.LIVE
    file: HdfsFile
    identity: str | None = None

    @property
    def key(self) -> str:
        """Its path."""
        return self.file.path

    @property
    def size(self) -> int:
        """Bytes."""
        return self.file.size


def identity_of(client: WebHdfs, file: HdfsFile) -> str | None:
    """What is another as soon as the bytes are others; None of a file that is empty, open, or another than was listed.

    Its blocks and their generation stamps: a time of writing can be set by whoever owns the file.
    """
    if not file.size or file.path.endswith("/"):
        return None
    try:
        found = client.blocks(file.path)
    except EstateError:
        return None
    if found.is_open or found.size != file.size or not found.made_of:
        return None
    return sha256(json.dumps([file.file_id, file.size, file.modified, found.made_of]).encode()).hexdigest()


def checksum_of(client: WebHdfs, thing: HeldFile) -> str:
    """The checksum of a file that was searched, as of `file_checksum`.

    Raises:
        EstateError: as `fetch`; it may be the checksum of other bytes than those that were searched.
    """
    checksum = file_checksum(client, thing.key)
    _raise_if_other(client, thing.file)
    if thing.identity is not None and identity_of(client, thing.file) != thing.identity:
        raise EstateError(_OTHER)
    return checksum


def held(
    client: WebHdfs,
    files: Iterable[HdfsFile],
    searchers: Searchers,
    patterns: Patterns,
    remembers: Callable[[HeldFile], bool] = lambda file: True,
) -> Sequence[HeldFile]:
    """Files with what tells them again, where a ledger is there that remembers them. remembers: as of `HdfsLook`."""
    things = [HeldFile(file) for file in files]
    if not isinstance(searchers, LedgerSearchers) or searchers.ledger is None or patterns.file_keys is not None:
        return things

    def told(thing: HeldFile) -> HeldFile:
        return replace(thing, identity=identity_of(client, thing.file)) if remembers(thing) else thing

    return list(several(told, things, _ASKED_AT_ONCE))


@dataclass(frozen=True)
class HdfsLook(KnownByStore):
    """How a file is searched (`pii_tracer.scan.search_workers.Look`). front: what names are told without.

    rows: counts those of files that are read. takes: is given the others' bytes. remembers: files of which an earlier
    search may tell all that is asked; the others are read each time.
    """

    client: WebHdfs
    where: HdfsPlace
    front: str
    rows: RowCounts | None = None
    takes: Takes = lambda file, data: ()
    remembers: Callable[[HeldFile], bool] = lambda file: True
    at_once: int = 4
    only_here: ClassVar = True

    def __call__(self, thing: HeldFile, patterns: Patterns) -> FileScan:
        """Search the file."""
        name = self._name(thing)
        if thing.key.endswith("/"):  # an empty folder: its name may tell of somebody
            return scan_bytes(name, b"", patterns)
        try:
            data = fetch(self.client, thing.file, self.where.kind is HdfsKind.SNAPSHOT)
            alone = scan_object(thing.key.lstrip("/"), data, patterns, self.where.searched_as(thing.key))
            more = tuple(self.takes(thing, data))
        except (EstateError, OSError) as error:
            return unread_file(name, error, patterns)
        if self.rows is not None:
            self.rows.take(thing, data)
        alone = alone.model_copy(update={"unread": (*alone.unread, *more)})
        same = thing.identity is not None and identity_of(self.client, thing.file) == thing.identity
        return with_name(alone, name, patterns).model_copy(update={"of_bytes": alone if same else None})

    def stamp(self, thing: HeldFile) -> Stamp:
        """As it was listed."""
        return thing.size, f"{thing.file.file_id} {thing.file.modified}"

    def place(self, thing: HeldFile) -> str | None:
        """The NameNode and the path."""
        if not self.remembers(thing):
            return None
        return place_in_store(self.client.name, thing.key, self.where.searched_as(thing.key))

    def identity(self, thing: HeldFile) -> str | None:
        """As it was asked of the NameNode, before any byte was read."""
        return thing.identity

    def again(self, thing: HeldFile, known: FileScan, patterns: Patterns) -> FileScan | None:
        """With the name, if the file is still made of the same blocks and can be read, and its rows are known where
        they are counted."""
        if self.rows is not None and not self.rows.knows(thing):
            return None
        try:
            there = len(self.client.read(thing.key, 0, 1)) == 1
        except (EstateError, OSError):
            there = False
        same = there and identity_of(self.client, thing.file) == thing.identity
        return with_name(known, self._name(thing), patterns) if same else None

    def _name(self, thing: HeldFile) -> str:
        return thing.key.removeprefix(self.front)
