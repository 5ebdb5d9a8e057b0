"""CSV by options of Spark's reader: rows are those that Spark itself reads."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pii_tracer.model.hive_text.layout import FileText
from pii_tracer.model.hive_text.spark_options import spark_layout
from pii_tracer.scan.rows.text_records import UnclearLineError, checked, rows_of
from tests.sparktextsupport import COLUMNS, SPARK_TYPES, is_clear, lines_for, texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def by_spark(spark: SparkSession, path: Path, options: dict[str, str]) -> list[tuple[str | None, ...]]:
    """Rows as Spark reads them, numbers as texts."""
    found = spark.read.schema(SPARK_TYPES).options(**options).csv(str(path)).collect()
    return [tuple(None if cell is None else str(cell) for cell in row) for row in found]


@pytest.mark.spark
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), drawn=texts())
def test_rows_are_those_that_spark_reads(
    spark: SparkSession, tmp_path: Path, data: st.DataObject, drawn: tuple[dict[str, str], FileText]
) -> None:
    """Lines that are refused are left out: nobody has to know how Spark reads them."""
    options, text = drawn
    lines = [line for line in data.draw(lines_for(text)) if is_clear(line, text)]
    end = st.sampled_from(["\n", "\r\n", "\r"])
    if text.layout.multi_line:  # by the first end Spark knows all
        end = st.just(data.draw(st.sampled_from(["\n", "\r\n"])))
        lines = [line.replace("\n", data.draw(end)) for line in lines]
    ends = data.draw(st.lists(end, min_size=len(lines), max_size=len(lines)))
    mark = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) if text.layout.encoding == "utf-8" else b""
    content = mark + "".join(map("".join, zip(lines, ends, strict=True))).encode(text.layout.encoding)
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    assert list(rows_of(io.BytesIO(content), text)) == by_spark(spark, path, options)


@pytest.mark.spark
@pytest.mark.parametrize(
    "options",
    [
        {"emptyValue": "E", "nullValue": "NA"},
        {"emptyValue": "NA", "nullValue": "NA", "quote": "'", "escape": "'", "sep": ";"},
        {"nullValue": "7", "comment": "#", "header": "true", "multiLine": "true"},
        {"quote": "", "sep": "\\t", "comment": "#", "header": "true"},
        {"escape": "^", "encoding": "windows-1252", "multiLine": "true"},
    ],
)
def test_each_rule_is_that_of_spark(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    """What drawn lines may miss: empty cells in quotes, texts for NULL, blank lines, comments, escapes of escapes."""
    text = FileText(columns=COLUMNS, layout=spark_layout(options))
    quote, sep, escape = text.layout.quote or "", text.layout.delimiter, text.layout.escape or ""
    cells = ["", quote * 2, "NA", f"{quote}NA{quote}", "007", f"{quote}+7{quote}", " x ", f"a{quote}b", "#", "\\"]
    cells += [f"{quote}{escape}{quote} {escape * 2} {escape}x{sep} {quote}"] if quote else []
    cells += [f"{quote}\n\n x\n{quote}"] if text.layout.multi_line else []
    lines = [sep.join((one, two, one)) for one in cells for two in ("7", "", f"{quote}007{quote}")]
    lines += ["", " ", sep, sep * 2, sep * 5, *cells]
    content = "".join(f"{line}\n" for line in lines if is_clear(line, text)).encode(text.layout.encoding)
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    rows = list(rows_of(io.BytesIO(content), text))
    assert len(rows) > len(cells)
    assert rows == by_spark(spark, path, options)


@pytest.mark.spark
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(data=st.data(), drawn=texts())
def test_what_spark_writes_is_read_without_doubt(
    spark: SparkSession, tmp_path: Path, data: st.DataObject, drawn: tuple[dict[str, str], FileText]
) -> None:
    options, text = drawn
    assume(text.layout.quote)  # without one, Spark writes NUL in its place, and such files are refused
    cell = st.one_of(st.none(), st.text("a,;|~\t\"'^\\#NA é", max_size=6))
    rows = data.draw(st.lists(st.tuples(cell, st.one_of(st.none(), st.integers(-9, 9)), cell), max_size=5))
    folder = tmp_path / "written"
    spark.createDataFrame(rows, SPARK_TYPES).coalesce(1).write.mode("overwrite").options(**options).csv(str(folder))
    for path in folder.glob("part-*.csv"):
        content = path.read_bytes()
        checked(io.BytesIO(content), text)
        assert list(rows_of(io.BytesIO(content), text)) == by_spark(spark, path, options)


def test_odd_lines_are_refused_and_no_others() -> None:
    text = FileText(columns=COLUMNS, layout=spark_layout({"comment": "#"}))
    refused = ['"a', '"a"b', '"a""b"', '"a\\"', " #a", "a,7.0", "a,٤"]
    assert [line for line in refused if is_clear(line, text)] == []
    assert all(is_clear(line, text) for line in ['a"b,7,"c, \\"d\\"\\\\"', "#a,b", "", " ", "a\\,7", '"",,""'])


@pytest.mark.spark
@pytest.mark.parametrize(
    ("content", "options"),
    [
        (b'a,1,"x\r\ny\r\n"\r\nb,2,z\r\n', {}),
        (b'a,1,"x\r\n\r\ny^\r\nz"\r\nb,2,"^"\r\n"\r\n', {"escape": "^"}),
        (b'uid,visits\r\na,1,"\r\n"\r\n', {"header": "true", "emptyValue": "E"}),
    ],
)
def test_ends_of_lines_in_quotes_are_those_that_spark_reads(
    content: bytes, options: dict[str, str], spark: SparkSession, tmp_path: Path
) -> None:
    options = options | {"multiLine": "true"}
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    text = FileText(columns=COLUMNS, layout=spark_layout(options))
    assert list(rows_of(io.BytesIO(content), text)) == by_spark(spark, path, options)


MARK = b"\xef\xbb\xbf"


@pytest.mark.spark
@pytest.mark.parametrize("options", [{}, {"header": "true"}])
def test_spark_drops_marks_in_the_middle_of_a_file(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    """Where it splits a file, each part has a first line. So it depends on the cluster what a row says."""
    path, size = tmp_path / "a.csv", "spark.sql.files.maxPartitionBytes"
    path.write_bytes(b"uid,visits\n" + (MARK + b"4417,1\n") * 9)
    before = spark.conf.get(size)
    spark.conf.set(size, "40")
    try:
        found = {row[0] for row in by_spark(spark, path, options)}
    finally:
        spark.conf.set(size, before)
    assert found >= {"4417", "\ufeff4417"}


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (MARK * 2 + b"4417,1,a\n", {}),
        (b"\n" + MARK + b"4417,1,a\n", {}),
        (MARK + b"\r\n" + MARK + b'"4417,x",1,a\n', {}),
        (b"#x\n" + MARK + b"4417,1,a\n", {"comment": "#"}),
        (MARK * 2 + b"#4417,1,a\n", {"comment": "#"}),
        (b"#x\n5500,1,a\n" + MARK + b"#4417,1,a\n", {"comment": "#"}),
        (b"uid,visits\n" + MARK + b"4417,1,a\n", {"header": "true"}),
        (b"\n" + MARK + b"uid,visits\n4417,1,a\n", {"header": "true"}),
    ],
)
def test_a_mark_that_is_not_of_the_file_is_refused(content: bytes, options: dict[str, str]) -> None:
    text = FileText(columns=COLUMNS, layout=spark_layout(options))
    for read in (checked, lambda stream, text: list(rows_of(stream, text))):
        with pytest.raises(UnclearLineError, match="mark"):
            read(io.BytesIO(content), text)


@pytest.mark.spark
def test_spark_sees_no_end_of_a_line_that_is_longer_than_it_looks(spark: SparkSession, tmp_path: Path) -> None:
    options = {"multiLine": "true"}
    path, text = tmp_path / "a.csv", FileText(columns=COLUMNS, layout=spark_layout(options))
    for first, clear in ((1 << 19, True), (1 << 20, False)):
        content = b"a" * first + b",7,x\r\nb,8,y\r\n"
        path.write_bytes(content)
        assert by_spark(spark, path, options)[1] == ("b", "8", "y" if clear else "y\r")
        if clear:
            assert list(rows_of(io.BytesIO(content), text))[1] == ("b", "8", "y")
            continue
        with pytest.raises(UnclearLineError, match="first line"):
            checked(io.BytesIO(content), text)
