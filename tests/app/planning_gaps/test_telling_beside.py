"""What stands beside the bytes of archived objects is looked at before anything is planned for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pii_tracer.app.planning import value_masking
from pii_tracer.app.planning.value_masking import telling_beside
from pii_tracer.lake.inventory import Inventory
from pii_tracer.lake.stores.s3.archive_versions import discover_archives, s3_clients
from pii_tracer.scan.value_forms import build_patterns
from planners.copies.scan_evidence import BesideEvidence
from tests.executors.stores.s3.test_s3_archives import Refusing
from tests.s3support import PERSON, World, estate, keyring, standin, world

__all__ = ["standin", "world"]

PATTERNS = build_patterns(keyring().key_sets)


def told(world: World, bucket: str, **more: Any) -> list[BesideEvidence]:
    """What stands beside the objects of an archive in the bucket, by the command line's own look."""
    archive = {"name": "a", "of": "t", "bucket": bucket, "prefix": "a/", "format": "parquet", **more}
    found = estate(world.endpoint_url, [archive])
    objects, gaps = discover_archives(found, s3_clients(found), Path())
    assert gaps == ()
    return [*telling_beside(found, Inventory(tables=(), objects=objects), PATTERNS).values()]


def test_current_objects_are_looked_at_in_every_class(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = world.new("beside")
    world.put(bucket, "a/old", b"x", Metadata={"of": PERSON})
    for name, more in {
        "old": {},
        "clean": {"Metadata": {"of": "5000"}, "Tagging": "a=b"},
        "cold": {"Metadata": {"of": PERSON}, "StorageClass": "GLACIER"},
        "tag": {"Tagging": f"of={PERSON}", "StorageClass": "DEEP_ARCHIVE"},
        "short": {"Metadata": {"of": "8841302"}},
    }.items():
        world.put(bucket, f"a/{name}", b"x", **more)
    assert told(world, bucket) == [BesideEvidence(telling=2)]
    assert told(world, bucket, delete_whole="the same rows stand elsewhere") == []
    monkeypatch.setattr(value_masking, "MOST_HEADS", 4)
    assert told(world, bucket) == []


@pytest.mark.parametrize(
    ("operation", "told_of", "why"),
    [("get_object_tagging", 1, "GetObjectTagging: AccessDenied"), ("head_object", 0, "HeadObject: AccessDenied")],
)
def test_objects_that_refuse_the_look_are_counted(
    world: World, monkeypatch: pytest.MonkeyPatch, operation: str, told_of: int, why: str
) -> None:
    """What could be read before the refusal counts all the same."""
    bucket = world.new("refusing")
    world.put(bucket, "a/meta", b"x", Metadata={"of": PERSON})
    world.put(bucket, "a/tag", b"x", Tagging=f"of={PERSON}")
    assert told(world, bucket) == [BesideEvidence(telling=2)]
    refusing = Refusing(world, operation, "AccessDenied", bucket)
    monkeypatch.setattr("pii_tracer.lake.stores.s3.archive_versions.s3_clients", lambda _: refusing)
    assert told(world, bucket) == [BesideEvidence(telling=told_of, unread=2, why=why)]


def test_an_object_that_is_gone_since_it_was_listed_is_no_refusal(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = world.new("gone")
    world.put(bucket, "a/x", b"x", Metadata={"of": PERSON})
    refusing = Refusing(world, "head_object", "404", bucket)
    monkeypatch.setattr("pii_tracer.lake.stores.s3.archive_versions.s3_clients", lambda _: refusing)
    assert told(world, bucket) == []
