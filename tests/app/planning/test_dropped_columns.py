"""Columns that an Iceberg table dropped stay in its files: planning says where the persons are in those of others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.types import LongType, PrimitiveType, StringType

from tests.app.planning.test_others_rows import (
    HERS,
    JOBS,
    KEY,
    MAIL,
    NEIGHBOUR,
    OTHER,
    STRAY,
    Row,
    estate,
    planned,
    strays,
    table,
)


def iceberg(base: Path, *files: tuple[Row, ...]) -> Table:
    """The tickets as an Iceberg table with these files."""
    estate(base)
    made = _registered(base, table(HERS).schema)
    for rows in files:
        made.append(table(*rows))
    (base / "jobs.sql").write_text(JOBS.replace("s.tickets", "ice.s.tickets"))
    return made


def _registered(base: Path, schema: pa.Schema) -> Table:
    """The tickets, empty, in a catalog in place of the declared table."""
    catalog = SqlCatalog("ice", uri=f"sqlite:///{base}/c.db", warehouse=f"file://{base}/lake")
    catalog.create_namespace("s")
    made = catalog.create_table("s.tickets", schema)
    file = base / "pii-tracer.yaml"
    declared = "      - {name: s.tickets, format: delta, location: lake/tickets}\n"
    ice = "  ice: {type: iceberg-sql, uri: 'sqlite:///c.db', warehouse: lake}\n"
    file.write_text(file.read_text().replace(declared, ice))
    return made


def dropped(made: Table, base: Path) -> None:
    with made.update_schema() as change:
        change.delete_column("note")
    (base / "jobs.sql").write_text("INSERT INTO ice.s.tickets (cust, email) SELECT cust, email FROM s.people;\n")


def test_a_file_of_others_whose_dropped_column_names_her_is_a_gap(tmp_path: Path) -> None:
    """No step writes the file again, and verification finds her in it: nobody had said so before the run."""
    dropped(iceberg(tmp_path, (HERS, OTHER), (STRAY,)), tmp_path)
    (gap,) = planned(tmp_path)["gaps"]
    assert gap["id"] == "gap-others_rows-ice.s.tickets-note"
    assert "in note (a dropped column)" in gap["reason"]


@pytest.mark.parametrize("files", [((HERS, STRAY),), ((HERS,), (NEIGHBOUR, OTHER))])
def test_a_file_that_is_written_again_or_holds_nothing_is_none(
    tmp_path: Path, files: tuple[tuple[Row, ...], ...]
) -> None:
    dropped(iceberg(tmp_path, *files), tmp_path)
    assert strays(planned(tmp_path)) == []


def test_a_column_that_was_renamed_is_still_one(tmp_path: Path) -> None:
    made = iceberg(tmp_path, (HERS, OTHER), (NEIGHBOUR,))
    with made.update_schema() as change:
        change.rename_column("note", "remark")
        change.rename_column("cust", "customer")
    (tmp_path / "jobs.sql").write_text(
        "INSERT INTO ice.s.tickets SELECT cust AS customer, email, city AS remark FROM s.people;\n"
    )
    assert strays(planned(tmp_path)) == []


def nested(base: Path, *notes: str) -> Table:
    """Tickets whose note is a field of a struct, of a list's elements and of a map's values; a file for each row."""
    estate(base)
    inner = pa.struct([("text", pa.string()), ("by", pa.string())])
    schema = pa.schema(
        [("cust", pa.string()), ("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))]
    )
    made = _registered(base, schema)
    for cust, note in zip((KEY, *"abc"), ("", *notes), strict=False):
        cell = {"text": note, "by": "x"}
        row = {"cust": cust, "s": cell, "l": [cell], "m": [("k", cell)]}
        made.append(pa.Table.from_pylist([row], schema=schema))
    (base / "jobs.sql").write_text("INSERT INTO ice.s.tickets (cust) SELECT cust FROM s.people;\n")
    return made


def test_a_field_that_was_dropped_inside_a_struct_a_list_or_a_map_is_a_gap(tmp_path: Path) -> None:
    """The whole column is still there: only the run found what no reader shows."""
    made = nested(tmp_path, f"referred by {MAIL}")
    with made.update_schema() as change:
        for name in ("s.text", "l.element.text", "m.value.text"):
            change.delete_column(name)
    assert strays(planned(tmp_path)) == [
        f"gap-others_rows-ice.s.tickets-{name}" for name in ("l.text", "m.value.text", "s.text")
    ]


def test_a_field_of_a_struct_that_was_renamed_is_still_one(tmp_path: Path) -> None:
    made = nested(tmp_path, "nothing")
    with made.update_schema() as change:
        change.rename_column("s.text", "remark")
    assert strays(planned(tmp_path)) == []


@pytest.mark.parametrize("again", [LongType(), StringType()])
def test_a_dropped_column_whose_name_is_in_use_again_is_a_gap(tmp_path: Path, again: PrimitiveType) -> None:
    made = iceberg(tmp_path, (HERS, OTHER), (STRAY,), (NEIGHBOUR,))
    dropped(made, tmp_path)
    with made.update_schema() as change:
        change.add_column("note", again)
    (gap,) = planned(tmp_path)["gaps"]
    assert gap["id"] == "gap-others_rows-ice.s.tickets-note"
    assert "(a dropped column)" in gap["reason"]


def test_the_name_of_a_dropped_column_in_use_again_holds_what_readers_show(tmp_path: Path) -> None:
    """A value that is in the column of now is one that its owner can clear in the table."""
    made = iceberg(tmp_path, (HERS, OTHER))
    dropped(made, tmp_path)
    with made.update_schema() as change:
        change.add_column("note", StringType())
    made.append(table(STRAY))
    (tmp_path / "jobs.sql").write_text(JOBS.replace("s.tickets", "ice.s.tickets"))
    (gap,) = planned(tmp_path)["gaps"]
    assert gap["reason"].startswith("1 row that is not the persons' contains them in note: ")


def test_a_key_column_that_was_dropped_and_made_again_is_no_key_in_old_files(tmp_path: Path) -> None:
    """The match reads the column of now, which is empty there: her key would stay in a file of old."""
    made = iceberg(tmp_path, (HERS,))
    with made.update_schema() as change:
        change.delete_column("cust")
    with made.update_schema() as change:
        change.add_column("cust", StringType())
    made.append(table(HERS).select(["email", "note", "cust"]))
    (tmp_path / "jobs.sql").write_text("INSERT INTO ice.s.tickets (cust) SELECT cust FROM s.people;\n")
    assert "gap-others_rows-ice.s.tickets-cust" in strays(planned(tmp_path))
