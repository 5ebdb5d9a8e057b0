"""Which statements put values of their own making into a column: a number that they count can be a person's."""

from __future__ import annotations

import pytest

from planners.locate.foreign.generated_values import makes
from planners.locate.sql.statement_rows import Statement
from planners.locate.sql.target_row_changes import Target

TABLES = {"prod.users": ("id", "mail", "n"), "prod.shops": ("shop", "name"), "prod.out": ("k", "note")}
OUT = Target(TABLES["prod.out"], lambda name: name == "prod.out")
UNION = "INSERT INTO prod.out SELECT id, mail FROM prod.users UNION ALL SELECT {}"


def made(text: str, *way: str, views: tuple[tuple[str, str], ...] = ()) -> bool:
    return makes(Statement(text, views), way or ("k",), TABLES.get, OUT)


@pytest.mark.parametrize(
    "branch",
    [
        "row_number() OVER (ORDER BY shop), name FROM prod.shops",
        "CAST(70000 + rank() OVER (ORDER BY name) AS STRING), name FROM prod.shops",
        "monotonically_increasing_id(), name FROM prod.shops",
        "next_number(), name FROM prod.shops",
        "CAST(rand() * 100 AS BIGINT), name FROM prod.shops",
        "substring(uuid(), 1, 8), name FROM prod.shops",
        "count(shop), name FROM prod.shops GROUP BY name",
        "count(*) OVER (PARTITION BY name), name FROM prod.shops",
        "sum(shop), name FROM prod.shops GROUP BY name",
        "r.id, name FROM range(99) r JOIN prod.shops",
        "r.number, 'x' FROM range(99) AS r (number)",
        "v, name FROM prod.shops LATERAL VIEW explode(sequence(1, 99)) AS v",
        "p, v FROM prod.shops LATERAL VIEW posexplode(split(name, ',')) AS p, v",
        "posexplode(split(name, ',')) AS (p, v) FROM prod.shops",
        "coalesce(shop, monotonically_increasing_id()), name FROM prod.shops",
        "CASE WHEN name = '' THEN row_number() OVER (ORDER BY name) ELSE shop END, name FROM prod.shops",
        "n, name FROM (SELECT row_number() OVER (ORDER BY shop) AS n, name FROM prod.shops)",
        "s.* FROM (SELECT rank() OVER (ORDER BY shop) AS n, name FROM prod.shops) s",
        "* FROM (SELECT rank() OVER (ORDER BY shop), name FROM prod.shops)",
        "(SELECT count(*) FROM prod.shops), name FROM prod.shops",
        "a, b FROM (VALUES (hash('x'), 'x')) AS t (a, b)",
        ":system, name FROM prod.shops",
        "?, name FROM prod.shops",
    ],
)
def test_a_number_that_a_branch_counts_is_made(branch: str) -> None:
    assert made(UNION.format(branch))


@pytest.mark.parametrize(
    "branch",
    [
        "shop, name FROM prod.shops",
        "NULL, name FROM prod.shops",
        "-1, name FROM prod.shops",
        "CAST('n/a' AS STRING), concat('a', 'b') FROM prod.shops",
        "uuid(), name FROM prod.shops",
        "shop, row_number() OVER (ORDER BY shop) FROM prod.shops",
        "max(shop), count(*) FROM prod.shops GROUP BY name",
        "first_value(shop) OVER (ORDER BY name), name FROM prod.shops",
        "coalesce(shop, -1), name FROM prod.shops",
        "CASE WHEN row_number() OVER (ORDER BY name) = 1 THEN shop END, name FROM prod.shops",
        "s.shop, r.id FROM prod.shops s JOIN range(5) r",
        "shop, id FROM prod.shops JOIN range(5)",
        "v, p FROM prod.shops LATERAL VIEW posexplode(split(name, ',')) AS p, v",
        "next_number(shop), name FROM prod.shops",
        "shop + rand(), name FROM prod.shops",
        "0, 'nobody'",
        "a, b FROM (VALUES (0, 'nobody')) AS t (a, b)",
    ],
)
def test_what_edges_tell_and_constants_are_not(branch: str) -> None:
    assert not made(UNION.format(branch))


