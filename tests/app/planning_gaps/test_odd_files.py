"""One odd file, or a reader's fault that nobody foresaw: a gap of its table, and the plan is made all the same."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from pii_tracer.app.planning import folder_search, person_counts, table_description_search
from pii_tracer.cli.main import run
from pii_tracer.lake.rows import current_rows
from tests.cli.small import declared, request

KEY, MAIL = "P-55102", "rao@x.example"
ROWS = pa.table({"cust": [KEY, "P-3"], "email": [MAIL, "c@x.example"]})
CSV = f"cust,email\n{KEY},{MAIL}\nP-3,c@x.example\n"
LINE = json.dumps(ROWS.to_pylist()[0])
SUBJECT = "  - {name: customer, source: s.people, key: cust, identifiers: [{column: email, category: email}]}\n"


def estate(base: Path, kind: str = "parquet", copied: str = "parquet") -> Path:
    """The subject's source, of a format, and a copy; the folder of the source."""
    (base / "pii-tracer.yaml").write_text(declared("lake", {"s.people": kind, "s.copy": copied}) + SUBJECT)
    (base / "jobs.sql").write_text("INSERT INTO s.copy (cust, email) SELECT cust, email FROM s.people;\n")
    (base / "request.yaml").write_text(request("customer", KEY))
    (base / "policy.yaml").write_text("version: 1\n")
    people, copy = base / "lake" / "people", base / "lake" / "copy"
    for folder in (people, copy):
        folder.mkdir(parents=True)
    if copied == "parquet":
        pq.write_table(ROWS, copy / "a.parquet")
    else:
        write_deltalake(copy, ROWS)
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
        ("parquet", "b.parquet", CSV.encode(), "not a Parquet file"),
        ("parquet", "b.parquet", b"PAREjunkPARE", "its footer is encrypted"),
        ("parquet", "b.parquet", b"PAR1cut", "cannot be read"),
        ("csv", "b.csv", f"cust,email\n{KEY}\n".encode(), "the number of fields of a row"),
        ("csv", "b.csv", CSV.encode("utf-16"), "UTF-16"),
        ("csv", "b.csv", b"cust,email\r\nP-3,1\nP-4,2\r\n", "different line endings"),
        ("csv", "b.csv", b"cust,email\nP-3,1\n\r\nP-4,2\n", "different line endings"),
        ("csv", "b.csv.gz", b"no gzip", "cannot be read"),
        ("json", "b.json", f"[{LINE},\n {LINE}]\n[]".encode(), "neither JSON lines nor"),
        ("json", "b.json", f"[{LINE}, 1]".encode(), "neither JSON lines nor"),
        ("json", "b.json", b'{"cust": "P-3"}{"cust": "P-4"}\n', "neither JSON lines nor"),
        ("json", "b.json", b'{\n"cust": "P-3"}\n{\n"cust": "P-4"}\n', "neither JSON lines nor"),
        ("json", "b.json", b'{"cust": "P-3"}\n{\n"cust": "P-4"}\n', "neither JSON lines nor"),
        ("json", "b.json", b'{"cust": "1"}{"cust": "2"}\n{\n"cust": "3"}', "neither JSON lines nor"),
        ("json", "b.json", f"{LINE}\n{LINE[:-5]}".encode(), "neither JSON lines nor"),
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


def test_other_ends_of_lines_in_quotes_are_no_gap(tmp_path: Path) -> None:
    (estate(tmp_path, "csv") / "b.csv").write_bytes(b'cust,email\r\nP-3,"1\n2\r3"\r\n\r\nP-4,2')
    assert planned(tmp_path)["gaps"] == []


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


def test_a_name_that_is_no_utf_8_is_a_gap(tmp_path: Path) -> None:
    people = estate(tmp_path)
    Path(os.fsdecode(os.fsencode(people) + b"/\xff.parquet")).write_bytes((people / "a.parquet").read_bytes())
    plan = planned(tmp_path)
    assert {gap["kind"] for gap in plan["gaps"]} == {"unreadable"}
    assert "s.copy" in {copy["table"] for copy in plan["copies"]}


def test_a_file_of_another_format_in_the_source_is_no_wrong_column(tmp_path: Path) -> None:
    (estate(tmp_path) / "b.csv").write_text("a,b\n1,2\n")
    plan = planned(tmp_path)
    assert "mixed_formats" in {gap["kind"] for gap in plan["gaps"]}
    assert "s.copy" in {copy["table"] for copy in plan["copies"]}


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_file_without_a_byte_is_passed_over(tmp_path: Path, kind: str) -> None:
    (estate(tmp_path, kind) / f"b.{kind}").touch()
    assert planned(tmp_path)["gaps"] == []


@pytest.mark.parametrize(
    ("module", "seam"),
    [
        (current_rows, "read_spots"),
        (folder_search, "scan_tree"),
        (person_counts, "read_columns"),
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


def test_a_feature_that_only_spark_knows_does_not_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estate(tmp_path, copied="delta")
    with_unknown_feature(tmp_path / "lake" / "copy")
    plan = planned(tmp_path)
    assert plan["gaps"] == []
    (copy,) = (copy for copy in plan["copies"] if copy["table"] == "s.copy")
    assert copy["found"]["rows"] is None
    assert "the rows of s.copy are counted by Spark" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("feature", [False, True])
@pytest.mark.parametrize("data", [None, b"", b"PAR1cut"], ids=["gone", "empty", "cut"])
def test_a_broken_file_of_a_table_blocks_whoever_would_read_it(
    tmp_path: Path, data: bytes | None, *, feature: bool
) -> None:
    estate(tmp_path, copied="delta")
    copy = tmp_path / "lake" / "copy"
    (file,) = copy.glob("*.parquet")
    pq.write_table(ROWS, copy / "b.parquet")  # of no version: the person is found in the folder all the same
    file.unlink()
    if data is not None:
        file.write_bytes(data)
    if feature:
        with_unknown_feature(copy)
    told = {(gap["kind"], gap["dataset"]["name"]) for gap in planned(tmp_path)["gaps"]}
    assert ("unreadable", str(copy)) in told


def with_unknown_feature(table: Path) -> None:
    """Let a Delta table ask its readers for a feature that its library does not know."""
    features = {"readerFeatures": ["vacuumProtocolCheck"], "writerFeatures": ["vacuumProtocolCheck"]}
    told = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (table / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(told) + "\n")


def test_a_csv_that_begins_with_an_empty_line_hides_no_row(tmp_path: Path) -> None:
    (estate(tmp_path, "csv") / "b.csv").write_text(f"\n{CSV}")
    assert any("begins with an empty line" in gap["reason"] for gap in planned(tmp_path)["gaps"])


def test_columns_of_a_file_that_differ_in_case_alone_hide_no_row(tmp_path: Path) -> None:
    twice = pa.table({"Cust": [KEY], "CUST": [None], "email": [MAIL]})
    pq.write_table(twice, estate(tmp_path) / "b.parquet")
    assert any(gap["kind"] == "unreadable" for gap in planned(tmp_path)["gaps"])
