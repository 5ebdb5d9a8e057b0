"""Delete what a bucket keeps of a table's past: every version that is no current one, and every delete marker.

What Spark, or a step of ours, removes from a bucket with versions stays there as a noncurrent version behind a marker
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/versioning-workflows.html). Nothing is listed in the plan: which
versions there will be is known only when the steps before this one are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from executors.stores.masked_object_names import Shown, shown_names
from executors.stores.s3.batch_delete import Batches, Place
from executors.stores.s3.delete_markers import BEHIND, hiding
from executors.stores.s3.object_locks import Lock, locks
from executors.stores.s3.step_base import ClearParameters, S3Part, server_time
from executors.sweep.table_folders import files_below, refusals, refuse_tables_inside
from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.object_versions import versions_by_key
from pii_tracer.lake.stores.s3.s3_path import S3Path
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import S3Location
from pii_tracer.model.timestamps import instant
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)

_AT_ONCE = 4000
"""Versions that are looked at, and deleted, before more are listed: what is listed does not grow old."""

_BEGAN = "cleared_before"
_LEFT = "left"
_NO_LOCKS = frozenset({"ObjectLockConfigurationNotFoundError", "NotImplemented"})


def cleared_at(told: Iterable[Mapping[str, Any]]) -> datetime | None:
    """When a step that has ended and was not yet verified began, by S3's clock; from the facts it gave so far."""
    since = None
    for facts in told:
        if _BEGAN in facts:
            since = datetime.fromisoformat(str(facts[_BEGAN]))
        elif _LEFT in facts:  # it was verified: whoever looks again wants to know all that there is
            since = None
    return since


