"""Rows that a MERGE inserts, however its INSERT is written."""

from __future__ import annotations

import pytest
import sqlglot

from planners.locate.sql.branch_identifiers import UNKNOWN
from planners.locate.sql.target_row_changes import Target, brought


@pytest.mark.parametrize(
    ("dialect", "insert"),
    [("bigquery", "INSERT ROW"), ("spark", "INSERT *"), ("spark", "INSERT (id, name) VALUES (s.id, s.name)")],
)
def test_a_merge_brings_its_sources_rows(dialect: str, insert: str) -> None:
    tree = sqlglot.parse_one(f"MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN {insert}", dialect=dialect)
    assert len(brought(tree, lambda _: UNKNOWN, Target(("id", "name"), lambda _: False))) == 1