@pytest.mark.parametrize(
    ("text", "is_made"),
    [
        ("INSERT INTO prod.out (note, k) SELECT name, hash('x') FROM prod.shops", True),
        ("INSERT INTO prod.out (note, k) SELECT hash('x'), shop FROM prod.shops", False),
        ("INSERT INTO prod.out BY NAME SELECT name AS note, rand() AS K FROM prod.shops", True),
        ("INSERT INTO prod.out VALUES (hash('x'), 'x'), (5, 'y')", True),
        ("INSERT INTO prod.out VALUES (4, 'x'), (5, 'y')", False),
        ("CREATE TABLE prod.out AS SELECT name AS note, rand() AS k FROM prod.shops", True),
        ("CREATE VIEW prod.out (note, k) AS SELECT name, rand() FROM prod.shops", True),
        ("WITH c AS (SELECT rand() AS r, name FROM prod.shops) INSERT INTO prod.out SELECT r, name FROM c", True),
        ("INSERT INTO prod.out WITH c (a, b) AS (SELECT name, rand() FROM prod.shops) SELECT b, a FROM c", True),
        (
            "INSERT INTO prod.out WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n, '' FROM r",
            True,
        ),
        ("FROM prod.shops INSERT INTO prod.out SELECT rand(), name INSERT INTO prod.other SELECT shop, name", True),
        ("FROM prod.shops INSERT INTO prod.out SELECT shop, name INSERT INTO prod.other SELECT rand(), name", False),
        ("INSERT INTO prod.out SELECT shop, name FROM prod.shops EXCEPT SELECT rand(), '' FROM prod.shops", False),
        (
            "MERGE INTO prod.out o USING prod.shops s ON o.k = s.shop WHEN NOT MATCHED THEN INSERT (k) VALUES (rand())",
            True,
        ),
        (
            "MERGE INTO prod.out o USING prod.shops s ON o.k = s.shop WHEN NOT MATCHED THEN INSERT (k) VALUES (s.shop)",
            False,
        ),
        (
            "MERGE INTO prod.out o USING (SELECT rand() AS k, '' AS note) s ON o.k = s.k WHEN NOT MATCHED THEN INSERT *",
            True,
        ),
        ("UPDATE prod.out SET note = rand()", False),
        ("no statement at all", False),
    ],
)
def test_statements_of_every_kind(text: str, is_made: bool) -> None:
    assert made(text) is is_made


def test_fields_of_structs_are_told_apart() -> None:
    text = "INSERT INTO prod.out SELECT named_struct('id', {}, 'at', {}), '' FROM prod.users"
    assert made(text.format("rand()", "id"), "k", "id")
    assert not made(text.format("id", "unix_timestamp()"), "k", "id")


def test_views_of_the_session_are_read() -> None:
    views = (("v", "CREATE TEMPORARY VIEW v AS SELECT rank() OVER (ORDER BY shop) AS n FROM prod.shops"),)
    assert made("INSERT INTO prod.out SELECT n, '' FROM v", views=views)
    assert not made("INSERT INTO prod.out SELECT shop, '' FROM prod.shops, v", views=views)


@pytest.mark.parametrize(
    ("written", "is_key"),
    [
        ("71234", True),
        ("'71234'", True),
        ("71234.0", True),
        ("CAST('71234' AS BIGINT)", True),
        ("071234", True),
        ("7.1234e4", True),
        ("71233.6", True),
        ("' 71234 '", True),
        ("concat('71', '234')", True),
        ("'{\"id\":71234}'", True),
        ("concat('71', '235')", False),
        ("'{\"id\":712345}'", False),
        ("-71234", False),
        ("7123", False),
    ],
)
def test_a_constant_counts_where_it_is_a_persons_value(written: str, is_key: bool) -> None:
    for text in (f"INSERT INTO prod.out VALUES ({written}, 'x')", UNION.format(f"{written}, name FROM prod.shops")):
        assert makes(Statement(text), ("k",), TABLES.get, OUT, {"71234"}) is is_key


def test_a_column_that_is_not_paired_may_be_any() -> None:
    """Nobody knows the columns of the table that is written to."""
    text = "INSERT INTO prod.new SELECT id, mail FROM prod.users UNION ALL SELECT {}, name FROM prod.shops"
    unknown = Target((), lambda name: name == "prod.new")
    assert makes(Statement(text.format("rand()")), ("k",), TABLES.get, unknown)
    assert not makes(Statement(text.format("shop")), ("k",), TABLES.get, unknown)
    assert not makes(Statement(text.format("rand()")), ("mail",), TABLES.get, unknown)


def test_true_is_one() -> None:
    text = "INSERT INTO prod.out VALUES ({}, 'x')"
    assert makes(Statement(text.format("true")), ("k",), TABLES.get, OUT, {"1"})
    assert not makes(Statement(text.format("false")), ("k",), TABLES.get, OUT, {"1"})
