"""What stands beside the bytes of archived objects is looked at before anything is planned for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pii_tracer.cli import telling
from pii_tracer.cli.telling import telling_beside
from pii_tracer.estate.s3 import discover_archives, s3_clients
from pii_tracer.inventory import Inventory
from pii_tracer.scan.forms import build_patterns
from tests.s3support import PERSON, World, estate, keyring, standin, world

__all__ = ["standin", "world"]

PATTERNS = build_patterns(keyring().key_sets)


def told(world: World, bucket: str, **more: Any) -> list[int]:
    """How many objects of an archive in the bucket tell of the person, by the command line's own look."""
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
    assert told(world, bucket) == [2]
    assert told(world, bucket, delete_whole="the same rows stand elsewhere") == []
    monkeypatch.setattr(telling, "MOST_HEADS", 4)
    assert told(world, bucket) == []
