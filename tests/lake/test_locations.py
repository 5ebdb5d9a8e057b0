"""Tables that are not where their metadata says, share files, lost files, or lie in oddly named folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable, QueryBuilder

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.discovery import discover
from pii_tracer.lake.formats.delta.vocabulary import DELTA
from pii_tracer.lake.formats.iceberg.table_state import newest_metadata
from pii_tracer.lake.rows.current_rows import read_columns
from pii_tracer.model.errors import EstateError
from tests.lake.s3_lakehouse import HUDI_TABLES, Lake


def metadata(folder: Path, *names: str) -> Path:
    (folder / "metadata").mkdir()
    for name in names:
        (folder / "metadata" / name).write_text("{}", encoding="utf-8")
    return folder / "metadata"


@pytest.mark.parametrize(
    ("hint", "newest"),
    [("2", "v3"), ("1", "v3"), ("9", "v12"), ("", "v12"), ("x\n", "v12"), ("12", "v12")],
)
def test_newest_metadata(tmp_path: Path, hint: str, newest: str) -> None:
    folder = metadata(tmp_path, *(f"v{n}.metadata.json" for n in (1, 2, 3, 12)))
    (folder / "version-hint.text").write_text(hint, encoding="utf-8")
    assert newest_metadata(tmp_path).name == f"{newest}.metadata.json"


def test_catalogs_that_number_with_zeros_and_a_uuid(tmp_path: Path) -> None:
    names = [f"0000{n}-9a3f1c52-66aa-4d7e-8a54-0123456789ab.metadata.json" for n in (1, 2)]
    metadata(tmp_path, *names)
    assert newest_metadata(tmp_path).name == names[1]


def test_no_metadata_file(tmp_path: Path) -> None:
    metadata(tmp_path)
    with pytest.raises(EstateError, match="no Iceberg metadata"):
        newest_metadata(tmp_path)


@pytest.mark.spark
def test_damaged_metadata_is_a_gap(lake: Lake, tmp_path: Path) -> None:
    table = tmp_path / "warehouse" / "lake" / "prod" / "t"
    table.mkdir(parents=True)
    metadata(table, "v1.metadata.json")
    gaps = {(g.kind, g.dataset.name) for g in discover(lake.estate, tmp_path).gaps if g.dataset}
    assert ("unreadable", "/lakehouse/warehouse/lake/prod/t") in gaps


@pytest.mark.spark
def test_copied_tables_point_at_the_original_and_share_its_files(lake: Lake, tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(lake.warehouse / "lake" / "prod" / "riders", tmp_path / "warehouse" / "lake" / "prod" / name)
    inventory = discover(lake.estate, tmp_path)
    for name in ("one", "two"):
        kinds = {g.kind for g in inventory.gaps if g.dataset and g.dataset.name.endswith(f"/{name}")}
        assert kinds == {"moved_table", "external_files", "shared_files"}
    copies = [s for s in inventory.tables if s.same_files_as]
    assert [Path(s.same_files_as or "").name for s in copies] in (["one"], ["two"])


@pytest.mark.spark
def test_a_data_file_that_is_gone_is_a_gap(lake: Lake, tmp_path: Path) -> None:
    places = [*HUDI_TABLES[:1], "delta/parts"]
    for place in places:
        shutil.copytree(lake.warehouse / place, tmp_path / "warehouse" / place)
    for file in (tmp_path / "warehouse").rglob("*.parquet"):
        if not {"_delta_log", ".hoodie"} & set(file.parts):
            file.unlink()
    missing = {g.dataset.name for g in discover(lake.estate, tmp_path).gaps if g.kind == "missing_files" and g.dataset}
    assert missing == {f"/lakehouse/warehouse/{place}" for place in places}


@pytest.mark.spark
@pytest.mark.parametrize("source", ["hudi/trips", "hudi/rides", "delta/wallets", "delta/sidecars"])
@pytest.mark.parametrize("name", ['it\'s "é漢" #1;', "100%", "a%20b"])
def test_tables_in_folders_with_hostile_names(lake: Lake, tmp_path: Path, source: str, name: str) -> None:
    shutil.copytree(lake.warehouse / source, tmp_path / "warehouse" / name)
    inventory = discover(lake.estate, tmp_path)
    (state,) = inventory.tables
    assert state.dataset.name == f"/lakehouse/warehouse/{name}"
    assert {g.kind for g in inventory.gaps if g.dataset == state.dataset} == set()
    paths = EstatePaths(lake.estate, tmp_path)
    if name == "a%20b" and state.format is DELTA:
        with pytest.raises(EstateError, match="percent"):
            read_columns(state, ["uid"], paths)
    else:
        rows = read_columns(state, ["uid", "name"], paths)
        assert rows.num_rows == (5 if source == "delta/sidecars" else 19)


@pytest.mark.spark
def test_a_percent_escape_never_leads_to_another_table(lake: Lake, tmp_path: Path) -> None:
    """The library alone takes the log of `a b` for that of `a%20b`, and shows a row that was deleted."""
    for name in ("a b", "a%20b"):
        shutil.copytree(lake.warehouse / "delta" / "wallets", tmp_path / "warehouse" / name)
    other = tmp_path / "warehouse" / "a b" / "_delta_log"
    shutil.copy(other / f"{1:020}.json", other / f"{2:020}.json")
    for checksum in other.glob("*.crc"):
        checksum.unlink()
    escaped = tmp_path / "warehouse" / "a%20b"
    query = QueryBuilder().register("t", DeltaTable(escaped)).execute("SELECT uid FROM t")
    assert 7 in query.read_all().column("uid").to_pylist()
    states = {Path(s.location).name: s for s in discover(lake.estate, tmp_path).tables}
    assert (states["a b"].rows, states["a%20b"].rows) == (20, 19)
    with pytest.raises(EstateError, match="percent"):
        read_columns(states["a%20b"], ["uid"], EstatePaths(lake.estate, tmp_path))
