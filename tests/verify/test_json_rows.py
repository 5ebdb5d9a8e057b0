"""Folders of JSON files of which some are lines and some are documents, as the verifier reads their rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_tracer.model.datasets import Format
from pii_tracer.model.plan import TEXTS
from pii_tracer.verify.formats.plain_files.json_rows import json_frame
from tests.verify.conftest import a_copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
@pytest.mark.parametrize(
    ("document", "line", "rows"),
    [
        ("null", '{"b": 1}', {("1", None), ("7", '{"b":"1"}')}),
        ("[]", "[1]", {("1", "[]"), ("7", '["1"]')}),
        ("[]", '[{"a": 1}]', {("1", "[]"), ("7", '[{"a":"1"}]')}),
        ('{"a": null}', '{"a": {"b": 1}}', {("1", "{}"), ("7", '{"a":{"b":"1"}}')}),
        ('{"a": 1}', '{"b": 1}', {("1", '{"a":"1"}'), ("7", '{"b":"1"}')}),
        ('{"a": 1}', '"x"', {("1", '{"a":1}'), ("7", "x")}),
        ("{}", '{"b": 1}', {("1", "{}"), ("7", '{"b":"1"}')}),
        ("{}", "2", {("1", "{}"), ("7", "2")}),
    ],
)
def test_all_files_tell_the_type_of_a_column_together(
    document: str, line: str, rows: set[tuple[str, str | None]], spark: SparkSession, tmp_path: Path
) -> None:
    """Also where the rows of one side have only NULL or empty lists there, as after a step."""
    from pyspark.sql import functions as f

    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for one, other in ((document, line), (line, document)):
        ids = (1, 7) if one == document else (7, 1)
        files[0].write_text(f'[{{"uid": {ids[0]}, "o": {one}}}]')
        files[1].write_text(f'{{"uid": {ids[1]}, "o": {other}}}\n')
        mixed = {TEXTS: ["o"]} if line == '"x"' else {}
        copy = a_copy(Format.JSON, tmp_path).model_copy(update={"facts": mixed})
        frame = json_frame(spark, copy, tmp_path, files)
        text = frame["o"] if frame.schema["o"].dataType.typeName() == "string" else f.to_json("o")
        assert {tuple(row) for row in frame.select("uid", text).collect()} == rows


@pytest.mark.spark
def test_a_document_of_no_rows_beside_lines_is_read(spark: SparkSession, tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    files[0].write_text("[]\n")
    files[1].write_text('{"uid": 7}\n')
    assert [tuple(row) for row in json_frame(spark, a_copy(Format.JSON, tmp_path), tmp_path, files).collect()] == [
        ("7",)
    ]
