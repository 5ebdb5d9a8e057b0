"""Statements that say in which catalog and database a session looks up names without one: USE and its kin.

Sources: https://spark.apache.org/docs/latest/sql-ref-syntax-ddl-usedb.html,
https://docs.databricks.com/aws/en/sql/language-manual/sql-ref-syntax-ddl-use-catalog,
https://docs.snowflake.com/en/sql-reference/sql/use-database, https://trino.io/docs/current/sql/use.html,
https://learn.microsoft.com/sql/t-sql/language-elements/use-transact-sql,
https://www.postgresql.org/docs/current/ddl-schemas.html#DDL-SCHEMAS-PATH.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PART = r"(?:`[^`]+`|\"[^\"]+\"|\[[^\]]+\]|'[^']+'|[\w$@{}-]+)"
_USE = re.compile(
    rf"^\s*USE\s+(?:(?P<kind>CATALOG|DATABASE|SCHEMA|NAMESPACE|KEYSPACE)\s+)?(?P<name>{_PART}(?:\.{_PART}){{0,2}})\s*;?\s*$",
    re.IGNORECASE,
)
_SET = re.compile(
    r"^\s*(?:SET\s+(?:SESSION\s+|LOCAL\s+)?(?:search_path\s*(?:=|TO)|SCHEMA|@@dataset_id\s*=)"
    rf"|ALTER\s+SESSION\s+SET\s+CURRENT_SCHEMA\s*=)\s*(?P<name>{_PART})(?:\s*,.*)?\s*;?\s*$",
    re.IGNORECASE,
)
_NO_NAMES = frozenset({"ROLE", "WAREHOUSE", "SECONDARY"})
"""What Snowflake's USE names beside databases."""
INNER_SCHEMA = {"snowflake": "public", "tsql": "dbo", "fabric": "dbo", "databricks": "default"}
"""The schema in which a session is after it changed its database (Databricks: its catalog)."""


def current_database(text: str, dialect: str, before: Sequence[str]) -> list[str] | None:
    """Catalog and database of names without one, as far as they are known, after a statement of this kind; None for
    another statement. before: those until then.
    """
    found = _USE.match(text) or _SET.match(text)
    if found is None or found["name"].upper() in _NO_NAMES:
        return None
    name = [part.strip("`\"'[]") for part in re.findall(_PART, found["name"])]
    kind = (found.groupdict().get("kind") or "").upper()
    outer = kind == "CATALOG" or (dialect == "snowflake" and kind in ("", "DATABASE")) or dialect in ("tsql", "fabric")
    if outer and len(name) == 1:
        return [*name, INNER_SCHEMA.get(dialect, "default")]
    return [*before[: max(0, len(before) - len(name))], *name]
