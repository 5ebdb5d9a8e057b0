"""A strict stand-in for Azure Blob Storage, made from its REST documentation: it refuses what the service refuses.

https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api: requests have to be signed with the account's
key (Shared Key), a listing shows only what `include` asks for, pages end with a marker, and conditions are checked and
carried out in one step. A request that it does not know is an error of the test.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import format_datetime, parsedate_to_datetime
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.azure.blob_listing import listed, tag_set, when_of
from tests.azure.blob_state import Account, Blob, Container, Refused, State, find
from tests.azure.entra import CHALLENGE, Entra
from tests.azure.path_access import CONTENT, beside
from tests.azure.shared_key import ACCOUNT, refuse_unsigned
from tests.certificates import secured
from tests.servers import Kept, served

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SETTINGS = {name.replace("x-ms-", "x-ms-blob-"): header for name, header in CONTENT.items()}


@dataclass
class BlobService:
    """A server that answers. uri: the account's endpoint."""

    uri: str
    account: Account
    asked: list[str] = field(default_factory=list)


@contextmanager
def blob_service(account: Account, entra: Entra | None = None, tls: Path | None = None) -> Iterator[BlobService]:
    """The stand-in on loopback for one account. entra: it takes tokens alone. tls: its certificate and key."""
    asked: list[str] = []
    handler = type("Handler", (_Handler,), {"account": account, "asked": asked, "entra": entra})
    server = secured(ThreadingHTTPServer(("127.0.0.1", 0), handler), tls)
    with served(server):
        yield BlobService(f"http{'s' * bool(tls)}://127.0.0.1:{server.server_port}/{ACCOUNT}", account, asked)


