"""Rows of retained versions, read without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.expressions import EqualTo
from pyiceberg.types import StringType

from pii_tracer.config import Estate
from pii_tracer.estate import former
from pii_tracer.estate.discover import discover
from pii_tracer.estate.former import read_former
from pii_tracer.estate.paths import EstatePaths
from pii_tracer.spots import find_spot
from tests.estate.test_catalogs import ROWS, SQL, estate, sql_catalog, table


def read(made: Estate, base: Path, *names: str, told: list[str] | None = None) -> list[dict[str, list[Any]]]:
    (state,) = discover(made, base).tables
    spots = {n: find_spot(n, state.columns, "t") for n in names}
    said: list[str] = [] if told is None else told
    return list(read_former(state, spots, EstatePaths(made, base), said.append))


def test_snapshots_of_branches_and_tags_count_and_columns_have_their_names_of_now(tmp_path: Path) -> None:
    people = table(sql_catalog(tmp_path), "prod.people")
    first = people.current_snapshot().snapshot_id
    people.manage_snapshots().create_branch(first, "audit").create_tag(first, "quarter").commit()
    people.append(pa.table({"uid": [4], "name": ["branch only"]}), branch="audit")
    people.overwrite(pa.table({"uid": [1], "name": ["new"]}), EqualTo("uid", 1))
    with people.update_schema() as change:
        change.rename_column("name", "called")
        change.add_column("late", StringType())
    people = people.refresh()
    found = read(estate(core=SQL), tmp_path, "uid", "called", "late")
    rows = {pair for version in found for pair in zip(version["uid"], version["called"], strict=True)}
    assert rows >= {(1, "a"), (4, "branch only")}
    assert {value for version in found for value in version["late"]} == {None}


def test_versions_without_files_of_their_own_are_not_read(tmp_path: Path) -> None:
    people = table(sql_catalog(tmp_path), "prod.people")
    for _ in range(3):
        people.append(ROWS)
    assert read(estate(core=SQL), tmp_path, "uid") == []
    people.delete(EqualTo("uid", 2))
    assert [sorted(v["uid"]) for v in read(estate(core=SQL), tmp_path, "uid")] == [sorted([1, 2, 3] * 4)]


def test_delta_versions_from_before_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "warehouse" / "people"
    write_deltalake(place, ROWS)
    write_deltalake(place, pa.table({"uid": [4], "late": ["x"]}), mode="append", schema_mode="merge")
    DeltaTable(place).delete("uid in (1, 4)")
    monkeypatch.setattr(former, "MANY", 2)
    told: list[str] = []
    found = read(estate(), tmp_path, "uid", "late", told=told)
    assert [dict(sorted(zip(v["uid"], v["late"], strict=True))) for v in found] == [{1: None, 2: None, 3: None, 4: "x"}]
    assert told == [f"reading former versions of {place}: 2 so far"]


def test_files_beyond_the_estate_are_not_read(tmp_path: Path) -> None:
    place, away = tmp_path / "warehouse" / "people", tmp_path / "away.parquet"
    write_deltalake(place, ROWS)
    (file,) = place.glob("*.parquet")
    DeltaTable(place).delete("uid = 1")
    file.rename(away)
    file.symlink_to(away)
    told: list[str] = []
    assert read(estate(), tmp_path, "uid", told=told) == []
    assert told == [f"1 of 2 versions of {place} cannot be read any more"]
