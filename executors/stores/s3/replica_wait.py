"""Wait until rewritten objects have reached a replica: the older versions there go only after that."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from executors.stores.s3.step_base import (
    PLAN_TAG,
    AwaitParameters,
    S3Part,
    head,
)
from pii_tracer.common.plurals import counted
from pii_tracer.lake.stores.s3.object_versions import sha256_of_head
from pii_tracer.run.executor_protocol import Check, Outcome, PartlyDone

_LOOK_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True)
class AwaitingReplica(S3Part[AwaitParameters]):
    """One S3_AWAIT_REPLICA step."""

    def run(self) -> Outcome:
        """Look until all have arrived, for `poll_seconds`; then the run parks the step and looks again later.

        Raises:
            PartlyDone: S3 says that a replication failed or never happens; all that can arrive has.
        """
        deadline = time.monotonic() + self.parameters.poll_seconds
        coming, failed = self._missing()
        while coming and time.monotonic() < deadline:
            time.sleep(min(1.0, max(0.05, self.parameters.poll_seconds / 20)))
            coming, failed = self._missing()
        keys = len(self.parameters.keys)
        facts: dict[str, Any] = {"keys": keys, "arrived": keys - len(coming) - len(failed)}
        if failed and not coming:
            facts["failed"] = [{"key": key, "reason": reason} for key, reason in sorted(failed.items())]
            raise PartlyDone(
                f"{len(failed)} of {counted(keys, 'object')} will not be replicated: "
                f"{', '.join(sorted(set(failed.values())))}",
                facts,
                where=f"s3://{self.parameters.origin_bucket} to s3://{self.parameters.bucket}",
                todo=(
                    "repair the rule, or replicate the objects with S3 Batch Replication, then run `pii-tracer "
                    "resume`. If somebody deleted or changed objects at the origin, make a new plan"
                ),
            )
        return Outcome(facts, waiting_until=self.ctx.now() + _LOOK_AGAIN if coming else None)

    def verify(self) -> Check:
        """Whether the current version of every key is the rewritten one."""
        coming, failed = self._missing()
        findings = (
            (f"{counted(len(coming), 'rewritten object has', 'rewritten objects have')} not arrived",) if coming else ()
        )
        return Check(not coming and not failed, (*findings, *sorted(set(failed.values()))))

    def _missing(self) -> tuple[list[str], dict[str, str]]:
        """Keys that the plan rewrote at the origin and whose current version here is not that content.

        First those that are still to come, then those that never will, with the reason.
        """
        parameters = self.parameters
        coming: list[str] = []
        failed: dict[str, str] = {}
        for key in parameters.keys:
            origin = head(self.clients(parameters.origin_region), parameters.origin_bucket, key)
            if origin is None:
                failed[key] = "somebody deleted the object at the origin"
                continue
            tag = origin.get("Metadata", {}).get(PLAN_TAG)
            if tag is None or (parameters.plan_id is not None and tag != parameters.plan_id):
                continue
            if _same_content(origin, head(self.client, parameters.bucket, key), tag):
                continue
            reason = _HOPELESS.get(origin.get("ReplicationStatus"))
            if reason is None:
                coming.append(key)
            else:
                failed[key] = reason
        return coming, failed


_HOPELESS: dict[str | None, str] = {
    "FAILED": "S3 failed to replicate the rewritten object",
    "REPLICA": "the origin is a replica, and S3 does not replicate replicas",
    "COMPLETED": "S3 reports that the rewritten object was replicated, but the replica is a different object",
    None: "no replication rule applies to the rewritten object",
}
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-status.html"""


def _same_content(origin: Any, here: Any, tag: str) -> bool:
    if here is None or here.get("Metadata", {}).get(PLAN_TAG) != tag:
        return False
    if here["ContentLength"] != origin["ContentLength"]:
        return False
    sums = sha256_of_head(origin), sha256_of_head(here)
    if all(sums):
        return sums[0] == sums[1]
    # of an object in parts there is one checksum of all their checksums; its ETag may be the key's that encrypted it
    parts = origin.get("ChecksumSHA256")
    return bool(here["ETag"] == origin["ETag"] or (parts and parts == here.get("ChecksumSHA256")))
