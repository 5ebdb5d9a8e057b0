"""A strict stand-in for Cloud Storage's JSON API: it refuses what the documentation says that Google refuses.

Made from https://cloud.google.com/storage/docs/json_api/v1, and of soft delete, versioning, holds and retention from the
pages beside it. Parameters that it does not know are refused, too. What it lies about is set in `Lies`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from http.server import ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from pii_tracer.lake.stores.gcs.credentials import no_credentials
from pii_tracer.lake.stores.gcs.json_api import GcsBucket
from pii_tracer.lake.stores.gcs.store import GcsStore
from tests.servers import Kept, served

_LIST = {"prefix", "maxResults", "versions", "softDeleted", "pageToken", "startOffset"}
MATCH = {"ifGenerationMatch", "ifMetagenerationMatch"}
_WRITABLE = {
    *("name", "contentType", "contentEncoding", "contentDisposition", "contentLanguage", "cacheControl", "customTime"),
    *("storageClass", "metadata", "contexts", "md5Hash", "acl"),
}


Answer = tuple[int, bytes] | tuple[int, bytes, dict[str, str]]
"""A status, a body, and headers beside those of every answer."""


class Refusal(Exception):
    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        self.status, self.reason, self.headers = status, reason, headers or {}


@dataclass
class Lies:
    """old: noncurrent generations are left out of listings. kept: a deletion is answered and not done. astray: instead of
    a noncurrent generation the live one is put away, as fake-gcs-server does it. circle: a page's token leads back
    to the beginning. deaf: `softDeleted` is not heeded. refused: everything. busy: answers that want patience first.
    """

    old: bool = False
    circle: bool = False
    deaf: bool = False
    kept: bool = False
    astray: bool = False
    refused: bool = False
    busy: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Bucket:
    """soft_delete: seconds; Google takes 0, or 7 days and more. retention: seconds. fine: objects have access lists."""

    name: str = ""
    versioning: bool = True
    soft_delete: int = 0
    retention: int = 0
    fine: bool = False
    objects: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Gcs:
    """A running stand-in. writes: how many requests that change something it has answered."""

    endpoint: str = ""
    page: int = 3
    buckets: dict[str, Bucket] = field(default_factory=dict)
    lies: Lies = field(default_factory=Lies)
    writes: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)
    last: int = 1_700_000_000_000_000

    def bucket(self, name: str, **settings: Any) -> GcsStore:
        """A new bucket, as the adapter reaches it."""
        self.buckets[name] = Bucket(name, **settings)
        return self.store(name)

    def store(self, name: str) -> GcsStore:
        return GcsStore(GcsBucket(name, self.endpoint, no_credentials, pause=lambda seconds: None))

    def put(self, bucket: str, key: str, data: bytes, **resource: Any) -> dict[str, Any]:
        """A new live generation, whatever stood there."""
        with self.lock:
            return self.insert(self.buckets[bucket], {"name": key, **resource}, data, {})

    def live(self, bucket: str, key: str) -> bytes:
        return bytes(self._live(self.buckets[bucket], key)["data"])

    def delete(self, bucket: str, key: str) -> None:
        """Delete as people do: without a generation."""
        with self.lock:
            self.remove(self.buckets[bucket], key, {})

    def restore(self, bucket: str, key: str) -> bytes:
        """What `gcloud storage restore` brings back."""
        found = next(o for o in self.there(self.buckets[bucket]) if o["name"] == key and "softDeleteTime" in o)
        return bytes(found["data"])

    def states(self, bucket: str) -> list[str]:
        return sorted(state_of(one) for one in self.there(self.buckets[bucket]))

    # -- the API ------------------------------------------------------------------------------------------------------

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        found = re.fullmatch(r"(/upload)?/storage/v1/b/([^/]+)(/o(?:/(.+))?)?", parts.path)
        if found is None:
            raise Refusal(404, "notFound")
        if self.lies.busy:
            status, after = self.lies.busy.pop(0)
            raise Refusal(status, "rateLimitExceeded", {"Retry-After": after} if after else None)
        if self.lies.refused:
            raise Refusal(403, "forbidden")
        bucket = self.buckets.get(unquote(found[2]))
        if bucket is None:
            raise Refusal(404, "notFound")
        key = unquote(found[4]) if found[4] else None
        if method == "POST" and found[1]:
            return 200, _json(shown_as(self.upload(bucket, headers, body, query), bucket, query))
        if method == "DELETE" and key is not None:
            if self.lies.astray:
                query = {}
            if not self.lies.kept:
                self.remove(bucket, key, query)
            return 204, b""
        if method != "GET":
            raise Refusal(405, "methodNotAllowed")
        if not found[3]:
            _known(query, set())
            return 200, _json(self._settings(bucket))
        return self._get(bucket, key, query, headers) if key is not None else (200, _json(self._list(bucket, query)))

    def _settings(self, bucket: Bucket) -> dict[str, Any]:
        uniform = {"uniformBucketLevelAccess": {"enabled": not bucket.fine}}
        told: dict[str, Any] = {"kind": "storage#bucket", "iamConfiguration": uniform}
        told["softDeletePolicy"] = {"retentionDurationSeconds": str(bucket.soft_delete)}
        return told | ({"versioning": {"enabled": True}} if bucket.versioning else {})

    def _list(self, bucket: Bucket, query: dict[str, str]) -> dict[str, Any]:
        _known(query, _LIST)
        old, soft = query.get("versions") == "true", query.get("softDeleted") == "true" and not self.lies.deaf
        if "versions" in query and "softDeleted" in query:
            raise Refusal(400, "invalid")
        wanted = {"soft_deleted"} if soft else {"live", "noncurrent"} if old and not self.lies.old else {"live"}
        front, start = query.get("prefix", ""), query.get("startOffset", "").encode()
        named = (o for o in self.there(bucket) if o["name"].startswith(front) and o["name"].encode() >= start)
        mine = [o for o in named if state_of(o) in wanted]
        mine.sort(key=lambda o: (o["name"].encode(), o["generation"]))
        first = 0
        if token := query.get("pageToken"):
            if not token.startswith("at-"):
                raise Refusal(400, "invalid")
            first = 0 if self.lies.circle else int(token[3:])
        size = min(self.page, int(query.get("maxResults", "1000")))
        page: dict[str, Any] = {"kind": "storage#objects"}
        if items := [shown_as(o, bucket, query) for o in mine[first : first + size]]:
            page["items"] = items
        return page | ({"nextPageToken": f"at-{first + size}"} if len(mine) > first + size else {})

    def _get(self, bucket: Bucket, key: str, query: dict[str, str], headers: Any) -> tuple[int, bytes]:
        _known(query, {"generation", "alt", "projection"})
        found = self.one(bucket, key, query.get("generation"))
        if query.get("alt") != "media":
            return 200, _json(shown_as(found, bucket, query))
        data, asked = found["data"], re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("Range", ""))
        if asked is None:
            return 200, data
        if int(asked[1]) >= len(data):
            raise Refusal(416, "requestedRangeNotSatisfiable")
        return 206, data[int(asked[1]) : int(asked[2]) + 1]

    def upload(self, bucket: Bucket, headers: Any, body: bytes, query: dict[str, str]) -> dict[str, Any]:
        _known(query, {"uploadType", "projection", *MATCH})
        edge = re.fullmatch(r"multipart/related; boundary=(\S+)", headers.get("Content-Type", ""))
        if query.get("uploadType") != "multipart" or edge is None:
            raise Refusal(400, "invalid")
        _, head, rest = body.split(b"--" + edge[1].encode() + b"\r\n", 2)
        data = rest.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n--" + edge[1].encode() + b"--\r\n")
        resource = json.loads(head.partition(b"\r\n\r\n")[2])
        if set(resource) - _WRITABLE or ("acl" in resource and not bucket.fine):
            raise Refusal(400, "invalid")
        if resource.pop("md5Hash", _md5(data)) != _md5(data):
            raise Refusal(400, "invalid")
        return self.insert(bucket, resource, data, query)

    def insert(self, bucket: Bucket, resource: dict[str, Any], data: bytes, query: dict[str, str]) -> dict[str, Any]:
        live = next((o for o in bucket.objects if o["name"] == resource["name"] and state_of(o) == "live"), None)
        self._match(live, query)
        if live is not None:
            self._guard(live)
            self._put_away(bucket, live, keep=bucket.versioning)
        self.last += 1
        made = {"storageClass": "STANDARD", **resource, "data": data, "generation": self.last, "metageneration": 1}
        made["updated"] = made["timeCreated"] = _time(_now())
        if bucket.fine:
            made.setdefault("acl", [{"entity": "project-owners-1", "role": "OWNER"}])
        if bucket.retention:
            made["retentionExpirationTime"] = _time(_now() + timedelta(seconds=bucket.retention))
        bucket.objects.append(made)
        self.writes += 1
        return made

    def remove(self, bucket: Bucket, key: str, query: dict[str, str]) -> None:
        _known(query, {"generation", *MATCH})
        found = self.one(bucket, key, query.get("generation"))
        self._match(found, query)
        self._guard(found)
        self._put_away(bucket, found, keep=bucket.versioning and "generation" not in query)
        self.writes += 1

    def _put_away(self, bucket: Bucket, found: dict[str, Any], *, keep: bool) -> None:
        found.setdefault("timeDeleted", _time(_now()))
        if keep:
            return
        if not bucket.soft_delete:
            bucket.objects.remove(found)
            return
        found["softDeleteTime"] = _time(_now())
        found["hardDeleteTime"] = _time(_now() + timedelta(seconds=bucket.soft_delete))

    def there(self, bucket: Bucket) -> list[dict[str, Any]]:
        bucket.objects[:] = [o for o in bucket.objects if o.get("hardDeleteTime", "9") > _time(_now())]
        return bucket.objects

    def _live(self, bucket: Bucket, key: str) -> dict[str, Any]:
        return self.one(bucket, key, None)

    def one(self, bucket: Bucket, key: str, generation: str | None) -> dict[str, Any]:
        for found in self.there(bucket):
            right = state_of(found) == "live" if generation is None else str(found["generation"]) == generation
            if found["name"] == key and right and state_of(found) != "soft_deleted":
                return found
        raise Refusal(404, "notFound")

    @staticmethod
    def _match(found: dict[str, Any] | None, query: dict[str, str]) -> None:
        generation = found["generation"] if found and state_of(found) == "live" else 0
        if "generation" in query and found:
            generation = found["generation"]
        meta = found["metageneration"] if found else 0
        if query.get("ifGenerationMatch", str(generation)) != str(generation):
            raise Refusal(412, "conditionNotMet")
        if query.get("ifMetagenerationMatch", str(meta)) != str(meta):
            raise Refusal(412, "conditionNotMet")

    @staticmethod
    def _guard(found: dict[str, Any]) -> None:
        if found.get("temporaryHold") or found.get("eventBasedHold"):
            raise Refusal(403, "objectUnderActiveHold")
        ends = (found.get("retentionExpirationTime", ""), found.get("retention", {}).get("retainUntilTime", ""))
        if max(ends) > _time(_now()):
            raise Refusal(403, "retentionPolicyNotMet")


Server = TypeVar("Server", bound=Gcs)


@contextmanager
def strict_gcs(kind: type[Server] = Gcs) -> Iterator[Server]:  # type: ignore[assignment]
    """A stand-in on loopback."""
    gcs = kind()

    class Handler(Kept):
        def _any(self) -> None:
            body = _body(self.rfile, self.headers)
            more: dict[str, str] = {}
            try:
                with gcs.lock:
                    status, data, *extra = gcs.answer(self.command, self.path, self.headers, body)
                more = extra[0] if extra else {}
            except Refusal as error:
                told = {"domain": "global", "reason": error.reason, "message": "a message that nobody reads"}
                status, more = error.status, error.headers
                data = _json({"error": {"code": status, "message": told["message"], "errors": [told]}})
            self.send_response(status)
            kind = "application/json; charset=UTF-8" if data[:1] == b"{" else "application/octet-stream"
            for name, value in {"Content-Length": str(len(data)), "Content-Type": kind, **more}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _any

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    gcs.endpoint = f"http://127.0.0.1:{server.server_port}"
    with served(server):
        yield gcs


def _body(stream: Any, headers: Any) -> bytes:
    if headers.get("Transfer-Encoding", "").lower() != "chunked":
        return bytes(stream.read(int(headers.get("Content-Length", "0"))))
    found = b""
    while size := int(stream.readline(), 16):
        found += stream.read(size)
        stream.readline()
    stream.readline()
    return found


def _known(query: dict[str, str], names: set[str]) -> None:
    if set(query) - names:
        raise Refusal(400, "invalidParameter")


def state_of(one: dict[str, Any]) -> str:
    return "soft_deleted" if "softDeleteTime" in one else "noncurrent" if "timeDeleted" in one else "live"


def shown_as(one: dict[str, Any], bucket: Bucket, query: dict[str, str]) -> dict[str, Any]:
    left_out = {"data"} if query.get("projection") == "full" and bucket.fine else {"data", "acl"}
    shown = {name: value for name, value in one.items() if name not in left_out}
    shown |= {name: str(one[name]) for name in ("generation", "metageneration")}
    return shown | {
        "kind": "storage#object",
        "bucket": bucket.name,
        "size": str(len(one["data"])),
        "md5Hash": _md5(one["data"]),
    }


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def _json(told: Any) -> bytes:
    return json.dumps(told).encode()


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _time(when: datetime) -> str:
    return when.isoformat(timespec="microseconds").replace("+00:00", "Z")
