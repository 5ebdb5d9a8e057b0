"""Hashes that a dialect gives as bytes: what the planner computes is what the dialect's engine stores, or nothing.

The stored texts are Python's `hashlib`; that `TO_HEX` is small in BigQuery and large elsewhere, the dialects' manuals.
"""

from __future__ import annotations

import hashlib

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pii_tracer.lineage.sql.sql_lineage import parse_statements
from planners.locate.sql.spark_functions import compute
from planners.locate.sql.whole_numbers import NotComputable

MAIL = "Zoë.Q@x.example"
TABLES = {"b.u": [("email", "string")], "b.t": [("h", "string")]}


def recorded(dialect: str, expression: str) -> str:
    [made] = parse_statements(f"INSERT INTO b.t SELECT {expression} AS h FROM b.u", dialect, TABLES)
    [text] = {edge.expression for edge in made.edges if edge.source == ("b.u", "email")}
    return str(text).replace("b.u.email", "x")


@pytest.mark.parametrize(
    ("dialect", "expression", "algorithm", "large"),
    [
        ("athena", "lower(to_hex(sha256(to_utf8(email))))", "sha256", False),
        ("trino", "to_hex(sha256(to_utf8(email)))", "sha256", True),
        ("trino", "upper(to_hex((sha256(to_utf8(email)))))", "sha256", True),
        ("presto", "to_hex(sha512(to_utf8(email)))", "sha512", True),
        ("trino", "to_hex(md5(to_utf8(email)))", "md5", True),
        ("athena", "lower(to_hex(sha1(to_utf8(email))))", "sha1", False),
        ("trino", "lower(to_hex(sha256(CAST(email AS varbinary))))", "sha256", False),
        ("bigquery", "TO_HEX(SHA256(email))", "sha256", False),
        ("bigquery", "UPPER(TO_HEX(SHA512(CAST(email AS BYTES))))", "sha512", True),
        ("bigquery", "TO_HEX(SHA1(email))", "sha1", False),
        ("bigquery", "TO_HEX(MD5(email))", "md5", False),
        ("clickhouse", "hex(SHA256(email))", "sha256", True),
        ("clickhouse", "lower(hex(MD5(email)))", "md5", False),
        ("postgres", "encode(sha256(convert_to(email, 'UTF8')), 'hex')", "sha256", False),
        ("snowflake", "HEX_ENCODE(SHA2_BINARY(email), 0)", "sha256", False),
        ("snowflake", "SHA2(email)", "sha256", False),
        ("redshift", "sha2(email, 256)", "sha256", False),
        ("duckdb", "sha256(email)", "sha256", False),
    ],
)
def test_the_hexadecimal_text_of_a_hash_is_computed(dialect: str, expression: str, algorithm: str, large: bool) -> None:
    text = hashlib.new(algorithm, MAIL.encode()).hexdigest()
    assert compute(recorded(dialect, expression), MAIL) == (text.upper() if large else text)


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("bigquery", "SHA256(email)"),
        ("clickhouse", "SHA256(email)"),
        ("tsql", "HASHBYTES('SHA2_256', email)"),
        ("tsql", "CONVERT(VARCHAR(64), HASHBYTES('SHA2_256', email), 2)"),
        ("trino", "sha1(to_utf8(email))"),
        ("snowflake", "TO_VARCHAR(SHA2_BINARY(email))"),
        ("postgres", "encode(sha256(email::bytea), 'hex')"),
        ("trino", "to_hex(sha256(to_utf16(email)))"),
        ("bigquery", "TO_HEX(SHA256(CAST(email AS BYTES FORMAT 'BASE64')))"),
        ("bigquery", "TO_HEX(SHA256(CAST(email AS BYTES FORMAT 'HEX')))"),
    ],
)
def test_bytes_that_are_stored_as_they_are_are_not_computed(dialect: str, expression: str) -> None:
    """PostgreSQL reads backslashes in `::bytea`; SQL Server hashes `nvarchar` in UTF-16."""
    with pytest.raises(NotComputable):
        compute(recorded(dialect, expression), MAIL)


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("clickhouse", "hex(SHA256(lower(email)))"),
        ("clickhouse", "hex(MD5(upper(email)))"),
        ("clickhouse", "hex(SHA256(substring(email, 1, 3)))"),
        ("clickhouse", "hex(SHA256(left(email, 3)))"),
        ("clickhouse", "hex(SHA256(reverse(email)))"),
        ("clickhouse", "xxHash64(lower(email))"),
        ("postgres", "encode(sha256(convert_to(regexp_replace(email, '[-.]', ''), 'UTF8')), 'hex')"),
        ("postgres", "md5(lower(email))"),
        ("duckdb", "md5(regexp_replace(email, '[a-z]', ''))"),
        ("duckdb", "md5(substring(email, 0, 3))"),
        ("duckdb", "md5(left(email, -2))"),
        ("duckdb", "md5(right(email, -2))"),
        ("duckdb", "md5(upper(email))"),
        ("duckdb", "left(md5(email), -2)"),
        ("duckdb", "hash(lower(email))"),
        ("snowflake", "HASH(LOWER(email))"),
        ("snowflake", "HEX_ENCODE(LOWER(email), 0)"),
        ("trino", "to_hex(sha256(to_utf8(substr(email, 0, 3))))"),
        ("mysql", "MD5(TRIM(BOTH 'ab' FROM email))"),
        ("ansi", "MD5(SUBSTRING(email, 1, 3))"),
    ],
)
def test_functions_that_only_share_a_name_with_sparks_are_not_computed(dialect: str, expression: str) -> None:
    with pytest.raises(NotComputable):
        compute(recorded(dialect, expression), MAIL)


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("duckdb", "trim(email)"),
        ("duckdb", "md5(trim(email))"),
        ("bigquery", "TRIM(email)"),
        ("trino", "to_hex(sha256(to_utf8(trim(email))))"),
        ("clickhouse", "hex(SHA256(trim(email)))"),
    ],
)
def test_trim_is_computed_where_there_is_nothing_to_trim(dialect: str, expression: str) -> None:
    text = recorded(dialect, expression)
    assert compute(text, MAIL) in (MAIL, *(hashlib.new(a, MAIL.encode()).hexdigest() for a in ("md5", "sha256"))) or (
        compute(text, MAIL) == hashlib.sha256(MAIL.encode()).hexdigest().upper()
    )
    for blank in (" ", "\t", "\u00a0", "\u200b", "\ufeff"):
        with pytest.raises(NotComputable):
            compute(text, MAIL + blank)


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("duckdb", "left(email, -2)"),
        ("postgres", "right(email, -2)"),
        ("snowflake", "SUBSTR(email, 0, 3)"),
        ("postgres", "regexp_replace(email, '[a-z]', '')"),
        ("mysql", "TRIM(BOTH 'ab' FROM email)"),
        ("duckdb", "reverse(email)"),
        ("postgres", "upper(concat(left(email, -1), 'x'))"),
    ],
)
def test_functions_on_texts_of_other_dialects_are_not_computed_as_sparks(dialect: str, expression: str) -> None:
    with pytest.raises(NotComputable):
        compute(recorded(dialect, expression), MAIL)


