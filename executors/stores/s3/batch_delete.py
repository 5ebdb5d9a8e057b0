"""Deleting objects, or versions of them, in batches: refusals are told one by one, and what S3 is too busy for is tried
again."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from executors.stores.s3.step_base import request_id
from pii_tracer.lake.aws_errors import error_code
from pii_tracer.lake.stores.s3.object_versions import S3Client

BATCH = 1000
"""Keys that one DeleteObjects takes (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html)."""

CURRENT = ""
"""In place of a version's id: the object as it is now. In a bucket that keeps versions this makes a delete marker."""

_PASSING = frozenset({"InternalError", "SlowDown", "ServiceUnavailable", "503", "500", "RequestTimeout"})
_TRIES = 4
_WORKERS = 4

Place = tuple[str, str]
"""A key and the id of one of its versions, or `CURRENT`."""


@dataclass(frozen=True)
class Batches:
    """Those of one bucket."""

    client: S3Client
    bucket: str

    def delete(self, places: Sequence[Place], bypass: Collection[Place] = ()) -> tuple[dict[Place, str], list[str]]:
        """Delete all of them, several batches at once; the code of each that was refused for good, and the ids of the
        requests. What is gone already counts as deleted.

        bypass: of which governance retention is bypassed.
        """
        errors: dict[Place, str] = {}
        requests: list[str] = []
        with ThreadPoolExecutor(_WORKERS) as pool:
            for refused, ids in pool.map(lambda batch: self._delete_batch(batch, bypass), _parts(places)):
                errors |= refused
                requests += ids
        return errors, requests

    def _delete_batch(self, batch: Sequence[Place], bypass: Collection[Place]) -> tuple[dict[Place, str], list[str]]:
        requests: list[str] = []
        for attempt in range(_TRIES):
            refused = self._call(batch, bypass, requests)
            if not all(refused.get(place) in _PASSING for place in batch):
                break
            _back_off(attempt)  # all were refused: S3 is busy, and asking for each alone would make it worse
        else:
            return refused, requests
        errors: dict[Place, str] = {}
        for place in batch:
            code = refused.get(place)
            # some servers name the key of an error without its version: ask for each version of that key
            if code in _PASSING or (code is None and (place[0], "") in refused):
                code = self._delete_alone(place, bypass, requests)
            if code is not None:
                errors[place] = code
        return errors, requests

    def _delete_alone(self, place: Place, bypass: Collection[Place], requests: list[str]) -> str | None:
        """One of them, tried again while S3 is merely busy; returns the code it was refused with."""
        code = None
        for attempt in range(_TRIES):
            code = self._call([place], bypass, requests).get(place)
            if code not in _PASSING:
                break
            _back_off(attempt)
        return code

    def _call(self, batch: Sequence[Place], bypass: Collection[Place], requests: list[str]) -> dict[Place, str]:
        """One DeleteObjects; error codes by (key, version), by (key, "") where the answer names no version.

        A batch asks for the bypass only where one of its own versions needs it.
        """
        objects = [{"Key": key} | ({"VersionId": version} if version else {}) for key, version in batch]
        more = {"BypassGovernanceRetention": True} if any(place in bypass for place in batch) else {}
        try:
            answer = self.client.delete_objects(Bucket=self.bucket, Delete={"Objects": objects, "Quiet": False}, **more)
        except (ClientError, BotoCoreError) as error:
            return {place: error_code(error) for place in batch}
        requests.append(request_id(answer))
        codes: dict[Place, str] = {}
        for item in answer.get("Errors", ()):
            code = str(item.get("Code") or "unknown")
            if code in ("NoSuchKey", "NoSuchVersion"):
                continue
            version = item.get("VersionId") or (batch[0][1] if len(batch) == 1 else "")
            codes[item["Key"], version] = code
        return codes


def _back_off(attempt: int) -> None:
    time.sleep(0.2 * 2**attempt * random.uniform(1, 1.5))  # noqa: S311 (spreads the tries of several workers)


def _parts(places: Sequence[Place]) -> Iterator[Sequence[Place]]:
    for start in range(0, len(places), BATCH):
        yield places[start : start + BATCH]
