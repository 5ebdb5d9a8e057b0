"""Clients of S3 as the estate file says, which another machine can make again: settings travel, credentials do not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from pii_tracer.config.estate_file import S3
from pii_tracer.lake.stores.s3.object_versions import S3Client

_OTHER_BUCKETS = {
    "--table-s3": (
        "it is in a table bucket (Amazon S3 Tables), whose objects only S3 can delete. Ask the owner to delete the "
        "person's rows with an engine, and to expire the snapshots"
    ),
    "--x-s3": (
        "it is in a directory bucket (S3 Express One Zone), which the tool does not support. Ask the owner to move "
        "the data into a different bucket, or to delete the person there"
    ),
}
"""By the end of a bucket's name, which no other bucket may have:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html"""


class OtherKindOfBucket(BotoCoreError):
    """A request that was not sent, since no step erases in the bucket. Callers treat it as a refusal by S3."""

    fmt = "{kind}"


def kind_against(bucket: str) -> str | None:
    """Why no step erases in a bucket of its kind, if so. Clients send no request to such a bucket."""
    return next((why for end, why in _OTHER_BUCKETS.items() if bucket.endswith(end)), None)


def usual_region() -> str | None:
    """The region that boto3 takes where nobody names one; None where it has none."""
    return os.environ.get("AWS_REGION") or boto3.session.Session().region_name


class S3Clients:
    """A factory of S3 clients by region (None: the estate's own); credentials are those that its session finds.

    When it is unpickled, in another process, that process' own credentials are found.
    """

    def __init__(self, settings: S3, session: boto3.session.Session) -> None:
        self._settings = settings
        self._session = session
        self._made: dict[str, S3Client] = {}
        self._config = Config(
            retries={"max_attempts": 3, "mode": "standard"},
            connect_timeout=10,
            read_timeout=60,
            # a server of one's own has no host name per bucket
            s3={"addressing_style": "path"} if settings.endpoint_url else {},
        )

    def __call__(self, region: str | None) -> S3Client:
        """The client for a region; one for each, however often it is asked for."""
        name = region or self._settings.region
        if name not in self._made:
            address = self._settings.endpoint_url
            made = self._session.client("s3", region_name=name, endpoint_url=address, config=self._config)
            made.meta.events.register("before-parameter-build.s3", _only_usual_buckets)
            self._made[name] = made
        return self._made[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._settings.model_dump_json(),)


def _only_usual_buckets(params: Mapping[str, Any], **_: Any) -> None:
    """Raises `OtherKindOfBucket`, before anything is sent."""
    if kind := kind_against(str(params.get("Bucket") or "")):
        raise OtherKindOfBucket(kind=kind)


def clients_of(settings: S3) -> S3Clients:
    """The factory of boto3's default session, one for a process.

    A client takes longer to make than a small file to read. Who has no credentials yet may have some a moment later, so
    a factory without them is not kept.
    """
    session = boto3.DEFAULT_SESSION = boto3.DEFAULT_SESSION or boto3.session.Session()
    if session.get_credentials() is None:
        return S3Clients(settings, session)
    return _kept(settings.model_dump_json(), session)


def _again(settings: str) -> S3Clients:
    return clients_of(S3.model_validate_json(settings))


@lru_cache(maxsize=16)
def _kept(settings: str, session: boto3.session.Session) -> S3Clients:
    return S3Clients(S3.model_validate_json(settings), session)
