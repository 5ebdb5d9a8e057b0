"""Tables that statements of administration name: they take in rows from their folders, or only tend them."""

from __future__ import annotations

import re

from pii_tracer.lineage.sql.text.table_name_pattern import TABLE

_TAKES_IN = re.compile(
    rf"\s*(?:(?:MSCK\s+(?:REPAIR\s+)?|REPAIR\s+)TABLE\s+(?P<a>{TABLE})(?!.*\bDROP\s+PARTITIONS)"
    rf"|ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?P<b>{TABLE})\s+RECOVER\s+PARTITIONS"
    rf"|CONVERT\s+TO\s+\w+\s+(?!parquet\.)(?P<c>{TABLE})"
    rf"|REFRESH\s+(?!(?:TABLE|FUNCTION|MATERIALIZED|STREAMING|FOREIGN|EXTERNAL|DYNAMIC)\s)(?P<d>{TABLE})"
    r"(?:\s+PARTITION\s*\(.*)?\s*;?\s*$)",
    re.IGNORECASE | re.DOTALL,
)
"""What makes rows of the files that lie below a table's folder
(https://spark.apache.org/docs/3.5.6/sql-ref-syntax-ddl-repair-table.html,
https://impala.apache.org/docs/build/html/topics/impala_refresh.html).
"""
_OPTIONS = re.compile(
    r"(?:\s+(?:(?:ADD|SYNC)\s+PARTITIONS|NO\s+STATISTICS|PARTITIONED\s+BY\s*\([^()]*\)))*\s*;?\s*", re.IGNORECASE
)
"""What may follow the table's name and moves nothing."""
_TENDS = re.compile(
    r"\s*(?:(?:OPTIMIZE|ANALYZE|VACUUM|REORG)\s+(?:\([^()]*\)\s*)?"
    r"(?:(?:FULL|FREEZE|VERBOSE|ANALYZE|LOCAL|NO_WRITE_TO_BINLOG|LITE|REINDEX|SORT\s+ONLY|DELETE\s+ONLY)\s+)*"
    r"(?:TABLE\s+)?|COMMENT\s+ON\s+(?:TABLE|VIEW)\s+|ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?|REFRESH\s+TABLE\s+|TRUNCATE\s+(?:TABLE\s+)?)"
    rf"(?P<a>{TABLE})",
    re.IGNORECASE,
)


def taken_in(text: str) -> str | None:
    """The table, as it is written, that a statement takes rows in for."""
    return _named(_TAKES_IN.match(text))


def takes_in_alone(text: str) -> bool:
    """Whether a statement takes in rows, and nothing in it does anything else."""
    found = _TAKES_IN.match(text)
    return found is not None and _OPTIONS.fullmatch(text, found.end()) is not None


def tended_in(text: str) -> str | None:
    """The table, as it is written, that a statement of administration is about, and brings no rows into."""
    return _named(_TENDS.match(text))


def _named(found: re.Match[str] | None) -> str | None:
    return next((name for name in found.groups() if name), None) if found is not None else None
