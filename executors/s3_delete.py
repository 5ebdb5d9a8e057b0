"""Delete exactly the listed versions; spare, or refuse to touch, what other people's rows still need."""

from __future__ import annotations

import os.path
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from executors.s3_match import Keys
from executors.s3_objects import (
    PLAN_TAG,
    DeleteParameters,
    PartlyDone,
    S3Context,
    head,
    keys_of,
    read,
    request_id,
)
from executors.s3_rows import drop_rows
from pii_tracer.errors import RunError
from pii_tracer.estate.s3_versions import (
    ClientFactory,
    Readability,
    S3Client,
    error_code,
    iter_object_versions,
    readability,
)
from pii_tracer.inventory import ObjectVersion
from pii_tracer.model import Match
from pii_tracer.plan import Copy

BATCH = 1000
"""Keys that one DeleteObjects takes (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html)."""

_PASSING = frozenset({"InternalError", "SlowDown", "ServiceUnavailable", "503", "500", "RequestTimeout"})
_TRIES = 4

Place = tuple[str, str]


@dataclass
class Review:
    """What is there of the listed versions, and what may go.

    targets: may be deleted now. spared: listed, current and free of the person. replaced: listed as `null` and
    overwritten in place by this plan. held: reason by key why none of its versions may be deleted.
    """

    targets: list[ObjectVersion] = field(default_factory=list)
    spared: list[Place] = field(default_factory=list)
    replaced: list[Place] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    gone: int = 0


