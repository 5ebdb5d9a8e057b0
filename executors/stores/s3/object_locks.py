"""Object Lock: whether a version may be deleted, and if not, until when. Asked first: nothing is tried blindly.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html: COMPLIANCE is lifted by nobody, GOVERNANCE by
who may bypass it and says so, a legal hold by who took it out. HeadObject shows them to callers that may read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from executors.stores.s3.step_base import head, server_time
from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.object_versions import S3Client

_WORKERS = 8


@dataclass(frozen=True)
class Lock:
    """Why a version stays. until: end of its retention, None where only a legal hold keeps it."""

    until: datetime | None
    governance: bool
    legal_hold: bool

    def reason(self) -> str:
        """As journal and messages tell it."""
        if self.legal_hold:
            return "legal hold"
        return f"object lock until {self.until.isoformat()}" if self.until else "object lock"


def locks(
    client: S3Client, bucket: str, versions: Iterable[ObjectVersion], now: datetime
) -> dict[tuple[str, str], Lock]:
    """The locks that hold now, by (key, version id). Delete markers have none.

    Raises:
        RunError: a version's head was refused.
    """

    def asked(version: ObjectVersion) -> tuple[tuple[str, str], Lock | None]:
        found = head(client, bucket, version.key, version.version_id)
        return (version.key, version.version_id), None if found is None else _lock(found, server_time(found, now))

    with ThreadPoolExecutor(_WORKERS) as pool:
        answers = pool.map(asked, [version for version in versions if not version.delete_marker])
        return {place: lock for place, lock in answers if lock is not None}


def _lock(found: Any, now: datetime) -> Lock | None:
    hold = found.get("ObjectLockLegalHoldStatus") == "ON"
    until = found.get("ObjectLockRetainUntilDate")
    if until is not None and until <= now:
        until = None
    if not hold and until is None:
        return None
    return Lock(until, governance=until is not None and found.get("ObjectLockMode") == "GOVERNANCE", legal_hold=hold)
