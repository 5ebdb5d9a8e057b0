"""WSGI middleware that makes moto's S3 as strict as S3. `s3_standin` runs it as a process."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from sample_lineage.s3_messages import (
    Headers,
    StartResponse,
    answer,
    body_of,
    checksum_holds,
    error,
    objects_of,
    retention_over,
)

ALIVE = "/_standin/alive"
"""Path that answers with the process id, to tell this server from another on the same port."""
ADVANCE = "/_standin/advance"
AGE = "/_standin/age"
"""Path that sets the stand-in's clock forward by the query's `seconds`: waiting without the wait."""

_ARCHIVED = ("GLACIER", "DEEP_ARCHIVE")
_DELETE_LIMIT = 1000


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

    restore_seconds: how long a restore takes.
    replication_seconds: how long a new version takes to reach the replicas.
    """

    app: Callable[[dict[str, Any], StartResponse], Iterable[bytes]]
    restore_seconds: float = 2.0
    replication_seconds: float = 0.0
    _restores: dict[tuple[str, str, str], _Restore] = field(default_factory=dict)
    _rules: dict[str, bytes] = field(default_factory=dict)
    _replications: list[tuple[datetime, Any, list[dict[str, Any]]]] = field(default_factory=list)
    _ahead: timedelta = timedelta(0)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") == ALIVE:
            return answer(start_response, "200 OK", json.dumps({"pid": os.getpid()}).encode(), "application/json")
        with self._lock:
            if environ.get("PATH_INFO") == ADVANCE:
                self._ahead += timedelta(seconds=float(parse_qs(environ["QUERY_STRING"])["seconds"][0]))
                return answer(start_response, "200 OK", b"", "text/plain")
            if environ.get("PATH_INFO") == AGE:
                _age_objects(timedelta(seconds=float(parse_qs(environ["QUERY_STRING"])["seconds"][0])))
                return answer(start_response, "200 OK", b"", "text/plain")
            request = _Request.of(environ)
            self._settle_replications()
            self._settle_restores()
            refusal = self._own_answer(request, environ, start_response)
            return refusal if refusal is not None else self._pass_on(request, environ, start_response)

    def _now(self) -> datetime:
        return datetime.now(timezone.utc) + self._ahead

    # --- what the shim answers itself ---

    def _own_answer(
        self, request: _Request, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes] | None:
        if request.method == "POST" and "restore" in request.query:
            return self._restore(request, body_of(environ), start_response)
        if request.method == "POST" and "delete" in request.query and not request.key:
            if len(objects_of(body_of(environ))) > _DELETE_LIMIT:
                return error(start_response, "400 Bad Request", "MalformedXML", "more than 1,000 keys")
            return None
        if "replication" in request.query and not request.key:
            return self._replication(request, environ, start_response)
        if request.method == "GET" and request.key and "tagging" in request.query:
            return _tags_of_archived(request, start_response)
        if request.method == "GET" and request.key and self._in_archive_tier(request):
            return error(start_response, "403 Forbidden", "InvalidObjectState", "the object is in an archive tier")
        if request.writes_object and retention_over(environ):
            message = "the retain until date must be in the future"
            return error(start_response, "400 Bad Request", "InvalidRequest", message)
        if request.writes_object and not checksum_holds(environ):
            return error(start_response, "400 Bad Request", "BadDigest", "the SHA-256 does not fit the body")
        return None

    def _replication(
        self, request: _Request, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes] | None:
        """moto returns every rule without its prefix; S3 returns what was put."""
        if request.method == "PUT":
            body = body_of(environ)
            for arn in re.findall(rb"<Bucket>(.*?)</Bucket>", body):
                bucket = _backend().buckets.get(arn.decode().rpartition(":")[2])
                if bucket is None or not bucket.is_versioned:
                    return error(
                        start_response,
                        "400 Bad Request",
                        "InvalidRequest",
                        "Destination bucket must exist and have versioning enabled",
                    )
            self._rules[request.bucket] = body
            return None
        stored = _backend().buckets.get(request.bucket)
        if request.method == "GET" and stored is not None and getattr(stored, "replication", None):
            return answer(start_response, "200 OK", self._rules[request.bucket], "application/xml")
        return None

    def _restore(self, request: _Request, body: bytes, start_response: StartResponse) -> Iterable[bytes]:
        key = _find(request.bucket, request.key, request.version)
        if key is None:
            return error(start_response, "404 Not Found", "NoSuchKey", "no such object version")
        if key.storage_class not in _ARCHIVED and not _archive_status(key):
            return error(start_response, "403 Forbidden", "InvalidObjectState", "not an archived object")
        place = (request.bucket, request.key, str(key.version_id))
        days = re.search(rb"<Days>(\d+)</Days>", body)
        if bool(days) is bool(_archive_status(key)):
            return error(start_response, "400 Bad Request", "MalformedXML", "Days is missing, or must not be there")
        known = self._restores.get(place)
        now = self._now()
        if known is not None and now < known.ready:
            return error(start_response, "409 Conflict", "RestoreAlreadyInProgress", "restore is in progress")
        ready = known.ready if known else now + timedelta(seconds=self.restore_seconds)
        # what comes back from an archive tier stays
        until = max(now, ready) + timedelta(days=int(days[1]) if days else 36500)
        self._restores[place] = _Restore(ready, until)
        return answer(start_response, "200 OK" if known else "202 Accepted", b"", "application/xml")

    def _in_archive_tier(self, request: _Request) -> bool:
        key = (
            None
            if request.query.keys() & {"tagging", "uploadId"}
            else _find(request.bucket, request.key, request.version)
        )
        if key is None or not _archive_status(key):
            return False
        known = self._restores.get((request.bucket, request.key, str(key.version_id)))
        return known is None or self._now() < known.ready

    def _settle_restores(self) -> None:
        """Open what has become readable, close what has lapsed; moto reads both from the expiry date."""
        now = self._now()
        for place, restore in list(self._restores.items()):
            key = _find(*place)
            if key is None or now >= restore.until:
                del self._restores[place]
            if key is not None and not _archive_status(key):
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

        with _without_deleted(request):
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
                if restore is not None and self._now() < restore.ready:
                    more.append(("x-amz-restore", 'ongoing-request="true"'))
                if self._in_archive_tier(request):
                    more.append(("x-amz-archive-status", _archive_status(key)))
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
            return [key for key, version in objects_of(body_of(environ)) if version is None]
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
        self._replications.append((self._now() + timedelta(seconds=self.replication_seconds), key, rules))

    def _settle_replications(self) -> None:
        """Replicate what is due."""
        due = [entry for entry in self._replications if entry[0] <= self._now()]
        self._replications = [entry for entry in self._replications if entry not in due]
        for _, key, rules in due:
            self._replicate(key, rules)

    def _replicate(self, key: Any, rules: list[dict[str, Any]]) -> None:
        """Copy one version under its own version id, with metadata and tags. A replica is not replicated again."""
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