@dataclass(frozen=True)
class VersionDeleter:
    """One S3_DELETE_VERSIONS step."""

    ctx: S3Context
    clients: ClientFactory
    parameters: DeleteParameters
    copy: Copy | None

    @property
    def client(self) -> S3Client:
        return self.clients(self.parameters.region)

    def review(self) -> Review:
        """List again and decide for every listed version. Reads only."""
        existing = self._existing()
        listed = {(item.key, item.version_id) for item in self.parameters.versions}
        found = Review(gone=len(listed - existing.keys()))
        current = {version.key: version for version in existing.values() if version.latest}
        protected = set(self.parameters.keep_latest_of)
        waiting = {place for place in listed if place in existing}
        for key in sorted({place[0] for place in waiting} & protected):
            self._guard(key, current.get(key), listed, found)
        for place in sorted(waiting):
            if place[0] not in found.held and place not in found.spared and place not in found.replaced:
                found.targets.append(existing[place])
        # a marker last: without it an older version would show as the current one for a moment
        found.targets.sort(key=lambda version: version.delete_marker)
        return found

    def delete(self) -> dict[str, Any]:
        """Delete the targets; facts with request ids and what is known of each version's content.

        Raises:
            PartlyDone: versions are left, each with its reason.
        """
        found = self.review()
        requests: list[str] = []
        errors: dict[Place, str] = {}
        for batch in _batches(found.targets):
            errors |= self._delete_batch(batch, requests)
        left = self._existing().keys()
        shas = {(item.key, item.version_id): item.sha256 for item in self.parameters.versions}
        deleted = [version for version in found.targets if (version.key, version.version_id) not in left]
        facts: dict[str, Any] = {
            "deleted": [
                {
                    "key": version.key,
                    "version_id": version.version_id,
                    "etag": version.etag,
                    "sha256": shas[version.key, version.version_id],
                    "bytes": version.size,
                    "delete_marker": version.delete_marker,
                }
                for version in deleted
            ],
            "already_gone": found.gone,
            "spared": [{"key": key, "version_id": version} for key, version in found.spared],
            "replaced_in_place": [{"key": key, "version_id": version} for key, version in found.replaced],
            "request_ids": requests,
        }
        failed = {
            (version.key, version.version_id): errors.get((version.key, version.version_id), "still there")
            for version in found.targets
            if (version.key, version.version_id) in left
        }
        if failed or found.held:
            facts["failed"] = [
                {"key": key, "version_id": version, "code": code} for (key, version), code in sorted(failed.items())
            ]
            facts["held"] = [{"key": key, "reason": reason} for key, reason in sorted(found.held.items())]
            reasons = ", ".join(sorted({*failed.values(), *found.held.values()}))
            raise PartlyDone(
                f"{len(failed)} version(s) were not deleted and {len(found.held)} object(s) were held back: {reasons}",
                facts,
                where=f"s3://{self.parameters.bucket}",
                todo="AccessDenied: permission or Object Lock; held back: finish the rewrite or the replication first",
            )
        return facts

    def _existing(self) -> dict[Place, ObjectVersion]:
        keys = [item.key for item in self.parameters.versions]
        prefix = os.path.commonprefix(keys)  # noqa: RUF071 (S3 prefixes are characters, not path parts)
        wanted = set(keys)
        try:
            versions = list(iter_object_versions(self.client, self.parameters.bucket, prefix))
        except (ClientError, BotoCoreError) as error:
            raise RunError(
                f"ListObjectVersions failed: {error_code(error)}",
                where=f"s3://{self.parameters.bucket}",
                todo="check the bucket and the permission to list versions",
            ) from None
        return {(version.key, version.version_id): version for version in versions if version.key in wanted}

    def _guard(self, key: str, current: ObjectVersion | None, listed: set[Place], found: Review) -> None:
        """Decide on a key whose current version must outlive the step."""
        if current is None:
            found.held[key] = "no version is the current one"
        elif current.delete_marker:
            found.held[key] = "the object is deleted, its rewritten version is not there"
        else:
            place = (key, current.version_id)
            plan_id = self.parameters.plan_id
            now = head(self.client, self.parameters.bucket, key)
            written = now is not None and plan_id is not None and now.get("Metadata", {}).get(PLAN_TAG) == plan_id
            if place not in listed:
                if plan_id is not None and not written:
                    found.held[key] = "the current version was not written by this plan"
            elif written:
                found.replaced.append(place)
            elif self._free_of_person(current):
                found.spared.append(place)
            else:
                found.held[key] = "the current version is listed and was not shown to be free of the person"

    def _free_of_person(self, version: ObjectVersion) -> bool:
        match = self.parameters.match or (self.copy.match if self.copy else None)
        if match is None or self.parameters.format is None:
            return False
        keys, strong = keys_of(self.ctx.keyring, match)
        if self._reads_free(self.client, self.parameters.bucket, version.key, version.version_id, match, keys, strong):
            return True
        origin = self.parameters.origin_bucket
        if origin is None:
            return False
        client = self.clients(self.parameters.origin_region)
        there = head(client, origin, version.key)
        if there is None or there["ETag"].strip('"') != version.etag or there["ContentLength"] != version.size:
            return False
        return self._reads_free(
            client, origin, version.key, there.get("VersionId", "null"), match, keys, strong, etag=version.etag
        )

    def _reads_free(
        self,
        client: S3Client,
        bucket: str,
        key: str,
        version_id: str,
        match: Match,
        keys: Keys,
        strong: frozenset[str],
        etag: str | None = None,
    ) -> bool:
        now = head(client, bucket, key, version_id)
        if now is None or readability(now, self.ctx.now()) is not Readability.READABLE:
            return False
        data, answer = read(client, bucket, key, version_id)
        if self.parameters.format is None or (etag is not None and answer["ETag"].strip('"') != etag):
            return False
        return drop_rows(data, self.parameters.format, match, keys, strong).data is None

    def _delete_batch(self, batch: list[ObjectVersion], requests: list[str]) -> dict[Place, str]:
        """Delete up to 1,000 versions; returns the code of each that was refused for good."""
        refused = self._call(batch, requests)
        errors: dict[Place, str] = {}
        for version in batch:
            place = (version.key, version.version_id)
            code = refused.get(place)
            # some servers name the key of an error without its version: ask for each version of that key
            if code in _PASSING or (code is None and (version.key, "") in refused):
                code = self._delete_alone(version, requests)
            if code is not None:
                errors[place] = code
        return errors

    def _delete_alone(self, version: ObjectVersion, requests: list[str]) -> str | None:
        """One version, tried again while S3 is merely busy; returns the code it was refused with."""
        code = None
        for attempt in range(_TRIES):
            code = self._call([version], requests).get((version.key, version.version_id))
            if code not in _PASSING:
                break
            time.sleep(0.2 * 2**attempt)
        return code

    def _call(self, batch: list[ObjectVersion], requests: list[str]) -> dict[Place, str]:
        """One DeleteObjects; error codes by (key, version), by (key, "") where the answer names no version."""
        objects = [{"Key": version.key, "VersionId": version.version_id} for version in batch]
        try:
            answer = self.client.delete_objects(
                Bucket=self.parameters.bucket, Delete={"Objects": objects, "Quiet": False}
            )
        except (ClientError, BotoCoreError) as error:
            return {(version.key, version.version_id): error_code(error) for version in batch}
        requests.append(request_id(answer))
        codes: dict[Place, str] = {}
        for item in answer.get("Errors", ()):
            code = str(item.get("Code") or "unknown")
            if code in ("NoSuchKey", "NoSuchVersion"):
                continue
            version = item.get("VersionId") or (batch[0].version_id if len(batch) == 1 else "")
            codes[item["Key"], version] = code
        return codes


def _batches(versions: list[ObjectVersion]) -> Iterator[list[ObjectVersion]]:
    for start in range(0, len(versions), BATCH):
        yield versions[start : start + BATCH]
