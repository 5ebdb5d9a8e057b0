"""Delete exactly the listed versions; spare, or refuse to touch, what other people's rows still need."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from executors.formats.plain_files.row_removal import RowRemoval
from executors.stores.s3.batch_delete import Batches, Place
from executors.stores.s3.delete_markers import BEHIND, hiding
from executors.stores.s3.object_locks import Lock, locks
from executors.stores.s3.restore import Restoring
from executors.stores.s3.step_base import (
    PLAN_TAG,
    DeleteParameters,
    RestoreParameters,
    S3Part,
    VersionRef,
    head,
    read,
    server_time,
)
from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.object_versions import (
    Readability,
    S3Client,
    iter_object_versions,
    readability,
)
from pii_tracer.model.errors import RunError
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)

_BROUGHT_BACK = "drift: somebody wrote the object again after the plan was made; the plan would delete its old versions"


@dataclass
class Review:
    """What is there of the listed versions, and what may go.

    targets: may be deleted now. spared: current, known to the plan and free of the person. replaced: listed as `null`
    and overwritten in place by this plan. held: reason by key why none of its versions may be deleted; asleep: held,
    since they are archived and must be read first. locked: by Object Lock; not tried before the lock's date. bypass:
    targets whose GOVERNANCE the plan bypasses. hiding: markers that stay as long as a version behind them does.
    """

    targets: list[ObjectVersion] = field(default_factory=list)
    hiding: list[ObjectVersion] = field(default_factory=list)
    locked: dict[Place, Lock] = field(default_factory=dict)
    bypass: set[Place] = field(default_factory=set)
    asleep: list[ObjectVersion] = field(default_factory=list)
    spared: list[Place] = field(default_factory=list)
    replaced: list[Place] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    gone: int = 0


@dataclass(frozen=True)
class VersionDeleter(S3Part[DeleteParameters]):
    """One S3_DELETE_VERSIONS step."""

    def review(self) -> Review:
        """List again and decide for every listed version. Reads only."""
        existing = self._existing()
        listed = {(item.key, item.version_id) for item in self.parameters.versions}
        found = Review(gone=sum(place not in existing for place in listed))
        current = {version.key: version for version in existing.values() if version.latest}
        protected = set(self.parameters.keep_latest_of)
        waiting = {place for place in listed if place in existing}
        for key in sorted({place[0] for place in waiting} & protected):
            try:
                self._guard(key, current.get(key), listed, found)
            except RunError as error:
                found.held[key] = (
                    f"the step did not verify that the current version is free of the person: {error.what}"
                )
        for key in self.parameters.never_latest_of:
            now = current.get(key)
            if now is not None and not now.delete_marker and (key, now.version_id) in waiting:
                found.held[key] = _BROUGHT_BACK
        kept = {*found.spared, *found.replaced}
        found.targets = [
            existing[place] for place in sorted(waiting) if place[0] not in found.held and place not in kept
        ]
        if self.parameters.object_lock:
            self._set_locked_apart(found)
        going = {(v.key, v.version_id) for v in found.targets}
        self._hold_markers(found, [v for place, v in existing.items() if place not in going])
        return found

    def run(self) -> Outcome:
        """Delete the targets; facts with request ids and what is known of each version's content.

        Versions under a lock with a date are waited for; the rest goes.

        Raises:
            PartlyDone: versions are left, each with its reason.
        """
        found = self.review()
        requests: list[str] = []
        errors: dict[Place, str] = {}
        batches = Batches(self.client, self.parameters.bucket)
        for markers in (False, True):
            if markers and any(version.delete_marker for version in found.targets):
                # what was refused is still there, and what others wrote meanwhile
                self._hold_markers(found, self._existing().values())
            phase = [(v.key, v.version_id) for v in found.targets if v.delete_marker is markers]
            refused, ids = batches.delete(phase, found.bypass)
            errors |= refused
            requests += ids
        # what the answers say is written down as done; whether it is true, `verify` sees by listing
        facts = self._facts(found, errors, requests)
        dates = [lock.until for lock in found.locked.values() if lock.until is not None and not lock.legal_hold]
        held_for_good = sorted({lock.reason() for lock in found.locked.values() if lock.legal_hold})
        held = dict(found.held)
        if found.asleep:
            until, refused_keys = self._restored(found.asleep, facts)
            dates.append(until)
            held = {k: why for k, why in held.items() if k not in {v.key for v in found.asleep} - refused_keys}
        waiting = {key for (key, _), lock in found.locked.items() if not lock.legal_hold}
        held |= {marker.key: BEHIND for marker in found.hiding if marker.key not in waiting}
        if errors or held or held_for_good:
            facts["failed"] = [
                {"key": key, "version_id": version, "code": code} for (key, version), code in sorted(errors.items())
            ]
            facts["held"] = [{"key": key, "reason": reason} for key, reason in sorted(held.items())]
            reasons = ", ".join(sorted({*errors.values(), *held.values(), *held_for_good}))
            raise PartlyDone(
                f"{counted(len(errors), 'version was', 'versions were')} not deleted, {len(found.locked)} locked and"
                f" {counted(len(held), 'object')} held back: {reasons}",
                facts,
                where=f"s3://{self.parameters.bucket}",
                todo=(
                    "check the permission and the Object Lock (AccessDenied). Ask the owner to release a legal hold. "
                    "If objects are held back, finish the rewrite or the replication first, or delete the versions "
                    "below a marker. If an object was written again, make a new plan."
                ),
            )
        return Outcome(facts, waiting_until=min(dates) if dates else None)

    def _restored(self, asleep: list[ObjectVersion], facts: dict[str, Any]) -> tuple[datetime, set[str]]:
        """Ask for what must be read before it can be spared or deleted; its restored copy has lapsed since.

        When to look again, and the keys whose restore was refused.
        """
        own = self.parameters
        versions = tuple(VersionRef(key=v.key, version_id=v.version_id, storage_class=v.storage_class) for v in asleep)
        asked = RestoreParameters(bucket=own.bucket, region=own.region, versions=versions, days=2, tier="Standard")
        try:
            woken = Restoring(self.ctx, self.clients, asked, self.copy).run()
        except PartlyDone as error:
            facts["restored_again"] = error.facts
            return self.ctx.now(), {item["key"] for item in error.facts["failed"]}
        facts["restored_again"] = woken.facts
        return woken.waiting_until or self.ctx.now(), set()

    def verify(self) -> Check:
        """None of the listed versions exists but those that were spared."""
        found = self.review()
        left = len(found.targets) + len(found.hiding)
        findings = [counted(left, "listed version still exists", "listed versions still exist")] if left else []
        findings += sorted({f"locked: {lock.reason()}" for lock in found.locked.values()})
        findings += sorted({f"held back: {reason}" for reason in found.held.values()})
        return Check(not findings, tuple(findings), {"left": left + len(found.locked), "spared": len(found.spared)})

    def probe(self) -> Progress:
        """How many of the listed versions are gone."""
        found = self.review()
        if not found.targets and not found.held and not found.locked and not found.hiding:
            return Progress.DONE
        return Progress.PARTIAL if found.gone or found.replaced else Progress.NOT_STARTED

    def _facts(self, found: Review, errors: dict[Place, str], requests: list[str]) -> dict[str, Any]:
        return {
            "deleted": [
                {
                    "key": version.key,
                    "version_id": version.version_id,
                    "etag": version.etag,
                    "bytes": version.size,
                    "delete_marker": version.delete_marker,
                }
                for version in found.targets
                if (version.key, version.version_id) not in errors
            ],
            "already_gone": found.gone,
            "spared": [{"key": key, "version_id": version} for key, version in found.spared],
            "replaced_in_place": [{"key": key, "version_id": version} for key, version in found.replaced],
            "locked": [
                {"key": key, "version_id": version, "reason": lock.reason()}
                for (key, version), lock in sorted(found.locked.items())
            ],
            "markers_kept": [{"key": marker.key, "version_id": marker.version_id} for marker in found.hiding],
            "governance_bypassed": len(found.bypass),
            "request_ids": requests,
        }

    def _set_locked_apart(self, found: Review) -> None:
        for place, lock in locks(self.client, self.parameters.bucket, found.targets, self.ctx.now()).items():
            if self.parameters.bypass_governance and lock.governance and not lock.legal_hold:
                found.bypass.add(place)
            else:
                found.locked[place] = lock
        found.targets = [v for v in found.targets if (v.key, v.version_id) not in found.locked]

    def _hold_markers(self, found: Review, staying: Iterable[ObjectVersion]) -> None:
        """Take the markers that hide one of `staying` from the targets, but under keys whose current version stays."""
        kept = set(self.parameters.keep_latest_of)
        markers = [v for v in found.targets if v.delete_marker and v.key not in kept]
        found.hiding += hiding(markers, staying)
        hidden = {(v.key, v.version_id) for v in found.hiding}
        found.targets = [v for v in found.targets if (v.key, v.version_id) not in hidden]

    def _existing(self) -> dict[Place, ObjectVersion]:
        return listed_versions(self.client, self.parameters.bucket, self.parameters.versions)

    def _guard(self, key: str, current: ObjectVersion | None, listed: set[Place], found: Review) -> None:
        """Decide on a key whose current version must outlive the step."""
        if current is None:
            found.held[key] = "no version is the current version"
        elif current.delete_marker:
            found.held[key] = "the object is deleted, and its rewritten version does not exist"
        else:
            place = (key, current.version_id)
            plan_id = self.parameters.plan_id
            now = head(self.client, self.parameters.bucket, key)
            written = now is not None and plan_id is not None and now.get("Metadata", {}).get(PLAN_TAG) == plan_id
            if place not in listed and (written or plan_id is None):
                return
            if place not in listed and not self._as_planned(current):
                found.held[key] = "the current version was not written by this plan"
            elif written:
                found.replaced.append(place)
            elif self._free_of_person(current):
                found.spared.append(place)
            else:
                found.held[key] = "the step did not verify that the current version is free of the person"
                if now is not None and self.parameters.format is not None and self._sleeps(now):
                    found.asleep.append(current)

    def _as_planned(self, current: ObjectVersion) -> bool:
        """Whether it is the version that was the current one at planning; a `null` one is told by its ETag."""
        now = (current.key, current.version_id, self.ctx.marks.of_content(current.key, current.etag))
        return now in {(v.key, v.version_id, v.etag) for v in self.parameters.current}

    def _sleeps(self, now: Mapping[str, Any]) -> bool:
        return readability(now, server_time(now, self.ctx.now())) is not Readability.READABLE

    def _free_of_person(self, version: ObjectVersion) -> bool:
        match = self.parameters.match or (self.copy.match if self.copy else None)
        if match is None or self.parameters.format is None:
            return False
        removal = RowRemoval.of(self.ctx, self.copy, match, self.parameters.format)
        if self._reads_free(self.client, self.parameters.bucket, version.key, version.version_id, removal):
            return True
        origin = self.parameters.origin_bucket
        if origin is None:
            return False
        client = self.clients(self.parameters.origin_region)
        there = head(client, origin, version.key)
        if there is None or there["ETag"].strip('"') != version.etag or there["ContentLength"] != version.size:
            return False
        return self._reads_free(client, origin, version.key, there.get("VersionId", "null"), removal, etag=version.etag)

    def _reads_free(
        self,
        client: S3Client,
        bucket: str,
        key: str,
        version_id: str,
        removal: RowRemoval,
        etag: str | None = None,
    ) -> bool:
        now = head(client, bucket, key, version_id)
        if now is None or readability(now, self.ctx.now()) is not Readability.READABLE:
            return False
        data, answer = read(client, bucket, key, version_id)
        if etag is not None and answer["ETag"].strip('"') != etag:
            return False
        return removal.kept(data, key).data is None


def listed_versions(client: S3Client, bucket: str, versions: Iterable[VersionRef]) -> dict[Place, ObjectVersion]:
    """Those of the versions (and all others of their keys) that exist, by (key, version id).

    Raises:
        RunError: the bucket cannot be listed.
    """
    wanted = {item.key for item in versions}
    prefix = os.path.commonprefix(sorted(wanted))  # noqa: RUF071 (S3 prefixes are characters, not path parts)
    try:
        found = (v for v in iter_object_versions(client, bucket, prefix) if v.key in wanted)
        return {(version.key, version.version_id): version for version in found}
    except (ClientError, BotoCoreError) as error:
        raise RunError(
            f"ListObjectVersions failed: {error_code(error)}",
            where=f"s3://{bucket}",
            todo="check the bucket and the permission to list versions",
        ) from None