@pytest.mark.parametrize(
    ("dialect", "expression", "made"),
    [
        ("postgres", "lower(email)", "a.b@x"),
        ("trino", "substr(email, 2, 3)", ".b@"),
        ("duckdb", "left(email, 3)", "a.b"),
        ("postgres", "lpad(email, 7, 'z')", "zza.b@x"),
    ],
)
def test_those_that_mean_the_same_everywhere_are_computed(dialect: str, expression: str, made: str) -> None:
    assert compute(recorded(dialect, expression), "a.b@x") == made


def test_a_function_from_a_query_before_the_hash_is_not_computed_either() -> None:
    text = "WITH c AS (SELECT left(email, -2) AS e FROM b.u) INSERT INTO b.t SELECT md5(e) AS h FROM c"
    [made] = parse_statements(text, "duckdb", TABLES)
    assert [str(edge.expression) for edge in made.edges] == ["MD5(IN_DUCKDB(LEFT(b.u.email, -2)))"]


@pytest.mark.parametrize("dialect", ["clickhouse", "postgres", "mysql", "snowflake", "trino"])
def test_the_case_of_ascii_is_computed_but_for_the_turkish_i(dialect: str) -> None:
    hashed = {"clickhouse": "lower(hex(MD5({})))", "trino": "lower(to_hex(md5(to_utf8({}))))"}.get(dialect, "md5({})")
    upper = recorded(dialect, hashed.format("upper(email)"))
    assert compute(upper, "a.b@x.org") == hashlib.md5(b"A.B@X.ORG").hexdigest()
    with pytest.raises(NotComputable):
        compute(upper, "a.i@x.org")
    lower = recorded(dialect, hashed.format("lower(email)"))
    assert compute(lower, "A.B@x.org") == hashlib.md5(b"a.b@x.org").hexdigest()


@pytest.mark.parametrize(
    "expression",
    [
        "md5(lower(email))",
        "md5(upper(email))",
        "upper(sha256(email))",
        "sha1(email || '-s')",
        "md5(concat(email, '-', lower(email)))",
        "md5(concat_ws('-', email, 's'))",
        "sha256(coalesce(email, ''))",
        "md5(CAST(email AS VARCHAR))",
        "md5(trim(email))",
        "md5(ltrim(email))",
        "md5(substring(email, 2, 3))",
        "md5(substr(email, 2))",
        "md5(substr(email, -2))",
        "md5(substr(email, 0, 2))",
        "md5(left(email, 2))",
        "md5(left(email, -2))",
        "md5(right(email, -2))",
        "md5(replace(email, 'a', 'bc'))",
        "md5(replace(email, '', 'z'))",
        "md5(regexp_replace(email, '[0-9]', ''))",
        "md5(lpad(email, 6, 'xy'))",
        "md5(reverse(email))",
        "md5(translate(email, 'ab', 'c'))",
        "md5(nullif(email, 'a'))",
        "hash(lower(email))",
        "left(md5(email), -2)",
        "trim(email)",
        "lower(trim(email))",
        "left(email, 2)",
        "lpad(email, 6, 'xy')",
        "md5(md5(email))",
    ],
)
@given(value=st.text("aAiI01 \t\u00a0\u3000ßẞÉéΣσ\u0130\u0131ŉ-.@😀", max_size=8) | st.text(max_size=8))
@example("straße")
@example("\u3000ab 12")
@example("Zoë.Q@x.example")
def test_duckdb_stores_what_is_computed(expression: str, value: str) -> None:
    """DuckDB itself: what is computed is what it gives."""
    value = value.replace("\0", "")
    try:
        computed = compute(recorded("duckdb", expression), value)
    except NotComputable:
        return
    [stored] = duckdb.execute(f"SELECT {expression} FROM (SELECT ? AS email)", [value]).fetchall()[0]
    assert computed == stored
