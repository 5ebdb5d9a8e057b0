"""Hashes that a dialect gives as bytes: what the planner computes is what the dialect's engine stores, or nothing.

The stored texts are Python's `hashlib`; that `TO_HEX` is small in BigQuery and large elsewhere, the dialects' manuals.
"""

from __future__ import annotations

import hashlib

import pytest

from pii_tracer.lineage.sql.sql_lineage import parse_statements
from planners.locate.sql.spark_functions import compute
from planners.locate.sql.whole_numbers import NotComputable

MAIL = "Zoë.Q@x.example"
TABLES = {"b.u": [("email", "string")], "b.t": [("h", "string")]}


def recorded(dialect: str, expression: str) -> str:
    [made] = parse_statements(f"INSERT INTO b.t SELECT {expression} AS h FROM b.u", dialect, TABLES)
    [edge] = [edge for edge in made.edges if edge.source == ("b.u", "email")]
    return str(edge.expression).replace("b.u.email", "x")


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
    ],
)
def test_bytes_that_are_stored_as_they_are_are_not_computed(dialect: str, expression: str) -> None:
    """PostgreSQL reads backslashes in `::bytea`; SQL Server hashes `nvarchar` in UTF-16."""
    with pytest.raises(NotComputable):
        compute(recorded(dialect, expression), MAIL)
