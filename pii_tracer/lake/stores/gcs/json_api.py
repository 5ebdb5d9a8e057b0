"""Requests of Cloud Storage's JSON API, one bucket each: https://cloud.google.com/storage/docs/json_api/v1.

Nothing of an answer is shown but the `reason` of an error, where it looks like one.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from pii_tracer.common.http import NoAnswer, ask, patiently
from pii_tracer.lake.stores.base import Absent, Changed, PagesSeen, StoreError

ENDPOINT = "https://storage.googleapis.com"
_SECONDS = 60.0
_ANSWER = 1 << 26
"""Bytes of the longest answer without an object's bytes: a page of a listing has a thousand entries."""
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
"""What Google wants to be asked again: https://cloud.google.com/storage/docs/retry-strategy."""
_REASON = re.compile(r"[A-Za-z]{1,80}")
_HELD = "wait until the retention ends, or ask the owner to release the hold, then plan again"
_TODO = {
    "forbidden": "grant the role `roles/storage.admin` on this bucket, or the rights in docs/gcs.md",
    "required": "check the credentials that the environment gives (docs/gcs.md)",
    "authError": "check the credentials that the environment gives (docs/gcs.md)",
    "retentionPolicyNotMet": _HELD,
    "objectUnderActiveHold": _HELD,
    "rateLimitExceeded": "run the command again when the bucket is less busy",
}
_REACH = "check `object_stores` in the estate file, the credentials and the network"


