"""Settings of a bucket that tell of bytes and names beside its objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from pii_tracer.lake.inventory import ObjectSet
from pii_tracer.lake.stores.s3.archive_versions import discover_archives, s3_clients
from pii_tracer.lake.stores.s3.bucket_settings import _cold_tiers, _logs, days_of_old_versions
from pii_tracer.model.datasets import DatasetId
from tests.lake.stores.test_archives import PREFIX, archive, discover
from tests.s3support import World, estate, standin, world

__all__ = ["standin", "world"]


def test_places_that_the_names_of_objects_are_written_to(world: World) -> None:
    bucket, reports = world.new("src"), world.new("reports")
    client = world.client()
    for name, prefix in (("daily", PREFIX + "2026/"), ("all", ""), ("logs", "logs/")):
        client.put_bucket_inventory_configuration(
            Bucket=bucket,
            Id=name,
            InventoryConfiguration={
                "Destination": {
                    "S3BucketDestination": {"Bucket": f"arn:aws:s3:::{reports}", "Format": "CSV", "Prefix": "inv"}
                },
                "IsEnabled": True,
                "Id": name,
                "IncludedObjectVersions": "All",
                "Schedule": {"Frequency": "Daily"},
                **({"Filter": {"Prefix": prefix}} if prefix else {}),
            },
        )
    sets, gaps = discover(world, bucket)
    assert gaps == ()
    # one for a narrower prefix counts as well, one for another prefix does not
    assert sets[0].named_in == (f"inventory all in s3://{reports}/inv", f"inventory daily in s3://{reports}/inv")


def test_when_every_old_version_is_removed() -> None:
    old = {"Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": 30}}
    some_stay = {**old, "NoncurrentVersionExpiration": {"NoncurrentDays": 3, "NewerNoncurrentVersions": 2}}
    tagged = {**old, "Filter": {"Tag": {"Key": "a", "Value": "b"}}}
    inner, off = {**old, "Filter": {"Prefix": "a/b/"}}, {**old, "Status": "Disabled"}
    for rules, days in (([old], [30]), ([some_stay, tagged, inner, off], []), ([inner, old, old], [30, 30])):
        assert days_of_old_versions(rules, "a/") == days


def test_the_lock_that_new_objects_get(world: World) -> None:
    bucket = world.new("lock", ObjectLockEnabledForBucket=True)
    assert discover(world, bucket)[0][0].default_retention is None
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 30}}
    world.client().put_object_lock_configuration(
        Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
    )
    assert discover(world, bucket)[0][0].default_retention == "GOVERNANCE, 30 days"


@pytest.mark.parametrize(
    ("code", "kinds"), [("AccessDenied", ["s3_setting"]), ("NotImplemented", [])], ids=["refused", "no such setting"]
)
def test_a_setting_that_is_refused_is_a_gap_and_one_that_a_server_lacks_is_none(
    world: World, code: str, kinds: list[str]
) -> None:
    made = estate(world.endpoint_url, [archive(world.new("denied"))])
    clients = s3_clients(made)

    class Denied:
        """The real client, but one call is refused."""

        def __init__(self, region: str | None) -> None:
            self._client = clients(region)

        def __getattr__(self, name: str) -> Any:
            return self._refuse if name == "list_bucket_inventory_configurations" else getattr(self._client, name)

        def _refuse(self, **_: Any) -> None:
            raise ClientError({"Error": {"Code": code, "Message": "secret"}}, "x")

    sets, gaps = discover_archives(made, Denied, Path())
    assert len(sets) == 1
    assert [gap.kind for gap in gaps] == kinds
    assert "secret" not in str(gaps)


def test_cold_tiers_and_access_logs_in_the_shapes_of_the_service_model() -> None:
    """No server here has these settings; botocore's own model checks questions and answers, page by page."""
    objects = ObjectSet(
        dataset=DatasetId(namespace="s3://b", name="archive"),
        bucket="b",
        prefix=PREFIX,
        region="ap-south-1",
        of="t",
        versioned=True,
        versions=(),
    )
    client = boto3.client("s3", region_name="ap-south-1", aws_access_key_id="x", aws_secret_access_key="x")

    def tier(name: str, prefix: str, status: str = "Enabled") -> dict[str, Any]:
        tierings = [{"Days": 90, "AccessTier": name}]
        return {"Id": name, "Filter": {"Prefix": prefix}, "Status": status, "Tierings": tierings}

    with Stubber(client) as service:
        first = [tier("ARCHIVE_ACCESS", "archive/"), tier("DEEP_ARCHIVE_ACCESS", "", "Disabled")]
        operation = "list_bucket_intelligent_tiering_configurations"
        more = {"IsTruncated": True, "NextContinuationToken": "t"}
        service.add_response(operation, {**more, "IntelligentTieringConfigurationList": first}, {"Bucket": "b"})
        rest = {"IsTruncated": False, "IntelligentTieringConfigurationList": [tier("DEEP_ARCHIVE_ACCESS", "logs/")]}
        service.add_response(operation, rest, {"Bucket": "b", "ContinuationToken": "t"})
        service.add_response("get_bucket_logging", {"LoggingEnabled": {"TargetBucket": "logs", "TargetPrefix": "b/"}})
        service.add_response("get_bucket_logging", {})
        assert _cold_tiers(client, objects) == ("ARCHIVE_ACCESS after 90 days",)
        assert _logs(client, objects) == ("access log in s3://logs/b/",)
        assert _logs(client, objects) == ()
