"""What Hadoop's connector asks of Cloud Storage beside `tests/gcssupport.py`: folders, partial answers, resumable uploads,
copies and batches, as the JSON API's pages describe them.

https://cloud.google.com/storage/docs/json_api/v1, https://cloud.google.com/storage/docs/performing-resumable-uploads,
https://cloud.google.com/storage/docs/batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from email.parser import BytesParser
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

from tests.gcssupport import MATCH, Answer, Bucket, Gcs, Refusal, shown_as, state_of

_QUANTUM = 256 * 1024
"""All pieces of a resumable upload but the last are a multiple of this."""


@dataclass
class _Session:
    """A resumable upload that has begun."""

    bucket: Bucket
    resource: dict[str, Any]
    query: dict[str, str]
    data: bytearray = field(default_factory=bytearray)


@dataclass
class HadoopGcs(Gcs):
    """A stand-in that Spark writes tables to."""

    page: int = 1000
    sessions: dict[str, _Session] = field(default_factory=dict)

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        query.pop("prettyPrint", None)
        if found := re.fullmatch(r"/(?!storage/|upload/|download/|batch/)([^/]+)(?:/(.*))?", parts.path):
            return self._xml(method, unquote(found[1]), unquote(found[2] or ""), query, headers)
        if parts.path == "/batch/storage/v1" and method == "POST":
            return self._batch(headers, body)
        if method == "PUT":
            return self._piece(query, headers, body)
        if found := re.fullmatch(r"/download/storage/v1/b/([^/]+)/o/([^/]+)", parts.path):
            return self._download(unquote(found[1]), unquote(found[2]), query, headers)
        fields = query.pop("fields", None)
        if fields is not None:
            cut = f"{parts.path}?{urlencode(query)}"
            status, data, *more = self.answer(method, cut, headers, body)
            return (status, json.dumps(_partial(json.loads(data), fields)).encode() if data else data, *more)
        if found := re.fullmatch(r"/storage/v1/b/([^/]+)/o/([^/]+)/(copyTo|rewriteTo)/b/([^/]+)/o/([^/]+)", parts.path):
            return self._copied(method, [unquote(one) for one in found.groups()], query, body)
        bucket = re.fullmatch(r"/(upload/)?storage/v1/b/([^/]+)/o", parts.path)
        if bucket is None or method not in ("GET", "POST"):
            return super().answer(method, target, headers, body)
        there = self.buckets.get(unquote(bucket[2]))
        if there is None:
            raise Refusal(404, "notFound")
        if bucket[1] and query.get("uploadType") == "resumable":
            return self._begin(there, query, headers, body)
        if method == "GET" and "delimiter" in query:
            return 200, json.dumps(self._folder(there, query)).encode()
        return super().answer(method, target, headers, body)

    def _folder(self, bucket: Bucket, query: dict[str, str]) -> dict[str, Any]:
        """A listing with what lies one folder deeper as `prefixes`; a page counts both."""
        known = {
            "prefix",
            "delimiter",
            "includeTrailingDelimiter",
            "maxResults",
            "pageToken",
            "startOffset",
            "endOffset",
        }
        if set(query) - known or query["delimiter"] != "/":
            raise Refusal(400, "invalidParameter")
        front, trailing = query.get("prefix", ""), query.get("includeTrailingDelimiter") == "true"
        entries: dict[str, dict[str, Any] | None] = {}
        objects = dict[str, dict[str, Any]]()
        for one in self.there(bucket):
            name = one["name"]
            if state_of(one) != "live" or not name.startswith(front) or name < query.get("startOffset", ""):
                continue
            rest = name[len(front) :]
            folder, slash, deeper = rest.partition("/")
            if not slash or (trailing and not deeper):
                objects[name] = one
            if slash:
                entries[f"{front}{folder}/"] = None
        told = sorted({*objects, *entries})
        first = int(query.get("pageToken", "at-0").removeprefix("at-"))
        size = min(self.page, int(query.get("maxResults", "1000")))
        page: dict[str, Any] = {"kind": "storage#objects"}
        names = told[first : first + size]
        if items := [shown_as(objects[name], bucket, {}) for name in names if name in objects]:
            page["items"] = items
        if prefixes := [name for name in names if name in entries]:
            page["prefixes"] = prefixes
        return page | ({"nextPageToken": f"at-{first + size}"} if len(told) > first + size else {})

    def _download(self, bucket: str, key: str, query: dict[str, str], headers: Any) -> Answer:
        if set(query) - {"alt", "generation"} or query.get("alt") != "media" or bucket not in self.buckets:
            raise Refusal(400, "invalidParameter")
        found = self.one(self.buckets[bucket], key, query.get("generation"))
        data, more = found["data"], {"Content-Type": "application/octet-stream"}
        more["X-Goog-Generation"] = str(found["generation"])
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", headers.get("Range", ""))
        if asked is None:
            return 200, data, more
        first = int(asked[1]) if asked[1] else max(len(data) - int(asked[2]), 0)
        last = min(int(asked[2]), len(data) - 1) if asked[1] and asked[2] else len(data) - 1
        if first >= len(data):
            raise Refusal(416, "requestedRangeNotSatisfiable")
        more["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        return 206, data[first : last + 1], more

    def _xml(self, method: str, bucket: str, key: str, query: dict[str, str], headers: Any) -> Answer:
        """What readers of tables ask: https://cloud.google.com/storage/docs/xml-api/overview."""
        if method not in ("GET", "HEAD") or set(query) - {
            "list-type",
            "prefix",
            "delimiter",
            "start-after",
            "continuation-token",
        }:
            raise Refusal(400, "invalidParameter")
        if bucket not in self.buckets:
            raise Refusal(404, "notFound")
        if key:
            found = self.one(self.buckets[bucket], key, None)
            more = {"ETag": f'"{found["generation"]}"', "Last-Modified": _http_date(found["updated"])}
            status, data, *given = self._download(bucket, key, {"alt": "media"}, headers)
            more |= given[0] if given else {}
            if method == "HEAD":
                return 200, b"", {**more, "Content-Length": str(len(found["data"]))}
            return status, data, more
        if query.get("list-type") != "2":
            raise Refusal(400, "invalid")
        front, end = query.get("prefix", ""), query.get("delimiter")
        names, folders = dict[str, dict[str, Any]](), set[str]()
        for one in self.there(self.buckets[bucket]):
            name = one["name"]
            if state_of(one) != "live" or not name.startswith(front) or name <= query.get("start-after", ""):
                continue
            folder, slash, _ = name[len(front) :].partition(end) if end else ("", "", "")
            if slash:
                folders.add(f"{front}{folder}/")
            else:
                names[name] = one
        items = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>{one['updated']}</LastModified>"
            f"<ETag>&quot;{one['generation']}&quot;</ETag><Size>{len(one['data'])}</Size></Contents>"
            for name, one in sorted(names.items())
        )
        items += "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in sorted(folders))
        body = f'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>{items}</ListBucketResult>'
        return 200, body.encode(), {"Content-Type": "application/xml"}

    def _begin(self, bucket: Bucket, query: dict[str, str], headers: Any, body: bytes) -> Answer:
        if set(query) - {"uploadType", "name", *MATCH}:
            raise Refusal(400, "invalidParameter")
        resource = json.loads(body or b"{}")
        resource.setdefault("name", query.get("name"))
        kind = headers.get("X-Upload-Content-Type")
        if kind:
            resource.setdefault("contentType", kind)
        resource.pop("bucket", None)
        name = f"session-{len(self.sessions)}"
        self.sessions[name] = _Session(bucket, resource, {n: v for n, v in query.items() if n in MATCH})
        return 200, b"", {"Location": f"{self.endpoint}/upload/storage/v1/b/x/o?upload_id={name}"}

    def _piece(self, query: dict[str, str], headers: Any, body: bytes) -> Answer:
        session = self.sessions.get(query.get("upload_id", ""))
        if session is None:
            raise Refusal(404, "notFound")
        told = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", headers.get("Content-Range", ""))
        if told is None:
            raise Refusal(400, "invalid")
        if told[1] is not None:
            if int(told[1]) != len(session.data) or int(told[2]) - int(told[1]) + 1 != len(body):
                raise Refusal(400, "invalid")
            if told[3] == "*" and len(body) % _QUANTUM:
                raise Refusal(400, "invalid")
            session.data += body
        if told[3] == "*" or int(told[3]) != len(session.data):
            there = {"Range": f"bytes=0-{len(session.data) - 1}"} if session.data else {}
            return 308, b"", there
        del self.sessions[query["upload_id"]]
        made = self.insert(session.bucket, session.resource, bytes(session.data), session.query)
        return 200, json.dumps(shown_as(made, session.bucket, {})).encode()

    def _copied(self, method: str, names: list[str], query: dict[str, str], body: bytes) -> Answer:
        known = {"sourceGeneration", "rewriteToken", "maxBytesRewrittenPerCall", "ifSourceGenerationMatch", *MATCH}
        if method != "POST" or set(query) - known:
            raise Refusal(400, "invalidParameter")
        source, key, how, target, new = names
        if source not in self.buckets or target not in self.buckets:
            raise Refusal(404, "notFound")
        old = self.one(self.buckets[source], key, query.get("sourceGeneration"))
        if query.get("ifSourceGenerationMatch", str(old["generation"])) != str(old["generation"]):
            raise Refusal(412, "conditionNotMet")
        kept = {n: old[n] for n in ("contentType", "metadata", "contentEncoding") if n in old}
        match = {n: v for n, v in query.items() if n in MATCH}
        made = self.insert(self.buckets[target], {**kept, "name": new}, bytes(old["data"]), match)
        resource = shown_as(made, self.buckets[target], {})
        if how == "copyTo":
            return 200, json.dumps(resource).encode()
        size = str(len(old["data"]))
        done = {"kind": "storage#rewriteResponse", "done": True, "objectSize": size, "totalBytesRewritten": size}
        return 200, json.dumps(done | {"resource": resource}).encode()

    def _batch(self, headers: Any, body: bytes) -> Answer:
        answers = []
        for number, part in enumerate(_parts(headers, body)):
            line, _, rest = bytes(part.get_payload(decode=True)).partition(b"\r\n")
            method, target, *_ = line.decode().split(" ")
            head, _, inner = rest.partition(b"\r\n\r\n")
            more = BytesParser().parsebytes(head)
            try:
                status, data, *_ = self.answer(method, re.sub(r"^https?://[^/]+", "", target), more, inner)
            except Refusal as error:
                status = error.status
                told = {"reason": error.reason, "message": "refused"}
                data = json.dumps({"error": {"code": status, "message": "refused", "errors": [told]}}).encode()
            name = (part["Content-ID"] or f"<{number}>").strip("<>")
            answers.append(
                f"Content-Type: application/http\r\nContent-ID: <response-{name}>\r\n\r\nHTTP/1.1 {status} X\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
                + data
            )
        edge = b"batch_of_answers"
        whole = b"".join(b"--" + edge + b"\r\n" + one + b"\r\n" for one in answers) + b"--" + edge + b"--\r\n"
        return 200, whole, {"Content-Type": f"multipart/mixed; boundary={edge.decode()}"}


