"""Folders with types that Spark has not, or that change from line to line: planned, erased, and verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.cli.main import run
from pii_tracer.review.keys import generate, public_pem, trusted_yaml
from tests.cli.small import declared, request

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

KEY, OTHERS = 55102, (7, 55103)
BESIDE: dict[str, pa.Array] = {
    "half": pa.array(np.array([1.5, 2.5, np.nan], np.float16)),
    "halves": pa.array([[np.float16(1.5)], [], None], pa.list_(pa.float16())),
    "lasted": pa.array([1, 2, None], pa.duration("us")),
    "lasting": pa.array([[1], [], None], pa.list_(pa.duration("ns"))),
    "opens": pa.array([1, 2, 3], pa.time64("us")),
    "closes": pa.array([1, None, 3], pa.time32("ms")),
    "due": pa.array([None, 1, 2], pa.decimal128(5, 2)).cast(pa.decimal32(5, 2)),
    "doc": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", "[]", None])),
    "flag": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 1], pa.int8())),
    "view": pa.array(["a", "b", None]).cast(pa.string_view()),
    "fixed": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32(), 2)),
}
MIXED = ("{k}", '"{k}"')
"""How one line of JSON and another write the key."""


def _run(base: Path, *words: str) -> int:
    return run([*words, "--estate", str(base / "pii-tracer.yaml"), "--state", str(base / "state")])


def _parquet(base: Path, name: str) -> None:
    folder = base / "lake" / name
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"uid": [KEY, *OTHERS], name: BESIDE[name]}), folder / "a.parquet")


def _built(base: Path) -> list[str]:
    (base / "lake" / "people").mkdir(parents=True)
    people = [{"uid": k, "city": c} for k, c in zip((KEY, *OTHERS), ("Pune", "Goa", "Goa"), strict=True)]
    pq.write_table(pa.Table.from_pylist(people), base / "lake" / "people" / "a.parquet")
    for name in BESIDE:
        _parquet(base, name)
    names = list(BESIDE)
    tables = {f"s.{name}": "parquet" for name in ("people", *names)}
    subject = "  - {name: user, source: s.people, key: uid}\n"
    (base / "pii-tracer.yaml").write_text(declared("lake", tables) + subject)
    jobs = [f"INSERT INTO s.{n} (uid, note) SELECT uid, city AS note FROM s.people;\n" for n in names]
    (base / "jobs.sql").write_text("".join(jobs))
    (base / "request.yaml").write_text(request("user", str(KEY)))
    (base / "policy.yaml").write_text("version: 1\nallow_immediate_retention: true\n")
    return names


def test_such_folders_are_erased_and_verified(spark: Any, tmp_path: Path) -> None:
    base, file = tmp_path, tmp_path / "r.plan.json"
    names = _built(base)
    words = ["--format", "json", "--retention", "immediate", "--reason", "test: no writer", "--out", str(file)]
    code = _run(base, "plan", str(base / "request.yaml"), *words)
    print(json.loads(file.read_text())["gaps"])
    assert code == 0
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(public).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--key"]
    assert _run(base, "approve", str(file), *signed, str(base / "approver.pem")) == 0
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    code = _run(base, "apply", str(file), *trusted)
    result = json.loads((base / "result.json").read_text())
    print(json.dumps(result, indent=1)[:6000])
    assert code == 0
    assert (result["state"], result["residue"], result["bystander_rows_lost"]) == ("complete", [], 0)
    assert result["copies_erased"] == len(names) + 1
