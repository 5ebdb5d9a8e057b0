"""WebHDFS, as far as it is needed: https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html.

A NameNode sends who reads or writes to a DataNode: it is asked for that address (`noredirect`), since no redirection is
followed here. Whom HDFS takes a request for is said in the address; with Kerberos a ticket says it (`security`).
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from pii_tracer.common.http import NoAnswer
from pii_tracer.common.kerberos import NoTicket
from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.stores.base import Absent, Changed, PagesSeen, StoreError
from pii_tracer.lake.stores.hdfs.name_nodes import NameNodes, Unfit, code_of
from pii_tracer.lake.stores.hdfs.security import ON_TRUST, Security, is_trusted_target
from pii_tracer.model.errors import EstateError
from pii_tracer.model.locations import HdfsLocation

_ODD = (KeyError, TypeError, ValueError, OverflowError)
"""What an answer raises that is none: a number may have no end."""
_API = "/webhdfs/v1"
SNAPSHOTS = ".snapshot"
"""The name under which a folder shows its snapshots."""
_NO_SNAPSHOTS = "SnapshotException"
"""What a NameNode answers about `.snapshot` of a folder that can have none."""
_SECONDS = 60.0
_ANSWER = 1 << 26
"""Bytes of the longest answer without a file's bytes: a page of a listing has a thousand entries."""
_PRINTED = string.ascii_letters + string.digits + string.punctuation
_KINDS: dict[str, type[StoreError]] = {
    "FileNotFoundException": Absent,
    "FileAlreadyExistsException": Changed,
    "AlreadyBeingCreatedException": Changed,
}
_ASKS_KERBEROS = "the NameNode requires Kerberos: write `kerberos: USER@REALM` instead of `user` under `hdfs`"
_TODO = {
    "AccessControlException": "grant the user in `hdfs` the right to list and read there",
    "StandbyException": "list all NameNodes of the nameservice under `hdfs.webhdfs`",
    "RetriableException": "wait until the NameNode has started and left its safe mode, then run the command again",
    "SafeModeException": "wait until the NameNode has left its safe mode, then run the command again",
    **dict.fromkeys(("SecurityException", "HTTP 401"), _ASKS_KERBEROS),
    "NoTicketTaken": "compare principal, realm and clocks; set `hadoop.http.authentication.type` to kerberos",
    "NotProved": "the server did not prove its identity: check `hdfs.webhdfs`, and whether the NameNode uses Kerberos",
    "NotTrusted": "the NameNode redirects to no DataNode, or to one without TLS: set `dfs.http.policy` to HTTPS_ONLY",
    "NoCertificates": "the file under `hdfs.ca` cannot be read: set it to a PEM file with certificates",
    "does not answer: SSLCertVerificationError": "set `hdfs.ca` to the file with the CA of the server's certificate",
}
_NO_QUOTA = 2**63 - 1
_REACH = "check the address under `hdfs.webhdfs`, the user and the network"


class Status(NamedTuple):
    """A file or folder. name: in its folder, empty of what was asked for itself. modified: milliseconds since 1970.

    encrypted: in an encryption zone. striped: erasure-coded. kind: `FILE`, `DIRECTORY` or `SYMLINK`.
    """

    name: str
    kind: str
    size: int
    modified: int
    file_id: int
    encrypted: bool
    striped: bool

    @property
    def mark(self) -> str:
        """Other bytes, another mark: a file is only appended to, cut, or another file of the same name."""
        return f'"{self.file_id:x}-{self.modified:x}-{self.size:x}"'


class Rights(NamedTuple):
    """What stands beside a file's bytes. permission: octal. listed: it has an access list or attributes of its own.

    policy: of its storage, 0 where its folder decides. block_size: in bytes.
    """

    owner: str
    group: str
    permission: str
    replication: int
    block_size: int
    policy: int
    listed: bool


class Blocks(NamedTuple):
    """What a file is made of. is_open: somebody writes it: its last block is not finished.

    made_of: its blocks, each with its generation stamp. HDFS changes no byte of a finished block without another stamp:
    who appends, cuts or writes anew gets others. Empty of a file without blocks, or where the NameNode does not tell.
    Empty, too, if a block is not finished, is broken, has no stamp, or is stored outside of HDFS, where no stamp
    tells of it.
    """

    is_open: bool
    size: int
    made_of: str


