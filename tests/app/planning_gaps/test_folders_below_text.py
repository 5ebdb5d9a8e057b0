"""Folders below a table of text, in which its files may lie that nobody reads any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.app.planning_gaps.test_odd_files import SUBJECT, pa, planned, pq
from tests.cli.small import declared, request

OPTIONS = {"sep": ";", "quote": "'", "escape": "^"}


def estate(base: Path, key: str, **text: Any) -> Path:
    subject = SUBJECT.replace(", identifiers: [{column: email, category: email}]", "")
    told = yaml.safe_load(declared("lake", {"s.people": "parquet", "s.copy": "csv"}) + subject)
    (copied,) = (t for t in told["catalogs"]["spark_catalog"]["tables"] if t["name"] == "s.copy")
    copied.update({"options": OPTIONS, "columns": [{"name": "cust"}, {"name": "email"}]} | text)
    (base / "pii-tracer.yaml").write_text(yaml.safe_dump(told))
    (base / "jobs.sql").write_text("INSERT INTO s.copy (cust, email) SELECT cust, email FROM s.people;\n")
    (base / "request.yaml").write_text(request("customer", key.replace("'", "''")))
    (base / "policy.yaml").write_text("version: 1\n")
    (base / "lake" / "people").mkdir(parents=True)
    pq.write_table(pa.table({"cust": [key, "3"], "email": ["a", "b"]}), base / "lake" / "people" / "a.parquet")
    return base / "lake" / "copy"


@pytest.mark.parametrize(("key", "written"), [("O^Brien^77", "'O^^Brien^^77'"), ("O'Brien-77", "'O^'Brien-77'")])
@pytest.mark.parametrize("name", ["old/a.csv", "old/day=1/a.csv", "old/part-0", "old/a.bak", "old/x/readme.txt"])
def test_a_person_in_a_folder_below_a_table_of_text_is_a_gap(
    key: str, written: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.app.planning_gaps.test_odd_files.KEY", key)
    copied = estate(tmp_path, key)
    (copied / name).parent.mkdir(parents=True)
    for file in (copied / "a.csv", copied / name):
        file.write_text(f"{written};x\n3;y\n")
    plan = planned(tmp_path)
    assert not plan["complete"]
    assert any("/copy/old" in str(gap) for gap in plan["gaps"])
