"""A stand-in for S3 on this machine, for the demo and the tests: moto behind a shim that is as strict as S3.

moto alone is too kind, and a test against it would prove nothing. The shim adds what S3 does:

- replication of new versions to the buckets that the rules name, never of version deletes
  (https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-what-is-isnot-replicated.html);
- restores that take time and lapse, and archived objects that cannot be read until then
  (https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html);
- at most 1,000 keys in one DeleteObjects, a request id on every answer.

State is in memory of one process that binds to 127.0.0.1 only, needs no credentials and ends by itself.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import html
import io
import json
import logging
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

READY_FILE = "s3-standin.json"
_ALIVE = "/_standin/alive"
_ARCHIVED = ("GLACIER", "DEEP_ARCHIVE")
_DELETE_LIMIT = 1000

Headers = list[tuple[str, str]]
StartResponse = Callable[..., Any]


@dataclass(frozen=True)
class Standin:
    """A running stand-in."""

    endpoint_url: str
    pid: int


def demo_credentials() -> dict[str, str]:
    """Environment variables with credentials that open nothing but the stand-in."""
    return {
        "AWS_ACCESS_KEY_ID": "standin",
        "AWS_SECRET_ACCESS_KEY": "standin",
        "AWS_SESSION_TOKEN": "standin",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@dataclass(frozen=True)
class _Request:
    """What the shim needs of a path-style S3 request."""

    method: str
    bucket: str
    key: str
    query: dict[str, list[str]]
    version: str | None
    copy_source: tuple[str, str, str | None] | None

    @staticmethod
    def of(environ: dict[str, Any]) -> _Request:
        path = environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8", "replace").lstrip("/")
        bucket, _, key = path.partition("/")
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        source = None
        if environ.get("HTTP_X_AMZ_COPY_SOURCE"):
            parts = urlsplit(environ["HTTP_X_AMZ_COPY_SOURCE"])
            from_bucket, _, from_key = unquote(parts.path).lstrip("/").partition("/")
            source = (from_bucket, from_key, parse_qs(parts.query).get("versionId", [None])[0])
        return _Request(environ["REQUEST_METHOD"], bucket, key, query, query.get("versionId", [None])[0], source)

    @property
    def writes_object(self) -> bool:
        """PutObject, CopyObject or CompleteMultipartUpload."""
        if not self.key:
            return False
        if self.method == "PUT":
            return not set(self.query) & {"partNumber", "tagging", "acl", "retention", "legal-hold"}
        return self.method == "POST" and "uploadId" in self.query


@dataclass
class _Restore:
    """ready: when the copy can be read; until: when it lapses."""

    ready: datetime
    until: datetime


@dataclass
class StrictS3:
    """WSGI middleware around moto's application in the same process.

    restore_seconds: how long a restore takes. day_seconds: how long a restore's day lasts.
    replication_seconds: how long a new version takes to reach the replicas.
    """

    app: Callable[[dict[str, Any], StartResponse], Iterable[bytes]]
    restore_seconds: float = 2.0
    day_seconds: float = 86400.0
    replication_seconds: float = 0.0
    _restores: dict[tuple[str, str, str], _Restore] = field(default_factory=dict)
    _rules: dict[str, bytes] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") == _ALIVE:
            return _answer(start_response, "200 OK", json.dumps({"pid": os.getpid()}).encode(), "application/json")
        with self._lock:
            request = _Request.of(environ)
            self._settle_restores()
            refusal = self._own_answer(request, environ, start_response)
            return refusal if refusal is not None else self._pass_on(request, environ, start_response)

    # --- what the shim answers itself ---

    def _own_answer(
        self, request: _Request, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes] | None:
        if request.method == "POST" and "restore" in request.query:
            return self._restore(request, _body(environ), start_response)
        if request.method == "POST" and "delete" in request.query and not request.key:
            if len(_objects_of(_body(environ))) > _DELETE_LIMIT:
                return _error(start_response, "400 Bad Request", "MalformedXML", "more than 1,000 keys")
            return None
        if "replication" in request.query and not request.key:
            return self._replication(request, environ, start_response)
        if request.writes_object and not _checksum_holds(environ):
            return _error(start_response, "400 Bad Request", "BadDigest", "the SHA-256 does not fit the body")
        return None

    def _replication(
        self, request: _Request, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes] | None:
        """moto returns every rule without its prefix; S3 returns what was put."""
        if request.method == "PUT":
            body = _body(environ)
            for arn in re.findall(rb"<Bucket>(.*?)</Bucket>", body):
                bucket = _backend().buckets.get(arn.decode().rpartition(":")[2])
                if bucket is None or not bucket.is_versioned:
                    return _error(
                        start_response,
                        "400 Bad Request",
                        "InvalidRequest",
                        "Destination bucket must exist and have versioning enabled",
                    )
            self._rules[request.bucket] = body
            return None
        stored = _backend().buckets.get(request.bucket)
        if request.method == "GET" and stored is not None and getattr(stored, "replication", None):
            return _answer(start_response, "200 OK", self._rules[request.bucket], "application/xml")
        return None

    def _restore(self, request: _Request, body: bytes, start_response: StartResponse) -> Iterable[bytes]:
        key = _find(request.bucket, request.key, request.version)
        if key is None:
            return _error(start_response, "404 Not Found", "NoSuchKey", "no such object version")
        if key.storage_class not in _ARCHIVED:
            return _error(start_response, "403 Forbidden", "InvalidObjectState", "not an archived object")
        place = (request.bucket, request.key, str(key.version_id))
        days = re.search(rb"<Days>(\d+)</Days>", body)
        if days is None:
            return _error(start_response, "400 Bad Request", "MalformedXML", "Days is missing")
        known = self._restores.get(place)
        now = _now()
        if known is not None and now < known.ready:
            return _error(start_response, "409 Conflict", "RestoreAlreadyInProgress", "restore is in progress")
        ready = known.ready if known else now + timedelta(seconds=self.restore_seconds)
        until = max(now, ready) + timedelta(seconds=self.day_seconds * int(days[1]))
        self._restores[place] = _Restore(ready, until)
        return _answer(start_response, "200 OK" if known else "202 Accepted", b"", "application/xml")

    def _settle_restores(self) -> None:
        """Open what has become readable, close what has lapsed; moto reads both from the expiry date."""
        now = _now()
        for place, restore in list(self._restores.items()):
            key = _find(*place)
            if key is None or now >= restore.until:
                del self._restores[place]
            if key is not None:
                key.set_expiry(restore.until if restore.ready <= now < restore.until else None)

    # --- what moto answers, corrected ---

    def _pass_on(self, request: _Request, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        bucket = _backend().buckets.get(request.bucket)
        if request.version == "null" and bucket is not None and not bucket.is_versioned:
            environ["QUERY_STRING"] = re.sub(r"&?versionId=null", "", environ["QUERY_STRING"])
        markers = self._markers_to_make(request, environ)
        captured: list[tuple[str, Headers]] = []

        def capture(status: str, headers: Headers, exc_info: Any = None) -> Callable[[bytes], None]:
            captured.append((status, headers))
            return lambda data: None

        body = self.app(environ, capture)
        status, headers = captured[-1]
        if status.startswith("2"):
            if request.writes_object:
                _keep_checksum(_find(request.bucket, request.key, None), environ)
                self._replicate_soon(request.bucket, request.key)
            for key_name in markers:
                self._replicate_marker(request.bucket, key_name)
        start_response(status, headers + self._more_headers(request, headers))
        return body

    def _more_headers(self, request: _Request, headers: Headers) -> Headers:
        more = []
        if "x-amz-request-id" not in {name.lower() for name, _ in headers}:
            more.append(("x-amz-request-id", secrets.token_hex(8).upper()))
        if request.key and request.method in ("GET", "HEAD"):
            key = _find(request.bucket, request.key, request.version)
            if key is not None:
                status = getattr(key, "standin_replication", None)
                if status:
                    more.append(("x-amz-replication-status", status))
                restore = self._restores.get((request.bucket, request.key, str(key.version_id)))
                if restore is not None and _now() < restore.ready:
                    more.append(("x-amz-restore", 'ongoing-request="true"'))
        return more

    def _markers_to_make(self, request: _Request, environ: dict[str, Any]) -> list[str]:
        """Keys that this request deletes without naming a version, which makes delete markers."""
        if (
            request.method == "DELETE"
            and request.key
            and not request.query.keys() & {"versionId", "uploadId", "tagging"}
        ):
            return [request.key]
        if request.method == "POST" and "delete" in request.query and not request.key:
            return [key for key, version in _objects_of(_body(environ)) if version is None]
        return []

    # --- replication ---

    def _replicate_soon(self, bucket: str, key_name: str) -> None:
        key = _find(bucket, key_name, None)
        rules = [rule for rule in _rules_of(bucket) if key is not None and _fits(rule, key)]
        if not rules:
            return
        key.standin_replication = "PENDING"
        if self.replication_seconds <= 0:
            self._replicate(key, rules)
            return
        timer = threading.Timer(self.replication_seconds, self._replicate, (key, rules))
        timer.daemon = True
        timer.start()

    def _replicate(self, key: Any, rules: list[dict[str, Any]]) -> None:
        """Copy one version under its own version id, with metadata and tags. A replica is not replicated again."""
        with self._lock:
            backend = _backend()
            for rule in rules:
                destination = rule["Destination"]
                name = destination["Bucket"].rpartition(":")[2]
                if name not in backend.buckets:
                    key.standin_replication = "FAILED"
                    return
                replica = backend.put_object(
                    name,
                    key.name,
                    key.value,
                    storage=destination.get("StorageClass", key.storage_class),
                    etag=key.etag.strip('"'),
                    checksum_value=key.checksum_value,
                    disable_notification=True,
                )
                replica.checksum_algorithm = key.checksum_algorithm
                replica._version_id = key.version_id
                replica.set_metadata(dict(key.metadata))
                backend.tagger.copy_tags(key.arn, replica.arn)
                replica.standin_replication = "REPLICA"
            key.standin_replication = "COMPLETED"

    def _replicate_marker(self, bucket: str, key_name: str) -> None:
        for rule in _rules_of(bucket):
            wanted = rule.get("DeleteMarkerReplication") or {}
            # rules with tag filters never replicate markers
            if wanted.get("Status") == "Enabled" and not _tags_of_rule(rule) and key_name.startswith(_prefix_of(rule)):
                _backend().delete_object(rule["Destination"]["Bucket"].rpartition(":")[2], key_name)


def _backend() -> Any:
    from moto.backends import get_backend
    from moto.core.models import DEFAULT_ACCOUNT_ID

    return get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"]


def _find(bucket: str, key: str, version: str | None) -> Any:
    """moto's object, or None for a missing bucket, object or version and for delete markers."""
    backend = _backend()
    return backend.get_object(bucket, key, version_id=version) if bucket in backend.buckets else None


