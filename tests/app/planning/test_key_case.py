"""A key that the request writes in another case than the source: the error, and the gap, say so and not the value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request

UUID = "3f2a9c1e-77b0-4d15-9e2f-0c6d5b8a4e21"
ESTATE = (
    declared("w", {"app.users": "parquet"})
    + """\
  - name: user
    source: app.users
    key: user_id
"""
)


def planned(base: Path, asked: str, *words: str) -> tuple[int, Any]:
    (base / "w" / "users").mkdir(parents=True)
    users = {"user_id": [UUID, "11111111-2222-4333-8444-555555555555"]}
    pq.write_table(pa.table(users), base / "w" / "users" / "part-0.parquet")
    (base / "pii-tracer.yaml").write_text(ESTATE)
    (base / "jobs.sql").write_text("SELECT 1;\n")
    (base / "request.yaml").write_text(request("user", asked))
    (base / "policy.yaml").write_text("version: 1\n")
    out = base / "p.plan.json"
    code = called(base, "plan", str(base / "request.yaml"), "--out", str(out), *words)
    return code, json.loads(out.read_bytes()) if out.exists() else None


def test_the_error_says_that_the_source_has_it_in_another_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert planned(tmp_path, UUID.upper()) == (ExitCode.ERROR, None)
    told = capsys.readouterr().err
    assert "no row has this user_id. A row has the key in a different case (capital or small letters)" in told
    assert "write the key in the request as app.users has it" in told
    assert UUID not in told.lower()


def test_the_error_of_a_key_that_is_not_there_says_nothing_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert planned(tmp_path, UUID.replace("3f", "4f")) == (ExitCode.ERROR, None)
    assert "different case" not in capsys.readouterr().err


def test_a_source_that_is_said_to_be_erased_and_has_it_in_another_case_is_a_gap(tmp_path: Path) -> None:
    code, plan = planned(tmp_path, UUID.upper(), "--source-erased")
    (gap,) = (g for g in plan["gaps"] if g["kind"] == "key_only")
    assert code == ExitCode.INCOMPLETE
    assert "app.users has the key of R-1 in a different case (capital or small letters)" in gap["reason"]
    assert UUID not in json.dumps(plan).lower()
