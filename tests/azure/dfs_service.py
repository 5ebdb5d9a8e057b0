"""The DFS endpoint of the stand-in for Azure Storage, as Hadoop's ABFS driver asks it; its bytes are those of
`tests/azure/blob_service.py`.

https://learn.microsoft.com/rest/api/storageservices/datalakestoragegen2/path. A request that it does not know is
answered by 501, which the driver does not try again, and is kept for the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timezone
from email.utils import format_datetime
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.azure.blob_state import Account, Refused, State
from tests.azure.entra import CHALLENGE, Entra
from tests.azure.path_access import beside, created, set_access, shown
from tests.azure.path_state import Paths
from tests.azure.shared_key import ACCOUNT, refuse_unsigned
from tests.certificates import secured
from tests.servers import Kept, served

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class DfsService:
    """A server that answers. address: host and port. unknown: requests that it has no answer for."""

    address: str
    asked: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


@contextmanager
def dfs_service(account: Account, entra: Entra | None = None, tls: Path | None = None) -> Iterator[DfsService]:
    """The stand-in on loopback for one account. entra: it takes tokens alone. tls: its certificate and key."""
    service = DfsService("")
    handler = type("Handler", (_Handler,), {"account": account, "service": service, "entra": entra})
    server = secured(ThreadingHTTPServer(("127.0.0.1", 0), handler), tls)
    service.address = f"127.0.0.1:{server.server_port}"
    with served(server):
        yield service


class _Unknown(Exception):
    """No request that the stand-in has an answer for."""


class _Handler(Kept):
    account: Account
    service: DfsService
    entra: Entra | None

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))
        asked = f"{self.command} {self.path}"
        try:
            if self.entra:
                self.entra.refuse(self.command, self.query, self.headers)
            else:
                refuse_unsigned(self.command, parts.path, self.query, self.headers)
            account, _, rest = unquote(parts.path).removeprefix("/").partition("/")
            container, _, name = rest.partition("/")
            with self.account.lock:
                self.service.asked.append(asked)
                if account != ACCOUNT:
                    raise Refused(400, "InvalidUri")
                paths = Paths(self.account, self.account.container(container))
                if not self.account.hierarchical and (self.account.soft_delete_days or self.account.container_days):
                    raise Refused(409, "EndpointUnsupportedAccountFeatures")
                self._answer(*self._routed(paths, name.rstrip("/"), body))
        except Refused as error:
            code = error.code.replace("Container", "Filesystem").replace("Blob", "Path")
            text = json.dumps({"error": {"code": code, "message": "no"}})
            headers = {"x-ms-error-code": code, "Content-Type": "application/json"}
            headers |= {"WWW-Authenticate": CHALLENGE} if error.status == 401 and self.entra else {}
            self._answer(error.status, headers, text.encode())
        except _Unknown:
            self.service.unknown.append(asked)
            self._answer(501, {}, b"")

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = do_PATCH = _any

    def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {"x-ms-request-id": "0", "x-ms-version": "2018-11-09", **headers}.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _routed(self, paths: Paths, name: str, body: bytes) -> Answer:
        query, action, kind = self.query, self.query.get("action", ""), self.query.get("resource", "")
        wanted = set(query) - {"timeout", "upn"}
        if self.command == "HEAD" and kind == "filesystem" and not name:
            enabled = str(self.account.hierarchical).lower()
            return 200, {"x-ms-properties": "", "x-ms-namespace-enabled": enabled}, b""
        if self.command == "HEAD" and action in ("", "getStatus", "getAccessControl") and wanted <= {"action"}:
            return self._status(paths, name, action)
        if self.command == "GET" and kind == "filesystem" and not name:
            return self._list(paths, wanted)
        if self.command == "GET" and not wanted:
            return self._read(paths, name)
        if self.command == "DELETE" and wanted <= {"recursive", "continuation"} and name:
            self._condition(paths, name)
            paths.leased(name, self.headers.get("x-ms-lease-id"))
            paths.delete(name, recursive=query.get("recursive") == "true")
            return 200, {}, b""
        override = self.command == "PUT" and self.headers.get("x-http-method-override") == "PATCH"
        if (override or self.command == "PATCH") and action == "setAccessControl" and wanted == {"action"} and not body:
            return self._allow(paths, name)
        if override or self.command == "PATCH":
            return self._update(paths, name, action, body)
        if self.command == "PUT" and self.headers.get("x-ms-rename-source"):
            return self._rename(paths, name)
        if self.command == "PUT" and kind in ("file", "directory") and wanted == {"resource"} and not body:
            return self._create(paths, name, folder=kind == "directory")
        raise _Unknown

    def _status(self, paths: Paths, name: str, action: str) -> Answer:
        state = paths.state(name)
        self._condition(paths, name)
        mine = shown(state)
        if action == "getAccessControl":
            if not self.account.hierarchical:
                raise Refused(400, "HierarchicalNamespaceNotEnabled")
            return 200, mine | {"x-ms-acl": state.acl} | self._mark(state), b""
        told = self._mark(state) | {"x-ms-resource-type": "directory" if state.folder else "file"}
        told |= {"Content-Length": str(len(state.data)), "Accept-Ranges": "bytes"}
        told |= {**mine, **beside(state)} if self.account.hierarchical else {}
        return 200, told | ({} if action else {"x-ms-properties": ""}), b""

    def _list(self, paths: Paths, wanted: set[str]) -> Answer:
        if wanted - {"resource", "directory", "recursive", "maxResults", "continuation"}:
            raise _Unknown
        found = paths.entries(self.query.get("directory", "").strip("/"), recursive=self.query["recursive"] == "true")
        first = int(self.query.get("continuation") or 0)
        size = min(self.account.page, int(self.query.get("maxResults") or 5000))
        told = [
            {
                "name": name,
                **({"isDirectory": "true"} if state.folder else {}),
                "contentLength": str(len(state.data)),
                "lastModified": format_datetime(state.modified.astimezone(timezone.utc), usegmt=True),
                "etag": state.etag.strip('"'),
                **{title.removeprefix("x-ms-"): text for title, text in shown(state).items()},
            }
            for name, state in found[first : first + size]
        ]
        more = {"x-ms-continuation": str(first + size)} if first + size < len(found) else {}
        return 200, more | {"Content-Type": "application/json;charset=utf-8"}, json.dumps({"paths": told}).encode()

    def _read(self, paths: Paths, name: str) -> Answer:
        state = paths.state(name)
        if state.folder:
            raise Refused(409, "PathIsDirectory")
        self._condition(paths, name)
        if state.tier == "Archive":
            raise Refused(409, "BlobArchived")
        told, asked = self._mark(state), self.headers.get("Range")
        if asked is None:
            return 200, told, state.data
        first, _, last = asked.removeprefix("bytes=").partition("-")
        if int(first) >= len(state.data):
            raise Refused(416, "InvalidRange")
        end = min(int(last or len(state.data)) + 1, len(state.data))
        told["Content-Range"] = f"bytes {first}-{end - 1}/{len(state.data)}"
        return 206, told, state.data[int(first) : end]

    def _create(self, paths: Paths, name: str, *, folder: bool) -> Answer:
        if not self.account.hierarchical and {"x-ms-permissions", "x-ms-umask"} & {n.lower() for n in self.headers}:
            raise Refused(400, "UnsupportedHeader")
        self._condition(paths, name)
        paths.leased(name, self.headers.get("x-ms-lease-id"))
        made = paths.create(name, folder=folder)
        if not folder:
            created(made, self.headers)
        return 201, self._mark(made), b""

    def _allow(self, paths: Paths, name: str) -> Answer:
        if not self.account.hierarchical:
            raise Refused(400, "HierarchicalNamespaceNotEnabled")
        self._condition(paths, name)
        paths.leased(name, self.headers.get("x-ms-lease-id"))
        state = paths.state(name)
        set_access(state, self.headers)
        return 200, self._mark(state), b""

    def _rename(self, paths: Paths, name: str) -> Answer:
        source = unquote(self.headers["x-ms-rename-source"].partition("?")[0]).removeprefix("/")
        container, _, old = source.partition("/")
        conditional = self.headers.get("If-None-Match") == "*" or self.headers.get("If-Match")
        if not conditional or self.account.containers.get(container) is not paths.container:
            raise _Unknown
        self._condition(paths, name)
        old, wanted = old.rstrip("/"), self.headers.get("x-ms-source-if-match")
        if wanted and (not paths.exists(old) or paths.state(old).etag.strip('"') != wanted.strip('"')):
            raise Refused(412, "SourceConditionNotMet")
        paths.leased(old, self.headers.get("x-ms-source-lease-id") or self.headers.get("x-ms-lease-id"))
        paths.rename(old, name)
        return 201, self._mark(paths.state(name)), b""

    def _update(self, paths: Paths, name: str, action: str, body: bytes) -> Answer:
        paths.leased(name, self.headers.get("x-ms-lease-id"))
        position = int(self.query.get("position", "-1"))
        known = {"action", "position", "timeout", "retainUncommittedData", "close"}
        if action not in ("append", "flush") or set(self.query) - known:
            raise _Unknown
        if action == "append":
            paths.append(name, position, body)
            return 202, {}, b""
        self._condition(paths, name)
        return 200, self._mark(paths.flush(name, position)), b""

    def _condition(self, paths: Paths, name: str) -> None:
        wanted, unwanted = self.headers.get("If-Match"), self.headers.get("If-None-Match")
        there = paths.exists(name)
        if unwanted == "*" and there:
            raise Refused(409, "PathAlreadyExists")
        if wanted not in (None, "*") and (not there or paths.state(name).etag.strip('"') != wanted.strip('"')):
            raise Refused(412, "ConditionNotMet")

    def _mark(self, state: State) -> dict[str, str]:
        return {
            "ETag": state.etag,
            "Last-Modified": format_datetime(state.modified.astimezone(timezone.utc), usegmt=True),
        }
