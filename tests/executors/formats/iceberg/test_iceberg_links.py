"""A warehouse behind a symbolic link: metadata names files by the link, the folder is listed at its real place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from executors.context import ExecutionContext
from executors.formats.iceberg import orphan_files
from executors.formats.iceberg.orphan_files import untracked
from tests.executors.world import NOW, Keyring
from tests.sparksession import SparkEstate


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The real folder of a table with a live file and a stray one; `link` leads to the warehouse."""
    data = tmp_path / "real" / "people" / "data"
    data.mkdir(parents=True)
    for name in ("live.parquet", "stray.parquet"):
        (data / name).write_bytes(b"PAR1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    return tmp_path / "real" / "people"


@pytest.mark.parametrize("sharer", [False, True])
def test_live_files_are_known_by_either_name(
    spark_estate: SparkEstate, table: Path, monkeypatch: pytest.MonkeyPatch, sharer: bool
) -> None:
    written = str(table.parent.parent / "link" / "people" / "data" / "live.parquet")
    other: list[dict[str, Any]] = [{"table": "lake.other", "location": None}] if sharer else []
    # what the metadata tables would tell, of the table itself or of one that shares the file with it
    told = {"lake.other" if sharer else "lake.people": {written}}
    monkeypatch.setattr(orphan_files, "_referenced", lambda ctx, folder, name: told.get(name, set()))
    ctx = ExecutionContext(spark_estate.estate, spark_estate.base, Keyring(), lambda: NOW)
    found = untracked(ctx, table, "lake.people", other)
    assert [file.path for file in found.going] == [str(table / "data" / "stray.parquet")]
    assert found.strange == 0
