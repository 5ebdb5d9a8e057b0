"""Tables with files in common: said file by file, and a gap where the plan cannot spare the other side."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import write_deltalake

from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.iceberg.vocabulary import ICEBERG
from pii_tracer.lake.inventory import Inventory, TableState
from pii_tracer.model.datasets import Format
from tests.lake.catalogs.test_catalogs import (
    ROWS,
    SQL,
    estate,
    kinds,
    sql_catalog,
    table,
)


def by_name(found: Inventory) -> dict[str, TableState]:
    return {s.table or Path(s.location).name: s for s in found.tables}


def test_a_table_that_added_the_files_of_a_folder_and_of_a_table(tmp_path: Path) -> None:
    catalog = sql_catalog(tmp_path)
    owner, taker = table(catalog, "prod.owner"), table(catalog, "prod.taker")
    (theirs,) = [t.file.file_path.removeprefix("file://") for t in owner.scan().plan_files()]
    (tmp_path / "warehouse" / "plain").mkdir()
    plain = tmp_path / "warehouse" / "plain" / "1.parquet"
    pq.write_table(ROWS, plain)
    taker.add_files([f"file://{theirs}", f"file://{plain}"])
    found = discover(estate(core=SQL), tmp_path)
    assert not found.gaps
    states = by_name(found)
    taken = {(o.table or Path(o.location).name, o.format, o.files) for o in states["core.prod.taker"].sharing}
    assert taken == {
        ("core.prod.owner", ICEBERG, (theirs,)),
        ("plain", Format.PARQUET, (str(plain),)),
    }
    assert states["core.prod.taker"].outside == tuple(sorted((theirs, str(plain))))
    assert [(o.table, o.files) for o in states["core.prod.owner"].sharing] == [("core.prod.taker", (theirs,))]
    assert [o.table for o in states["plain"].sharing] == ["core.prod.taker"]
    assert states["core.prod.owner"].outside == states["plain"].outside == ()


def test_a_file_that_its_own_table_has_forgotten_is_shared_all_the_same(tmp_path: Path) -> None:
    """A sweep of the folder would take it for an orphan."""
    catalog = sql_catalog(tmp_path)
    owner, taker = table(catalog, "prod.owner"), table(catalog, "prod.taker")
    (theirs,) = [t.file.file_path for t in owner.scan().plan_files()]
    taker.add_files([theirs])
    place = owner.location().removeprefix("file://")
    catalog.drop_table("prod.owner")
    shutil.rmtree(Path(place) / "metadata")
    fresh = catalog.create_table("prod.owner", schema=ROWS.schema, location=f"file://{place}")
    assert not list(fresh.scan().plan_files())
    states = by_name(discover(estate(core=SQL), tmp_path))
    assert [o.files for o in states["core.prod.owner"].sharing] == [(theirs.removeprefix("file://"),)]


def test_a_delta_table_among_the_sharers_is_a_gap_on_both_sides(tmp_path: Path) -> None:
    taker = table(sql_catalog(tmp_path), "prod.taker")
    place = tmp_path / "warehouse" / "wallets"
    write_deltalake(place, ROWS)
    (theirs,) = place.glob("*.parquet")
    taker.add_files([theirs.as_uri()])
    found = discover(estate(core=SQL), tmp_path)
    assert kinds(found) == [("shared_files", str(theirs)), ("shared_files", str(theirs))]
    assert {Path(g.dataset.name).name for g in found.gaps if g.dataset} == {"wallets", "taker"}


def test_files_beyond_every_table_of_the_estate_are_a_gap(tmp_path: Path) -> None:
    taker = table(sql_catalog(tmp_path), "prod.taker")
    away = tmp_path / "away.parquet"
    pq.write_table(ROWS, away)
    taker.add_files([away.as_uri()])
    assert kinds(discover(estate(core=SQL), tmp_path)) == [("external_files", str(away))]
