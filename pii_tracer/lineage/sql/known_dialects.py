"""Names of SQL dialects, and those of them that the parser has under other names."""

from __future__ import annotations

import sqlglot

from pii_tracer.model.errors import LineageError

_ALSO = {"ansi": "", "generic": "", "sparksql": "spark", "postgresql": "postgres", "mssql": "tsql", "sqlserver": "tsql",
         "db2": "", "flink": "", "mariadb": "mysql", "synapse": "tsql", "impala": "hive",
         "hiveql": "hive", "presto": "presto", "teradatasql": "teradata"}  # fmt: skip


def known_dialect(name: str) -> str:
    """The parser's name of a dialect.

    Raises:
        LineageError: nobody knows it.
    """
    plain = name.strip().lower()
    plain = _ALSO.get(plain, plain)
    try:
        sqlglot.Dialect.get_or_raise(plain)
    except ValueError:
        raise LineageError(
            f"the SQL dialect `{name}` is not known", todo="use spark, databricks, hive, trino, ansi …"
        ) from None
    return plain