class Room(NamedTuple):
    """What the quotas of a folder leave: names of files and folders, bytes of all replicas; None without a quota."""

    names: int | None
    size: int | None


def client_at(estate: Estate, place: HdfsLocation) -> WebHdfs:
    """What reaches the NameNode of a place.

    Raises:
        EstateError: the estate file does not declare it.
    """
    for declared in estate.hdfs:
        if declared.root.holds(place):
            security = Security(declared.kerberos, declared.ca)
            name_nodes = NameNodes(declared.webhdfs, declared.block_pool)
            return WebHdfs(place.name_node, name_nodes, declared.user or "", security)
    raise EstateError("the estate file does not declare this NameNode", where=place.name_node, todo="add it to `hdfs`")


def joined(folder: str, name: str) -> str:
    """The path of what lies in a folder."""
    return f"{folder.rstrip('/')}/{name}"


@dataclass(frozen=True)
class WebHdfs:
    """A NameNode, or those of a nameservice. Every method raises `StoreError` when it refuses or does not answer in
    time; paths begin with `/`.

    name: as `hdfs://host:port`, or `hdfs://nameservice`. user: whom HDFS takes on trust; of no account with Kerberos.
    """

    name: str
    name_nodes: NameNodes
    user: str
    security: Security = ON_TRUST

    def status(self, path: str) -> Status:
        """Raises Absent: nothing stands there."""
        told = self._told("it cannot be read", path, "GETFILESTATUS", "FileStatus")
        try:
            return _status(told)
        except _ODD:
            raise self._odd(path) from None

    def entries(self, folder: str) -> Iterator[Status]:
        """What lies in a folder, asked once more behind the last name until nothing new comes. Raises Absent: there is
        no folder.
        """
        last, seen, names = "", PagesSeen(), set[str]()
        while True:
            page = self._told("it cannot be listed", folder, "LISTSTATUS_BATCH", "DirectoryListing", startAfter=last)
            try:
                found = [_status(item) for item in page["partialListing"]["FileStatuses"]["FileStatus"]]
                left = int(page["remainingEntries"])
            except _ODD:
                raise self._odd(folder) from None
            fresh = [one for one in found if one.name not in names]
            names.update(one.name for one in fresh)
            yield from fresh
            if not left and not fresh:
                return
            if not found or seen.again(found[-1].name):
                raise self._odd(folder)
            last = found[-1].name

    def snapshots(self, folder: str) -> tuple[Status, ...] | None:
        """A folder's snapshots; None where none are allowed of it, or it is not there."""
        try:
            return tuple(self.entries(joined(folder, SNAPSHOTS)))
        except Absent:
            return None
        except StoreError as error:
            if error.code == _NO_SNAPSHOTS:
                return None
            raise

    def home(self) -> str:
        """The user's home folder, whether it exists or not."""
        told = self._told("it returns no home folder", "/", "GETHOMEDIRECTORY", "Path")
        if not isinstance(told, str) or not told.startswith("/"):
            raise self._odd("/")
        return told

    def room(self, folder: str) -> Room:
        """What the folder's own quotas leave. Raises Absent: there is no folder."""
        told = self._told("its quotas cannot be read", folder, "GETQUOTAUSAGE", "QuotaUsage")
        try:
            quotas = int(told["quota"]), int(told["spaceQuota"])
            used = int(told["fileAndDirectoryCount"]), int(told["spaceConsumed"])
        except _ODD:
            raise self._odd(folder) from None
        names, size = (most - now if 0 <= most < _NO_QUOTA else None for most, now in zip(quotas, used, strict=True))
        return Room(names, size)

    def is_open(self, path: str) -> bool:
        """Whether somebody writes the file: its last block is not finished."""
        return self.blocks(path).is_open

    def blocks(self, path: str) -> Blocks:
        """What a file is made of now. Raises Absent: no such file."""
        told = self._told("it cannot be read", path, "GET_BLOCK_LOCATIONS", "LocatedBlocks")
        if not isinstance(told, dict) or not isinstance(told.get("isUnderConstruction"), bool):
            raise self._odd(path)
        try:
            size, places = int(told["fileLength"]), told["locatedBlocks"]
            found = [item["block"] for item in places]
            parts = [(_text(b["blockPoolId"]), int(b["blockId"]), int(b["generationStamp"])) for b in found]
            whole = sum(int(b["numBytes"]) for b in found) >= size and told.get("isLastBlockComplete") is True
            whole = whole and all(map(_is_sound, places)) and all(stamp > 0 for _, _, stamp in parts)
        except _ODD:
            size, parts, whole = -1, [], False
        return Blocks(told["isUnderConstruction"], size, json.dumps(parts) if parts and whole else "")

    def read(self, path: str, first: int, at_most: int) -> bytes:
        """Bytes of a file from an offset on. Raises Absent: no such file."""
        what = "a file cannot be read"
        if not at_most:
            self.status(path)
            return b""
        place = self._place(what, "GET", path, "OPEN", offset=first, length=at_most)
        return self._asked(what, path, "GET", place, limit=at_most)

    def checksum(self, path: str) -> str:
        """What HDFS's DataNodes make of a file's bytes: the same bytes in the same blocks, the same text."""
        what = "it returns no checksum"
        data = self._asked(what, path, "GET", self._place(what, "GET", path, "GETFILECHECKSUM"))
        try:
            told = json.loads(data)["FileChecksum"]
            return f"{told['algorithm']}:{told['bytes']}"
        except _ODD:
            raise self._odd(path) from None

    def rights(self, path: str) -> Rights:
        """Whose a file is, and how it is kept. Raises Absent: nothing stands there."""
        what = "its rights cannot be read"
        told = self._told(what, path, "GETFILESTATUS", "FileStatus")
        names = self._told(what, path, "LISTXATTRS", "XAttrNames")
        try:
            return Rights(
                owner=str(told["owner"]),
                group=str(told["group"]),
                permission=str(told["permission"]),
                replication=int(told["replication"]),
                block_size=int(told["blockSize"]),
                policy=int(told["storagePolicy"]),
                listed=bool(told.get("aclBit", False)) or bool(json.loads(names)),
            )
        except _ODD:
            raise self._odd(path) from None

    def create(self, path: str, data: bytes, like: Rights | None = None) -> None:
        """Write a new file, and its folders; with the rights of another where one is given. Raises Changed: something
        stands there.
        """
        what, options = "a file cannot be written", dict[str, Any]()
        if like is not None:
            options = {"permission": like.permission, "replication": like.replication, "blocksize": like.block_size}
        place = self._place(what, "PUT", path, "CREATE", overwrite="false", **options)
        self._asked(what, path, "PUT", place, body=data)
        if like is not None:
            mine = self.rights(path)
            if (mine.owner, mine.group) != (like.owner, like.group):
                url = self._url(path, "SETOWNER", owner=like.owner, group=like.group)
                self._asked("the owner of a new file cannot be set", path, "PUT", url)

    def rename(self, path: str, to: str, *, overwrite: bool) -> None:
        """Give a file another path, in one go. Raises Changed: something stands there and is not to be written over."""
        options = {"destination": to, "renameoptions": "OVERWRITE" if overwrite else "NONE"}
        self._asked("a file cannot be written", to, "PUT", self._url(path, "RENAME", **options))

    def delete(self, path: str) -> None:
        """Delete a file for good: it does not go to the trash. A snapshot that has it keeps its bytes."""
        self._asked("a file cannot be deleted", path, "DELETE", self._url(path, "DELETE", recursive="false"))

    def delete_snapshot(self, folder: str, name: str) -> None:
        """Delete a snapshot of a folder, and the bytes that only it has."""
        url = self._url(folder, "DELETESNAPSHOT", snapshotname=name)
        self._asked("a snapshot cannot be deleted", folder, "DELETE", url)

    def _told(self, what: str, path: str, operation: str, part: str, **query: Any) -> Any:
        data = self._asked(what, path, "GET", self._url(path, operation, **query))
        try:
            return json.loads(data)[part]
        except _ODD:
            raise self._odd(path) from None

    def _place(self, what: str, method: str, path: str, operation: str, **query: Any) -> str:
        """The address at a DataNode to which a request is to go."""
        url = self._url(path, operation, noredirect="true", **query)
        data = self._asked(what, path, method, url, changes=False)
        try:
            # the NameNode leaves letters beyond ASCII as they are
            place = quote(str(json.loads(data)["Location"]), safe=_PRINTED)
        except _ODD:
            raise self._odd(path) from None
        if not is_trusted_target(place, self.name_nodes.addresses[0]):
            raise self._error("NotTrusted", what, path)
        return place

    def _url(self, path: str, operation: str, **query: Any) -> str:
        """Below the address of a NameNode."""
        asked = urlencode(
            {"op": operation, **self.security.named(self.user), **{k: v for k, v in query.items() if v != ""}}
        )
        return f"{_API}{quote(path, safe='/')}?{asked}"

    def _asked(
        self,
        what: str,
        path: str,
        method: str,
        url: str,
        *,
        limit: int = _ANSWER,
        body: bytes | None = None,
        changes: bool | None = None,
    ) -> bytes:
        """url: of a DataNode, or below the address of a NameNode. changes: whether it does, where the method does not
        say it.
        """
        headers = {"Content-Type": "application/octet-stream"}
        more: dict[str, Any] = {"seconds": _SECONDS, "limit": limit, "method": method, "body": body, "headers": headers}

        def send(address: str) -> bytes:
            return self.security.ask(f"{address}{url}", ticket=True, **more)

        try:
            if not url.startswith("/"):
                return self.security.ask(url, ticket=False, **more)
            changes = method != "GET" if changes is None else changes
            return self.name_nodes.asked(send, self._look, changes=changes)
        except NoTicket as error:
            raise StoreError(what, error.code, where=self._where(path), todo=error.todo) from None
        except NoAnswer as error:
            todo = error.todo if isinstance(error, Unfit) else None
            raise self._error(code_of(error), what, path, todo) from None

    def _look(self, url: str) -> bytes:
        """A page of a NameNode's web server. It needs a ticket where the whole server is behind Kerberos, and may need
        a name without.
        """
        if named := urlencode(self.security.named(self.user)):
            url = f"{url}&{named}"
        try:
            return self.security.ask(url, ticket=False, seconds=_SECONDS, limit=_ANSWER)
        except NoAnswer as error:
            if error.status != HTTPStatus.UNAUTHORIZED or not self.security.principal:
                raise
        return self.security.ask(url, ticket=True, seconds=_SECONDS, limit=_ANSWER)

    def _error(self, code: str, what: str, path: str, todo: str | None = None) -> StoreError:
        return _KINDS.get(code, StoreError)(what, code, where=self._where(path), todo=todo or _TODO.get(code, _REACH))

    def _odd(self, path: str) -> StoreError:
        return StoreError(
            "the endpoint does not follow the interface of WebHDFS", "NoWebHdfs", where=self._where(path), todo=_REACH
        )

    def _where(self, path: str) -> str:
        return f"{self.name}{path}"


def _is_sound(located: Any) -> bool:
    """Whether a block is whole, and HDFS itself keeps it: of provided storage it does not see who changes it."""
    kinds = located.get("storageTypes")
    return located.get("isCorrupt") is False and isinstance(kinds, list) and "PROVIDED" not in kinds


def _text(told: Any) -> str:
    """Raises TypeError: it is none."""
    if not isinstance(told, str):
        raise TypeError
    return told


def _status(told: Any) -> Status:
    """Raises one of `_ODD`: it is no status."""
    return Status(
        name=_text(told["pathSuffix"]),
        kind=_text(told["type"]),
        size=int(told["length"]),
        modified=int(told["modificationTime"]),
        file_id=int(told["fileId"]),
        encrypted=bool(told.get("encBit", False)),
        striped=bool(told.get("ecBit", False)),
    )
