"""Files in a Delta table's folder that its log never named: the sweep removes them, so people are asked first."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.lake.formats.delta.stray_files import strangers
from pii_tracer.lake.formats.delta.transaction_log import read_log
from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request

ROWS = pa.table({"id": ["7123400981", "7123400982"], "day": ["a", "b"]})
UUID = "3f0c8a52-6a0e-4a6d-9a43-1f2b3c4d5e6f"


def found(table: Path) -> list[str]:
    return [str(p.relative_to(table)) for p in strangers(table, read_log(table))]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A partitioned table with history, some of it rewritten."""
    path = tmp_path / "t"
    for _ in range(3):
        write_deltalake(str(path), ROWS, partition_by=["day"], mode="overwrite")
    return path


def put(table: Path, name: str, content: bytes = b"x") -> None:
    (table / name).parent.mkdir(parents=True, exist_ok=True)
    (table / name).write_bytes(content)


@pytest.mark.parametrize(
    "name",
    [
        "loose.parquet",
        "export/other.csv",
        f"export/part-00000-{UUID}-c000.snappy.parquet",
        "_backup/x.csv",
        "day=a/n.txt",
    ],
)
def test_what_no_delta_writer_writes_is_somebodys(table: Path, name: str) -> None:
    assert found(table) == []
    put(table, name)
    assert found(table) == [name]


@pytest.mark.parametrize(
    "name",
    [
        f"part-00000-{UUID}-c000.snappy.parquet",  # a write that failed, or a version that the log forgot
        f"day=a/part-00000-{UUID}.c000.snappy.parquet",
        f"aB/part-00000-{UUID}.c000.snappy.parquet",
        f"deletion_vector_{UUID}.bin",
        f"20261121_100000_00001_abcde_{UUID}",
        f"_change_data/cdc-00000-{UUID}.c000.snappy.parquet",
        f".part-00000-{UUID}-c000.snappy.parquet.crc",
        "_SUCCESS",
        f"_committed_{UUID}",
        "_symlink_format_manifest/manifest",
    ],
)
def test_what_writers_leave_is_no_news(table: Path, name: str) -> None:
    put(table, name)
    assert found(table) == []


def test_a_name_that_the_log_knows_is_the_tables(table: Path) -> None:
    """A table converted from a folder keeps its files' names, also after they were removed from it."""
    for name in ("first.parquet", "second.parquet"):
        pq.write_table(ROWS, table / name)
    assert found(table) == ["first.parquet", "second.parquet"]
    log = table / "_delta_log"
    add = {
        "path": "first.parquet",
        "partitionValues": {"day": "a"},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
    }
    gone = {"path": "first.parquet", "deletionTimestamp": 2, "dataChange": True}
    (log / f"{3:020}.json").write_text(json.dumps({"add": add}) + "\n")
    (log / f"{4:020}.json").write_text(json.dumps({"remove": gone}) + "\n")
    assert found(table) == ["second.parquet"]


def test_an_empty_file_and_a_table_inside_are_not_counted(table: Path) -> None:
    put(table, "empty.txt", b"")
    write_deltalake(str(table / "inner"), ROWS)
    assert found(table) == []


@pytest.mark.parametrize(("key", "is_copy"), [("7123400981", True), ("7123400999", False)])
def test_a_copy_with_somebodys_files_waits_for_a_person(tmp_path: Path, key: str, is_copy: bool) -> None:
    other = pa.table({"id": [key, "5"], "day": ["a", "b"]})
    write_deltalake(str(tmp_path / "w" / "crew"), other)
    write_deltalake(str(tmp_path / "w" / "badges"), ROWS)
    put(tmp_path / "w" / "badges", "export/of-others.csv", b"id,n\n6,7\n")
    (tmp_path / "pii-tracer.yaml").write_text(
        declared("w", dict.fromkeys(("prod.crew", "prod.badges"), "delta"))
        + "  - {name: employee, source: prod.crew, key: id}\n"
    )
    (tmp_path / "jobs.sql").write_text("INSERT OVERWRITE prod.badges SELECT id, day FROM prod.crew;\n")
    (tmp_path / "request.yaml").write_text(request("employee", key))
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    out = tmp_path / "p.plan.json"
    code = called(tmp_path, "plan", str(tmp_path / "request.yaml"), "--out", str(out))
    gaps = [g for g in json.loads(out.read_bytes())["gaps"] if g["kind"] == "strange_files"]
    assert (code == ExitCode.INCOMPLETE, len(gaps)) == (is_copy, int(is_copy))
    for gap in gaps:
        assert gap["reason"].startswith(
            "the table's folder has 1 file in no version of its log, with names that Delta does not use"
        )
        assert gap["evidence"].endswith("/badges/export/of-others.csv")
