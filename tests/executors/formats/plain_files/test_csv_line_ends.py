"""CSV whose records do not all end as its first line does: Spark with `multiLine` takes them all to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from executors.formats.plain_files import csv_rewrite
from executors.formats.plain_files.arrow_match import RowsError
from pii_tracer.lake.formats.plain_files.data_file import data_file
from pii_tracer.lake.formats.plain_files.rows import rows_of_file
from pii_tracer.model.datasets import Match, MatchTerm
from pii_tracer.model.errors import EstateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_CUST = Match(terms=(MatchTerm(column="cust", key_set="k", type="string"),))
KEYS = {"k": frozenset({"p"})}
MIXED = [
    b"cust,n\r\np,1\nq,2\r\nr,3\n",
    b"cust,n\nq,1\n\r\np,2\n",
    b"cust,n\rp,1\r\nq,2\r\n",
    b'cust,n,"a\nb"\r\np,1,x\r\n',
    b'cust,n\r\np,"\\"x"\nq,2\r\n',
    b"cust,n," + b"x" * (1 << 20) + b"\r\np,1,x\r\n",
]
CLEAR = [
    b'cust,n\r\np,"1\n2\r"\r\n\r\nq,2',
    b'cust,n\np,"1\r\n2"\nq,2\n',
    b"cust,n\rp,1\rq,2\r",
    b'cust,n\r\np,"\\"x"\r\nq,2\r\n',
]


def rows(path: Path) -> int:
    """As planning reads them."""
    file = data_file(path)
    assert file is not None
    return int(rows_of_file(file, ["cust"]).num_rows)


@pytest.mark.parametrize("content", MIXED)
def test_planning_and_step_refuse_them(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(EstateError, match=r"line endings?"):
        rows(path)
    with pytest.raises(RowsError, match="split the lines of the file"):
        csv_rewrite.survey(path, BY_CUST, KEYS)
    with pytest.raises(RowsError, match="split the lines of the file"):
        csv_rewrite.write(path, tmp_path / "_new.csv", BY_CUST, KEYS)


@pytest.mark.spark
@pytest.mark.parametrize("content", CLEAR)
def test_other_ends_in_quotes_are_of_their_cell(content: bytes, spark: SparkSession, tmp_path: Path) -> None:
    path, new = tmp_path / "a.csv", tmp_path / "new.csv"
    path.write_bytes(content)
    assert rows(path) == 2
    csv_rewrite.write(path, new, BY_CUST, KEYS)
    escape = csv_rewrite._escape(path, "utf-8") or '"'
    reader = spark.read.options(header="true", multiLine="true", escape=escape)
    assert [row[:2] for row in reader.csv(str(new)).collect()] == [("q", "2")]
