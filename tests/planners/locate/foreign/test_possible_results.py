"""Casts that cut, round or wrap around: what they make of another person's key is never taken for the person's."""

from __future__ import annotations

import pytest

from planners.copies.derived_keys import derive
from planners.copies.match_key_resolution import SourceRows, Wanted, resolve
from planners.locate.foreign.possible_results import possible
from planners.locate.sql.spark_functions import is_plain
from tests.lineage.test_byte_digests import recorded
from tests.planners.copies.test_keys import CUSTOMER


def derived(expression: str, mine: str, other: str) -> tuple[tuple[str, ...], int, int]:
    """The values that are looked for; how many are somebody else's, too; and of how many persons nobody knows them."""
    rows = SourceRows({"user_id": [mine, other], "phone": ["1", "2"], "payment_id": ["a", "b"]})
    found = derive(resolve(CUSTOMER, rows, [Wanted("R1", "subj_1", mine)]), "user_id", expression)
    return tuple(value for _, value in found.keys.values), found.shared, found.unsure


@pytest.mark.parametrize(
    ("dialect", "cast"),
    [
        ("postgres", "CAST(email AS VARCHAR(2))"),
        ("postgres", "email::varchar(2)"),
        ("hive", "CAST(email AS VARCHAR(2))"),
        ("oracle", "CAST(email AS VARCHAR2(2 BYTE))"),
        ("tsql", "CONVERT(NVARCHAR(2), email)"),
        ("tsql", "TRY_CONVERT(VARCHAR(2), email)"),
        ("mysql", "CAST(email AS CHAR(2))"),
        ("snowflake", "email::STRING(2)"),
        ("", "CAST(email AS CHAR(2))"),
        ("teradata", "CAST(email AS CHAR(2))"),
        ("flink", "CAST(email AS VARCHAR(2))"),
    ],
)
def test_a_cast_with_a_size_cuts_the_keys_of_others(dialect: str, cast: str) -> None:
    expression = recorded(dialect, cast)
    assert is_plain(expression)
    assert derived(expression, "12", "123") == ((), 1, 0)
    assert derived(expression, "12", "34") == (("12",), 0, 0)
    assert derived(expression, "123", "4")[2] == 1, "engines cut it, refuse it, or write `*`"
    assert derived(f"md5({expression})", "12", "123")[1] == 1


@pytest.mark.parametrize(
    ("dialect", "cast"),
    [("postgres", "CAST(email AS CHAR(3))"), ("tsql", "CAST(email AS CHAR)"), ("trino", "CAST(email AS CHAR(3))")],
)
def test_blanks_behind_a_key_are_not_forgotten(dialect: str, cast: str) -> None:
    assert derived(recorded(dialect, cast), "12", "34") == ((), 0, 1)


@pytest.mark.parametrize(
    ("dialect", "cast"),
    [
        ("spark", "CAST(email AS VARCHAR(2))"),
        ("duckdb", "CAST(email AS VARCHAR(2))"),
        ("tsql", "CAST(email AS VARCHAR(MAX))"),
        ("trino", "CAST(email AS VARCHAR)"),
    ],
)
def test_some_casts_keep_every_text_whole(dialect: str, cast: str) -> None:
    assert derived(recorded(dialect, cast), "12", "123") == (("12",), 0, 0)


@pytest.mark.parametrize(
    ("dialect", "cast"),
    [
        ("postgres", 'CAST(email AS "char")'),
        ("tsql", "CONVERT(CHAR(8), email, 112)"),
        ("oracle", "CAST(email AS VARCHAR2(3) DEFAULT '7' ON CONVERSION ERROR)"),
    ],
)
def test_casts_with_rules_of_their_own_are_no_key(dialect: str, cast: str) -> None:
    assert not is_plain(recorded(dialect, cast))


@pytest.mark.parametrize(
    ("cast", "mine", "other"),
    [
        ("CAST(x AS INT)", "1", "4294967297"),
        ("CAST(x AS INT)", "2147483647", "9999999999"),
        ("CAST(x AS BIGINT)", "1", "1.7"),
        ("CAST(x AS BIGINT)", "2", "1.7"),
        ("CAST(x AS BIGINT)", "12", "12abc"),
        ("CAST(x AS DECIMAL(1))", "9", "12"),
        ("CAST(x AS DECIMAL(3))", "2", "1.7"),
        ("md5(CAST(CAST(x AS INT) AS STRING))", "1", "4294967297"),
    ],
)
def test_numbers_of_others_are_rounded_wrapped_around_or_clamped(cast: str, mine: str, other: str) -> None:
    values, shared, _ = derived(cast, mine, other)
    assert not values
    assert shared == 1


def test_a_cut_key_of_a_source_that_cannot_be_read_may_be_anybodys() -> None:
    assert possible("UNCUT(LEFT(CAST(x AS STRING), 2))")("123") == {"12", "123"}


def test_what_does_not_parse_is_not_plain() -> None:
    assert not is_plain("TRUNC(x)")