def _rules_of(bucket: str) -> list[dict[str, Any]]:
    stored = _backend().buckets.get(bucket)
    replication = getattr(stored, "replication", None) or {"Rule": []}
    return [rule for rule in replication["Rule"] if rule["Status"] == "Enabled"]


def _prefix_of(rule: dict[str, Any]) -> str:
    chosen = rule.get("Filter") or rule
    return str((chosen.get("And") or chosen).get("Prefix") or "")


def _tags_of_rule(rule: dict[str, Any]) -> dict[str, str]:
    chosen = rule.get("Filter") or {}
    tags = (chosen.get("And") or chosen).get("Tag") or []
    return {tag["Key"]: tag["Value"] for tag in ([tags] if isinstance(tags, dict) else tags)}


def _fits(rule: dict[str, Any], key: Any) -> bool:
    tags = _backend().tagger.get_tag_dict_for_resource(key.arn)
    return bool(key.name.startswith(_prefix_of(rule)) and _tags_of_rule(rule).items() <= tags.items())


def _body(environ: dict[str, Any]) -> bytes:
    """Read the request's body and put it back for moto."""
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return body


def _checksum_holds(environ: dict[str, Any]) -> bool:
    """S3 refuses a body that is not what `x-amz-checksum-sha256` says; moto takes it."""
    told = environ.get("HTTP_X_AMZ_CHECKSUM_SHA256")
    if told is None or "aws-chunked" in environ.get("HTTP_CONTENT_ENCODING", ""):
        return True
    return bool(told == base64.b64encode(hashlib.sha256(_body(environ)).digest()).decode())


