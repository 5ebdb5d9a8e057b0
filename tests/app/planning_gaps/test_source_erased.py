"""What an earlier run left, or a hold kept until it ended, is planned for although the source knows nobody any more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pii_tracer.model.errors import ExitCode
from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request
from tests.s3support import REGION, World, standin, world

__all__ = ["standin", "world"]

ESTATE = (
    declared("w", dict.fromkeys(("prod.staff", "prod.badges", "prod.news"), "parquet"))
    + """\
  - name: employee
    source: prod.staff
    key: emp_id
    identifiers: [{column: mail, category: email}]
"""
)
BADGES = "INSERT OVERWRITE prod.badges SELECT emp_id AS who FROM prod.staff;\n"
NEWS = "INSERT OVERWRITE prod.news SELECT mail AS sent_to FROM prod.staff;\n"
REQUEST = request("employee", "7123400981")


def write(base: Path, name: str, **columns: Any) -> None:
    (base / "w" / name).mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), base / "w" / name / "part-0.parquet")


def planned(base: Path, jobs: str, *words: str, more: str = "") -> tuple[int, Any]:
    """The source has been erased; the badges have not. more: of the estate file."""
    write(base, "staff", emp_id=[7123400982], mail=["b@x.example"])
    write(base, "badges", who=[7123400981, 7123400982])
    write(base, "news", sent_to=["b@x.example"])
    (base / "pii-tracer.yaml").write_text(ESTATE + more)
    (base / "jobs.sql").write_text(jobs)
    (base / "request.yaml").write_text(REQUEST)
    (base / "policy.yaml").write_text("version: 1\n")
    out = base / "p.plan.json"
    code = called(base, "plan", str(base / "request.yaml"), "--out", str(out), *words)
    return code, json.loads(out.read_bytes()) if out.exists() else None


def test_without_a_word_a_key_that_no_row_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(tmp_path, BADGES) == (ExitCode.ERROR, None)
    told = capsys.readouterr().err
    assert "--source-erased" in told
    assert "7123400981" not in told


def test_what_is_left_is_planned_for_by_the_key(tmp_path: Path) -> None:
    code, made = planned(tmp_path, BADGES, "--source-erased")
    assert code == 0
    assert {c["table"]: c["strategy"] for c in made["copies"]} == {"prod.badges": "delete_by_key"}


def test_what_only_other_values_tell_is_a_gap(tmp_path: Path) -> None:
    code, made = planned(tmp_path, BADGES + NEWS, "--source-erased")
    assert code == ExitCode.INCOMPLETE
    (gap,) = made["gaps"]
    assert gap["kind"] == "key_only"
    assert "R-1" in gap["reason"]
    assert "news" in gap["evidence"]


def test_what_was_stored_of_such_datasets_is_named_with_the_gap(tmp_path: Path, world: World) -> None:
    """An archive, or a backup, of what an e-mail alone tells is searched by nobody, and no deletion log has it."""
    bucket = world.new("gone")
    for key in ("n/1.parquet", "b/1.parquet"):
        world.put(bucket, key, b"x")
    archives = [
        {"name": name, "of": f"prod.{of}", "bucket": bucket, "prefix": prefix, "format": "parquet"}
        for name, of, prefix in (("old-news", "news", "n/"), ("old-badges", "badges", "b/"))
    ]
    backups = [
        {"name": name, "of": [of], "owner": "ops", "location": f"tape {name}", "due_days": 30}
        for name, of in (("weekly", "prod.news"), ("yearly", "prod.badges"))
    ]
    parts = {"s3": {"endpoint_url": world.endpoint_url, "region": REGION}, "archives": archives, "backups": backups}
    _, made = planned(tmp_path, BADGES + NEWS, "--source-erased", more=yaml.safe_dump(parts))
    (gap,) = (g for g in made["gaps"] if g["kind"] == "key_only")
    assert f"s3://{bucket}/n/" in gap["evidence"]
    assert "backup weekly" in gap["evidence"]
    assert "1 dataset with only other values of the persons, and 2 copies of these datasets" in gap["reason"]
    assert f"s3://{bucket}/b/" not in gap["evidence"]
    assert "yearly" not in gap["evidence"]
    _, without = planned(tmp_path, BADGES, "--source-erased", more=yaml.safe_dump(parts | {"archives": archives[1:]}))
    assert "key_only" not in {g["kind"] for g in without["gaps"]}
