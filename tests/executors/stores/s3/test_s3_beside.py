"""What stands beside an object's bytes: metadata, headers, tags, access lists; searched, kept, or a reason to refuse."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from executors.stores.s3.executor import S3Executor
from pii_tracer.lake.stores.s3.archive_versions import ClientFactory
from pii_tracer.model.actions import Action
from pii_tracer.model.datasets import CopyKind, KeySet
from pii_tracer.model.plan import Copy
from pii_tracer.review.sealed_person_values import KeyRing
from pii_tracer.run.executor_protocol import PartlyDone
from tests.executors.stores.s3.s3_runs import (
    KEYS,
    OTHERS,
    PERSON,
    PREFIX,
    Bucket,
    Context,
    Now,
    body,
)
from tests.executors.stores.s3.test_s3_archives import Refusing
from tests.s3support import World, estate, standin, step, world

__all__ = ["standin", "world"]

EMAIL = "by-anita@example.org"
ENCODED = "=?UTF-8?B?MTIzNDU2Nzg5MA==?="


def archive(lake: Bucket) -> Copy:
    return next(c for c in lake.plan().copies if c.kind is CopyKind.ARCHIVE)


@pytest.mark.parametrize("storage", ["STANDARD", "GLACIER"])
@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"Metadata": {"owner": PERSON}}, "object metadata: owner"),
        ({"Metadata": {"owner": ENCODED}}, "object metadata: owner"),
        ({"Tagging": f"customer={PERSON}"}, "object tag: customer"),
        ({"CacheControl": f"x={PERSON}"}, "object header: CacheControl"),
    ],
)
def test_a_value_beside_the_bytes_is_residue(world: World, storage: str, more: dict[str, str], where: str) -> None:
    lake = Bucket(world.endpoint_url, world.new("beside"))
    world.put(lake.name, f"{PREFIX}a.parquet", body(*OTHERS), StorageClass=storage, **more)
    verdict = lake.verdict(archive(lake))
    assert where in {residue.where for residue in verdict.residue}
    assert PERSON not in verdict.model_dump_json()


def test_tags_that_may_not_be_read_are_unverified(world: World) -> None:
    name = world.new("beside")
    world.put(name, f"{PREFIX}a.parquet", body(*OTHERS))
    refusing: Any = Refusing(world, "get_object_tagging", "AccessDenied", f"{PREFIX}a.parquet")
    clients: ClientFactory = refusing
    lake = Bucket(world.endpoint_url, name, routed=clients)
    verdict = lake.verdict(archive(lake))
    assert [told.rpartition(": ")[2] for told in verdict.unverified] == ["AccessDenied"]
    assert Bucket(world.endpoint_url, name).verdict(archive(lake)).clean


# --- rewriting ---


def ring() -> KeyRing:
    """The plan knows an address, too, by which no row of the archive is found."""
    address = KeySet(name="user.email", origin="users.email", weak=False, values=(("subj_R", EMAIL),))
    return KeyRing((*KEYS.key_sets, address))


def rewrite(world: World, bucket: str, *objects: dict[str, Any], clients: Any = None) -> dict[str, Any]:
    """Run the step; its facts, those of a part of it where some were refused."""
    match = {"terms": [{"column": "uid", "key_set": "user.uid", "type": "bigint"}]}
    parameters = {"bucket": bucket, "plan_id": "p", "prefix": PREFIX, "format": "parquet", "match": match}
    work = step(Action.S3_REWRITE_ARCHIVE, parameters | {"objects": objects})
    executor = S3Executor(Context(estate(world.endpoint_url), ring(), Now()), clients)
    try:
        facts = executor.run(work, None).facts
    except PartlyDone as partly:
        assert not executor.verify(work, None).ok
        return dict(partly.facts)
    assert executor.verify(work, None).ok
    return dict(facts)


@pytest.mark.parametrize("rows", [(PERSON, "2"), OTHERS])
@pytest.mark.parametrize(
    "more",
    [
        {"Metadata": {"owner": EMAIL}},
        {"Metadata": {"owner": ENCODED}},
        {"Tagging": f"customer={PERSON}"},
        {"ContentDisposition": f"attachment; filename={EMAIL}"},
    ],
)
def test_an_object_with_the_person_beside_its_bytes_is_refused(
    world: World, rows: tuple[str, ...], more: dict[str, Any]
) -> None:
    bucket = world.new("beside")
    told = world.put(bucket, f"{PREFIX}a.parquet", body(*rows), **more)
    facts = rewrite(world, bucket, told)
    assert "contains the person" in facts["failed"][0]["reason"]
    assert world.versions(bucket) == [(told["key"], told["version_id"])]


def test_tags_that_may_not_be_read_are_not_lost(world: World) -> None:
    bucket = world.new("beside")
    told = world.put(bucket, f"{PREFIX}a.parquet", body(PERSON, "2"), Tagging="a=b%20c&d=%2B")
    refusing = Refusing(world, "get_object_tagging", "AccessDenied", told["key"])
    assert (
        rewrite(world, bucket, told, clients=refusing)["failed"][0]["reason"] == "GetObjectTagging failed: AccessDenied"
    )
    assert rewrite(world, bucket, told)["rewritten"] == 1
    kept = world.client().get_object_tagging(Bucket=bucket, Key=told["key"])["TagSet"]
    assert kept == [{"Key": "a", "Value": "b c"}, {"Key": "d", "Value": "+"}]


def test_the_expires_header_stays(world: World) -> None:
    bucket = world.new("beside")
    expires = datetime(2027, 1, 1, tzinfo=timezone.utc)
    told = world.put(bucket, f"{PREFIX}a.parquet", body(PERSON, "2"), Expires=expires)
    assert rewrite(world, bucket, told)["rewritten"] == 1
    assert world.client().head_object(Bucket=bucket, Key=told["key"])["Expires"] == expires


@pytest.mark.parametrize("acl", ["public-read", "authenticated-read"])
def test_an_object_that_grants_others_something_is_refused(world: World, acl: str) -> None:
    bucket = world.new("beside")
    shared = world.put(bucket, f"{PREFIX}a.parquet", body(PERSON, "2"), ACL=acl)
    clean = world.put(bucket, f"{PREFIX}b.parquet", body("2"), ACL=acl)
    own = world.put(bucket, f"{PREFIX}c.parquet", body(PERSON, "2"), ACL="private")
    facts = rewrite(world, bucket, shared, clean, own)
    assert [item["key"] for item in facts["failed"]] == [shared["key"]]
    assert "access list" in facts["failed"][0]["reason"]
    assert (facts["rewritten"], facts["left_alone"]) == (1, 1)
    world.client().put_object_acl(Bucket=bucket, Key=shared["key"], ACL="private")
    assert rewrite(world, bucket, shared)["rewritten"] == 1


def test_an_access_list_that_may_not_be_read_is_refused(world: World) -> None:
    bucket = world.new("beside")
    told = world.put(bucket, f"{PREFIX}a.parquet", body(PERSON, "2"))
    refusing = Refusing(world, "get_object_acl", "AccessDenied", told["key"])
    facts = rewrite(world, bucket, told, clients=refusing)
    assert facts["failed"][0]["reason"] == "GetObjectAcl failed: AccessDenied"
