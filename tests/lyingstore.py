"""A store that does not tell everything: a proxy before the S3 stand-in which cuts, filters and refuses listings.

Each lie is one that a server of S3's protocol told, or may tell: see `Lies`.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from tests.servers import Kept, served

_ENTRY = re.compile(rb"<(Version|DeleteMarker)>.*?</\1>", re.DOTALL)
_UPLOAD = re.compile(rb"<Upload>.*?</Upload>", re.DOTALL)


@dataclass
class Lies:
    """What the store lies about. All is true where nothing is set.

    uploads_by_key: unfinished uploads under a prefix are listed only where it is the very key, and markers count for
    nothing, as MinIO does. no_upload_ids: an upload as a marker is refused, and keys as markers count, as on versitygw.
    uploads_page: so many uploads are listed and called all; uploads_more: it is said that more are to come, and behind
    what. old_versions: those that are not current are left out of listings. page: so many entries are
    listed and called all. nowhere: more is said to come, and not where. circle: every page of versions begins at the
    beginning. refused: parts of a query (`uploads`, `versions`, `replication`) to the code of the answer.
    """

    uploads_by_key: bool = False
    no_upload_ids: bool = False
    uploads_page: int = 1000
    uploads_more: bool = False
    old_versions: bool = False
    page: int | None = None
    nowhere: bool = False
    circle: bool = False
    refused: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def refusal(self, query: dict[str, list[str]]) -> str | None:
        if self.no_upload_ids and "upload-id-marker" in query:
            return "InvalidArgument"
        return next((code for part, code in self.refused.items() if part in query), None)

    def question(self, query: dict[str, list[str]]) -> dict[str, list[str]]:
        """What the true store is asked instead."""
        changed = dict(query)
        if "versions" in query:
            self.asked.append("versions")
            if self.page is not None:
                changed["max-keys"] = [str(self.page)]
            if self.circle:
                changed = {name: value for name, value in changed.items() if not name.endswith("-marker")}
        return changed

    def answer(self, query: dict[str, list[str]], body: bytes) -> bytes:
        """What comes of the true answer."""
        if "uploads" in query and self.uploads_by_key and (prefix := query.get("prefix", [""])[0]):
            key = f"<Key>{prefix}</Key>".encode()
            return _UPLOAD.sub(lambda m: m[0] if key in m[0] else b"", body)
        if "uploads" in query and self.no_upload_ids:
            body = self._by_keys(body, query.get("key-marker", [""])[0])
        if "versions" not in query:
            return body
        if self.old_versions:
            body = _ENTRY.sub(lambda m: m[0] if b"<IsLatest>true" in m[0] else b"", body)
        if self.page is not None or self.nowhere:
            more = b"true" if self.nowhere else b"false"
            body = re.sub(rb"<IsTruncated>\w*</IsTruncated>", b"<IsTruncated>" + more + b"</IsTruncated>", body)
            body = re.sub(rb"<Next(Key|VersionId)Marker>.*?</Next\1Marker>", b"", body)
        return body

    def _by_keys(self, body: bytes, marker: str) -> bytes:
        """The uploads of keys behind the marker, in order, no more than a page has."""
        uploads = sorted((_text(b"Key", upload[0]), upload[0]) for upload in _UPLOAD.finditer(body))
        behind = [upload for key, upload in uploads if key.decode() > marker]
        page = behind[: self.uploads_page]
        more = b"<IsTruncated>false</IsTruncated>"
        if self.uploads_more and len(behind) > len(page):
            last = _text(b"Key", page[-1]), _text(b"UploadId", page[-1])
            more = b"<NextKeyMarker>%b</NextKeyMarker><NextUploadIdMarker>%b</NextUploadIdMarker>" % last
            more += b"<IsTruncated>true</IsTruncated>"
        told = more + b"".join(page)
        return re.sub(rb"<IsTruncated>\w*</IsTruncated>", lambda _: told, _UPLOAD.sub(b"", body))


def _text(tag: bytes, xml: bytes) -> bytes:
    """What is in the element."""
    return xml.partition(b"<%b>" % tag)[2].partition(b"</%b>" % tag)[0]


@contextmanager
def lying(endpoint_url: str) -> Iterator[tuple[str, Lies]]:
    """A store before the one at `endpoint_url`: where it answers, and what it lies about."""
    lies, behind = Lies(), urlsplit(endpoint_url)

    class Handler(Kept):
        def _pass_on(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query, keep_blank_values=True)
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            bucket_only = self.command == "GET" and not parts.path.strip("/").partition("/")[2]
            code = lies.refusal(query) if bucket_only else None
            if code is not None:
                status = {"NotImplemented": 501, "InvalidArgument": 400}.get(code, 403)
                self._answer(status, [], f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())
                return
            path = self.path
            if bucket_only:
                path = f"{parts.path}?{urlencode(lies.question(query), doseq=True, quote_via=quote)}"
            there = http.client.HTTPConnection(behind.netloc, timeout=60)
            # the stand-in checks no signature, so that another query does no harm
            there.request(self.command, path, data, {k: v for k, v in self.headers.items() if k.lower() != "host"})
            got = there.getresponse()
            body = got.read()
            if bucket_only:
                body = lies.answer(query, body)
            self._answer(got.status, got.getheaders(), body)
            there.close()

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response_only(status)
            length = next((v for k, v in headers if k.lower() == "content-length"), "0")
            for name, value in headers:
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with served(server):
        yield f"http://127.0.0.1:{server.server_port}", lies
