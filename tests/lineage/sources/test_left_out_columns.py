"""Columns that an event's column lineage leaves out: a renamed one is a gap, what a job notes about itself is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.config.lineage import LineageSources
from pii_tracer.model.gap_kinds import LineageGapKind
from tests.lineage.harvesting import harvest

PEOPLE, COPY = "s3://raw", "s3://lake"


def _schema(columns: str) -> dict[str, Any]:
    pairs = [column.split() for column in columns.split(", ")]
    return {"schema": {"fields": [{"name": name, "type": type_} for name, type_ in pairs]}}


def _reasons(tmp_path: Path, given: str, made: str, *, told: str = "id", sql: str = "", run: Any = None) -> list[str]:
    source = {"namespace": PEOPLE, "name": "people", "field": told, "transformations": []}
    lineage = {"columnLineage": {"fields": {told: {"inputFields": [source]}}}}
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-11-01T00:00:00Z",
        "run": {"runId": "r", "facets": run or {}},
        "job": {"namespace": "n", "name": "j", "facets": {"sql": {"query": sql}} if sql else {}},
        "inputs": [{"namespace": PEOPLE, "name": "people", "facets": _schema(given)}],
        "outputs": [{"namespace": COPY, "name": "copy", "facets": {**_schema(made), **lineage}}],
    }
    (tmp_path / "e.ndjson").write_text(json.dumps(event) + "\n")
    graph = harvest(LineageSources(events=("e.ndjson",)), tmp_path)
    assert {gap.kind for gap in graph.gaps} <= {LineageGapKind.NO_COLUMNS}
    return [gap.reason for gap in graph.gaps]


@pytest.mark.parametrize(
    ("given", "made", "named"),
    [
        ("id bigint, mail string", "id bigint, email string", "email"),
        ("id bigint, mail string", "id bigint, contact varchar(20)", "contact"),
        ("id bigint, boss bigint, mail string", "id bigint, manager decimal(9,0)", "manager"),
        ("id bigint, home struct<a:string>", "id bigint, address struct<a:string>", "address"),
        ("id bigint, mail string", "id bigint, email string, contact string", "contact, email"),
    ],
)
def test_a_renamed_column_that_is_left_out_is_a_gap(tmp_path: Path, given: str, made: str, named: str):
    (reason,) = _reasons(tmp_path, given, made)
    assert f"may be its columns under other names: {named}" in reason


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("id bigint, born date", "id bigint, day date"),
        ("id bigint, at timestamp", "id bigint, written timestamp"),
        ("id bigint, mail string", "id bigint, source_system string"),
        ("id bigint, mail string", "id bigint, loadId string"),
        ("id bigint, mail string", "id bigint, n int"),
        ("id bigint", "id bigint, team string"),
    ],
)
def test_what_a_job_notes_about_itself_is_none(tmp_path: Path, given: str, made: str):
    assert not _reasons(tmp_path, given, made)


def test_sql_that_is_followed_shows_that_it_is_a_constant(tmp_path: Path):
    made = ("id bigint, mail string", "id bigint, email string")
    sql = "INSERT INTO parquet.`s3://lake/copy` (id, email) SELECT id, 'none' FROM parquet.`s3://raw/people`"
    assert _reasons(tmp_path, *made)
    assert not _reasons(tmp_path, *made, sql=sql)


def test_statements_that_the_producer_could_not_read_are_a_gap(tmp_path: Path):
    facet = {"extractionError": {"failedTasks": 1, "totalTasks": 2, "errors": [{"errorMessage": "no"}]}}
    (reason,) = _reasons(tmp_path, "id bigint", "id bigint", run=facet)
    assert "could not read 1 of its 2 statements" in reason
    none = {"extractionError": {"failedTasks": 0, "totalTasks": 2, "errors": []}}
    assert not _reasons(tmp_path, "id bigint", "id bigint", run=none)
