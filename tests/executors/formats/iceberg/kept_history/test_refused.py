"""Histories that cannot be kept: each is refused with its reason, before anything is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import LongType, StringType

from pii_tracer.config.catalogs import Catalog, CatalogType
from pii_tracer.lake.formats.iceberg.history_files import Container, History
from pii_tracer.lake.formats.iceberg.history_rewrite_check import kept_history
from pii_tracer.model.errors import RunError
from pii_tracer.model.locations import placed
from tests.executors.formats.iceberg.kept_history.people import People
from tests.executors.world import EMAIL, UID


def small(base: Path, **properties: str) -> People:
    people = People(base, properties=properties)
    people.append([(1, UID, EMAIL), (2, 1002, "b2@example.net")])
    return people


def refused(people: People, told: str) -> None:
    """By the step's check and by the step itself; and planning is told the same."""
    there = {p: p.read_bytes() for p in people.folder.rglob("*") if p.is_file()}
    for act in (people.rewrite.check, people.rewrite.run):
        with pytest.raises(RunError, match=told):
            act()
    assert {p: p.read_bytes() for p in people.folder.rglob("*") if p.is_file()} == there


def by_planning(people: People) -> str:
    return " ".join(kept_history(placed(people.table.metadata_location), people.folder).obstacles)


def document(people: People, change: Callable[[dict[str, Any]], None]) -> None:
    path = placed(people.table.metadata_location)
    told = json.loads(path.read_bytes())
    change(told)
    path.write_text(json.dumps(told))


def manifest(people: People, change: Callable[[dict[str, Any]], None]) -> None:
    history = History.read(placed(people.table.metadata_location))
    for path in history.manifests:
        container = Container.read(path)
        for record in container.records:
            change(record)
        path.write_bytes(container.with_records(container.records))


def test_a_table_that_can_be_kept_has_no_obstacle(tmp_path: Path) -> None:
    people = small(tmp_path)
    assert kept_history(placed(people.table.metadata_location), people.folder).obstacles == ()
    people.rewrite.check()


def test_row_lineage_and_deletion_vectors(tmp_path: Path) -> None:
    people = small(tmp_path)
    path = placed(people.table.metadata_location)
    told = json.loads(path.read_bytes())
    path.write_text(json.dumps({**told, "format-version": 3, "next-row-id": 2}))
    refused(people, "its format version is 3")
    assert "its format version is 3" in kept_history(path, people.folder).obstacles[0]


def test_delete_files(tmp_path: Path) -> None:
    people = small(tmp_path)
    manifest(people, lambda record: record["data_file"].update(content=1))
    refused(people, r"1 delete file")
    assert "1 delete file" in by_planning(people)


def test_other_formats(tmp_path: Path) -> None:
    people = small(tmp_path)
    manifest(people, lambda record: record["data_file"].update(file_format="ORC"))
    refused(people, "data files in ORC")
    assert "data files in ORC" in by_planning(people)


def test_encryption(tmp_path: Path) -> None:
    people = small(tmp_path)
    manifest(people, lambda record: record["data_file"].update(key_metadata=b"k"))
    refused(people, "it is encrypted")
    assert "it is encrypted" in by_planning(people)


def test_shared_files(tmp_path: Path) -> None:
    people = small(tmp_path, **{"gc.enabled": "false"})
    refused(people, "gc.enabled is false")
    assert "gc.enabled is false" in by_planning(people)


def test_files_elsewhere(tmp_path: Path) -> None:
    people = small(tmp_path, **{"write.data.path": f"file://{tmp_path}/elsewhere"})
    refused(people, "1 of its data files are outside of its folder")
    assert "are outside of its folder" in by_planning(people)


def test_files_that_are_gone(tmp_path: Path) -> None:
    people = small(tmp_path)
    for path in people.folder.rglob("*.parquet"):
        path.unlink()
    refused(people, "1 data file of its snapshots cannot be found")
    assert "cannot be found" in by_planning(people)


def test_a_key_that_was_dropped_and_made_again(tmp_path: Path) -> None:
    people = small(tmp_path)
    with people.table.update_schema() as update:
        update.delete_column("uid")
    with people.table.update_schema() as update:
        update.add_column("uid", LongType())
    with pytest.raises(RunError, match=r"dropped and recreated under the same name \(uid\)"):
        people.found_by("uid").check()
    assert "dropped and recreated" in by_planning(people)


def test_files_from_before_the_key(tmp_path: Path) -> None:
    """A column that is younger than a file cannot say whose its rows are, and where it is the only one, nobody can."""
    people = small(tmp_path)
    with people.table.update_schema() as update:
        update.add_column("customer", StringType())
    told = kept_history(placed(people.table.metadata_location), people.folder)
    assert told.late == ("customer",)
    with pytest.raises(RunError, match="has none of the columns that find the persons"):
        people.found_by("customer").check()


def test_files_that_were_added_as_they_stood(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    people = small(tmp_path)
    path = people.folder / "data" / "added.parquet"
    schema = people.table.schema().as_arrow().remove_metadata()
    plain = pa.schema([pa.field(f.name, f.type) for f in schema])
    pq.write_table(pa.Table.from_pylist([{"id": 9, "uid": UID}], schema=plain), path)
    people.table.add_files([f"file://{path}"])
    refused(people, "has no column ids")


def test_catalogs_without_compare_and_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = small(tmp_path)
    estate = people.estate.model_copy(
        update={"catalogs": {"core": Catalog(type=CatalogType.ICEBERG_REST, uri="http://localhost:1", warehouse="w")}}
    )
    monkeypatch.setattr(People, "estate", property(lambda self: estate))
    refused(people, "cannot replace its metadata file by compare-and-swap")


def test_a_damaged_manifest_says_nothing_of_its_bytes(tmp_path: Path) -> None:
    people = small(tmp_path)
    (path,) = History.read(placed(people.table.metadata_location)).manifests
    path.write_bytes(path.read_bytes()[:-40])
    refused(people, "the table's history cannot be read")
    assert "cannot be read" in by_planning(people)
    assert EMAIL not in by_planning(people)


def test_a_value_in_a_row_of_somebody_else(tmp_path: Path) -> None:
    """No rewrite takes it away: the row is not the person's, and nothing of the table is changed."""
    people = People(tmp_path)
    people.append([(1, UID, EMAIL)])
    people.append([(2, 1002, "b2@example.net"), (3, UID, EMAIL)], region=EMAIL)
    people.append([(4, 1004, "b4@example.net")])
    told, there = people.told(), people.table.metadata_location
    rewrite = people.found_by("uid", "email")
    with pytest.raises(RunError, match="a snapshot has rows with a value of the person"):
        rewrite.run()
    assert (people.told(), people.table.metadata_location) == (told, there)
    assert not list(people.folder.rglob("pii-tracer-*"))


def test_a_table_that_has_fewer_snapshots_than_the_plan_saw(tmp_path: Path) -> None:
    people = small(tmp_path)
    rewrite = people.rewrite
    step = rewrite.step.model_copy(update={"parameters": {**rewrite.step.parameters, "snapshots": 2}})
    with pytest.raises(RunError, match="it has 1 snapshot, but had 2 when the plan was made"):
        replace(rewrite, step=step).check()
