"""The dialect of the SQL in an event that does not name it, from what ran the job and from where its datasets are.

The dialect decides what double quotes mean: `SELECT "mail" FROM people` reads a column in PostgreSQL, and a text in
Spark. Read in the wrong one, a column gets lost and nothing is left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pii_tracer.lineage.sources.openlineage.event_parsing import Id, Part

_ENGINES = {"spark": "spark", "databricks": "databricks", "hive": "hive", "flink": "flink", "trino": "trino",
            "presto": "presto", "snowflake": "snowflake", "bigquery": "bigquery"}  # fmt: skip
"""Engines as the facets `processing_engine` and `jobType` name them, with their dialect. Others only schedule jobs."""

_SCHEMES = {
    "athena": "athena",
    "awsathena": "athena",
    "bigquery": "bigquery",
    "clickhouse": "clickhouse",
    "crdb": "postgres",
    "databricks": "databricks",
    "db2": "ansi",
    "duckdb": "duckdb",
    "exasol": "ansi",
    "greenplum": "postgres",
    "hana": "ansi",
    "mariadb": "mysql",
    "mssql": "tsql",
    "mysql": "mysql",
    "oracle": "oracle",
    "postgres": "postgres",
    "postgresql": "postgres",
    "presto": "presto",
    "redshift": "redshift",
    "snowflake": "snowflake",
    "spark": "spark",
    "sqlite": "sqlite",
    "sqlserver": "tsql",
    "synapse": "tsql",
    "teradata": "teradata",
    "trino": "trino",
    "vertica": "ansi",
}
"""Schemes of namespaces of systems that run SQL themselves: https://openlineage.io/docs/spec/naming.

Not `hive`: several engines read the tables of one metastore.
"""

QUOTES_TEXT = frozenset({"spark", "databricks", "hive", "bigquery", "mysql"})
"""Dialects in which a text stands in double quotes, and no name."""

QUOTES_BY_SETTING = frozenset({"mysql"})
"""Those of them in which a server's setting makes it a name (ANSI_QUOTES:
https://dev.mysql.com/doc/refman/8.4/en/sql-mode.html), whoever says that it is this dialect.
"""

_QUOTED = re.compile(r'"([^"]+)"')
_TEXT = re.compile(r"'(?:[^']|'')*'")
_QUERY = re.compile(r"\s*(?:(?:--[^\n]*\n|/\*.*?\*/)\s*)*(?:SELECT\b|WITH\b|\()", re.IGNORECASE | re.DOTALL)
_PLAIN = re.compile(r"\w+|\"[^\"]*\"|`[^`]*`")
_PART = re.compile(r'"[^"]*"|`[^`]*`|[^."`]+')
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*(?=:|$)", re.IGNORECASE)


def texts_of(parts: Sequence[Part]) -> tuple[tuple[str, str], ...]:
    """The SQL of a run's events with its dialect: the one that they name, or else that of what ran it."""
    engines = frozenset[str]().union(*(p.engines for p in parts))
    outputs = {id_ for p in parts for id_ in p.outputs}
    inputs = {id_ for p in parts for id_ in p.inputs}
    everywhere = _of(engines, outputs | inputs)
    read_from = everywhere or _of(engines, inputs)  # a query runs where it reads
    texts = {(t, named or (read_from if _QUERY.match(t) else everywhere)) for p in parts for t, named in p.sql}
    if "dbt" in engines and len(outputs) == 1:
        texts = {(as_model(text, output, kind), kind) for text, kind in texts for output in outputs}
    return tuple(sorted(texts))


def _of(engines: Iterable[str], datasets: Iterable[Id]) -> str:
    return dialect_of(engines, {namespace for namespace, _ in datasets})


def dialect_of(engines: Iterable[str], namespaces: Iterable[str]) -> str:
    """The dialect that the engine has, or else the system of all datasets; empty where neither is known."""
    by_engine = {_ENGINES[engine] for engine in engines if engine in _ENGINES}
    if by_engine:
        return by_engine.pop() if len(by_engine) == 1 else ""
    schemes = (found[0].lower() if (found := _SCHEME.match(n)) else "" for n in namespaces)
    by_place = {_SCHEMES[scheme] for scheme in schemes if scheme in _SCHEMES}
    return by_place.pop() if len(by_place) == 1 else ""


def in_double_quotes(text: str) -> set[str]:
    """What stands in double quotes outside texts in single ones, in small letters."""
    return {word.lower() for word in _QUOTED.findall(_TEXT.sub("", text))}


def as_model(text: str, output: Id, dialect: str) -> str:
    """The query of a dbt model as the statement that makes the model's table; other texts as they are.

    dbt's events hold the compiled query alone:
    https://github.com/OpenLineage/OpenLineage/tree/main/integration/common/src/openlineage/common/provider/dbt.
    """
    if not _QUERY.match(text):
        return text
    quote = "`" if dialect in QUOTES_TEXT else '"'
    parts = [part if _PLAIN.fullmatch(part) else f"{quote}{part}{quote}" for part in _PART.findall(output[1])]
    return f"CREATE TABLE {'.'.join(parts)} AS {text.strip().rstrip(';')}"
