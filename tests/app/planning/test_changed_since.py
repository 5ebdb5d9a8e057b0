"""A table that changed or broke between plan and run is drift, told by its place, in every format; mended, it is none."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import csv, orc

from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request

ROWS = pa.table({"user_id": ["u-8841302", "u-1000001"], "note": ["a", "b"]})
FORMATS = {"users": "delta", "pq": "parquet", "orc": "orc", "avro": "avro", "csv": "csv", "json": "json"}
ESTATE = declared("w", {f"app.{name}": kind for name, kind in FORMATS.items()}) + (
    "  - {name: user, source: app.users, key: user_id}\n"
)
JOBS = "".join(
    f"CREATE TABLE app.{name} USING {kind} AS SELECT user_id, note FROM app.users;\n"
    for name, kind in FORMATS.items()
    if name != "users"
)


def write(folder: Path, kind: str, table: pa.Table) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"part-0.{kind}"
    if kind == "delta":
        write_deltalake(folder, table, mode="overwrite", schema_mode="overwrite")
    elif kind == "parquet":
        pq.write_table(table, file)
    elif kind == "orc":
        orc.write_table(table, file)
    elif kind == "avro":
        types = {pa.string(): "string", pa.int64(): "long"}
        fields = [{"name": field.name, "type": types[field.type]} for field in table.schema]
        with file.open("wb") as stream:
            fastavro.writer(stream, {"type": "record", "name": "r", "fields": fields}, table.to_pylist())
    elif kind == "csv":
        csv.write_csv(table, file)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An estate with a plan."""
    base = tmp_path_factory.mktemp("changed")
    for name, kind in FORMATS.items():
        write(base / "w" / name, kind, ROWS)
    (base / "pii-tracer.yaml").write_text(ESTATE)
    (base / "jobs.sql").write_text(JOBS)
    (base / "request.yaml").write_text(request("user", "u-8841302"))
    (base / "policy.yaml").write_text("version: 1\n")
    assert called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json")) in (0, 3)
    return base


def drifted(base: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, set[tuple[str, str]]]:
    """Exit code, and kind and table of each difference."""
    capsys.readouterr()
    code = called(base, "drift", str(base / "p.plan.json"), "--format", "json")
    told = capsys.readouterr()
    assert "unexpected" not in told.err
    assert "u-8841302" not in told.out + told.err
    items = json.loads(told.out) if code in (0, ExitCode.DRIFT) else []
    return code, {(item["kind"], Path(item["target"]).name) for item in items if item["hard"]}


CHANGES: dict[str, Callable[[], pa.Table]] = {
    "the key renamed": lambda: ROWS.rename_columns(["uid", "note"]),
    "the key dropped": lambda: ROWS.select(["note"]),
    "another column dropped": lambda: ROWS.select(["user_id"]),
    "the key of another type": lambda: pa.table({"user_id": [8841302, 1000001], "note": ["a", "b"]}),
}


def around(base: Path, name: str, change: Callable[[Path], None], capsys: Any) -> tuple[int, set[tuple[str, str]]]:
    """What drift says while the table is changed; afterwards it is as it was, and drift says nothing."""
    folder, kept = base / "w" / name, base / "kept"
    shutil.copytree(folder, kept)
    try:
        change(folder)
        return drifted(base, capsys)
    finally:
        shutil.rmtree(folder)
        kept.rename(folder)
        assert drifted(base, capsys) == (0, set())


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("change", CHANGES)
def test_another_schema_than_the_plan_was_made_for(
    base: Path, capsys: pytest.CaptureFixture[str], name: str, change: str
) -> None:
    code, told = around(base, name, lambda folder: write(folder, FORMATS[name], CHANGES[change]()), capsys)
    assert code == ExitCode.DRIFT
    # a CSV has no types, and JSON no schema: their rows say it
    untyped = change == "the key of another type" and name == "csv"
    assert told == {("snapshot", name)} | (set() if untyped else {("columns", name)})


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def torn(folder: Path) -> None:
    """The newest commit of a Delta table, or the one file of a folder, half written."""
    (log,) = folder.glob("_delta_log/*.json") if (folder / "_delta_log").is_dir() else (None,)
    cut(log or next(folder.glob("part-*")))


@pytest.mark.parametrize("name", ["users", "pq", "orc", "avro"])
def test_a_file_that_was_cut(base: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, told = around(base, name, torn, capsys)
    assert code == ExitCode.DRIFT
    assert ("snapshot", name) in told


def test_a_packed_file_that_was_cut(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the others, as a writer leaves it that dies."""

    def half(folder: Path) -> None:
        (folder / "part-1.csv.gz").write_bytes(gzip.compress((folder / "part-0.csv").read_bytes())[:-9])

    code, told = around(base, "csv", half, capsys)
    assert code == ExitCode.DRIFT
    assert ("snapshot", "csv") in told


def test_a_missing_commit(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def hole(folder: Path) -> None:
        write(folder, "delta", ROWS)
        write(folder, "delta", ROWS)
        (folder / "_delta_log" / f"{1:020}.json").unlink()

    code, told = around(base, "users", hole, capsys)
    assert code == ExitCode.DRIFT
    assert ("snapshot", "users") in told
