"""ROLLUP, CUBE and GROUPING SETS: subtotals without the key hold a share of the person, and no DELETE by key finds it."""

from __future__ import annotations

import pytest

from pii_tracer.model.datasets import Carries
from planners.locate.sql.query_skeletons import skeleton
from planners.locate.sql.statement_rows import Statement
from tests.planners.estates import terms
from tests.planners.locate.test_unkeyed import told

OUT = "INSERT OVERWRITE prod.out "
SOME = "SELECT user_id, city, sum(amount) AS total FROM prod.users "
PART = {
    "sets": SOME + "GROUP BY GROUPING SETS ((user_id, city), (city))",
    "sets behind": SOME + "GROUP BY user_id, city GROUPING SETS ((user_id, city), (city))",
    "sets of sets": SOME + "GROUP BY GROUPING SETS (GROUPING SETS ((user_id), (user_id, city)), CUBE (city))",
    "the empty set": SOME + "GROUP BY GROUPING SETS ((user_id, city), ())",
    "rollup": SOME + "GROUP BY ROLLUP (user_id, city)",
    "rollup, in small letters": SOME.lower() + "group by rollup(user_id, city)",
    "rollup beside": SOME + "GROUP BY city, ROLLUP (user_id)",
    "rollup by numbers": SOME + "GROUP BY ROLLUP (1, 2)",
    "rollup behind": SOME + "GROUP BY user_id, city WITH ROLLUP",
    "cube": SOME + "GROUP BY CUBE (user_id, city)",
    "cube behind": SOME + "GROUP BY user_id, city WITH CUBE",
    "counts": "SELECT user_id, count(*) AS n, '1' FROM prod.users GROUP BY ROLLUP (user_id)",
    "marked": "SELECT coalesce(user_id, 'all'), city, sum(amount) FROM prod.users GROUP BY ROLLUP (user_id, city)",
    "marked by grouping": "SELECT user_id, grouping(user_id), sum(amount) FROM prod.users GROUP BY ROLLUP (user_id, city)",
    "cast": "SELECT CAST(user_id AS STRING), city, sum(amount) FROM prod.users GROUP BY ROLLUP (user_id, city)",
    "expression": "SELECT upper(user_id), city, sum(amount) FROM prod.users GROUP BY ROLLUP (upper(user_id), city)",
    "key of the rows before, over a window": "SELECT max(user_id) OVER (PARTITION BY user_id), city, sum(amount) FROM"
    " prod.users GROUP BY ROLLUP (user_id, city)",
    "identifiers by turns": "SELECT user_id, email, sum(amount) FROM prod.users GROUP BY GROUPING SETS (user_id, email)",
    "another relation's column": "SELECT u.user_id, c.user_id, sum(c.amount) FROM prod.users u JOIN prod.claims c ON"
    " u.user_id = c.user_id GROUP BY u.city, ROLLUP (u.user_id, c.user_id)",
    "query inside": "SELECT u, city, n FROM (SELECT user_id AS u, city, sum(amount) AS n FROM prod.users GROUP BY"
    " ROLLUP (user_id, city)) x",
    "CTE": "WITH x AS (SELECT user_id AS u, city, sum(amount) AS n FROM prod.users GROUP BY CUBE (user_id, city))"
    " SELECT u, city, n FROM x",
    "beside rows of a list": "SELECT user_id, tag, sum(amount) FROM prod.users LATERAL VIEW explode(split(city, ' ')) t AS tag"
    " GROUP BY ROLLUP (user_id, tag)",
    "out of a list": "SELECT who, count(*), '1' FROM prod.users LATERAL VIEW explode(array(user_id)) t AS who GROUP BY"
    " ROLLUP (who)",
    "joined": "SELECT u.user_id, m.city, sum(u.amount) FROM prod.users u JOIN prod.merchants m ON u.city = m.city"
    " GROUP BY ROLLUP (u.user_id, m.city)",
}
MADE = {name: OUT + sql for name, sql in PART.items()} | {
    "view of the session": f"CREATE TEMP VIEW x AS {PART['rollup']}; {OUT} SELECT user_id, city, total FROM x",
    "view": f"CREATE VIEW prod.v AS {PART['sets']}; {OUT} SELECT user_id, city, total FROM prod.v",
    "table": f"CREATE TABLE prod.a AS {PART['cube behind']}; {OUT} SELECT user_id, city, total FROM prod.a",
    "merge": f"MERGE INTO prod.out o USING ({PART['rollup']}) s ON o.c1 = s.user_id WHEN NOT MATCHED THEN INSERT (c1, c2,"
    " c3) VALUES (s.user_id, s.city, s.total)",
    "several inserts": "FROM prod.users INSERT INTO prod.out SELECT user_id, city, sum(amount) GROUP BY user_id, city WITH"
    " ROLLUP INSERT INTO prod.out2 SELECT user_id, city, amount",
}


@pytest.mark.parametrize("sql", MADE.values(), ids=MADE.keys())
def test_subtotals_over_persons_make_the_dataset_unknown(sql: str) -> None:
    found = told(sql)
    assert found.carries is Carries.UNKNOWN, (found.carries, terms(found))


ALL = {
    "no sets": SOME + "GROUP BY user_id, city",
    "no sets, by numbers": SOME + "GROUP BY 1, 2",
    "every set": SOME + "GROUP BY GROUPING SETS ((user_id, city), (user_id))",
    "every set, behind": SOME + "GROUP BY user_id, city GROUPING SETS ((user_id), (city, user_id))",
    "beside": SOME + "GROUP BY user_id, ROLLUP (city)",
    "beside, by another spelling": "SELECT u.user_id, u.city, sum(u.amount) FROM prod.users u GROUP BY USER_ID, CUBE (city)",
    "beside rows of a list": "SELECT user_id, tag, sum(amount) FROM prod.users LATERAL VIEW explode(split(city, ' ')) t AS"
    " tag GROUP BY user_id, ROLLUP (tag)",
    "beside, by its number": SOME + "GROUP BY 1, ROLLUP (2)",
    "beside, by its new name": "SELECT user_id AS who, city, sum(amount) FROM prod.users GROUP BY who, CUBE (city)",
}


@pytest.mark.parametrize("sql", ALL.values(), ids=ALL.keys())
def test_what_every_grouping_set_has_finds_all_rows(sql: str) -> None:
    found = told(OUT + sql)
    assert (found.carries, terms(found), found.mixed) == (Carries.KEY, ["c1 = user_id"], ())


def test_subtotals_without_any_key_stay_aggregates() -> None:
    for by in ("ROLLUP (city, alias)", "GROUPING SETS ((city, alias), (city))"):
        found = told(f"{OUT} SELECT city, alias, sum(amount) FROM prod.users GROUP BY {by}")
        assert found.carries is Carries.AGGREGATE


@pytest.mark.parametrize(("name", "short"), [("rollup", True), ("sets behind", True), ("rollup behind", False)])
def test_a_text_without_its_projections_tells_subtotals(name: str, short: bool) -> None:
    text = OUT + PART[name]
    assert (skeleton(text) is not None) is short
    assert Statement(text).subtotals
    assert not Statement(OUT + ALL["no sets"]).subtotals
