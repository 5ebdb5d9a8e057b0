"""What would be lost with a table's history is told at discovery: dropped columns below references, staged rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.iceberg.history_loss import lost_columns, staged_snapshots
from pii_tracer.lake.formats.iceberg.table_state import iceberg_state
from tests.lake.formats.test_folders import estate

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "note", StringType()),
    NestedField(3, "at", StructType(NestedField(4, "city", StringType()), NestedField(5, "zip", StringType()))),
)
ROW = pa.table({"id": [1], "note": ["x"], "at": [{"city": "Pune", "zip": "1"}]}, schema=SCHEMA.as_arrow())


@pytest.fixture
def table(tmp_path: Path) -> Any:
    (tmp_path / "warehouse").mkdir()
    catalog = SqlCatalog("t", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("prod")
    made = catalog.create_table("prod.t", SCHEMA)
    made.append(ROW)
    made.manage_snapshots().create_tag(made.metadata.current_snapshot_id, "q1").commit()
    return made


def lost(table: Any, tmp_path: Path) -> dict[str, tuple[str, ...]]:
    found = iceberg_state(tmp_path / "warehouse" / "prod" / "t", EstatePaths(estate(), tmp_path)).state
    return {ref.name: ref.lost for ref in found.refs}


def test_dropped_columns_and_fields_below_a_tag_are_told(table: Any, tmp_path: Path) -> None:
    assert lost(table, tmp_path) == {"q1": ()}
    with table.update_schema() as change:
        change.delete_column("note")
        change.delete_column(("at", "zip"))
    assert lost(table, tmp_path) == {"q1": ("at.zip", "note")}
    # a column of the same name is another one
    with table.update_schema() as change:
        change.add_column("note", StringType())
    assert "note" in lost(table, tmp_path)["q1"]


WIDENED = [(IntegerType(), LongType()), (FloatType(), DoubleType()), (DecimalType(10, 2), DecimalType(12, 2))]
OTHERS = [
    *((wide, narrow) for narrow, wide in WIDENED),
    (DecimalType(10, 2), DecimalType(12, 3)),
    (IntegerType(), FloatType()),
    (LongType(), DoubleType()),
    (IntegerType(), DecimalType(12, 0)),
    (LongType(), StringType()),
    (DateType(), TimestampType()),
    (StringType(), BinaryType()),
]


@pytest.mark.parametrize(("old", "new", "kept"), [*((*pair, True) for pair in WIDENED), *((*p, False) for p in OTHERS)])
def test_a_type_that_was_widened_loses_nothing_and_any_other_does(table: Any, old: Any, new: Any, kept: bool) -> None:
    """At the top and in a struct; the metadata is written by hand, because no catalog narrows a type."""

    def evolve(raw: dict[str, Any]) -> None:
        for schema, kind in zip(raw["schemas"], (old, new), strict=True):
            schema["fields"][0]["type"] = str(kind)
            schema["fields"][2]["type"]["fields"][1]["type"] = str(kind)

    with table.update_schema() as change:
        change.add_column("extra", StringType())
    told = lost_columns(changed(table, evolve), table.metadata.snapshots[0].snapshot_id)
    assert told == (() if kept else ("at.zip", "id"))


def test_a_renamed_or_added_column_is_no_loss(table: Any, tmp_path: Path) -> None:
    with table.update_schema() as change:
        change.rename_column("note", "remark")
        change.add_column("extra", StringType())
    assert lost(table, tmp_path) == {"q1": ()}


def changed(table: Any, change: Any) -> Any:
    """The table as if its metadata said something else."""
    raw = table.metadata.model_dump(by_alias=True, mode="json")
    change(raw)
    table.metadata = TableMetadataUtil.parse_obj(raw)
    return table


def test_a_column_of_another_type_is_told(table: Any) -> None:
    at = table.metadata.current_snapshot_id

    def another(raw: dict[str, Any]) -> None:
        raw["schemas"].append({**raw["schemas"][0], "schema-id": 7})
        raw["schemas"][-1]["fields"] = [
            {**f, "type": "string"} if f["id"] == 1 else f for f in raw["schemas"][0]["fields"]
        ]
        raw["snapshots"][0]["schema-id"] = 7

    assert lost_columns(changed(table, another), at) == ("id",)


def test_without_a_schema_of_its_own_every_schema_counts(table: Any) -> None:
    at = table.metadata.current_snapshot_id

    def unnamed(raw: dict[str, Any]) -> None:
        raw["snapshots"][0].pop("schema-id")

    assert lost_columns(changed(table, unnamed), at) == ()
    with_drop = changed(table, lambda raw: raw["schemas"][0]["fields"].append(_field(9)))
    with_drop = changed(with_drop, lambda raw: raw.update({"last-column-id": 9}))
    assert lost_columns(with_drop, at) == ("columns that the metadata no longer names",)

    def evolved(raw: dict[str, Any]) -> None:
        raw["schemas"].append({**raw["schemas"][0], "schema-id": 3, "fields": raw["schemas"][0]["fields"][:1]})
        raw["current-schema-id"] = 3

    assert set(lost_columns(changed(with_drop, evolved), at)) >= {"note", "at.zip", "at", "at.city"}


def _field(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"f{number}", "type": "string", "required": False}


def staged(table: Any, **summary: str) -> Any:
    """The table with a second snapshot that no reference reaches."""

    def add(raw: dict[str, Any]) -> None:
        first = raw["snapshots"][0]
        number = 100 + len(raw["snapshots"])
        told = {"operation": "append", **{k.replace("_", "."): v for k, v in summary.items()}}
        raw["snapshots"].append(
            {**first, "snapshot-id": number, "parent-snapshot-id": first["snapshot-id"], "summary": told}
        )

    return changed(table, add)


def test_staged_rows_are_told_until_they_are_published(table: Any) -> None:
    assert staged_snapshots(staged(table, note="rolled back")) == ()
    assert staged_snapshots(staged(table, wap_id="w7")) == ("102",)

    def publish(raw: dict[str, Any]) -> None:
        raw["snapshots"][0]["summary"]["published-wap-id"] = "w7"

    other = changed(table, lambda raw: raw["snapshots"][0]["summary"].update({"published-wap-id": "w8"}))
    assert staged_snapshots(other) == ("102",)
    assert staged_snapshots(changed(table, publish)) == ()


def test_what_a_branch_reaches_is_not_staged(table: Any) -> None:
    staged(table, wap_id="w7")
    at = table.metadata.snapshots[-1].snapshot_id
    held = changed(table, lambda raw: raw["refs"].update({"audit": {"snapshot-id": at, "type": "branch"}}))
    assert staged_snapshots(held) == ()


def test_a_staged_snapshot_is_a_gap_of_discovery(table: Any, tmp_path: Path) -> None:
    folder = tmp_path / "warehouse" / "prod" / "t"
    paths = EstatePaths(estate(), tmp_path)
    assert iceberg_state(folder, paths).gaps == ()
    with table.transaction() as change:
        change.set_properties({"a": "b"})  # another metadata file, to be changed below
    newest = sorted((folder / "metadata").glob("*.metadata.json"))[-1]
    newest.write_text(staged(table, wap_id="w7").metadata.model_dump_json(by_alias=True), encoding="utf-8")
    found = iceberg_state(folder, paths)
    assert found.state.staged == ("101",)
    (gap,) = found.gaps
    assert (gap.kind, gap.evidence) == ("staged_snapshot", "snapshot 101")
    assert "publish or drop these snapshots, then plan again" in gap.reason
