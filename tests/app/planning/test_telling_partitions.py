"""A partition's folder in S3 whose name holds a person's number that looks like a day: a gap, and no refused plan."""

from __future__ import annotations

import pytest

from pii_tracer.app.planning.value_masking import without_telling_partitions
from pii_tracer.lake.catalogs.registered_tables import RemoteTable
from pii_tracer.lake.inventory import Inventory, InventoryGap, RemotePlace, TableState
from pii_tracer.model.datasets import DatasetId, Format, KeySet
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import s3_location
from pii_tracer.scan.value_forms import build_patterns

KEY = "20190301"
PATTERNS = build_patterns([KeySet(name="user.uid", origin="uid", weak=False, values=(("s", KEY),))])


def inventory(*places: str, of: tuple[DatasetId, ...] = (DatasetId(namespace="s3://b", name="t"),)) -> Inventory:
    locations = [s3_location(place) for place in places]
    states = (
        TableState(
            dataset=at.dataset,
            table=None,
            location=f"{at}/",
            format=Format.PARQUET,
            snapshot="1",
            columns=(),
            partitions_of=of,
        )
        for at in locations
    )
    return Inventory(tables=tuple(states), remote=tuple(RemotePlace(location=at) for at in locations))


def own(*places: str) -> list[RemoteTable]:
    of = (DatasetId(namespace="s3://b", name="t"),)
    return [RemoteTable("t", None, Format.PARQUET, s3_location(place), partitions_of=of) for place in places]


def of_place(place: str) -> InventoryGap:
    at = s3_location(place)
    return InventoryGap(dataset=at.dataset, kind=GapKind.REMOTE_TABLE, reason=f"{place} lies there", evidence=place)


OTHER = InventoryGap(dataset=None, kind=GapKind.REMOTE_TABLE, reason=f"s3://b/old/day={KEY} lies in it", evidence="x")


@pytest.mark.parametrize("erasable", [0, 1])
def test_such_a_folder_is_a_gap_with_its_name_masked(erasable: int) -> None:
    """Also where no step can erase it, and the place is no table of the inventory."""
    telling = f"s3://b/old/day={KEY}"
    before = inventory(telling, "s3://b/old/day=20190302")
    before = before.model_copy(update={"tables": before.tables[erasable:], "gaps": (of_place(telling), OTHER)})
    registered = own(telling, "s3://b/old/day=20190302")
    found = without_telling_partitions(before, registered, PATTERNS)
    assert KEY not in found.model_dump_json()
    assert [str(place.location) for place in found.remote] == ["s3://b/old/day=20190302"]
    assert [state.location for state in found.tables] == ["s3://b/old/day=20190302/"]
    gap, other = found.gaps
    assert (gap.kind, gap.dataset, other.evidence) == ("external_files", None, "x")
    assert gap.evidence.startswith("s3://b/old/day=")


def test_other_tables_are_refused_as_before() -> None:
    before = inventory(f"s3://b/old/day={KEY}", of=())
    assert without_telling_partitions(before, [], PATTERNS) is before
