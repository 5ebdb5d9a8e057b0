"""What Spark passes over in a bare folder, and what it does not: short numbers in hidden files, folders like `_day=1`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.app.planning_gaps.test_odd_files import planned
from tests.cli.small import declared, request

NUMBER = "4417"
SUBJECT = "  - {name: customer, source: s.people, key: cust}\n"
TEXT = {"options": {"sep": ";"}, "columns": [{"name": "cust"}, {"name": "age"}]}


def estate(base: Path, kind: str, column: str = "day") -> Path:
    """A copy in folders of days, whose rows are not hers; the folder of a day."""
    told = yaml.safe_load(declared("lake", {"s.people": "parquet", "s.copy": kind}) + SUBJECT)
    if kind == "csv":
        told["catalogs"]["spark_catalog"]["tables"][1] |= TEXT | {"partitions": [column]}
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(told))
    (base / "jobs.sql").write_text("INSERT INTO s.copy (cust, age) SELECT cust, age FROM s.people;\n")
    (base / "request.yaml").write_text(request("customer", NUMBER))
    (base / "policy.yaml").write_text("version: 1\n")
    people, day = base / "lake" / "people", base / "lake" / "copy" / f"{column}=1"
    people.mkdir(parents=True)
    day.mkdir(parents=True)
    pq.write_table(pa.table({"cust": [NUMBER, "5500"], "age": ["1", "2"]}), people / "a.parquet")
    (day / "b.csv").write_text("5501;1\n") if kind == "csv" else rows(day / "b.parquet", "5501")
    return day


def rows(path: Path, number: str) -> None:
    pq.write_table(pa.table({"cust": [number, "5500"], "age": ["1", "2"]}), path)


def left(base: Path) -> list[tuple[str, str]]:
    return [(gap["kind"], gap["evidence"]) for gap in planned(base)["gaps"]]


@pytest.mark.parametrize("line", ["4417;x", "4417;x;more", '"4417";x'])
@pytest.mark.parametrize("name", ["_a", ".b.csv.swp"])
def test_of_text(name: str, line: str, tmp_path: Path) -> None:
    day = estate(tmp_path, "csv")
    day.joinpath(name).write_text("5502;x\n5500;y\n")
    assert left(tmp_path) == []
    day.joinpath(name).write_text(f"{line}\n5500;y\n")
    assert left(tmp_path) == [("left_behind", f"day=1/{name}")]


def test_of_parquet(tmp_path: Path) -> None:
    day = estate(tmp_path, "parquet")
    rows(day / "_old.parquet", NUMBER)  # named as data, it is written again
    assert left(tmp_path) == []
    rows(day / "_old", NUMBER)
    assert left(tmp_path) == [("left_behind", "day=1/_old")]


@pytest.mark.parametrize("column", ["day", "_day"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_folder_of_a_partition_is_not_hidden(kind: str, column: str, tmp_path: Path) -> None:
    day = estate(tmp_path, kind, column)
    (day / "c.csv").write_text(f"{NUMBER};1\n") if kind == "csv" else rows(day / "c.parquet", NUMBER)
    plan = planned(tmp_path)
    assert plan["gaps"] == []
    assert {copy["table"]: copy["found"]["rows"] for copy in plan["copies"]} == {"s.people": 1, "s.copy": 1}