def _parts(headers: Any, body: bytes) -> Iterator[Message]:
    kind = headers.get("Content-Type", "")
    if not kind.startswith("multipart/mixed"):
        raise Refusal(400, "invalid")
    found = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
    for part in found.walk():
        if not part.is_multipart():
            yield part


def _http_date(when: str) -> str:
    return format_datetime(datetime.fromisoformat(when.replace("Z", "+00:00")), usegmt=True)


def _partial(told: Any, fields: str) -> Any:
    """What is left of an answer: https://cloud.google.com/storage/docs/json_api#partial-response."""
    wanted = _tree(fields)
    return _cut(told, wanted) if isinstance(told, dict) and "error" not in told else told


def _tree(fields: str) -> dict[str, Any]:
    stack: list[dict[str, Any]] = [{}]
    name = ""
    for sign in f"{fields},":
        if sign == "(":
            stack.append(stack[-1].setdefault(name, {}))
            name = ""
        elif sign in ",)":
            if name:
                stack[-1].setdefault(name, {})
            name = ""
            if sign == ")":
                stack.pop()
        elif re.fullmatch(r"[A-Za-z0-9]", sign):
            name += sign
        else:
            raise Refusal(400, "invalidParameter")
    if len(stack) != 1:
        raise Refusal(400, "invalidParameter")
    return stack[0]


def _cut(told: Any, wanted: dict[str, Any]) -> Any:
    if isinstance(told, list):
        return [_cut(one, wanted) for one in told]
    if not wanted or not isinstance(told, dict):
        return told
    return {name: _cut(told[name], inner) for name, inner in wanted.items() if name in told}