class _Handler(Kept):
    account: Account
    asked: list[str]
    entra: Entra | None

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))
        try:
            if self.entra:
                self.entra.refuse(self.command, self.query, self.headers)
            else:
                refuse_unsigned(self.command, parts.path, self.query, self.headers)
            with self.account.lock:
                self.asked.append(f"{self.command} {self.path}")
                if self.account.faults and (fault := self.account.faults.pop()):
                    raise Refused(fault, {503: "ServerBusy", 429: "TooManyRequests"}.get(fault, "AuthorizationFailure"))
                self._answer(*self._routed(unquote(parts.path).split("/", 3)[2:], body))
        except Refused as error:
            text = f"<?xml version='1.0'?><Error><Code>{error.code}</Code><Message>no</Message></Error>"
            headers = {"x-ms-error-code": error.code, "Content-Type": "application/xml"}
            headers |= {"WWW-Authenticate": CHALLENGE} if error.status == 401 and self.entra else {}
            self._answer(error.status, headers, text.encode())

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = _any

    def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("x-ms-version", self.headers.get("x-ms-version") or "")
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _routed(self, path: list[str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        kind, of = self.query.get("comp", ""), self.query.get("restype", "")
        if not path or path == [""]:
            if kind == "list":
                return self._containers()
            if (of, kind) == ("service", "properties"):
                return self._service()
        elif len(path) == 1 and (of, kind) == ("container", "list"):
            return self._list(self.account.container(path[0]))
        elif len(path) == 1 and (of, kind) == ("account", "properties"):
            hierarchical = str(self.account.hierarchical).lower()
            return 200, {"x-ms-sku-name": "Standard_LRS", "x-ms-is-hns-enabled": hierarchical}, b""
        elif len(path) == 1 and of == "container" and not kind:
            return self._container(path[0])
        elif len(path) == 2:
            return self._blob(self.account.container(path[0]), path[1], kind, body)
        raise AssertionError(f"the stand-in does not know {self.command} {self.path}")

    def _service(self) -> tuple[int, dict[str, str], bytes]:
        days = self.account.soft_delete_days
        policy = f"<Enabled>true</Enabled><Days>{days}</Days>" if days else "<Enabled>false</Enabled>"
        text = f"<StorageServiceProperties><DeleteRetentionPolicy>{policy}</DeleteRetentionPolicy></StorageServiceProperties>"
        return 200, _XML, text.encode()

    def _containers(self) -> tuple[int, dict[str, str], bytes]:
        items = [(name, one) for name, one in self.account.containers.items()]
        if "deleted" in self.query.get("include", ""):
            items += self.account.gone
        text = ""
        for name, one in sorted(items, key=lambda item: item[0]):
            if name.startswith(self.query.get("prefix", "")):
                gone = one.deleted and (
                    f"<Deleted>true</Deleted><Version>01</Version><Properties>{when_of(one.deleted)}<Etag>e</Etag>"
                    f"<DeletedTime>{format_datetime(one.deleted, usegmt=True)}</DeletedTime>"
                    f"<RemainingRetentionDays>{self.account.container_days}</RemainingRetentionDays></Properties>"
                )
                here = f"<Properties>{when_of(self.account.now())}<Etag>e</Etag></Properties>"
                text += f"<Container><Name>{name}</Name>{gone or here}</Container>"
        return (
            200,
            _XML,
            f"<EnumerationResults><Containers>{text}</Containers><NextMarker/></EnumerationResults>".encode(),
        )

    def _container(self, name: str) -> tuple[int, dict[str, str], bytes]:
        if self.command == "PUT":
            if name in self.account.containers:
                raise Refused(409, "ContainerAlreadyExists")
            self.account.containers[name] = Container()
            return 201, self._mark(self.account.etag(), self.account.now()), b""
        found = self.account.container(name)
        if self.command == "DELETE":
            del self.account.containers[name]
            if self.account.container_days:
                found.deleted = self.account.now()
                self.account.gone.append((name, found))
            return 202, {}, b""
        policy = {
            "x-ms-has-immutability-policy": str(found.policy).lower(),
            "x-ms-has-legal-hold": str(found.legal_hold).lower(),
        }
        policy |= {"x-ms-default-encryption-scope": found.scope} if found.scope else {}
        return 200, self._mark('"c"', self.account.now()) | policy, b""

    def _list(self, container: Container) -> tuple[int, dict[str, str], bytes]:
        return 200, _XML, listed(self.account, container, self.query)

    def _blob(self, container: Container, name: str, kind: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        asked = self.query.get("versionid"), self.query.get("snapshot")
        if all(asked):
            raise Refused(400, "InvalidQueryParameterValue")
        blob = container.blobs.get(name)
        if self.command in ("GET", "HEAD"):
            return self._read(blob, kind, *asked)
        if self.command == "DELETE":
            return self._delete(container, blob, *asked)
        if kind == "" and self.command == "PUT":
            return self._put(container, name, body)
        if kind == "block":
            container.blobs.setdefault(name, Blob()).stage(self.query["blockid"], body, self.account.now())
            return 201, {}, b""
        one = find(blob, *asked)
        assert blob is not None
        return self._set(container, blob, one, kind, body)

    def _read(self, blob: Blob | None, kind: str, *asked: str | None) -> tuple[int, dict[str, str], bytes]:
        if kind == "blocklist":
            return self._block_list(blob)
        one = find(blob, *asked)
        if kind == "tags":
            return 200, _XML, f"<Tags>{tag_set(one.tags)}</Tags>".encode()
        self._condition(one)
        headers = self._mark(one.etag, one.modified) | {f"x-ms-meta-{n}": v for n, v in one.metadata.items()}
        headers |= one.headers | {"x-ms-blob-type": one.blob_type, "Accept-Ranges": "bytes"}
        headers |= {"x-ms-access-tier": one.tier} if one.tier else {"x-ms-access-tier-inferred": "true"}
        headers |= {"x-ms-tag-count": str(len(one.tags))} if one.tags else {}
        headers |= {"x-ms-version-id": one.version} if one.version else {}
        headers |= {"x-ms-is-current-version": "true"} if blob and one is blob.current and one.version else {}
        headers |= {"x-ms-lease-state": "leased", "x-ms-lease-status": "locked"} if blob and blob.lease else {}
        headers |= {"x-ms-legal-hold": "true"} if one.legal_hold else {}
        headers |= beside(one)
        if one.immutable_until:
            until = format_datetime(one.immutable_until, usegmt=True)
            headers |= {"x-ms-immutability-policy-until-date": until, "x-ms-immutability-policy-mode": "locked"}
        if self.command == "HEAD":
            return 200, headers | {"Content-Length": str(len(one.data))}, b""
        if one.rehydrating:
            raise Refused(409, "BlobBeingRehydrated")
        if one.tier == "Archive":
            raise Refused(409, "BlobArchived")
        wanted = self.headers.get("x-ms-range") or self.headers.get("Range")
        if wanted is None:
            return 200, headers, one.data
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        if int(first) >= len(one.data):
            raise Refused(416, "InvalidRange")
        end = min(int(last or len(one.data)) + 1, len(one.data))
        part = {"Content-Range": f"bytes {first}-{end - 1}/{len(one.data)}"}
        return 206, headers | part, one.data[int(first) : end]

    def _block_list(self, blob: Blob | None) -> tuple[int, dict[str, str], bytes]:
        if blob is None or not (blob.current or blob.blocks):
            raise Refused(404, "BlobNotFound")
        waiting = "".join(f"<Block><Name>{n}</Name><Size>{len(d)}</Size></Block>" for n, d in blob.blocks.items())
        text = f"<BlockList><CommittedBlocks/><UncommittedBlocks>{waiting}</UncommittedBlocks></BlockList>"
        return 200, _XML, text.encode()

    def _delete(self, container: Container, blob: Blob | None, *asked: str | None) -> tuple[int, dict[str, str], bytes]:
        if self.account.hierarchical and asked[0]:
            raise Refused(400, "InvalidQueryParameterValue")
        if blob is None:
            raise Refused(404, "BlobNotFound")
        if any(asked):
            current = blob.current is not None and blob.current.version == asked[0]
            if not current:
                self._condition(find(blob, *asked))
            self.account.delete_past(container, blob, *asked)
        else:
            if blob.current is None:
                raise Refused(404, "BlobNotFound")
            self._condition(blob.current)
            self._leased(blob)
            self.account.delete_blob(container, blob, snapshots=self.headers.get("x-ms-delete-snapshots"))
        return 202, {}, b""

    def _put(self, container: Container, name: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        blob = container.blobs.get(name)
        self._condition(blob.current if blob else None)
        if blob:
            self._leased(blob)
        metadata = {n[10:]: v for n, v in self.headers.items() if n.lower().startswith("x-ms-meta-")}
        if any(_NAME.fullmatch(one) is None for one in metadata):
            raise Refused(400, "InvalidMetadata")
        headers = {mine: self.headers[n] for n, mine in _SETTINGS.items() if self.headers.get(n)}
        new = State(
            body,
            self.account.etag(),
            self.account.now(),
            metadata=metadata,
            headers={"Content-Type": "application/octet-stream"} | headers,
            tags=dict(parse_qsl(self.headers.get("x-ms-tags") or "")),
            tier=self.headers.get("x-ms-access-tier") or (blob.current.tier if blob and blob.current else ""),
            blob_type=self.headers["x-ms-blob-type"],
        )
        self.account.write(container, name, new)
        return 201, self._mark(new.etag, new.modified), b""

    def _set(
        self, container: Container, blob: Blob, one: State, kind: str, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        mark = self._mark(one.etag, one.modified)
        if kind == "snapshot":
            taken = State(**{**vars(one), "version": None, "snapshot": self.account.tick(), "legal_hold": False})
            blob.past.append(taken)
            return 201, mark | {"x-ms-snapshot": str(taken.snapshot)}, b""
        if kind == "tier":
            wanted = self.headers["x-ms-access-tier"]
            one.rehydrating = one.tier == "Archive" and wanted != "Archive"
            one.tier = one.tier if one.rehydrating else wanted
            return (202 if one.rehydrating else 200), {}, b""
        if kind == "legalhold":
            one.legal_hold = self.headers["x-ms-legal-hold"] == "true"
            return 200, {"x-ms-legal-hold": str(one.legal_hold).lower()}, b""
        if kind == "immutabilityPolicies":
            one.immutable_until = parsedate_to_datetime(self.headers["x-ms-immutability-policy-until-date"])
            return 200, {}, b""
        if kind == "lease":
            blob.lease = "1f812371-a41d-49e6-b123-f4b542e851c5"
            return 201, mark | {"x-ms-lease-id": blob.lease}, b""
        if kind == "metadata":
            self._leased(blob)
            self._condition(one)
            changed = State(**vars(one))
            changed.etag, changed.modified = self.account.etag(), self.account.now()
            changed.metadata = {n[10:]: v for n, v in self.headers.items() if n.lower().startswith("x-ms-meta-")}
            self.account.write(container, _name_of(container, blob), changed)
            return 200, self._mark(changed.etag, changed.modified), b""
        if kind == "tags":
            one.tags = {str(t.findtext("Key")): str(t.findtext("Value")) for t in ET.fromstring(body).iter("Tag")}
            return 204, {}, b""
        raise AssertionError(f"the stand-in does not know {self.command} {self.path}")

    def _condition(self, one: State | None) -> None:
        wanted, unwanted = self.headers.get("If-Match"), self.headers.get("If-None-Match")
        if unwanted == "*" and one is not None:
            raise Refused(409, "BlobAlreadyExists")
        if wanted is not None and (one is None or one.etag != wanted):
            raise Refused(412, "ConditionNotMet")

    def _leased(self, blob: Blob) -> None:
        if blob.lease and self.headers.get("x-ms-lease-id") != blob.lease:
            raise Refused(412, "LeaseIdMissing")

    def _mark(self, etag: str, when: datetime) -> dict[str, str]:
        return {"ETag": etag, "Last-Modified": format_datetime(when.astimezone(timezone.utc), usegmt=True)}


_XML = {"Content-Type": "application/xml"}


def _name_of(container: Container, blob: Blob) -> str:
    return next(name for name, one in container.blobs.items() if one is blob)
