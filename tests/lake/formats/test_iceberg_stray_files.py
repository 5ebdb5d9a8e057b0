"""Two tables in one folder are told, since the sweep of one takes the other's files for orphans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from pii_tracer.lake.dataset_paths import EstatePaths
from pii_tracer.lake.formats.iceberg.stray_files import strangers
from pii_tracer.lake.formats.iceberg.table_state import iceberg_state
from tests.lake.formats.test_folders import estate

ROWS = pa.table({"id": [1]})


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "warehouse").mkdir()
    return tmp_path


def made(base: Path, catalog: str) -> Any:
    """A table of a catalog of its own, always in the same folder."""
    known = SqlCatalog(catalog, uri=f"sqlite:///{base}/{catalog}.db", warehouse=f"file://{base}/warehouse")
    known.create_namespace_if_not_exists("prod")
    table = known.create_table("prod.t", ROWS.schema)
    for _ in range(3):
        table.append(ROWS)
    return table


def told(base: Path) -> list[tuple[str, str]]:
    found = iceberg_state(base / "warehouse" / "prod" / "t", EstatePaths(estate(), base))
    return [(g.kind, g.reason) for g in found.gaps]


def test_former_metadata_of_the_table_itself_is_its_own(base: Path) -> None:
    table = made(base, "one")
    with table.transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "1"})
    table.append(ROWS)
    assert len(table.metadata.metadata_log) == 1
    assert told(base) == []


def test_a_table_of_a_catalog_that_nobody_named_is_told(base: Path) -> None:
    mine = made(base, "mine")
    theirs = made(base, "theirs")
    mine.append(ROWS)  # the newest metadata is this table's
    [(kind, reason)] = told(base)
    assert kind == "strange_files"
    assert f"{len(theirs.metadata.metadata_log) + 1} metadata files" in reason


def test_a_table_of_the_first_version_is_read(base: Path) -> None:
    known = SqlCatalog("one", uri=f"sqlite:///{base}/one.db", warehouse=f"file://{base}/warehouse")
    known.create_namespace("prod")
    known.create_table("prod.t", ROWS.schema, properties={"format-version": "1"}).append(ROWS)
    state = iceberg_state(base / "warehouse" / "prod" / "t", EstatePaths(estate(), base)).state
    assert (state.format_version, state.rows, state.files) == (1, 1, 1)


def test_files_that_are_not_named_as_writers_name_theirs_are_told(base: Path) -> None:
    made(base, "one")
    folder = base / "warehouse" / "prod" / "t"
    for name in (
        "data/00000-0-2f1c5b0e-7d0f-4c0e-9a52-0d6f4f1c9b11.parquet",  # of a write that failed
        "data/.00000-0-2f1c5b0e-7d0f-4c0e-9a52-0d6f4f1c9b11.parquet.crc",
        "metadata/version-hint.text",
    ):
        (folder / name).write_bytes(b"x")
    (folder / "data" / "empty.csv").touch()
    assert told(base) == []
    (folder / "data" / "notes of the finance team.csv").write_text("somebody's")
    [(kind, reason)] = told(base)
    assert kind == "strange_files"
    assert reason.startswith("the table's folder has 1 file in no snapshot, with names that Iceberg does not use")


def test_metadata_of_hadoop_tables_is_numbered(tmp_path: Path) -> None:
    for name in ("v1.metadata.json", "v12.gz.metadata.json", "v3.metadata.json.gz", "version-hint.text", "vx.json"):
        (tmp_path / name).write_text("x")
    assert strangers(tmp_path, ()) == (tmp_path / "vx.json",)
