"""Places of this machine: which folders are one, which files count, and what is named as not listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.listing.estate_file_sizes import list_estate
from pii_tracer.lake.listing.listed_place import ListedFile


def estate(**more: Any) -> Estate:
    return Estate.model_validate(
        {
            "version": 1,
            "estate": "t",
            "environment": "local",
            "catalogs": {},
            "roots": ["w"],
            "lineage": {},
            "subjects": [{"name": "user", "source": "users", "key": "user_id"}],
            **more,
        }
    )


def put(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"1" * size)


def listed(base: Path, made: Estate | None = None) -> tuple[dict[str, tuple[str, list[ListedFile]]], list[str]]:
    """By path below `w`: kind and files of each place that has some; and places that were not listed."""
    listing = list_estate(made or estate(), base)
    places = {place.location: (place.kind.value, sorted(place.files)) for place in listing.places}
    root = str((base / "w").resolve())
    named = {where.removeprefix(root).lstrip("/"): told for where, told in places.items() if told[1]}
    return named, [one.where.removeprefix(root).lstrip("/") for one in listing.not_listed]


def test_partitions_belong_to_their_folder_and_other_folders_are_places(tmp_path: Path) -> None:
    root = tmp_path / "w"
    put(root / "a" / "day=1" / "hour=2" / "x.csv", 3)
    put(root / "a" / "y.csv", 5)
    put(root / "a" / "below" / "z.csv", 7)
    put(root / "a" / "day=3" / "plain" / "z.csv", 9)
    found, missing = listed(tmp_path)
    assert found == {
        "a": ("folder", [ListedFile(3), ListedFile(5)]),
        "a/below": ("folder", [ListedFile(7)]),
        "a/day=3/plain": ("folder", [ListedFile(9)]),
    }
    assert missing == []


def test_hidden_files_are_counted_and_are_no_data(tmp_path: Path) -> None:
    root = tmp_path / "w"
    put(root / "a" / "_SUCCESS", 2)
    put(root / "a" / "_temporary" / "0" / "x.csv", 4)
    assert listed(tmp_path)[0] == {"a": ("folder", [ListedFile(2, data=False), ListedFile(4, data=False)])}


def test_a_table_in_a_partition_is_a_table(tmp_path: Path) -> None:
    root = tmp_path / "w"
    put(root / "a" / "day=1" / "_delta_log" / "0.json", 2)
    put(root / "a" / "day=1" / "deep" / "x.parquet", 4)
    put(root / "a" / "x.csv", 1)
    found, _ = listed(tmp_path)
    assert found == {"a": ("folder", [ListedFile(1)]), "a/day=1": ("table", [ListedFile(2), ListedFile(4)])}


def test_a_checkpoint_of_a_stream_is_only_searched(tmp_path: Path) -> None:
    root = tmp_path / "w" / "c"
    put(root / "metadata", 1)
    put(root / "offsets" / "0", 2)
    put(root / "commits" / "0", 3)
    assert listed(tmp_path)[0] == {"c": ("searched", [ListedFile(1), ListedFile(2), ListedFile(3)])}


def test_a_partition_that_is_declared_is_a_place(tmp_path: Path) -> None:
    put(tmp_path / "w" / "a" / "day=1" / "x.csv", 1)
    put(tmp_path / "w" / "a" / "x.csv", 2)
    tables = [{"name": "app.one", "format": "csv", "location": "w/a/day=1"}]
    made = estate(catalogs={"spark_catalog": {"type": "declared", "tables": tables}})
    found, missing = listed(tmp_path, made)
    assert found == {"a": ("folder", [ListedFile(2)]), "a/day=1": ("folder", [ListedFile(1)])}
    assert missing == []


def test_roots_that_are_missing_are_named_and_nested_ones_are_listed_once(tmp_path: Path) -> None:
    put(tmp_path / "w" / "a" / "x.csv", 1)
    found, missing = listed(tmp_path, estate(roots=["w", "w/a", "none"]))
    assert found == {"a": ("folder", [ListedFile(1)])}
    assert missing == [str(tmp_path / "none").lstrip("/")]


def test_what_nobody_reads_is_passed_over(tmp_path: Path) -> None:
    """Folders below a place wait until its files were read, or passed over."""
    put(tmp_path / "w" / "x.csv", 1)
    put(tmp_path / "w" / "a" / "x.csv", 1)
    names = [place.name for place in list_estate(estate(), tmp_path).places]
    assert names == [str(tmp_path / "w"), str(tmp_path / "w" / "a")]


def test_the_places_are_those_of_discovery(tmp_path: Path) -> None:
    root = tmp_path / "w"
    for place in ("a/day=1", "a/day=2", "b", "b/c", "d/_hidden", "d/k=v/e"):
        put(root / place / "x.csv", 3)
    found, _ = listed(tmp_path)
    there = {state.location for state in discover(estate(), tmp_path).tables}
    with_data = {name for name, (_, files) in found.items() if any(file.data for file in files)}
    assert {str(root / name) for name in with_data} == there
