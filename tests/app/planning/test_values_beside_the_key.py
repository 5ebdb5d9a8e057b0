"""A column by which rows would be deleted, and in which another value may stand beside somebody's own row.

`coalesce(boss, emp_id)` has the boss's key in a row of hers: deleting by it would take rows of the people she leads. An
identifier that is the same wherever it stands (a UUID, an address) tells only whom a value names, not whose the row is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.planning.test_nested_subject import called
from tests.cli.small import declared, request

ANA, BEN, CAI = (f"{n}f0c2d3e-4a5b-4c6d-8e7f-00112233445{n}" for n in (1, 2, 3))
ESTATE = (
    declared("w", dict.fromkeys(("hr.staff", "hr.desks", "hr.out"), "parquet"))
    + """\
  - name: employee
    source: hr.staff
    key: emp_id
    identifiers: [{column: mail, category: email}]
"""
)
STAFF: dict[str, list[str | None]] = {
    "emp_id": [ANA, BEN, CAI],
    "mail": ["ana@x.example", "ben@x.example", "cai@x.example"],
    "boss": [None, ANA, ANA],
    "home_mail": ["a@y.example", "ana@x.example", None],
    "site": ["s1", "s2", "s2"],
}
DESKS = {"site": ["s1", "s2"], "keeper": [BEN, ANA]}


def planned(base: Path, job: str, out: dict[str, Any], staff: dict[str, Any] = STAFF, asked: str = ANA) -> Any:
    tables = {"staff": staff, "desks": DESKS, "out": out}
    for name, columns in tables.items():
        (base / "w" / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), base / "w" / name / "part-0.parquet")
    (base / "pii-tracer.yaml").write_text(ESTATE)
    (base / "jobs.sql").write_text(job)
    (base / "request.yaml").write_text(request("employee", asked))
    (base / "policy.yaml").write_text("version: 1\n")
    called(base, "plan", str(base / "request.yaml"), "--out", str(base / "p.plan.json"))
    return json.loads((base / "p.plan.json").read_bytes())


def strategy(made: Any) -> str:
    return next(str(copy["strategy"]) for copy in made["copies"] if copy["table"] == "hr.out")


OWN = [ANA, BEN, CAI]
LED = [ANA, ANA, ANA]
"""The key, and whom `coalesce(boss, emp_id)` names: the rows of the other two are theirs."""
OTHERS = {
    "the boss, else the person": (
        "SELECT emp_id AS a, coalesce(boss, emp_id) AS b FROM hr.staff;",
        {"a": OWN, "b": LED},
    ),
    "the boss by a condition": (
        "SELECT emp_id AS a, CASE WHEN site = 's1' THEN emp_id ELSE boss END AS b FROM hr.staff;",
        {"a": OWN, "b": LED},
    ),
    "a joined table's key, else the person's": (
        "SELECT s.emp_id AS a, coalesce(d.keeper, s.emp_id) AS b FROM hr.staff s LEFT JOIN hr.desks d ON d.site = s.site;",
        {"a": OWN, "b": [BEN, ANA, ANA]},
    ),
    "an address of somebody else where the own one lacks": (
        "SELECT coalesce(mail, home_mail) AS a FROM hr.staff;",
        {"a": ["ana@x.example", "ana@x.example", "cai@x.example"]},
    ),
}


@pytest.mark.parametrize(("query", "out"), OTHERS.values(), ids=OTHERS.keys())
def test_no_row_is_deleted_by_a_value_that_may_stand_in_somebody_elses_row(
    tmp_path: Path, query: str, out: dict[str, Any]
) -> None:
    assert strategy(planned(tmp_path, "INSERT OVERWRITE hr.out " + query, out)) == "rebuild"


def test_a_table_between_that_is_not_there_any_more_hides_it_not(tmp_path: Path) -> None:
    """No gap of that table speaks of it: short numbers that another source fills, too."""
    numbers = {ANA: 71234, BEN: 71235, CAI: 71236, None: None}
    staff = STAFF | {name: [numbers[v] for v in STAFF[name]] for name in ("emp_id", "boss")}
    jobs = "CREATE TABLE hr.stage AS SELECT emp_id AS a, coalesce(boss, emp_id) AS b FROM hr.staff;\n"
    out = {"a": [numbers[v] for v in OWN], "b": [numbers[v] for v in LED]}
    made = planned(tmp_path, jobs + "INSERT OVERWRITE hr.out SELECT a, b FROM hr.stage;", out, staff, "71234")
    assert strategy(made) in ("rebuild", "blocked")


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("SELECT coalesce(emp_id, boss) AS a FROM hr.staff;", id="what a row of a person always has"),
        pytest.param("SELECT emp_id AS a, coalesce(home_mail, mail) AS b FROM hr.staff;", id="no row goes by it"),
        pytest.param("SELECT emp_id AS a, boss AS b FROM hr.staff;", id="a column beside the key"),
    ],
)
def test_the_key_itself_still_deletes_rows(tmp_path: Path, query: str) -> None:
    assert (
        strategy(
            planned(tmp_path, "INSERT OVERWRITE hr.out " + query, {"a": OWN} | ({"b": OWN} if " AS b" in query else {}))
        )
        == "delete_by_key"
    )
