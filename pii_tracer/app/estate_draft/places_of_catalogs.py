"""Where tables of catalogs lie that nobody named: on this machine, in S3, in HDFS and in object stores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pii_tracer.app.estate_draft.given_places import Places
from pii_tracer.lake.inventory import Inventory
from pii_tracer.model.errors import EstateError
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import (
    HdfsLocation,
    ObjectLocation,
    in_place,
    is_object_place,
    is_s3,
    location_in_place,
    object_location,
    object_uri,
    s3_location,
)
from planners.draft.draft_roots import roots_around


def roots_of_catalogs(found: Inventory, places: Places, base: Path) -> list[str]:
    """Roots for what catalogs name beyond the places that are known: files of dropped tables, and what engines throw
    away, lie around their tables."""
    return [
        *_here(found, base),
        *(object_uri(bucket, "").rstrip("/") for bucket in _buckets(found, places)),
        *_in_hdfs(found),
    ]


def in_object_stores(found: Inventory) -> list[ObjectLocation]:
    """Places in object stores in which catalogs name tables; those of Iceberg by their folders."""
    return sorted({place for place in _undeclared(found) if isinstance(place, ObjectLocation)}, key=str)


def folders_in_stores(found: Inventory) -> list[ObjectLocation]:
    """Places in object stores that catalogs name and that are no tables: volumes and external locations."""
    beyond = (gap.evidence for gap in found.gaps if gap.kind is GapKind.OUTSIDE_ROOTS and is_object_place(gap.evidence))
    return sorted({object_location(place) for place in beyond}, key=str)


def written(place: Path, base: Path) -> str:
    """A place as the estate file writes it."""
    return str(place.relative_to(base)) if place.is_relative_to(base) else str(place)


def _here(found: Inventory, base: Path) -> list[str]:
    beyond = [Path(gap.evidence) for gap in found.gaps if gap.kind is GapKind.OUTSIDE_ROOTS]
    tables = {place if place.is_dir() else place.parent.parent for place in beyond if place.is_absolute()}
    return [written(root, base) for root in roots_around({table for table in tables if table.is_dir()})]


def _buckets(found: Inventory, places: Places) -> list[str]:
    named = {s3_location(root).bucket for root in places.roots if is_s3(root)}
    partitions = (place for table in found.partitioned for place in table.elsewhere if is_s3(place))
    there = {s3_location(place).bucket for place in partitions}
    return sorted(({place.location.bucket for place in found.remote} | there) - named)


def _in_hdfs(found: Inventory) -> Iterator[str]:
    """At NameNodes that nobody named."""
    tables: dict[str, set[PurePosixPath]] = defaultdict(set)
    for place in _undeclared(found):
        if isinstance(place, HdfsLocation):
            tables[place.name_node].add(PurePosixPath(place.path))
    for name_node, mine in sorted(tables.items()):
        yield from (f"{name_node}{root}" for root in roots_around(mine))


def _undeclared(found: Inventory) -> Iterator[HdfsLocation | ObjectLocation]:
    """The folders of tables and partitions in stores that the estate does not declare, as their gaps tell them."""
    for gap in found.gaps:
        if gap.kind is not GapKind.REMOTE_TABLE or not in_place(gap.evidence):
            continue
        try:
            place = location_in_place(gap.evidence)
        except EstateError:  # the gap says so
            continue
        yield place.parent.parent if gap.evidence.endswith(".metadata.json") else place
