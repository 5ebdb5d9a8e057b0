"""Readable copies of archived versions: asked for, looked at again later, asked for anew where they lapsed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from executors.stores.s3.step_base import (
    RestoreParameters,
    S3Part,
    VersionRef,
    head,
    request_id,
    server_time,
)
from pii_tracer.common.plurals import counted
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.object_versions import Readability, readability
from pii_tracer.run.executor_protocol import (
    Check,
    Outcome,
    PartlyDone,
    Progress,
)

_ALREADY_OPEN = frozenset({"RestoreAlreadyInProgress", "ObjectAlreadyInActiveTierError"})
_NOT_READABLE = (Readability.ARCHIVED, Readability.RESTORING)


@dataclass(frozen=True)
class Restoring(S3Part[RestoreParameters]):
    """One S3_RESTORE step."""

    def run(self) -> Outcome:
        """Ask for what is archived, never twice while a restore runs; waits until all can be read.

        Raises:
            PartlyDone: some requests were refused; the others stand.
        """
        states = self._states()
        failed: list[dict[str, str]] = []
        requests: list[str] = []
        size = 0
        for item in self.parameters.versions:
            if states[item.key, item.version_id] is Readability.ARCHIVED:
                try:
                    requests.append(self._request(item))
                    size += item.size or 0
                except (ClientError, BotoCoreError) as error:
                    code = error_code(error)
                    if code not in _ALREADY_OPEN:
                        failed.append({"key": item.key, "version_id": item.version_id, "reason": code})
        after = list(self._states().values())
        ongoing = sum(state in _NOT_READABLE for state in after)
        facts: dict[str, Any] = {
            "requested": len(requests),
            "restored_bytes": size,
            "ongoing": ongoing,
            "readable": after.count(Readability.READABLE),
            "missing": after.count(None),
            "tier": self.parameters.tier,
            "days": self.parameters.days,
            "request_ids": requests,
        }
        if failed:
            facts["failed"] = failed
            raise PartlyDone(
                f"{counted(len(failed), 'restore was', 'restores were')} refused:"
                f" {', '.join(sorted({item['reason'] for item in failed}))}",
                facts,
                where=f"s3://{self.parameters.bucket}",
                todo="grant s3:RestoreObject, or wait where S3 asks to slow down, then run `pii-tracer resume`",
            )
        if not ongoing:
            return Outcome(facts)
        # restores often end before the time the service promises, so the run looks again before that
        return Outcome(facts, waiting_until=self.ctx.now() + self._look_again())

    def verify(self) -> Check:
        """Whether every version that still exists can be read."""
        waiting = sum(state in _NOT_READABLE for state in self._states().values())
        return Check.none_left(waiting, "version", "versions", "cannot be read yet")

    def probe(self) -> Progress:
        """How many can be read."""
        states = set(self._states().values()) - {None}
        if states <= {Readability.READABLE}:
            return Progress.DONE
        return Progress.NOT_STARTED if states == {Readability.ARCHIVED} else Progress.PARTIAL

    def _look_again(self) -> timedelta:
        """`windows.restore_check_minutes` of the estate file, at most the promised `restore_hours`."""
        windows = self.ctx.estate.windows
        promised = timedelta(hours=windows.restore_hours) or timedelta(seconds=5)
        return min(timedelta(minutes=windows.restore_check_minutes), promised)

    def _request(self, item: VersionRef) -> str:
        request: dict[str, Any] = {"GlacierJobParameters": {"Tier": self.parameters.tier}}
        # the archive tiers of Intelligent-Tiering are restored for good and take no days
        if item.storage_class != "INTELLIGENT_TIERING":
            request["Days"] = self.parameters.days
        answer = self.client.restore_object(
            Bucket=self.parameters.bucket, Key=item.key, VersionId=item.version_id, RestoreRequest=request
        )
        return request_id(answer)

    def _states(self) -> dict[tuple[str, str], Readability | None]:
        states: dict[tuple[str, str], Readability | None] = {}
        for item in self.parameters.versions:
            found = head(self.client, self.parameters.bucket, item.key, item.version_id)
            now = server_time(found, self.ctx.now()) if found else self.ctx.now()
            states[item.key, item.version_id] = None if found is None else readability(found, now)
        return states