@contextlib.contextmanager
def _without_deleted(request: _Request) -> Iterator[None]:
    """S3 lists no folder of which every object was deleted; moto lists it as long as there are delete markers."""
    bucket = _backend().buckets.get(request.bucket)
    listing = request.method == "GET" and not request.key and "delimiter" in request.query
    if bucket is None or not listing or "versions" in request.query:
        yield
        return
    from moto.s3.models import FakeDeleteMarker

    keys = bucket.keys
    bucket.keys = {name: key for name, key in keys.items() if not isinstance(key, FakeDeleteMarker)}
    try:
        yield
    finally:
        bucket.keys = keys


def _archive_status(key: Any) -> str:
    """Which archive tier of Intelligent-Tiering an object sleeps in; here its metadata says so from the beginning."""
    told = key.metadata.get("x-amz-meta-standin-archive-status") or key.metadata.get("standin-archive-status")
    return str(told or "") if key.storage_class == "INTELLIGENT_TIERING" else ""


def _tags_of_archived(request: _Request, start_response: StartResponse) -> Iterable[bytes] | None:
    """S3 shows tags in every class; moto refuses them for archived objects."""
    key = _find(request.bucket, request.key, request.version)
    if key is None or key.storage_class not in _ARCHIVED:
        return None
    pairs = ((html.escape(t["Key"]), html.escape(t["Value"])) for t in _backend().get_object_tagging(key)["Tags"])
    tags = "".join(f"<Tag><Key>{name}</Key><Value>{value}</Value></Tag>" for name, value in pairs)
    body = f'<?xml version="1.0"?><Tagging><TagSet>{tags}</TagSet></Tagging>'.encode()
    return answer(start_response, "200 OK", body, "application/xml")


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


def _keep_checksum(key: Any, environ: dict[str, Any]) -> None:
    """S3 tells a checksum that came with the upload to later HEADs; moto forgets it."""
    told = environ.get("HTTP_X_AMZ_CHECKSUM_SHA256")
    if told is not None and key is not None:
        key.checksum_algorithm, key.checksum_value = "SHA256", told


def _age_objects(by: timedelta) -> None:
    """Every version of every object was written so much earlier than it was."""
    from moto.s3.models import s3_backends

    for account in s3_backends.values():
        for partition in account.values():
            for bucket in partition.buckets.values():
                for _, versions in bucket.keys.iterlists():
                    for version in versions:
                        version.last_modified -= by