@dataclass(frozen=True)
class GcsBucket:
    """One bucket. endpoint: as `https://host`. headers: gives those that prove who asks.

    Every method raises `StoreError` when the bucket refuses or does not answer in time.
    """

    bucket: str
    endpoint: str
    headers: Callable[[], Mapping[str, str]]
    pause: Callable[[float], None] = time.sleep

    @property
    def name(self) -> str:
        """As `gs://bucket`."""
        return f"gs://{self.bucket}"

    def settings(self) -> Mapping[str, Any]:
        """The bucket's resource."""
        return self._json("its settings cannot be read", None, self._bucket)

    def pages(self, prefix: str, **which: str) -> Iterator[Mapping[str, Any]]:
        """Objects of a listing, asked once more behind its end until nothing new comes. which: `versions` or
        `softDeleted`.
        """
        start, known = "", frozenset[str]()
        while True:
            last, of_last, news = start, set(known), False
            for item in self._listing(prefix, {**which, **({"startOffset": start} if start else {})}):
                name, generation = item["name"], item["generation"]
                if start and (name.encode() < start.encode() or (name == start and generation in known)):
                    continue
                if name != last:
                    last, of_last = name, set()
                of_last.add(generation)
                news = True
                yield item
            if not news:
                return
            start, known = last, frozenset(of_last)

    def _listing(self, prefix: str, which: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        """Objects of a listing, to where the bucket says that it ends. which: what is asked for, from what name on."""
        what, token, seen = "it cannot be listed", "", PagesSeen()
        while True:
            query = {"prefix": prefix, "maxResults": "1000", **which, **({"pageToken": token} if token else {})}
            page = self._json(what, prefix, f"{self._bucket}/o", query)
            items = page.get("items", [])
            if page.get("kind") != "storage#objects" or not isinstance(items, list):
                raise self.odd(prefix)
            if seen.too_many_empty(len(items)):
                raise self.odd(prefix)
            for number, item in enumerate(items):
                if not _is_object(item) or not item["name"].startswith(prefix):
                    raise self.odd(prefix)
                if not number and seen.again(item["name"], item["generation"]):
                    raise self.odd(prefix)
                yield item
            token = page.get("nextPageToken") or ""
            if not token:
                return
            if not isinstance(token, str) or seen.again("", token):
                raise self.odd(prefix)

    def look(self, key: str, **query: str) -> Mapping[str, Any]:
        """The resource of an object; the live one without `generation`. Raises Absent."""
        return self._json("the properties of an object cannot be read", key, self._object(key), query)

    def read(self, key: str, generation: str, first: int, at_most: int) -> bytes:
        """Bytes of one generation. Raises Absent: it is gone."""
        what = "an object cannot be read"
        if not at_most:
            self.look(key, generation=generation)
            return b""
        query = {"alt": "media", "generation": generation}
        headers = {"Range": f"bytes={first}-{first + at_most - 1}", "Accept-Encoding": "gzip"}
        try:
            return self._asked(what, key, "GET", self._object(key), query, headers=headers, limit=at_most)
        except StoreError as error:
            if error.code == "HTTP 416":
                return b""
            raise

    def write(self, key: str, data: bytes, resource: Mapping[str, Any], **conditions: str) -> Mapping[str, Any]:
        """Write an object with its metadata, in one request. Raises Changed: a condition does not hold."""
        edge = uuid.uuid4().hex.encode()
        head = json.dumps({**resource, "name": key}).encode()
        kind = str(resource.get("contentType", "application/octet-stream")).encode()
        body = b"".join(
            (
                b"--%s\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%s\r\n" % (edge, head),
                b"--%s\r\nContent-Type: %s\r\n\r\n" % (edge, kind),
                data,
                b"\r\n--%s--\r\n" % edge,
            )
        )
        headers = {"Content-Type": f"multipart/related; boundary={edge.decode()}"}
        query = {"uploadType": "multipart", "projection": "full", **conditions}
        path = f"/upload/storage/v1/b/{quote(self.bucket, safe='')}/o"
        what = "an object cannot be written"
        return self._parsed(key, self._asked(what, key, "POST", path, query, headers=headers, body=body))

    def delete(self, key: str, **query: str) -> None:
        """Delete one generation. Raises Absent, Changed."""
        self._asked("an object cannot be deleted", key, "DELETE", self._object(key), query)

    def odd(self, key: str | None) -> StoreError:
        """The error for an answer that is none of this API's."""
        return StoreError(
            "the endpoint does not follow the interface of Cloud Storage",
            "NoJsonApi",
            where=self._where(key),
            todo=_REACH,
        )

    @property
    def _bucket(self) -> str:
        return f"/storage/v1/b/{quote(self.bucket, safe='')}"

    def _object(self, key: str) -> str:
        return f"{self._bucket}/o/{quote(key, safe='')}"

    def _where(self, key: str | None) -> str:
        return self.name if key is None else f"{self.name}/{key}"

    def _json(self, what: str, key: str | None, path: str, query: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        return self._parsed(key, self._asked(what, key, "GET", path, query or {}))

    def _parsed(self, key: str | None, data: bytes) -> Mapping[str, Any]:
        try:
            found = json.loads(data)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self.odd(key)
        return found

    def _asked(
        self,
        what: str,
        key: str | None,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        limit: int = _ANSWER,
    ) -> bytes:
        url = f"{self.endpoint}{path}?{urlencode(query, quote_via=quote)}"

        def once() -> bytes:
            given = {**self.headers(), **(headers or {})}
            return ask(url, seconds=_SECONDS, limit=limit, method=method, body=body, headers=given)

        try:
            return patiently(once, _BUSY, self.pause)
        except NoAnswer as error:
            raise self._refusal(what, key, error) from None

    def _refusal(self, what: str, key: str | None, error: NoAnswer) -> StoreError:
        code = _code(error)
        kind = {404: Absent, 412: Changed}.get(error.status or 0, StoreError)
        if error.status == 404 and key is None:
            kind = StoreError  # the bucket itself
        return kind(what, code, where=self._where(key), todo=_TODO.get(code, _REACH))


def _is_object(item: Any) -> bool:
    """Whether an entry of a listing has what each object has."""
    return isinstance(item, dict) and all(isinstance(item.get(part), str) for part in ("name", "generation"))


def _code(error: NoAnswer) -> str:
    """The `reason` of an error; its message is never looked at."""
    try:
        code = json.loads(error.said)["error"]["errors"][0]["reason"]
    except (ValueError, KeyError, TypeError, IndexError):
        code = None
    if isinstance(code, str) and _REASON.fullmatch(code):
        return code
    return f"HTTP {error.status}" if error.status else str(error)
