"""Of a recorded statement only a query for the whole table is taken."""

from __future__ import annotations

import pytest

from executors.engine.rebuild_from_query import query_of
from pii_tracer.model.errors import RunError


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT OVERWRITE TABLE t PARTITION (day) SELECT n, day FROM u",
        "INSERT OVERWRITE TABLE t PARTITION (day = '1') SELECT n FROM u",
        "INSERT INTO t REPLACE WHERE day = '1' SELECT day, n FROM u",
        "SELECT 1; SELECT 2",
        "DELETE FROM t",
    ],
)
def test_a_part_of_a_table_is_not_the_table(sql: str) -> None:
    with pytest.raises(RunError, match="no query for a rebuild"):
        query_of(sql)


def test_the_query_is_taken_with_its_names() -> None:
    assert query_of("INSERT OVERWRITE t (a, b) SELECT x, y FROM u").endswith("AS named(`a`, `b`)")
    assert query_of("WITH u AS (SELECT 1) INSERT OVERWRITE t SELECT * FROM u").startswith("WITH u AS")
