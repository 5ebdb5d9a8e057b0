"""Wait until rewritten objects have reached a replica: the older versions there go only after that."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from executors.s3_objects import PLAN_TAG, AwaitParameters, S3Context, head, overwritten
from pii_tracer.errors import RunError
from pii_tracer.estate.s3_versions import ClientFactory, sha256_of_head
from pii_tracer.plan import Copy
from pii_tracer.protocol import Check, Outcome, Progress

_LOOK_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True)
class AwaitingReplica:
    """One S3_AWAIT_REPLICA step."""

    ctx: S3Context
    clients: ClientFactory
    parameters: AwaitParameters
    copy: Copy | None

    def check(self) -> None:
        """Nothing beyond what every step is checked for."""

    def run(self) -> Outcome:
        """Look until all have arrived, for `poll_seconds`; then the run parks the step and looks again later.

        Raises:
            RunError: S3 says that a replication failed or never happens.
        """
        deadline = time.monotonic() + self.parameters.poll_seconds
        missing = self._missing()
        while missing and time.monotonic() < deadline:
            time.sleep(min(1.0, max(0.05, self.parameters.poll_seconds / 20)))
            missing = self._missing()
        facts = {"keys": len(self.parameters.keys), "arrived": len(self.parameters.keys) - len(missing)}
        return Outcome(facts, waiting_until=self.ctx.now() + _LOOK_AGAIN if missing else None)

    def verify(self) -> Check:
        """Whether the current version of every key is the rewritten one."""
        missing = self._missing()
        return Check(not missing, (f"{len(missing)} rewritten object(s) have not arrived",) if missing else ())

    def probe(self) -> Progress:
        """Waiting changes nothing, so it is never started and never half done."""
        return Progress.PARTIAL if self._missing() else Progress.DONE

    def _missing(self) -> list[str]:
        """Keys that the plan rewrote at the origin and whose current version here is not that content."""
        parameters = self.parameters
        missing = []
        for key in parameters.keys:
            origin = head(self.clients(parameters.origin_region), parameters.origin_bucket, key)
            if origin is None:
                raise overwritten(parameters.origin_bucket, key)
            tag = origin.get("Metadata", {}).get(PLAN_TAG)
            if tag is None or (parameters.plan_id is not None and tag != parameters.plan_id):
                continue
            if _same_content(origin, head(self.clients(parameters.region), parameters.bucket, key), tag):
                continue
            _raise_if_hopeless(origin, parameters, key)
            missing.append(key)
        return missing


def _raise_if_hopeless(origin: Any, parameters: AwaitParameters, key: str) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-status.html"""
    reasons = {
        "FAILED": "S3 failed to replicate the rewritten object",
        "REPLICA": "the origin is a replica itself, and S3 does not replicate replicas again",
        "COMPLETED": "S3 says the rewritten object was replicated, and the replica is another object",
        None: "no replication rule applies to the rewritten object",
    }
    status = origin.get("ReplicationStatus")
    if status in reasons:
        raise RunError(
            reasons[status],
            where=f"s3://{parameters.origin_bucket}/{key} to s3://{parameters.bucket}",
            todo="mend the rule or replicate the object with S3 Batch Replication, then `pii-tracer resume`",
        )


def _same_content(origin: Any, here: Any, tag: str) -> bool:
    if here is None or here.get("Metadata", {}).get(PLAN_TAG) != tag:
        return False
    if here["ContentLength"] != origin["ContentLength"]:
        return False
    sums = sha256_of_head(origin), sha256_of_head(here)
    if all(sums):
        return sums[0] == sums[1]
    return bool(here["ETag"] == origin["ETag"])
