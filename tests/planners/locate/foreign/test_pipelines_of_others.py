"""Pipelines that put other persons' numbers where the key is, on real rows: no delete takes a row of somebody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.planners.locate.foreign.pipelines import answered, harvested, rows_of

CASES = [json.loads(line) for line in Path(__file__).with_name("pipelines.jsonl").read_text().splitlines()]
"""run: the script in DuckDB's words, where they differ. doubts: why the plan asks somebody; without them it deletes, or
says that nobody is there. careful: it asks although the delete would be right.
"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_delete_takes_the_persons_rows_and_no_others(case: dict[str, Any]) -> None:
    found = answered(harvested(case["sql"], case.get("dialect", "spark"), case.get("events", ""), case.get("out", "")))
    assert list(found.doubts) == case.get("doubts", [])
    rows = list(rows_of(case.get("run") or case["sql"]))
    wrong = [row for row in rows if found.finds(row) != ("p1" in str(row["w"]))]
    assert rows
    if found.doubts:
        assert bool(wrong) is not case.get("careful", False)
    else:
        assert found.deletes or found.clean
        assert not wrong
