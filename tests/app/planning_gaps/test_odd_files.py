"""One odd file, or a reader's fault that nobody foresaw: a gap of its table, and the plan is made all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.app.planning import folder_search, plan_creation, table_description_search
from pii_tracer.cli.main import run
from pii_tracer.lake.rows import current_rows
from tests.cli.small import declared, request

KEY, MAIL = "P-55102", "rao@x.example"
ROWS = pa.table({"cust": [KEY, "P-3"], "email": [MAIL, "c@x.example"]})
CSV = f"cust,email\n{KEY},{MAIL}\nP-3,c@x.example\n"
LINE = json.dumps(ROWS.to_pylist()[0])
SUBJECT = "  - {name: customer, source: s.people, key: cust, identifiers: [{column: email, category: email}]}\n"


def estate(base: Path, kind: str = "parquet") -> Path:
    """The subject's source, of a format, and a copy; the folder of the source."""
    (base / "pii-tracer.yaml").write_text(declared("lake", {"s.people": kind, "s.copy": "parquet"}) + SUBJECT)
    (base / "jobs.sql").write_text("INSERT INTO s.copy (cust, email) SELECT cust, email FROM s.people;\n")
    (base / "request.yaml").write_text(request("customer", KEY))
    (base / "policy.yaml").write_text("version: 1\n")
    people, copy = base / "lake" / "people", base / "lake" / "copy"
    for folder in (people, copy):
        folder.mkdir(parents=True)
    pq.write_table(ROWS, copy / "a.parquet")
    if kind == "parquet":
        pq.write_table(ROWS, people / "a.parquet")
    else:
        (people / f"a.{kind}").write_text(CSV if kind == "csv" else f"{LINE}\n")
    return people


def planned(base: Path) -> dict[str, Any]:
    out = base / "r.plan.json"
    files = ["--out", str(out), "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")]
    code = run(["plan", str(base / "request.yaml"), "--format", "json", *files])
    text = out.read_text()
    assert KEY not in text
    assert MAIL not in text
    plan: dict[str, Any] = json.loads(text)
    assert code == (0 if plan["complete"] else 3)
    return plan


@pytest.mark.parametrize(
    ("kind", "name", "data", "why"),
    [
        ("parquet", "b.parquet", CSV.encode(), "something else than Parquet"),
        ("parquet", "b.parquet", b"PAREjunkPARE", "its footer is encrypted"),
        ("parquet", "b.parquet", b"PAR1cut", "cannot be read"),
        ("csv", "b.csv", f"cust,email\n{KEY}\n".encode(), "another number of fields"),
        ("csv", "b.csv", CSV.encode("utf-16"), "UTF-16"),
        ("csv", "b.csv.gz", b"no gzip", "cannot be read"),
        ("json", "b.json", f"[{LINE},\n {LINE}]".encode(), "not one whole JSON object"),
        ("json", "b.json", f"{LINE}\n{LINE[:-5]}".encode(), "not one whole JSON object"),
    ],
)
def test_an_odd_file_of_the_source_is_one_gap_that_names_it(
    tmp_path: Path, kind: str, name: str, data: bytes, why: str
) -> None:
    (estate(tmp_path, kind) / name).write_bytes(data)
    plan = planned(tmp_path)
    (gap,) = plan["gaps"]
    assert gap["kind"] == "unreadable"
    assert gap["evidence"].endswith(f"/{name}")
    assert why in gap["reason"]
    assert "s.copy" in {copy["table"] for copy in plan["copies"]}


@pytest.mark.parametrize(
    "cells",
    [
        ROWS["cust"].cast(pa.large_string()),
        ROWS["cust"].cast(pa.string_view()),
        ROWS["cust"].cast(pa.binary()),
        ROWS["cust"].dictionary_encode(),
    ],
    ids=["large", "view", "bytes", "category"],
)
@pytest.mark.parametrize("name", ["cust", "CUST"])
def test_keys_that_spark_reads_alike_are_found_in_both_files(tmp_path: Path, cells: Any, name: str) -> None:
    pq.write_table(pa.table({name: cells, "email": ROWS["email"]}), estate(tmp_path) / "b.parquet")
    plan = planned(tmp_path)
    assert plan["gaps"] == []
    assert {c["table"]: c["found"]["rows"] for c in plan["copies"]} == {"s.people": 2, "s.copy": 1}


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_file_without_a_byte_is_passed_over(tmp_path: Path, kind: str) -> None:
    (estate(tmp_path, kind) / f"b.{kind}").touch()
    assert planned(tmp_path)["gaps"] == []


@pytest.mark.parametrize(
    ("module", "seam"),
    [
        (current_rows, "read_spots"),
        (folder_search, "scan_tree"),
        (plan_creation, "read_columns"),
        (table_description_search, "description"),
    ],
)
def test_an_unforeseen_fault_of_a_reader_is_a_gap_without_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, seam: str
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise KeyError(MAIL)

    estate(tmp_path)
    monkeypatch.setattr(module, seam, fails)
    gaps = planned(tmp_path)["gaps"]
    assert "unreadable" in {gap["kind"] for gap in gaps}
    assert any("an unexpected KeyError" in gap["reason"] for gap in gaps)
