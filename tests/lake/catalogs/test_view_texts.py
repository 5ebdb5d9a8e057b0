"""Queries of views as Hive, Spark, Trino and Athena keep them in a metastore or in Glue."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest

from pii_tracer.lake.catalogs.base import CatalogView
from pii_tracer.lake.catalogs.hive.view_texts import view_of
from pii_tracer.model.datasets import Column

COLUMNS = (Column(name="who", type="bigint"),)


def told(original: str | None, expanded: str | None = None, **parameters: str) -> Any:
    storage = SimpleNamespace(cols=[SimpleNamespace(name="who", type="bigint")])
    return SimpleNamespace(
        viewOriginalText=original,
        viewExpandedText=expanded,
        parameters=parameters,
        sd=storage,
        tableType="VIRTUAL_VIEW",
    )


def read(table: Any) -> CatalogView | None:
    return view_of("lake", "prod.seen", ("prod", "seen"), table)


def in_comment(made: Any, kind: str = "Presto View") -> str:
    return f"/* {kind}: {base64.b64encode(json.dumps(made).encode()).decode()} */"


def test_hive_expands_names() -> None:
    table = told("SELECT uid FROM people", "SELECT `people`.`uid` FROM `prod`.`people`")
    assert read(table) == CatalogView("lake", "prod.seen", table.viewExpandedText, "hive", ("prod",), COLUMNS)


@pytest.mark.parametrize(
    ("parameters", "home"),
    [
        ({"spark.sql.create.version": "3.5.9"}, ("prod",)),
        ({"view.default.database": "raw"}, ("raw",)),
        (
            {
                "view.catalogAndNamespace.numParts": "2",
                "view.catalogAndNamespace.part.0": "spark_catalog",
                "view.catalogAndNamespace.part.1": "raw",
            },
            ("raw",),
        ),
        (
            {
                "view.catalogAndNamespace.numParts": "2",
                "view.catalogAndNamespace.part.0": "ice",
                "view.catalogAndNamespace.part.1": "raw",
            },
            ("ice", "raw"),
        ),
    ],
)
def test_spark_notes_where_it_was_written(parameters: dict[str, str], home: tuple[str, ...]) -> None:
    table = told("SELECT uid FROM people", "SELECT uid FROM people", **parameters)
    assert read(table) == CatalogView("lake", "prod.seen", "SELECT uid FROM people", "spark", home, COLUMNS)


@pytest.mark.parametrize("kind", ["Presto View", "Presto Materialized View"])
def test_trino_and_athena_keep_json_in_a_comment(kind: str) -> None:
    made = {"originalSql": "SELECT uid AS who FROM people", "catalog": "hive", "schema": "raw"}
    made |= {"columns": [{"name": "who", "type": "bigint"}]}
    table = told(in_comment(made, kind), "/* Presto View */", presto_view="true")
    assert read(table) == CatalogView("lake", "prod.seen", made["originalSql"], "trino", ("raw",), COLUMNS)


@pytest.mark.parametrize(
    "original",
    [
        None,
        "",
        "/* Presto View */",
        "/* Presto View: no base64 */",
        in_comment({"catalog": "hive"}),
        in_comment(["SELECT 1"]),
        in_comment({"originalSql": "", "schema": "raw"}),
        in_comment({"originalSql": 1, "schema": "raw"}),
        in_comment({"originalSql": "SELECT 1", "schema": "raw", "columns": 3}),
    ],
)
def test_no_query_that_can_be_read(original: str | None) -> None:
    assert read(told(original, "/* Presto View */" if original else None)) is None
