"""The inventory on a terminal."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest
from rich.console import Console

from pii_tracer.lake.inventory import (
    Inventory,
    InventoryGap,
    ObjectSet,
    ObjectVersion,
    RemotePlace,
    TableState,
)
from pii_tracer.lake.stores.hdfs.discovery import gap_of
from pii_tracer.lake.stores.hdfs.places import HdfsKind, HdfsPlace
from pii_tracer.model.datasets import Format
from pii_tracer.model.gap_kinds import GapKind
from pii_tracer.model.locations import S3Location, hdfs_location
from reports.inventory_text import print_inventory


def test_each_kind_of_gap_says_once_what_closes_it() -> None:
    kinds = (GapKind.OUTSIDE_ROOTS, GapKind.OUTSIDE_ROOTS, GapKind.MISSING_TABLE)
    gaps = tuple(
        InventoryGap(dataset=None, kind=kind, reason="r", evidence=f"place {n}") for n, kind in enumerate(kinds)
    )
    out = io.StringIO()
    print_inventory(Inventory(tables=(), gaps=gaps), Console(file=out, width=200))
    lines = [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]
    assert lines[-5:] == [
        "gap outside_roots: r (place 0)",
        "    to close it: Add its folder to `roots`, or to the places of `object_stores`. If the place belongs to"
        " somebody else, waive the gap.",
        "gap outside_roots: r (place 1)",
        "gap missing_table: r (place 2)",
        "    to close it: Correct the estate file, or drop the catalog's entry.",
    ]


def version(key: str, *, latest: bool = True) -> ObjectVersion:
    return ObjectVersion(key=key, version_id="1", latest=latest, size=5, modified="2026-11-01T00:00:00Z")


def test_a_place_in_s3_is_one_line_with_its_whole_name() -> None:
    """In a pipe no name is broken, however long: somebody searches the lines."""
    name = "glue_catalog.crm.customers_of_the_shop_with_a_name_that_is_longer_than_a_terminal_is_wide_at_eighty_signs"
    where = S3Location(bucket="b", key="lake/customers")
    state = TableState(
        dataset=where.dataset, table=name, location=str(where), format=Format.PARQUET, snapshot="1", columns=(), rows=3
    )
    versions = (version("lake/customers/a"), version("lake/customers/a", latest=False))
    place = RemotePlace(location=where, tables=(name,), format=Format.PARQUET, versions=versions)
    objects = ObjectSet(
        dataset=where.dataset, bucket="b", prefix="lake/customers/", region="r", of=name, versioned=True,
        versions=versions, cold_tiers=("DEEP_ARCHIVE",),
    )  # fmt: skip
    bare = RemotePlace(location=S3Location(bucket="b", key="lake"), versions=versions[:1])
    out = io.StringIO()
    with redirect_stdout(out):
        print_inventory(Inventory(tables=(state,), objects=(objects,), remote=(place, bare), gaps=()))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines() if line.strip()]
    assert lines[1:] == [
        f"{name} parquet 3 0 0 in s3://b/lake/customers; 1 noncurrent version; DEEP_ARCHIVE",
        "s3://b/lake objects 1 5 in S3, of a root",
        "no gaps",
    ]


def test_a_place_in_hdfs_is_called_by_its_name_and_left_to_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    """Only of a place that no step writes is its owner told to erase the person with another tool."""
    at = [hdfs_location(f"hdfs://nn:9000/lake/{name}") for name in ("a", "b", "c")]
    places = (
        HdfsPlace(location=at[0], kind=HdfsKind.FOLDER, table="core.customers"),
        HdfsPlace(location=at[1], kind=HdfsKind.FOLDER, encrypted=True),
        HdfsPlace(location=at[2], kind=HdfsKind.SNAPSHOT),
    )
    print_inventory(Inventory(tables=(), hdfs=places, gaps=tuple(map(gap_of, places))))
    lines = capsys.readouterr().out.splitlines()
    [row] = [line for line in lines if "core.customers" in line]
    assert "in hdfs://nn:9000/lake/a; in HDFS" in row
    told = [line.strip() for line in lines if line.startswith("    ")]
    assert [line.partition(":")[0] for line in told] == ["nothing to do now", "to close it", "to close it"]
    assert "own engine" in told[1]
    assert "deletable" in told[2]
