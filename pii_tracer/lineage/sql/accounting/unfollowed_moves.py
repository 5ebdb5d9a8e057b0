"""Statements that bring rows from one place to another in a way that lineage does not follow, by what they do.

Each is a gap, as is every statement that nobody knows. These say in the reason what goes where.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pii_tracer.lineage.sql.accounting.administration import words_of
from pii_tracer.lineage.sql.accounting.named_tables import naming

_MADE = r"CREATE (?:OR \w+ )?"
_MOVES: Mapping[str, str] = {
    "the statement shares rows with others": r"(?:CREATE|ALTER)(?: OR REPLACE)? (?:SHARE|DATASHARE"
    r"|PUBLICATION)\b|GRANT .* TO (?:SHARE|DATASHARE)\b",
    "rows come from another system's publication": rf"{_MADE}SUBSCRIPTION\b|ALTER SUBSCRIPTION\b",
    "a database gets the rows of another database": r"CREATE (?:OR REPLACE )?(?:TRANSIENT )?(?:DATABASE|SCHEMA"
    r"|CATALOG)\b.* (?:CLONE|TEMPLATE|ENGINE|SHARE|DATASHARE"
    r"|REPLICA|SNAPSHOT|ATTACH\w*|ARN|LINK|COPY)\b|ALTER (?:DATABASE|SCHEMA) .*\b(?:SWAP|REPLICA|SECONDARY"
    r"|REPLICATION|FAILOVER)\b",
    "another database gets the statistics of this database, which contain values": r"DBCC CLONEDATABASE\b",
    "a database or schema gets another name": r"ALTER (?:DATABASE|SCHEMA|CATALOG) .*\b(?:RENAME TO|MODIFY"
    r" NAME)\b|RENAME DATABASE\b",
    "the statement restores rows from a backup": r"(?:BACKUP|RESTORE|UNDROP|FLASHBACK)\b",
    "the statement moves files between a stage and other places": r"(?:PUT|GET) (?!DIAGNOSTICS)|COPY FILES\b",
    "the rows are on another system": rf"(?:{_MADE}|ALTER )(?:FOREIGN TABLE|EXTERNAL (?:SCHEMA|TABLE|DATA SOURCE)"
    rf"|(?:SHARED |PUBLIC )*DATABASE LINK)\b|IMPORT FOREIGN SCHEMA\b",
    "a change log keeps columns of changed rows": rf"{_MADE}MATERIALIZED VIEW LOG\b",
    "a machine learning model is trained on rows": rf"{_MADE}(?:TEMP )?MODEL\b|EXPORT MODEL\b",
    "an index service keeps copies of rows": rf"{_MADE}(?:CORTEX SEARCH SERVICE|SEARCH INDEX|VECTOR INDEX)\b",
    "the statement of the task is not known": r"EXECUTE TASK\b",
    "values go through a variable or cursor of a procedure": r"(?:DECLARE .*\bCURSOR\b|FETCH\b|SET (?:@?\w+"
    r"|VARIABLE .*) = .*\b(?:SELECT|CURSOR)\b|SET .*\( SELECT\b"
    r"|(?:SELECT|WITH) .*\b(?:BULK COLLECT INTO|INTO @\w+|INTO : ?\w+)|LET \w+ (?:CURSOR|RESULTSET)\b)",
    "a statement is built at run time": r"EXEC(?:UTE)? (?:\(|@)",
    "a statement is prepared here and runs elsewhere": r"PREPARE\b",
    "the rows of a dictionary come from its source": rf"{_MADE}DICTIONARY\b|EXCHANGE DICTIONARIES\b",
    "the query of a view is replaced": r"ALTER (?:\w+ )?(?:VIEW|TABLE) .*\bMODIFY QUERY\b",
}
"""What a statement does, by its words in capitals (`words_of`)."""
_KNOWN = {what: re.compile(form) for what, form in _MOVES.items()}
_RUN = re.compile(
    r"\s*EXEC(?:UTE)?\s+(?:FUNCTION\s+|PROCEDURE\s+)?(?:@\w+\s*=\s*)?(?!IMMEDIATE\b|AS\b"
    r"|TASK\b)(?P<name>\[?[^\W\d][\w$]*\]?(?:\.{1,2}\[?[^\W\d][\w$]*\]?)*)",
    re.IGNORECASE,
)


def reason_of(text: str, otherwise: str) -> str:
    """Why a statement is not followed: what it does, where that is known, and which tables it names."""
    words = words_of(text)
    run = _RUN.match(text)
    if run is not None:
        return f"the reads and writes of the procedure or prepared statement {run['name']} are not known"
    what = next((what for what, form in _KNOWN.items() if form.match(words)), None)
    return naming(otherwise if what is None else f"{what}, which lineage does not follow", text)
