"""Buckets on the stand-in for S3: each setting that keeps bytes is changed once, and reported with its owner."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError

from pii_tracer.app.estate_readiness.estate_facts import Named, place_facts
from pii_tracer.app.estate_readiness.lake_buckets import bucket_facts, settings_of
from pii_tracer.config.monitoring.readiness import ReadinessSettings
from pii_tracer.lake.inventory import Inventory, RemotePlace
from pii_tracer.lake.stores.s3.bucket_settings import kept_by_bucket
from pii_tracer.model.locations import S3Location
from pii_tracer.readiness.estate_snapshot import UNKNOWN, EstateState, PlaceFacts, Setting
from pii_tracer.readiness.findings import Finding, FindingKind
from pii_tracer.readiness.readiness_reading import Given, assess
from tests.lake.stores.test_archives import PREFIX, discover
from tests.s3support import World, estate, standin, world

__all__ = ["standin", "world"]

NOW = datetime(2026, 11, 27, tzinfo=timezone.utc)
RULES = ReadinessSettings(owners={"lake.sales.*": "sales", "lake.prod.*": "archive team", "s3://*": "storage"})


def versioning(client: Any, bucket: str) -> None:
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


def lifecycle(days: int | None, **chosen: Any) -> Callable[[Any, str], None]:
    def put(client: Any, bucket: str) -> None:
        if days is None:
            client.delete_bucket_lifecycle(Bucket=bucket)
            return
        rule = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 5}, **chosen}
        rule["NoncurrentVersionExpiration"] = {"NoncurrentDays": days}
        client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})

    return put


def locked(days: int) -> Callable[[Any, str], None]:
    def put(client: Any, bucket: str) -> None:
        rule = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": days}}
        lock = {"ObjectLockEnabled": "Enabled", "Rule": rule}
        client.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=lock)

    return put


CHANGES = [
    pytest.param(None, lifecycle(90), FindingKind.KEPT_SHORTER, id="a first rule"),
    pytest.param(lifecycle(30), lifecycle(90), FindingKind.KEPT_LONGER, id="old versions stay longer"),
    pytest.param(lifecycle(30), lifecycle(7), FindingKind.KEPT_SHORTER, id="old versions stay shorter"),
    pytest.param(lifecycle(30), lifecycle(None), FindingKind.KEPT_LONGER, id="the rule is gone"),
    pytest.param(lifecycle(30), lifecycle(30, Status="Disabled"), FindingKind.KEPT_LONGER, id="the rule is off"),
    pytest.param(
        lifecycle(30), lifecycle(30, Filter={"Prefix": "elsewhere/"}), FindingKind.KEPT_LONGER, id="another folder's"
    ),
    pytest.param(None, locked(30), FindingKind.KEPT_LONGER, id="new objects are locked"),
    pytest.param(locked(30), locked(3650), FindingKind.KEPT_LONGER, id="new objects are locked for longer"),
]


def changed(
    world: World, facts: Callable[[str], tuple[PlaceFacts, ...]], before: Any, after: Any
) -> list[tuple[FindingKind, str, str]]:
    lock = any(getattr(one, "__qualname__", "").startswith("locked") for one in (before, after))
    bucket = world.new(
        "lake", versioned=after is not versioning, **({"ObjectLockEnabledForBucket": True} if lock else {})
    )
    if before:
        before(world.client(), bucket)
    known = facts(bucket)
    after(world.client(), bucket)
    return [(one.kind, one.where, one.owner) for one in drifted(known, facts(bucket)) if one.kind != "changed_setting"]


def drifted(before: tuple[PlaceFacts, ...], now: tuple[PlaceFacts, ...]) -> tuple[Finding, ...]:
    first = Given(estate="shop", now=NOW, state=EstateState(1, NOW.isoformat(), (), before))
    second = Given(estate="shop", now=NOW, state=EstateState(2, NOW.isoformat(), (), now))
    return assess(second, assess(first, None)[1])[0].findings


def of_lake(world: World, rules: ReadinessSettings = RULES) -> Callable[[str], tuple[PlaceFacts, ...]]:
    def facts(bucket: str) -> tuple[PlaceFacts, ...]:
        tables = [("lake.sales.orders", "sales/orders"), ("lake.sales.items", "sales/items")]
        places = (RemotePlace(location=S3Location(bucket=bucket, key=key), tables=(name,)) for name, key in tables)
        inventory = Inventory(tables=(), remote=tuple(places))
        return tuple(bucket_facts(estate(world.endpoint_url), inventory, Named(rules)))

    return facts


def of_archive(world: World) -> Callable[[str], tuple[PlaceFacts, ...]]:
    def facts(bucket: str) -> tuple[PlaceFacts, ...]:
        return place_facts(Inventory(tables=(), objects=discover(world, bucket)[0]), Named(RULES))

    return facts


@pytest.mark.parametrize(
    ("before", "after", "kind"), [*CHANGES, pytest.param(None, versioning, FindingKind.VERSIONING_ON, id="versions")]
)
@pytest.mark.parametrize("where", ["lake", "archive"])
def test_what_a_bucket_keeps_is_compared(world: World, where: str, before: Any, after: Any, kind: FindingKind) -> None:
    facts, owner = (of_lake(world), "storage") if where == "lake" else (of_archive(world), "archive team")
    place = "" if where == "lake" else PREFIX
    assert changed(world, facts, before, after) == [(kind, f"s3://lake-{world.suffix}/{place}", owner)]


def test_tables_of_one_owner_tell_whose_the_bucket_is(world: World) -> None:
    rules = ReadinessSettings(owners={"lake.sales.*": "sales"})
    [(_, _, owner)] = changed(world, of_lake(world, rules), None, versioning)
    assert owner == "sales"


def test_what_a_bucket_does_not_tell_is_not_said_to_keep_anything(world: World) -> None:
    bucket = world.new("lake", versioned=False)
    lifecycle(30)(world.client(), bucket)
    refusing = World(world.endpoint_url).client()
    refusing.meta.events.register("before-call.s3", refuse)
    kept = kept_by_bucket(lambda _: refusing, bucket, [""])
    assert (kept.versioned, kept.old_versions, kept.default_retention, len(kept.refused)) == (None, None, None, 4)
    [told] = of_lake(world)(bucket)
    untold = settings_of("lake", "storage", kept)
    assert (untold.versioned, set(untold.settings.values())) == (None, {UNKNOWN})
    versioning(world.client(), bucket)
    [later] = of_lake(world)(bucket)
    for before, now in ((told, untold), (untold, later)):
        found = drifted((msgspec.structs.replace(before, name="x"),), (msgspec.structs.replace(now, name="x"),))
        assert {one.kind for one in found} == {FindingKind.CHANGED_SETTING}


def test_what_could_not_be_asked_for_once_is_compared_with_what_was_known_before() -> None:
    def at(versioned: bool | None, kept: Setting) -> PlaceFacts:
        return PlaceFacts("s3://lake/", "storage", versioned, {"old versions": kept})

    before = at(False, Setting("30", 30))
    for now, kinds in (
        (at(True, Setting("90", 90)), {FindingKind.VERSIONING_ON, FindingKind.KEPT_LONGER}),
        (before, set[FindingKind]()),
    ):
        readings = [before, at(None, UNKNOWN), at(None, UNKNOWN), now]
        state: EstateState | None = None
        for number, place in enumerate(readings, 1):
            given = Given(estate="shop", now=NOW, state=EstateState(number, NOW.isoformat(), (), (place,)))
            made, state = assess(given, state)
        assert {one.kind for one in made.findings} == kinds


def refuse(model: Any, **_: Any) -> None:
    raise ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, model.name)
