"""One key for all spellings of a dataset's name, by a table of schemes.

Schemes are those of https://openlineage.io/docs/spec/naming. Two names are one dataset only where a rule of their
scheme says so. A name of a scheme that has no rule is equal to itself only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Key = tuple[str, str]
"""Namespace and name in the spelling that is compared, never shown."""


def _as_is(name: str) -> str:
    return name


def _upper(name: str) -> str:
    """Names without quotes are in capitals in the catalog; a name with quotes means just what it says."""
    return name if '"' in name else name.upper()


def _lower(name: str) -> str:
    """Names without quotes are in small letters in the catalog; a name with quotes means just what it says."""
    return name if '"' in name else name.lower()


_DECORATOR = re.compile(r"\$(?:\d{4}|\d{6}|\d{8}|\d{10}|__NULL__|__UNPARTITIONED__)$")


def _bigquery(name: str) -> str:
    """The table of a partition decorator (`t$20240101`). A shard `t_20240101` is a table of its own."""
    return _DECORATOR.sub("", name)


@dataclass(frozen=True)
class Scheme:
    """How names of one scheme are compared. called: the scheme's first name. port: the default, 0 where none is."""

    called: str
    names: Callable[[str], str]
    port: int = 0


_SCHEMES = {
    "snowflake": Scheme("snowflake", _upper),
    "postgres": Scheme("postgres", _lower, 5432),
    "postgresql": Scheme("postgres", _lower, 5432),
    "redshift": Scheme("redshift", _lower, 5439),
    "bigquery": Scheme("bigquery", _bigquery),
    "trino": Scheme("trino", _lower),
    "awsathena": Scheme("awsathena", _lower),
    "hive": Scheme("hive", _lower, 9083),
    "mysql": Scheme("mysql", _as_is, 3306),
    "sqlserver": Scheme("mssql", _as_is, 1433),
    "mssql": Scheme("mssql", _as_is, 1433),
    "hdfs": Scheme("hdfs", _as_is, 8020),
    "gs": Scheme("gs", _as_is),
    "gcs": Scheme("gs", _as_is),
    "s3": Scheme("s3", _as_is),
    "s3a": Scheme("s3", _as_is),
    "s3n": Scheme("s3", _as_is),
    "abfs": Scheme("abfs", _as_is),
    "abfss": Scheme("abfs", _as_is),
    "wasb": Scheme("wasb", _as_is),
    "wasbs": Scheme("wasb", _as_is),
}
_NAMESPACE = re.compile(r"^(?P<scheme>[a-z][a-z0-9+.-]*)(?:://(?P<rest>.*))?$", re.IGNORECASE | re.DOTALL)
_PORT = re.compile(r":\d+$")
_GLUE_TABLE = re.compile(r"table/(?P<database>[^/]+)/(?P<table>[^/]+)")


def key_of(namespace: str, name: str) -> Key:
    """The key of a name: names with one key are one dataset."""
    found = _NAMESPACE.match(namespace)
    scheme = _SCHEMES.get(found["scheme"].lower()) if found else None
    if found is None or scheme is None:
        return namespace, name
    if found["rest"] is None:
        return scheme.called, scheme.names(name)
    host = found["rest"].rstrip("/")
    if scheme.port:
        host = host.lower()
        host = host if _PORT.search(host) or "," in host or "/" in host else f"{host}:{scheme.port}"
    return f"{scheme.called}://{host}", scheme.names(name)


def sql_name(namespace: str, name: str) -> str:
    """What a table is called in SQL: `db.t` for `table/db/t` of Glue."""
    glue = _GLUE_TABLE.fullmatch(name) if namespace.startswith("arn:aws:glue:") else None
    return f"{glue['database']}.{glue['table']}" if glue else name
