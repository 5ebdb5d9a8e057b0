"""What tells that a version in S3 has the bytes of an earlier search."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from pii_tracer.lake.inventory import ObjectVersion
from pii_tracer.lake.stores.s3.known_versions import identity_of

DIGEST = "0cc175b9c0f1b6a831c399e269772661"


def client(endpoint: str = "http://127.0.0.1:1") -> Any:
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
    return boto3.client("s3", endpoint_url=endpoint, region_name="ap-south-1", **keys)


def version(**more: Any) -> ObjectVersion:
    told = {
        "key": "a",
        "version_id": "null",
        "latest": True,
        "size": 3,
        "etag": DIGEST,
        "modified": "2026-11-20T08:00:00Z",
    }
    return ObjectVersion(**(told | more))


CLIENT = client()


@pytest.mark.parametrize(
    "etag",
    ["", "x", DIGEST.upper(), DIGEST[1:], f"{DIGEST}-", f"{DIGEST}-1x", f"W/{DIGEST}", "0" * 32, f"{'0' * 32}-1"],
)
def test_an_etag_that_is_no_digest_tells_nothing_of_a_version_that_can_be_written_over(etag: str) -> None:
    assert identity_of(CLIENT, version(etag=etag)) is None
    assert (identity_of(CLIENT, version(etag=etag, version_id="v1")) is None) is (not etag)


@pytest.mark.parametrize("etag", [DIGEST, f"{DIGEST}-12", f"{'0' * 31}1"])
def test_a_digest_of_the_bytes_or_of_their_parts_tells_them(etag: str) -> None:
    assert identity_of(CLIENT, version(etag=etag)) is not None


@pytest.mark.parametrize(
    "other", [{"etag": DIGEST[::-1]}, {"size": 4}, {"modified": "2026-11-20T08:00:01Z"}, {"version_id": "v1"}]
)
def test_each_part_of_what_is_listed_makes_another_identity(other: dict[str, Any]) -> None:
    assert identity_of(CLIENT, version(**other)) != identity_of(CLIENT, version())


def test_parts_of_a_second_are_not_told_by_answers() -> None:
    same = version(modified="2026-11-20T08:00:00.123000Z")
    assert identity_of(CLIENT, same) == identity_of(CLIENT, version())


def test_another_store_may_have_a_bucket_of_the_same_name() -> None:
    assert identity_of(client("http://127.0.0.1:2"), version()) != identity_of(CLIENT, version())


def test_a_delete_marker_has_no_bytes() -> None:
    assert identity_of(CLIENT, version(delete_marker=True)) is None