def _keep_checksum(key: Any, environ: dict[str, Any]) -> None:
    """S3 tells a checksum that came with the upload to later HEADs; moto forgets it."""
    told = environ.get("HTTP_X_AMZ_CHECKSUM_SHA256")
    if told is not None and key is not None:
        key.checksum_algorithm, key.checksum_value = "SHA256", told


def _objects_of(body: bytes) -> list[tuple[str, str | None]]:
    found = []
    for item in re.findall(rb"<Object>(.*?)</Object>", body, re.DOTALL):
        key = re.search(rb"<Key>(.*?)</Key>", item, re.DOTALL)
        version = re.search(rb"<VersionId>(.*?)</VersionId>", item)
        found.append((html.unescape(key[1].decode()) if key else "", version[1].decode() if version else None))
    return found


def _answer(start_response: StartResponse, status: str, body: bytes, content_type: str) -> Iterable[bytes]:
    headers = [
        ("Content-Type", content_type),
        ("Content-Length", str(len(body))),
        ("x-amz-request-id", secrets.token_hex(8).upper()),
    ]
    start_response(status, headers)
    return [body]


def _error(start_response: StartResponse, status: str, code: str, message: str) -> Iterable[bytes]:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return _answer(start_response, status, body.encode(), "application/xml")


def _now() -> datetime:
    return datetime.now(timezone.utc)


