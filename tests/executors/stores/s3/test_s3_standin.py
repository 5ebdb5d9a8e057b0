"""The stand-in is as strict as S3 where moto is too kind."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from sample_lineage import s3_standin
from tests.s3support import World, standin, world

__all__ = ["standin", "world"]

KEY = "a b/é.bin"


def refused(call: object, code: str) -> None:
    with pytest.raises(ClientError) as caught:
        call()  # type: ignore[operator]
    assert caught.value.response["Error"]["Code"] == code


def test_archived_objects_are_closed_until_restored_and_after_the_restore_lapsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_standin.demo_credentials().items():
        monkeypatch.setenv(name, value)
    running = s3_standin.start(tmp_path, restore_seconds=3600, max_seconds=900)
    try:
        world = World(running.endpoint_url)
        bucket, client = world.new("cold"), world.client()
        first = world.put(bucket, KEY, b"first", StorageClass="GLACIER")
        world.put(bucket, KEY, b"second", StorageClass="DEEP_ARCHIVE")
        which = {"Bucket": bucket, "Key": KEY, "VersionId": first["version_id"]}
        refused(lambda: client.get_object(**which), "InvalidObjectState")
        source = {"Bucket": bucket, "Key": KEY, "VersionId": first["version_id"]}
        refused(lambda: client.copy_object(Bucket=bucket, Key="copy", CopySource=source), "ObjectNotInActiveTierError")
        client.restore_object(**which, RestoreRequest={"Days": 2})
        refused(lambda: client.restore_object(**which, RestoreRequest={"Days": 2}), "RestoreAlreadyInProgress")
        assert client.head_object(**which)["Restore"] == 'ongoing-request="true"'
        refused(lambda: client.get_object(**which), "InvalidObjectState")
        world.advance()
        assert 'ongoing-request="false"' in client.head_object(**which)["Restore"]
        assert world.get(bucket, KEY, first["version_id"]) == b"first"
        # one version was restored, the other was not
        refused(lambda: client.get_object(Bucket=bucket, Key=KEY), "InvalidObjectState")
        world.advance(2 * 86_400)
        assert "Restore" not in client.head_object(**which)
        refused(lambda: client.get_object(**which), "InvalidObjectState")
    finally:
        s3_standin.stop(running)
    assert s3_standin.running(tmp_path) is None


def test_new_versions_are_replicated_and_deletes_are_not(world: World) -> None:
    source, target = world.new("src"), world.new("dst")
    client = world.client()
    world.put(source, "p/before", b"x")
    world.replicate(source, target, "p/")
    put = world.put(source, "p/" + KEY, b"one", Metadata={"k": "v"}, Tagging="t=1")
    client.copy_object(Bucket=source, Key="p/copy", CopySource={"Bucket": source, "Key": "p/" + KEY})
    upload = client.create_multipart_upload(Bucket=source, Key="p/parts")
    part = client.upload_part(Bucket=source, Key="p/parts", UploadId=upload["UploadId"], PartNumber=1, Body=b"z")
    client.complete_multipart_upload(
        Bucket=source,
        Key="p/parts",
        UploadId=upload["UploadId"],
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
    )
    world.put(source, "q/other", b"x")
    assert {key for key, _ in world.versions(target)} == {"p/" + KEY, "p/copy", "p/parts"}
    assert client.head_object(Bucket=source, Key="p/" + KEY)["ReplicationStatus"] == "COMPLETED"
    there = client.head_object(Bucket=target, Key="p/" + KEY)
    assert (there["ReplicationStatus"], there["VersionId"], there["Metadata"]) == (
        "REPLICA",
        put["version_id"],
        {"k": "v"},
    )
    client.delete_object(Bucket=source, Key="p/copy")
    client.delete_object(Bucket=source, Key="p/" + KEY, VersionId=put["version_id"])
    assert world.get(target, "p/copy") == b"one"
    assert world.get(target, "p/" + KEY, put["version_id"]) == b"one"


def test_delete_markers_travel_only_when_the_rule_says_so(world: World) -> None:
    source, target = world.new("src"), world.new("dst")
    client = world.client()
    rule = {
        "ID": "m",
        "Status": "Enabled",
        "Priority": 1,
        "Filter": {"Prefix": ""},
        "DeleteMarkerReplication": {"Status": "Enabled"},
        "Destination": {"Bucket": f"arn:aws:s3:::{target}", "StorageClass": "DEEP_ARCHIVE"},
    }
    client.put_bucket_replication(Bucket=source, ReplicationConfiguration={"Role": "r", "Rules": [rule]})
    world.put(source, KEY, b"x")
    assert client.head_object(Bucket=target, Key=KEY)["StorageClass"] == "DEEP_ARCHIVE"
    client.delete_objects(Bucket=source, Delete={"Objects": [{"Key": KEY}]})
    assert len(client.list_object_versions(Bucket=target)["DeleteMarkers"]) == 1
    assert client.get_bucket_replication(Bucket=source)["ReplicationConfiguration"]["Rules"] == [rule]


def test_replication_needs_a_versioned_destination(world: World) -> None:
    source = world.new("src")
    refused(lambda: world.replicate(source, world.new("flat", versioned=False)), "InvalidRequest")


def test_a_folder_of_deleted_objects_is_no_folder(world: World) -> None:
    """Of which S3 lists neither objects nor a common prefix, whether the bucket keeps versions or not."""
    bucket, client = world.new("folders"), world.client()
    for key in ("a/gone/1", "a/gone/2", "a/there/1", "a/there/2"):
        world.put(bucket, key, b"x")
    for key in ("a/gone/1", "a/gone/2", "a/there/1"):
        client.delete_object(Bucket=bucket, Key=key)
    for call in (client.list_objects_v2, client.list_objects):
        assert call(Bucket=bucket, Prefix="a/", Delimiter="/")["CommonPrefixes"] == [{"Prefix": "a/there/"}]
        assert "CommonPrefixes" not in call(Bucket=bucket, Prefix="a/gone/", Delimiter="/")
    versions = client.list_object_versions(Bucket=bucket, Prefix="a/", Delimiter="/")
    assert versions["CommonPrefixes"] == [{"Prefix": "a/gone/"}, {"Prefix": "a/there/"}]
    client.put_object(Bucket=bucket, Key="a/gone/1", Body=b"back")
    assert len(client.list_objects_v2(Bucket=bucket, Prefix="a/", Delimiter="/")["CommonPrefixes"]) == 2


def test_limits_ids_and_checksums(world: World) -> None:
    bucket, client = world.new("limits"), world.client()
    refused(
        lambda: client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": str(i)} for i in range(1001)]}),
        "MalformedXML",
    )
    wrong = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    refused(lambda: client.put_object(Bucket=bucket, Key=KEY, Body=b"x", ChecksumSHA256=wrong), "BadDigest")
    answer = client.put_object(Bucket=bucket, Key=KEY, Body=b"x", ChecksumAlgorithm="SHA256")
    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-amz-request-id"]
    assert hashlib.sha256(world.get(bucket, KEY)).hexdigest() == hashlib.sha256(b"x").hexdigest()


def test_one_stand_in_a_folder(tmp_path: Path) -> None:
    first = s3_standin.start(tmp_path)
    try:
        assert s3_standin.start(tmp_path) == first
    finally:
        s3_standin.stop(first)
    assert s3_standin.running(tmp_path) is None


def test_a_stand_in_ends_by_itself(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "sample_lineage.s3_standin", "--port", "0", "--ready-file", str(ready)]
    subprocess.run([*command, "--max-seconds", "0.1"], check=True, timeout=300)
    assert ready.exists(), "it was up"


def test_parts_that_are_copied_are_refused_as_s3_refuses_them(world: World) -> None:
    bucket, client = world.new("parts"), world.client()
    least = 5 * 1024**2
    old = world.put(bucket, KEY, bytes(least + 10))
    small = world.put(bucket, "small", b"small")
    upload = client.create_multipart_upload(Bucket=bucket, Key=KEY, ChecksumAlgorithm="SHA256")["UploadId"]
    which = {"Bucket": bucket, "Key": KEY, "UploadId": upload}
    source = {"Bucket": bucket, "Key": KEY, "VersionId": old["version_id"]}

    def copy(extent: str, number: int = 1, **more: object) -> dict[str, str]:
        given = {**which, "PartNumber": number, "CopySource": source, "CopySourceRange": extent, **more}
        found: dict[str, str] = client.upload_part_copy(**given)["CopyPartResult"]
        return found

    refused(lambda: copy(f"bytes=0-{least + 10}"), "InvalidArgument")
    refused(lambda: copy("bytes=9-3"), "InvalidArgument")
    refused(lambda: copy("bytes=0-9", 10_001), "InvalidArgument")
    refused(lambda: copy("bytes=0-9", CopySourceIfMatch='"another"'), "PreconditionFailed")
    refused(lambda: copy("bytes=0-3", CopySource={"Bucket": bucket, "Key": "small"}), "InvalidRequest")
    refused(lambda: copy("bytes=0-9", UploadId="none"), "NoSuchUpload")
    assert small["version_id"] != old["version_id"]
    first = copy("bytes=0-99", CopySourceIfMatch=f'"{old["etag"]}"')
    assert first["ChecksumSHA256"] == base64.b64encode(hashlib.sha256(bytes(100)).digest()).decode()
    second = client.upload_part(**which, PartNumber=2, Body=b"z", ChecksumAlgorithm="SHA256")
    told = [
        {"PartNumber": 1, "ETag": first["ETag"], "ChecksumSHA256": first["ChecksumSHA256"]},
        {"PartNumber": 2, "ETag": second["ETag"], "ChecksumSHA256": second["ChecksumSHA256"]},
    ]
    without = [{name: part[name] for name in ("PartNumber", "ETag")} for part in told]

    def complete(parts: object, **more: object) -> object:
        return client.complete_multipart_upload(**which, MultipartUpload={"Parts": parts}, **more)

    refused(lambda: complete(told), "EntityTooSmall")
    refused(lambda: complete(without), "InvalidRequest")
    refused(lambda: complete(told, IfMatch='"another"'), "PreconditionFailed")
    refused(lambda: complete([told[0] | {"ChecksumSHA256": second["ChecksumSHA256"]}]), "InvalidPart")
    complete(told[:1], IfMatch=f'"{old["etag"]}"')
    assert world.get(bucket, KEY) == bytes(100)
    refused(lambda: complete(told[:1]), "NoSuchUpload")
