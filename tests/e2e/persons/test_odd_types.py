"""Folders with types that Spark has not, or that change from line to line: planned, erased, and verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pii_tracer.cli.main import run
from pii_tracer.review.trusted_keys import generate, public_pem, trusted_yaml
from tests.cli.small import declared, request
from tests.sparksession import small_spark

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.nightly]

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
HERS, HIS, ITS = KEY, *OTHERS
LINES: dict[str, tuple[str, ...]] = {
    "lines": (f'{{"uid": {HERS}}}\n{{"uid": "{HERS}"}}\n{{"uid": "{HIS}"}}\n{{"uid": {ITS}, "n": 1}}\n',),
    "files": (f'{{"uid": {HERS}}}\n{{"uid": {HIS}}}\n', f'{{"uid": "{HERS}"}}\n{{"uid": "{ITS}"}}\n'),
    "her_text": (f'{{"uid": {HIS}}}\n{{"uid": "{HERS}", "n": 1}}\n{{"uid": {ITS}.0, "n": 1.50}}\n',),
    "objects": (f'{{"uid": {{"x": [1.50]}}}}\n{{"uid": {HERS}}}\n{{"uid": {{"x": ["a"]}}, "n": {{}}}}\n',),
    "her_object": (f'{{"uid": {HERS}, "n": {{"x": 1}}}}\n{{"uid": {HIS}, "n": 5}}\n{{"uid": {ITS}, "n": 0.10}}\n',),
    "deep": (f'{{"uid": {HERS}, "n": {{"x": [[]]}}}}\n{{"uid": {HIS}, "n": {{"x": [1]}}}}\n',),
}
"""Folders of JSON by name: their files. What others have is the same whether or not the lines with the key are there."""


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
    for name, files in LINES.items():
        (base / "lake" / name).mkdir()
        for number, text in enumerate(files):
            (base / "lake" / name / f"{number}.json").write_text(text)
    names = [*BESIDE, *LINES]
    tables = {f"s.{name}": "json" if name in LINES else "parquet" for name in ("people", *names)}
    subject = "  - {name: user, source: s.people, key: uid}\n"
    estate = yaml.safe_load(declared("lake", tables) + subject) | {"spark": small_spark()}
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(estate))
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
    assert (code, json.loads(file.read_text())["gaps"]) == (0, [])
    public = generate(base / "approver.pem")
    (base / "approvers.yaml").write_bytes(trusted_yaml([("Dr. Sen", "privacy officer", public_pem(public).decode())]))
    signed = ["--approver", "Dr. Sen", "--role", "privacy officer", "--reason", "right", "--key"]
    assert _run(base, "approve", str(file), *signed, str(base / "approver.pem")) == 0
    trusted = ["--trusted", str(base / "approvers.yaml"), "--result", str(base / "result.json")]
    code = _run(base, "apply", str(file), *trusted)
    result = json.loads((base / "result.json").read_text())
    assert (code, result["failed"], result["unverified"]) == (0, [], [])
    assert (result["state"], result["residue"], result["bystander_rows_lost"]) == ("complete", [], 0)
    assert result["copies_erased"] == len(names) + 1
    for name, files in LINES.items():
        for number, text in enumerate(files):
            left = [line for line in text.splitlines(keepends=True) if str(KEY) not in line]
            assert (base / "lake" / name / f"{number}.json").read_text() == "".join(left)