@dataclass
class _Cleared:
    """shown: how keys are told. deleted: as the deletion log has them. refused: codes. hiding: markers that stay for
    what is behind them."""

    shown: Shown
    deleted: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[Place, str] = field(default_factory=dict)
    locked: dict[Place, Lock] = field(default_factory=dict)
    hiding: list[ObjectVersion] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ClearingVersions(S3Part[ClearParameters]):
    """One S3_CLEAR_VERSIONS step.

    since: when the run began that a verification is about. What was current then, or was not yet there, has become old
    by writers who are at work, after the table was free of the persons; it is not looked for.
    """

    since: datetime | None = None

    @property
    def _where(self) -> str:
        return f"s3://{self.parameters.bucket}/{self.parameters.prefix}"

    def check(self) -> None:
        """A table with another one inside is not planned for; one that has come since must not lose its past.

        Raises:
            RunError: there is one, or the folder cannot be listed.
        """
        key = self.parameters.prefix.removesuffix("/")
        folder = S3Path(S3Location(bucket=self.parameters.bucket, key=key), self.client)
        with refusals(folder):
            refuse_tables_inside(folder, files_below(folder), self.copy.format if self.copy else None)

    def run(self) -> Outcome:
        """Delete what is there now; what a lock with a date keeps is waited for.

        Raises:
            PartlyDone: versions are left: refused, or under a legal hold.
        """
        began, done = self._clock(), _Cleared(shown_names(self.ctx, self.copy))
        can_lock = self._can_lock()
        for versions in self._old(None):
            self._clear(versions, done, can_lock=can_lock)
        facts = self._facts(done) | {_BEGAN: began.isoformat()}
        dates = [lock.until for lock in done.locked.values() if lock.until is not None and not lock.legal_hold]
        held = {lock.reason() for lock in done.locked.values() if lock.legal_hold}
        waiting = {key for (key, _), lock in done.locked.items() if not lock.legal_hold}
        held |= {BEHIND for marker in done.hiding if marker.key not in waiting}
        if done.refused or held:
            raise PartlyDone(
                f"{counted(len(done.refused), 'old version was', 'old versions were')}"
                f" not deleted, {len(done.locked)} locked and"
                f" {counted(len(done.hiding), 'delete marker hides', 'delete markers hide')} one:"
                f" {', '.join(sorted({*done.refused.values(), *held}))}",
                facts,
                where=self._where,
                todo=(
                    "for AccessDenied, grant s3:DeleteObjectVersion, or wait until the Object Lock ends; for a legal "
                    "hold, ask its owner to release it; then run `pii-tracer resume`"
                ),
            )
        return Outcome(facts, waiting_until=min(dates, default=None))

    def verify(self) -> Check:
        """List again: nothing old is left."""
        left = [version for versions in self._old(self.since) for version in versions]
        markers = sum(version.delete_marker for version in left)
        findings = (
            [
                f"{counted(len(left) - markers, 'old version')} and"
                f" {counted(markers, 'delete marker is', 'delete markers are')} left"
            ]
            if left
            else []
        )
        if left and self._can_lock():
            findings += sorted({f"locked: {lock.reason()}" for lock in self._locks(left).values()})
        return Check(not left, tuple(findings), {_LEFT: len(left)})

    def probe(self) -> Progress:
        """Whether anything is left. How much there was nobody knows."""
        left = next(self._old(self.since), None)
        return Progress.DONE if left is None else Progress.PARTIAL

    def _clear(self, versions: Sequence[ObjectVersion], done: _Cleared, *, can_lock: bool) -> None:
        """Some keys with all that is old of them: first the versions, then the markers that hide none any more."""
        locked = self._locks(versions) if can_lock else {}
        done.locked |= locked
        going = [v for v in versions if not v.delete_marker and (v.key, v.version_id) not in locked]
        refused = self._delete(going, done)
        staying = [v for v in versions if (v.key, v.version_id) in locked.keys() | refused.keys()]
        markers = [v for v in versions if v.delete_marker]
        hidden = hiding(markers, staying)
        done.hiding += hidden
        self._delete([marker for marker in markers if marker not in hidden], done)

    def _delete(self, versions: Sequence[ObjectVersion], done: _Cleared) -> dict[Place, str]:
        refused, requests = Batches(self.client, self.parameters.bucket).delete(
            [(version.key, version.version_id) for version in versions]
        )
        done.refused |= refused
        done.requests += requests
        done.deleted += [
            {
                "key": done.shown(version.key),
                "version_id": version.version_id,
                "etag": version.etag,
                "bytes": version.size,
                "delete_marker": version.delete_marker,
            }
            for version in versions
            if (version.key, version.version_id) not in refused
        ]
        return refused

    def _facts(self, done: _Cleared) -> dict[str, Any]:
        shown = done.shown
        return {
            "deleted": done.deleted,
            "locked": [
                {"key": shown(key), "version_id": version, "reason": lock.reason()}
                for (key, version), lock in sorted(done.locked.items())
            ],
            "failed": [
                {"key": shown(key), "version_id": version, "code": code}
                for (key, version), code in sorted(done.refused.items())
            ],
            "markers_kept": [{"key": shown(m.key), "version_id": m.version_id} for m in done.hiding],
            "request_ids": done.requests,
        }

    def _old(self, since: datetime | None) -> Iterator[list[ObjectVersion]]:
        """What is old below the prefix, whole keys at a time, never nothing. since: only what was old by then.

        Raises:
            RunError: it cannot be listed.
        """
        found: list[ObjectVersion] = []
        try:
            for versions in versions_by_key(self.client, self.parameters.bucket, self.parameters.prefix):
                found += [v for v in versions if _is_old(v) and (since is None or _old_since(v, versions) < since)]
                if len(found) >= _AT_ONCE:
                    yield found
                    found = []
        except (ClientError, BotoCoreError) as error:
            raise RunError(
                f"ListObjectVersions failed: {error_code(error)}",
                where=self._where,
                todo="check the bucket and the permission to list versions",
            ) from None
        if found:
            yield found

    def _locks(self, versions: Iterable[ObjectVersion]) -> dict[Place, Lock]:
        try:
            return locks(self.client, self.parameters.bucket, versions, self.ctx.now())
        except RunError as error:  # it names the object, whose name can be a person's
            raise RunError(error.what, where=self._where, todo=error.todo) from None

    def _can_lock(self) -> bool:
        """Whether the bucket has Object Lock; also where it does not say."""
        try:
            answer = self.client.get_object_lock_configuration(Bucket=self.parameters.bucket)
        except (ClientError, BotoCoreError) as error:
            return error_code(error) not in _NO_LOCKS
        return bool(answer.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") == "Enabled")

    def _clock(self) -> datetime:
        """What time it is in S3."""
        try:
            return server_time(self.client.head_bucket(Bucket=self.parameters.bucket), self.ctx.now())
        except (ClientError, BotoCoreError) as error:
            raise RunError(
                f"HeadBucket failed: {error_code(error)}", where=self._where, todo="run `pii-tracer resume` later"
            ) from None


def _is_old(version: ObjectVersion) -> bool:
    return version.delete_marker or not version.latest


def _old_since(version: ObjectVersion, versions: Sequence[ObjectVersion]) -> datetime:
    """When it became old: a marker when it was made, a version when the next one was written.

    A listing can tell seconds only: of two with one time, each is taken for the next one of the other.
    """
    own = instant(version.modified)
    if version.delete_marker:
        return own
    times = (instant(other.modified) for other in versions if other is not version)
    return min((time for time in times if time >= own), default=own)
