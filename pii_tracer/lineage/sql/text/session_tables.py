"""Statements that make a table which only their own session sees, and which goes with it.

Sources: https://www.postgresql.org/docs/current/sql-createtable.html, https://www.postgresql.org/docs/current/sql-selectinto.html,
https://docs.teradata.com/r/Teradata-VantageTM-SQL-Data-Definition-Language-Syntax-and-Examples (CREATE TABLE),
https://www.ibm.com/docs/en/db2/11.5?topic=statements-declare-global-temporary-table,
https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CREATE-TABLE.html (PRIVATE TEMPORARY),
https://docs.snowflake.com/en/user-guide/tables-temp-transient,
https://help.sap.com/docs/SAP_HANA_PLATFORM/4fe29514fd584807ac9f2a04f6754767 (CREATE LOCAL TEMPORARY COLUMN TABLE).
"""

from __future__ import annotations

import re

_KIND = r"(?:TEMP|TEMPORARY|VOLATILE)"
_MADE = re.compile(
    rf"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:LOCAL|GLOBAL|PRIVATE|MULTISET|SET)\s+)*{_KIND}\s+"
    r"(?:(?:MULTISET|SET|COLUMN|ROW|READ\s+ONLY)\s+)*TABLE\b"
    r"|\s*DECLARE\s+GLOBAL\s+TEMPORARY\s+TABLE\b",
    re.IGNORECASE,
)
_INTO = re.compile(
    rf"\s*(?:SELECT|WITH)\b.*?\bINTO\s+(?:(?:LOCAL|GLOBAL)\s+)?{_KIND}\s+(?:TABLE\s+)?[\w\"`]",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_HASHED = re.compile(r"(?:tempdb\.(?:\w*\.)?)?#", re.IGNORECASE)
"""Temporary tables of T-SQL and Redshift, also by the name of their database."""


def makes_session_table(sql: str, output: str = "") -> bool:
    """Whether a statement makes a table of its session. output: the table's name."""
    if _MADE.match(sql) or _HASHED.match(output):
        return True
    return "into" in sql.lower() and _INTO.match(_QUOTED.sub(" '' ", sql)) is not None