# --- the process ---


def serve(port: int, ready_file: Path, max_seconds: float, shim: StrictS3) -> None:
    """Serve until `max_seconds` are over or SIGTERM comes; write port and pid to `ready_file` when up."""
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", port, shim, threaded=True, request_handler=MotoRequestHandler)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    timer = threading.Timer(max_seconds, server.shutdown)
    timer.daemon = True
    timer.start()
    partial = ready_file.with_name(ready_file.name + ".partial")
    partial.write_text(json.dumps({"port": server.server_port, "pid": os.getpid()}), encoding="utf-8")
    partial.replace(ready_file)
    server.serve_forever()


def start(
    folder: Path,
    *,
    restore_seconds: float = 2.0,
    day_seconds: float = 86400.0,
    replication_seconds: float = 0.0,
    max_seconds: float = 7200.0,
    wait_seconds: float = 60.0,
) -> Standin:
    """Start a stand-in that outlives its parent, or get the one that runs for this folder.

    Raises:
        RuntimeError: it did not come up within `wait_seconds`; its log lies in the folder.
    """
    known = running(folder)
    if known is not None:
        return known
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / READY_FILE
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "sample_lineage.s3_standin", "--port", "0", "--ready-file", str(ready.absolute())]
    command += ["--max-seconds", str(max_seconds), "--restore-seconds", str(restore_seconds)]
    command += ["--day-seconds", str(day_seconds), "--replication-seconds", str(replication_seconds)]
    roots = [str(Path(__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
    with (folder / "s3-standin.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(root for root in roots if root)},
        )
    deadline = time.monotonic() + wait_seconds
    while time.monotonic() < deadline and process.poll() is None:
        found = running(folder)
        if found is not None:
            return found
        time.sleep(0.1)
    if process.poll() is None:
        process.kill()
        process.wait()
    raise RuntimeError(f"the S3 stand-in did not start; its log is {folder / 's3-standin.log'}")


def running(folder: Path) -> Standin | None:
    """The stand-in that was started for this folder, if it still answers and is the process it says."""
    try:
        told = json.loads((folder / READY_FILE).read_text(encoding="utf-8"))
        endpoint = f"http://127.0.0.1:{int(told['port'])}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(endpoint + quote(_ALIVE), timeout=5) as answer:
            alive = json.load(answer)
    except (OSError, ValueError, KeyError, urllib.error.URLError):
        return None
    return Standin(endpoint, int(told["pid"])) if alive == {"pid": told["pid"]} else None


def stop(standin: Standin, wait_seconds: float = 10.0) -> None:
    """End a stand-in. Call it with what `start` or `running` returned just now."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(standin.pid, signal.SIGTERM)
    deadline = time.monotonic() + wait_seconds
    while time.monotonic() < deadline:
        # reap it where it is our own child; a process that is gone answers no signal
        with contextlib.suppress(ChildProcessError):
            os.waitpid(standin.pid, os.WNOHANG)
        try:
            os.kill(standin.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


def main(argv: list[str] | None = None) -> None:
    """Command line of the stand-in process."""
    parser = argparse.ArgumentParser(prog="python -m sample_lineage.s3_standin", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ready-file", type=Path, required=True)
    parser.add_argument("--max-seconds", type=float, default=7200.0)
    parser.add_argument("--restore-seconds", type=float, default=2.0)
    parser.add_argument("--day-seconds", type=float, default=86400.0)
    parser.add_argument("--replication-seconds", type=float, default=0.0)
    options = parser.parse_args(argv)
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    shim = StrictS3(
        DomainDispatcherApplication(create_backend_app),
        restore_seconds=options.restore_seconds,
        day_seconds=options.day_seconds,
        replication_seconds=options.replication_seconds,
    )
    serve(options.port, options.ready_file, options.max_seconds, shim)


if __name__ == "__main__":
    main()
