"""Pipelines of many kinds, and which columns of what they write still tell the person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.planners.estates import carriage, terms

TABLES = {
    "prod.orders": "order_no string, cust bigint, note string, total decimal(10,2), at timestamp",
    "prod.emails": "mail string, owner bigint, kind string",
    "prod.visits": "user_id bigint, page string",
}
"""Tables of nobody that lineage knows, beside those of `tests.planners.estates`."""
CASES = [json.loads(line) for line in Path(__file__).with_name("linkage.jsonl").read_text().splitlines()]
"""sql: `…` stands for writing into prod.out. mixed: columns in which a person may stand in somebody else's row."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_a_pipeline_leaves_of_the_person(case: dict[str, Any]) -> None:
    found = carriage(case["sql"].replace("…", "INSERT OVERWRITE prod.out"), tables=TABLES)
    assert (str(found.carries), terms(found), list(found.mixed)) == (
        case["carries"],
        case.get("terms", []),
        case.get("mixed", []),
    )
