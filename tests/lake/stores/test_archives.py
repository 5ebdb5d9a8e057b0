"""Discovery of archives: every version, every replica, and a gap for what cannot be read."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from pii_tracer.lake.inventory import ObjectLock
from pii_tracer.lake.stores.s3 import archive_versions
from pii_tracer.lake.stores.s3.archive_versions import (
    Evidence,
    Readability,
    discover_archives,
    iter_object_versions,
    iter_version_bytes,
    readability,
    s3_clients,
)
from pii_tracer.model.datasets import DatasetId
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from tests.s3support import OTHER_REGION, REGION, World, estate, standin, world

__all__ = ["standin", "world"]

PREFIX = "archive/payments/"


def archive(bucket: str, name: str = "payments") -> dict[str, Any]:
    return {"name": name, "of": "lake.prod.payments", "bucket": bucket, "prefix": PREFIX, "format": "parquet"}


def discover(world: World, *buckets: str) -> Any:
    made = estate(world.endpoint_url, [archive(bucket, f"a{i}") for i, bucket in enumerate(buckets)])
    return discover_archives(made, s3_clients(made), Path())


def test_all_versions_of_an_archive_and_of_its_replica_in_another_region(world: World) -> None:
    source, replica = world.new("src"), world.new("dst", OTHER_REGION)
    world.replicate(source, replica, "archive/")
    client = world.client()
    world.put(source, PREFIX + "1.parquet", b"old", StorageClass="GLACIER")
    world.put(source, PREFIX + "1.parquet", b"newer", StorageClass="GLACIER")
    client.delete_object(Bucket=source, Key=PREFIX + "1.parquet")
    world.put(source, "elsewhere/1.parquet", b"x")
    sets, gaps = discover(world, source)
    assert gaps == ()
    there, here = sets
    assert (here.bucket, here.region, here.replica_of) == (source, REGION, None)
    assert (there.bucket, there.region, there.replica_of) == (replica, OTHER_REGION, f"s3://{source}/{PREFIX}")
    assert here.dataset == DatasetId(namespace=f"s3://{source}", name="archive/payments")
    assert [(v.delete_marker, v.latest, v.size) for v in sorted(here.versions, key=lambda v: v.size)] == [
        (True, True, 0),
        (False, False, 3),
        (False, False, 5),
    ]
    # the marker was not replicated, and both versions still stand there
    assert [(v.delete_marker, v.latest, v.size) for v in sorted(there.versions, key=lambda v: v.size)] == [
        (False, False, 3),
        (False, True, 5),
    ]
    assert {v.storage_class for v in there.versions} == {"GLACIER"}
    assert here.versioned
    assert here.of == "lake.prod.payments"


@pytest.mark.parametrize(("name", "shown"), [("backups", "the archive backups"), (None, "a folder in S3")])
def test_the_progress_of_a_listing_names_no_prefix(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str | None, shown: str
) -> None:
    """A folder can be named by a person, and nobody knows the persons yet."""
    monkeypatch.setattr(archive_versions, "_TELL_EVERY", 1)
    source, told = world.new("src"), list[str]()
    world.put(source, PREFIX + "1.parquet", b"x")
    made = estate(world.endpoint_url, [archive(source, name or f"s3://{source}/{PREFIX}")])
    discover_archives(made, s3_clients(made), Path(), told.append)
    assert told == [f"{shown}: 1 version"]


def test_versions_that_the_manifest_gives_to_other_tables_are_told_apart(world: World, tmp_path: Path) -> None:
    source, replica = world.new("src"), world.new("dst")
    world.replicate(source, replica, "archive/")
    old = world.put(source, PREFIX + "z.parquet", b"old")
    for key, data in (
        ("z.parquet", b"newer"),
        ("ours.parquet", b"x"),
        ("both.parquet", b"y"),
        ("unknown.parquet", b"w"),
    ):
        world.put(source, PREFIX + key, data)
    told = {"z.parquet": ["lake.prod.other"], "ours.parquet": ["LAKE.prod.payments"], "unknown.parquet": []}
    told["both.parquet"] = [*told["z.parquet"], *told["ours.parquet"]]
    (tmp_path / "m.json").write_text(json.dumps({PREFIX + key: tables for key, tables in told.items()}))
    made = estate(world.endpoint_url, [archive(source) | {"manifest": "m.json"}])
    sets, gaps = discover_archives(made, s3_clients(made), tmp_path)
    assert gaps == ()
    for found in sets:
        assert {v.key for v in found.versions} == {
            PREFIX + n for n in ("ours.parquet", "both.parquet", "unknown.parquet")
        }
        assert {key for key, _, _ in found.of_others} == {PREFIX + "z.parquet"}
        assert len(found.of_others) == 2
    [here] = [found for found in sets if found.replica_of is None]
    assert (old["key"], old["version_id"], old["etag"]) in here.of_others


@pytest.mark.parametrize("text", ["[]", "{", '{"a": "lake.prod.other"}', '{"a": 1}', None])
def test_without_the_declared_manifest_every_object_counts(world: World, tmp_path: Path, text: str | None) -> None:
    source = world.new("src")
    world.put(source, PREFIX + "1.parquet", b"x")
    if text is not None:
        (tmp_path / "m.json").write_text(text)
    made = estate(world.endpoint_url, [archive(source) | {"manifest": "m.json"}])
    [found], [gap] = discover_archives(made, s3_clients(made), tmp_path)
    assert (gap.kind, gap.evidence) == ("s3_manifest", "m.json")
    assert (len(found.versions), found.of_others) == (1, ())


@pytest.mark.parametrize("declared", [[0], [0, 1], [1, 0], [2, 1, 0]])
def test_cascades_and_rings_of_rules_end(world: World, declared: list[int]) -> None:
    buckets = [world.new(name) for name in ("ring-a", "ring-b", "ring-c")]
    for source, target in ((0, 1), (1, 2)):
        world.replicate(buckets[source], buckets[target])
    sets, gaps = discover(world, *(buckets[i] for i in declared))
    assert gaps == ()
    assert {s.bucket: s.replica_of for s in sets} == {
        buckets[0]: None,
        buckets[1]: f"s3://{buckets[0]}/{PREFIX}",
        buckets[2]: f"s3://{buckets[1]}/{PREFIX}",
    }
    world.replicate(buckets[2], buckets[0])
    sets, _ = discover(world, *(buckets[i] for i in declared))
    assert len(sets) == 3
    assert sum(s.replica_of is None for s in sets) == 1


def test_rules_for_other_prefixes_are_not_followed_and_disabled_ones_are(world: World) -> None:
    source, other, former = world.new("src"), world.new("other"), world.new("former")
    world.replicate(source, other, "logs/")
    [found] = discover(world, source)[0]
    assert (found.bucket, found.copied_to) == (source, ((other, "logs/"),))
    world.replicate(source, former, PREFIX + "2026/", status="Disabled")
    assert {s.copied_to for s in discover(world, source)[0]} == {()}
    assert {s.bucket for s in discover(world, source)[0]} == {source, former}


def test_a_missing_bucket_and_a_missing_replica_are_gaps(world: World) -> None:
    sets, gaps = discover(world, "no-such-bucket-here")
    assert sets == ()
    assert [(gap.kind, gap.evidence) for gap in gaps] == [
        ("s3_bucket", "bucket no-such-bucket-here: NoSuchBucket"),
    ]
    source, replica = world.new("src"), world.new("dst")
    world.replicate(source, replica)
    world.client().delete_bucket(Bucket=replica)
    sets, gaps = discover(world, source)
    assert [s.bucket for s in sets] == [source]
    assert [gap.kind for gap in gaps] == ["s3_bucket"]
    assert replica in gaps[0].evidence


def test_a_store_that_does_not_answer_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    made = estate("http://127.0.0.1:9", [archive("b")])
    sets, gaps = discover_archives(made, s3_clients(made), Path())
    assert sets == ()
    assert "EndpointConnectionError" in gaps[0].evidence


@pytest.mark.parametrize(
    "operation", ["get_bucket_versioning", "get_bucket_replication", "get_object_lock_configuration"]
)
def test_a_setting_that_may_not_be_read_is_a_gap(world: World, operation: str) -> None:
    bucket = world.new("denied")
    made = estate(world.endpoint_url, [archive(bucket)])
    clients = s3_clients(made)

    class Denied:
        """The real client, but one call is refused."""

        def __init__(self, region: str | None) -> None:
            self._client = clients(region)

        def __getattr__(self, name: str) -> Any:
            return self._refuse if name == operation else getattr(self._client, name)

        def _refuse(self, **_: Any) -> None:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "secret"}}, operation)

    sets, gaps = discover_archives(made, Denied, Path())
    assert len(sets) == 1
    assert [gap.kind for gap in gaps] == ["s3_setting"]
    assert "AccessDenied" in gaps[0].evidence
    assert "secret" not in str(gaps[0])


def test_versions_that_only_the_owners_device_may_delete_are_a_gap(world: World) -> None:
    bucket = world.new("mfa")
    made = estate(world.endpoint_url, [archive(bucket)])
    client = world.client()
    # the stand-in forgets the setting: the client reads it from the answer of AWS
    client.meta.events.register(
        "after-call.s3.GetBucketVersioning", lambda parsed, **_: parsed.update(MFADelete="Enabled")
    )
    [gap] = discover_archives(made, lambda region: client, Path())[1]
    assert (gap.kind, gap.evidence) == (GapKind.MFA_DELETE, f"bucket {bucket}")


def test_unfinished_uploads_are_found(world: World) -> None:
    bucket = world.new("uploads")
    client = world.client()
    upload = client.create_multipart_upload(Bucket=bucket, Key=PREFIX + "big")["UploadId"]
    client.upload_part(Bucket=bucket, Key=PREFIX + "big", UploadId=upload, PartNumber=1, Body=b"bytes")
    client.create_multipart_upload(Bucket=bucket, Key="elsewhere/big")
    sets, gaps = discover(world, bucket)
    assert (sets[0].versions, gaps) == ((), ())
    [found] = sets[0].uploads
    assert (found.key, found.upload_id) == (PREFIX + "big", upload)
    assert datetime.fromisoformat(found.touched.replace("Z", "+00:00")).year >= 2026


def test_locks_of_single_versions_are_found(world: World) -> None:
    assert not discover(world, world.new("nolock"))[0][0].object_lock
    bucket = world.new("lock", ObjectLockEnabledForBucket=True)
    until = datetime(2099, 1, 1, tzinfo=timezone.utc)
    key = PREFIX + "k"
    world.put(bucket, key, b"1")
    world.put(bucket, key, b"22", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until)
    held = world.put(bucket, key, b"333")
    world.client().put_object_legal_hold(
        Bucket=bucket, Key=key, VersionId=held["version_id"], LegalHold={"Status": "ON"}
    )
    world.client().delete_object(Bucket=bucket, Key=key)
    [found], gaps = discover(world, bucket)
    assert (found.object_lock, gaps) == (True, ())
    assert {v.size: v.lock for v in found.versions} == {
        0: None,
        1: None,
        2: ObjectLock(mode="GOVERNANCE", until="2099-01-01T00:00:00Z"),
        3: ObjectLock(legal_hold=True),
    }


def test_which_replicas_are_fed(world: World) -> None:
    fed, narrow, former, last = (world.new(name) for name in ("fed", "narrow", "former", "last"))
    for prefix, target, status in (
        ("archive/", fed, "Enabled"),
        (PREFIX + "2026/", narrow, "Enabled"),
        ("", former, "Disabled"),
    ):
        source = world.new(f"src-{target}")
        world.replicate(source, target, prefix, status)
        world.replicate(target, last)
        sets, _ = discover(world, source)
        # S3 does not replicate a replica again, so that the end of a cascade is never fed
        assert {s.bucket: s.fed for s in sets} == {source: False, target: target == fed, last: False}


EXPIRE = {"Expiration": {"Days": 90}}
LATER = {"NoncurrentVersionExpiration": {"NoncurrentDays": 10}}


@pytest.mark.parametrize(
    ("rules", "versioned", "days"),
    [
        # in a versioned bucket an expiration alone only hides the object
        ([{"Filter": {"Prefix": ""}, **EXPIRE}], True, None),
        ([{"Filter": {"Prefix": ""}, **EXPIRE}], False, 90),
        ([{"Filter": {"Prefix": "archive/"}, **EXPIRE, **LATER}], True, 100),
        ([{"Filter": {"Prefix": "archive/"}, **EXPIRE}, {"Filter": {"Prefix": ""}, **LATER}], True, 100),
        ([{"Filter": {"Prefix": PREFIX + "2026/"}, **EXPIRE}], False, None),
        ([{"Filter": {"Tag": {"Key": "a", "Value": "b"}}, **EXPIRE}], False, None),
        ([{"Filter": {"Prefix": ""}, **EXPIRE, "Status": "Disabled"}], False, None),
    ],
)
def test_days_until_lifecycle_rules_alone_remove_the_bytes(
    world: World, rules: list[dict[str, Any]], versioned: bool, days: int | None
) -> None:
    bucket = world.new("life", versioned=versioned)
    numbered = [{"ID": f"r{i}", "Status": "Enabled", **rule} for i, rule in enumerate(rules)]
    world.client().put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": numbered})
    sets, gaps = discover(world, bucket)
    assert (sets[0].expires_after_days, gaps) == (days, ())
    assert sets[0].noncurrent_days == (10 if days and versioned else 0)


def test_listing_goes_over_all_pages(world: World) -> None:
    bucket = world.new("pages")
    client = world.client()
    client.meta.events.register(
        "before-parameter-build.s3.ListObjectVersions", lambda params, **_: params.update(MaxKeys=5)
    )
    for _ in range(12):
        client.put_object(Bucket=bucket, Key=PREFIX + "k", Body=b"")
    assert len({v.version_id for v in iter_object_versions(client, bucket, PREFIX)}) == 12


def test_reading_back_says_what_is_known_of_each_version(world: World) -> None:
    import base64
    import hashlib

    bucket = world.new("back")
    client = world.client()
    digest = hashlib.sha256(b"ours")
    plain = world.put(bucket, PREFIX + "plain", b"plain")
    ours = world.put(
        bucket,
        PREFIX + "ours",
        b"ours",
        StorageClass="GLACIER",
        ChecksumSHA256=base64.b64encode(digest.digest()).decode(),
    )
    world.put(bucket, PREFIX + "theirs", b"ours", StorageClass="GLACIER")
    client.delete_object(Bucket=bucket, Key=PREFIX + "plain")
    now = datetime.now(timezone.utc)
    written = {(ours["key"], ours["version_id"]): digest.hexdigest()}
    found = list(iter_version_bytes(client, bucket, PREFIX, now, written))
    by_evidence = {(item.key.removeprefix(PREFIX), item.evidence) for item in found}
    assert by_evidence == {
        ("plain", Evidence.BYTES),
        ("plain", Evidence.MARKER),
        ("ours", Evidence.KNOWN),
        ("theirs", Evidence.UNREADABLE),
    }
    for item in found:
        if item.evidence is Evidence.BYTES:
            assert item.version_id == plain["version_id"]
            assert item.open().read() == b"plain"
        else:
            with pytest.raises(EstateError, match="cannot be read"):
                item.open()
    # other bytes than the run uploaded are not known
    other = {place: hashlib.sha256(b"other").hexdigest() for place in written}
    assert not [v for v in iter_version_bytes(client, bucket, PREFIX, now, other) if v.evidence is Evidence.KNOWN]


@pytest.mark.parametrize(
    ("head", "state"),
    [
        ({}, Readability.READABLE),
        ({"StorageClass": "GLACIER_IR"}, Readability.READABLE),
        ({"StorageClass": "GLACIER"}, Readability.ARCHIVED),
        ({"StorageClass": "INTELLIGENT_TIERING", "ArchiveStatus": "DEEP_ARCHIVE_ACCESS"}, Readability.ARCHIVED),
        ({"StorageClass": "GLACIER", "Restore": 'ongoing-request="true"'}, Readability.RESTORING),
        (
            {
                "StorageClass": "DEEP_ARCHIVE",
                "Restore": 'ongoing-request="false", expiry-date="Sun, 22 Nov 2026 00:00:00 GMT"',
            },
            Readability.READABLE,
        ),
    ],
)
def test_readability_from_a_head(head: dict[str, Any], state: Readability) -> None:
    now = datetime(2026, 11, 21, tzinfo=timezone.utc)
    assert readability(head, now) is state
    if state is Readability.READABLE and "Restore" in head:
        assert readability(head, now + timedelta(days=2)) is Readability.ARCHIVED


def test_an_estate_without_s3_has_no_clients() -> None:
    with pytest.raises(EstateError, match="has no settings for S3"):
        s3_clients(estate("http://127.0.0.1:9", s3=None))
