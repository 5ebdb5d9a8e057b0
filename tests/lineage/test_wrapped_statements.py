"""The same rows written through another query around them: the same lineage, or an answer that says it is partial."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pii_tracer.lineage.sql.parse_lines import answer_sql
from tests.lineage.test_accounting import TABLES

_INSERT = re.compile(r"INSERT INTO (?P<target>\w+) (?P<query>SELECT [^;]*)", re.DOTALL)
_WRAPPERS = (
    "INSERT INTO {target} SELECT * FROM ({query}) q_1",
    "INSERT INTO {target} WITH c_1 AS ({query}) SELECT * FROM c_1",
    "INSERT INTO {target} SELECT * FROM ({query} UNION ALL {query}) q_1",
    "INSERT INTO {target} SELECT q_1.* FROM (SELECT 1 AS one_1) q_2 CROSS JOIN ({query}) q_1",
    "CREATE VIEW v_1 AS {query}; INSERT INTO {target} SELECT * FROM v_1",
    "INSERT INTO {target} SELECT * FROM (SELECT DISTINCT q_1.* FROM ({query}) AS q_1 WHERE 1 = 1) q_2",
)


def _plain_inserts() -> list[tuple[dict[str, Any], re.Match[str]]]:
    lines = Path(__file__).with_name("statements.jsonl").read_text().splitlines()
    found = []
    for one in map(json.loads, lines):
        match = _INSERT.fullmatch(one["sql"].strip())
        if (
            match is not None
            and "--" not in one["sql"]
            and one.get("edges")
            and not one.get("partial")
            and not one.get("assumed")
        ):
            found.append((one, match))
    return found


@pytest.mark.parametrize("number", range(len(_WRAPPERS)))
def test_a_query_around_a_query_changes_nothing(number: int) -> None:
    silent, right = [], 0
    for position, (one, match) in enumerate(_plain_inserts()):
        if position % len(_WRAPPERS) != number:
            continue
        sql = _WRAPPERS[number].format(**match.groupdict())
        tables = {name: [(c, "") for c in columns] for name, columns in one.get("tables", TABLES).items()}
        answer = answer_sql(sql, one["dialect"], tables)
        edges = ", ".join(sorted({f"{e['from']} -> {e['to']}" for e in answer["edges"]}))
        right += edges == one["edges"]
        if answer["complete"] and edges != one["edges"]:
            silent.append((one["dialect"], sql, edges))
    assert not silent
    assert right > 5
