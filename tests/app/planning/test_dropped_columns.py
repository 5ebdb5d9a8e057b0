"""Columns that an Iceberg table dropped stay in its files: planning says where the persons are in those of others."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.app.planning.test_others_rows import HERS, JOBS, NEIGHBOUR, OTHER, STRAY, Row, estate, planned, strays, table


def iceberg(base: Path, *files: tuple[Row, ...]) -> Table:
    """The tickets as an Iceberg table with these files."""
    estate(base)
    catalog = SqlCatalog("ice", uri=f"sqlite:///{base}/c.db", warehouse=f"file://{base}/lake")
    catalog.create_namespace("s")
    made = catalog.create_table("s.tickets", table(HERS).schema)
    for rows in files:
        made.append(table(*rows))
    file = base / "pii-tracer.yaml"
    declared = "      - {name: s.tickets, format: delta, location: lake/tickets}\n"
    ice = "  ice: {type: iceberg-sql, uri: 'sqlite:///c.db', warehouse: lake}\n"
    file.write_text(file.read_text().replace(declared, ice))
    (base / "jobs.sql").write_text(JOBS.replace("s.tickets", "ice.s.tickets"))
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
    assert "in note, a column that the table dropped" in gap["reason"]


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
