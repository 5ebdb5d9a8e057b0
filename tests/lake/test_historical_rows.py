"""Rows of retained versions, read without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.expressions import EqualTo
from pyiceberg.types import LongType, StringType

from pii_tracer.config.estate_file import Estate
from pii_tracer.lake.dataset_paths import EstatePaths, local_path
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.hudi.vocabulary import HUDI
from pii_tracer.lake.inventory import TableState
from pii_tracer.lake.rows import historical_rows
from pii_tracer.lake.rows.historical_rows import Sought, read_former
from pii_tracer.model.column_paths import Spot, find_spot
from pii_tracer.model.datasets import DatasetId
from tests.lake.catalogs.test_catalogs import (
    ROWS,
    SQL,
    estate,
    sql_catalog,
    table,
)
from tests.lake.formerly import add_equality_delete, mapped


def read(made: Estate, base: Path, *names: str, told: list[str] | None = None) -> list[dict[str, list[Any]]]:
    (state,) = discover(made, base).tables
    spots = {n: find_spot(n, state.columns, "t") for n in names}
    said: list[str] = [] if told is None else told
    return list(read_former(state, Sought(spots, names[:1]), EstatePaths(made, base), said.append, said.append))


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
    monkeypatch.setattr(historical_rows, "MANY", 2)
    told: list[str] = []
    found = read(estate(), tmp_path, "uid", "late", told=told)
    assert [dict(sorted(zip(v["uid"], v["late"], strict=True))) for v in found] == [{1: None, 2: None, 3: None, 4: "x"}]
    assert told == ["reading former versions of a table without a name: 2 so far"]


def test_files_beyond_the_estate_are_not_read(tmp_path: Path) -> None:
    place, away = tmp_path / "warehouse" / "people", tmp_path / "away.parquet"
    write_deltalake(place, ROWS)
    (file,) = place.glob("*.parquet")
    DeltaTable(place).delete("uid = 1")
    file.rename(away)
    file.symlink_to(away)
    told: list[str] = []
    assert read(estate(), tmp_path, "uid", told=told) == []
    assert told == [
        f"1 of 2 versions of {place} could not be read, although the files exist: the path is outside of the estate's roots"
    ]


def mails(found: list[dict[str, list[Any]]]) -> set[tuple[Any, Any]]:
    return {pair for v in found for pair in zip(v["uid"], v["mail"], strict=True) if None not in pair}


PHYSICAL = pa.table({"uid": [1], "m1": ["old"], "m2": ["x"]})


def test_a_delta_column_that_was_renamed(tmp_path: Path) -> None:
    place = tmp_path / "warehouse" / "people"
    write_deltalake(place, PHYSICAL)
    DeltaTable(place).update(updates={"m1": "'new'"})
    mapped(place, {"uid": "id", "m1": "mail_addr", "m2": "mail"}, {"uid": "uid", "m1": "mail", "m2": "referrer"})
    told: list[str] = []
    assert mails(read(estate(), tmp_path, "uid", "mail", told=told)) == {(1, "old")}
    assert told == []


def test_a_delta_column_that_was_dropped_and_made_anew_in_the_same_files(tmp_path: Path) -> None:
    place = tmp_path / "warehouse" / "people"
    write_deltalake(place, PHYSICAL)
    write_deltalake(place, PHYSICAL.slice(0, 0), mode="append")
    mapped(place, {"uid": "uid", "m1": "mail"}, {"uid": "uid", "m2": "mail"})
    assert mails(read(estate(), tmp_path, "uid", "mail")) == {(1, "old")}


def test_an_iceberg_column_that_was_dropped_and_made_anew(tmp_path: Path) -> None:
    people = table(sql_catalog(tmp_path), "prod.people")
    with people.update_schema() as change:
        change.rename_column("name", "mail")
    with people.update_schema() as change:
        change.delete_column("mail")
    with people.update_schema() as change:
        change.add_column("mail", StringType())
    people.append(pa.table({"uid": [4], "mail": ["d"]}))
    found = read(estate(core=SQL), tmp_path, "uid", "mail")
    assert mails(found) == {(1, "a"), (2, "b"), (3, "c")}, "of files that the current version has"
    people.overwrite(pa.table({"uid": [1], "mail": ["new"]}))
    assert mails(read(estate(core=SQL), tmp_path, "uid", "mail")) == {(1, "a"), (2, "b"), (3, "c"), (4, "d")}


def test_versions_without_the_key_tell_nobody(tmp_path: Path) -> None:
    people = table(sql_catalog(tmp_path), "prod.people")
    with people.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("uid")
    with people.update_schema() as change:
        change.add_column("uid", LongType())
    people.overwrite(pa.table({"name": ["x"], "uid": [1]}))
    told: list[str] = []
    found = read(estate(core=SQL), tmp_path, "uid", "name", told=told)
    assert {uid for version in found for uid in version["uid"]} <= {None}, "the same numbers may be other people's"
    assert len(told) == 1
    assert (
        "1 of 3 versions of core.prod.people could not be read, although the files exist: they have no uid" in told[0]
    )


def upserted(base: Path) -> tuple[Any, list[str]]:
    """A table with equality deletes in a snapshot, compacted since; and its files of that snapshot."""
    people = table(sql_catalog(base), "prod.people")
    people.append(pa.table({"uid": [4], "name": ["d"]}))
    between = people.current_snapshot()
    files = [task.file.file_path for task in people.scan().plan_files()]
    away = base / "warehouse" / "deletes.parquet"
    away.write_bytes(b"")
    add_equality_delete(people, between, away)
    with people.transaction() as change:
        change.overwrite(pa.table({"uid": [4], "name": ["e"]}))
    return people, files


def test_equality_deletes_are_there_and_not_read(tmp_path: Path) -> None:
    upserted(tmp_path)
    told: list[str] = []
    read(estate(core=SQL), tmp_path, "uid", "name", told=told)
    (said,) = told
    assert (
        "versions of core.prod.people could not be read, although the files exist: the iceberg table cannot be read"
        in said
    )


def test_versions_with_equality_deletes_whose_files_are_gone(tmp_path: Path) -> None:
    _, files = upserted(tmp_path)
    for path in files:
        local_path(path).unlink()
    told: list[str] = []
    assert read(estate(core=SQL), tmp_path, "uid", "name", told=told) == []
    (said,) = told
    assert said.endswith("versions of core.prod.people cannot be read any more")


def test_a_vacuumed_deletion_vector(tmp_path: Path) -> None:
    place = tmp_path / "warehouse" / "people"
    write_deltalake(place, ROWS)
    DeltaTable(place).delete("uid = 1")
    features: dict[str, Any] = {"minReaderVersion": 3, "minWriterVersion": 7}
    features |= {name: ["deletionVectors"] for name in ("readerFeatures", "writerFeatures")}
    gone = {"storageType": "p", "pathOrInlineDv": f"file://{place}/gone.bin", "offset": 1, "sizeInBytes": 36}
    for log, kind in zip(sorted((place / "_delta_log").glob("*.json")), ("add", "remove"), strict=True):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            if "protocol" in action:
                action["protocol"] = features
            if kind in action:
                action[kind]["deletionVector"] = {**gone, "cardinality": 1}
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    told: list[str] = []
    assert read(estate(), tmp_path, "uid", told=told) == []
    assert told == ["1 of 2 versions of a table without a name cannot be read any more"]


def test_former_rows_of_hudi_tables_are_not_read(tmp_path: Path) -> None:
    place = tmp_path / "warehouse" / "people"
    hudi = TableState(
        dataset=DatasetId(namespace="file", name=str(place)),
        table="s.people",
        location=str(place),
        format=HUDI,
        snapshot="20260101000000000",
        columns=(),
    )
    paths, sought = EstatePaths(estate(), tmp_path), Sought({"uid": Spot("uid")}, ("uid",))
    told: list[str] = []
    for commits in (1, 2):
        state = hudi.model_copy(update={"versions": commits})
        assert list(read_former(state, sought, paths, told.append, told.append)) == []
    assert told == ["s.people has 2 commits on its timeline, but the tool does not read former rows of Hudi tables"]
