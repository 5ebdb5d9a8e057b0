"""A partition's folder in S3 whose name holds a person's number that looks like a day: a gap, and no refused plan."""

from __future__ import annotations

from pii_tracer.app.planning.value_masking import without_telling_partitions
from pii_tracer.lake.inventory import Inventory, RemotePlace, TableState
from pii_tracer.model.datasets import DatasetId, Format, KeySet
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


def test_such_a_folder_is_a_gap_with_its_name_masked() -> None:
    before = inventory(f"s3://b/old/day={KEY}", "s3://b/old/day=20190302")
    found = without_telling_partitions(before, PATTERNS)
    assert KEY not in found.model_dump_json()
    assert [str(place.location) for place in found.remote] == ["s3://b/old/day=20190302"]
    assert [state.location for state in found.tables] == ["s3://b/old/day=20190302/"]
    (gap,) = found.gaps
    assert (gap.kind, gap.dataset) == ("external_files", None)
    assert gap.evidence.startswith("s3://b/old/day=")


def test_other_tables_are_refused_as_before() -> None:
    before = inventory(f"s3://b/old/day={KEY}", of=())
    assert without_telling_partitions(before, PATTERNS) is before
