"""Forms that the parser does not read and that need more than a pattern, as others with the same lineage.

Asked only where a statement did not parse, with texts and quoted names set aside.
"""

from __future__ import annotations

import re

from pii_tracer.lineage.sql.text.parentheses import end_of
from pii_tracer.lineage.sql.text.pivot_statements import as_operators
from pii_tracer.lineage.sql.text.procedure_bodies import T_SQL

_PIPE = re.compile(r"\|>\s*(?P<operator>SET|DROP|RENAME)\s", re.IGNORECASE)
_SET = re.compile(r"\s*(?P<column>[\w\x00]+)\s*=\s*(?P<value>.+?)\s*", re.DOTALL)
_RENAMED = re.compile(r"\s*(?P<old>[\w\x00]+)\s+(?:AS\s+)?(?P<new>[\w\x00]+)\s*", re.IGNORECASE)
_TABLE_OF = re.compile(
    r"\s*CREATE\s+(?:(?:GLOBAL|PRIVATE)\s+TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[\w.$#\x00]+\s*\(",
    re.IGNORECASE,
)
_SEGMENTS = re.compile(
    r"(?:\s*(?:(?:TABLESPACE|FLASHBACK\s+ARCHIVE|FOR\s+SERVICE)\s+[\w\x00]+|STORAGE\s*\([^()]*\)|RESULT_CACHE\s*\([^()]*\)"
    r"|ON\s+COMMIT\s+(?:(?:DELETE|PRESERVE)\s+ROWS|(?:DROP|PRESERVE)\s+DEFINITION)|(?:MEMCOMPRESS|DUPLICATE|PRIORITY|DISTRIBUTE|SEGMENT|CREATION|IMMEDIATE|DEFERRED"
    r"|PCTFREE|PCTUSED|INITRANS|MAXTRANS|(?:NO)?LOGGING|FILESYSTEM_LIKE_LOGGING|(?:NO)?COMPRESS|(?:NO\s+)?INMEMORY|NO|FOR|QUERY|ARCHIVE|DML|CAPACITY|LOW|MEDIUM"
    r"|HIGH|CRITICAL|NONE|ALL|BY|AUTO|ROWID|RANGE|PARTITION|SUBPARTITION|DEFAULT|BASIC|ADVANCED|OLTP|(?:ROW|COLUMN)\s+STORE|ROW\s+LEVEL\s+LOCKING"
    r"|(?:NO)?CACHE|(?:NO)?MONITORING|(?:NO)?ROWDEPENDENCIES|(?:NO)?PARALLEL|ROW\s+MOVEMENT|ENABLE|DISABLE|\d+)\b))*\s*",
    re.IGNORECASE,
)
_CHECKED = re.compile(
    r"(?<=[\w)\x00])\s+(?:"
    r"(?:NOT\s+)?DEFERRABLE|INITIALLY\s+(?:DEFERRED|IMMEDIATE)|(?:ENABLE|DISABLE)(?:\s+(?:NO)?VALIDATE)?|(?:NO)?RELY"
    r"|(?:NO)?VALIDATE|(?:NOT\s+)?ENFORCED|ON\s+(?:DELETE|UPDATE)\s+NO\s+ACTION|MATCH\s+(?:FULL|PARTIAL|SIMPLE)"
    r")(?=\s|[,)]|$)",
    re.IGNORECASE,
)
"""How the constraints of a table are checked."""
_CONSTRAINED = frozenset(
    {"oracle", "hive", "spark", "databricks", "snowflake", "tsql", "postgres", "mysql", "redshift"}
)
_DEFINES_TABLE = re.compile(r"\s*(?:CREATE|ALTER)\b(?:(?!\b(?:AS|SELECT)\b).)*\bTABLE\b(?!.*\bSELECT\b)", re.I | re.S)
_CHANGED = re.compile(r"\b(?:FINAL|NEW|OLD)\s+TABLE\s*\((?=\s*(?:INSERT|UPDATE|DELETE|MERGE)\b)", re.IGNORECASE)
_NAME = r"[\w.$#\x00]+"
_THROUGH = re.compile(
    rf"^(\s*INSERT\s+INTO)\s*\(\s*SELECT\s+([\w\x00]+(?:\s*,\s*[\w\x00]+)*)\s+FROM\s+({_NAME})"
    r"(?:\s+WHERE\s+(?:(?!\b(?:SELECT|GROUP|CONNECT)\b)[^()]|\([^()]*\))*)?\s*\)",
    re.IGNORECASE,
)
_LOGGED = re.compile(
    rf"^(?P<insert>\s*INSERT)\s+(?P<place>INTO\s+(?P<table>{_NAME})\s*(?P<columns>\([^()]*\)))\s*(?P<query>\(?\s*(?:SELECT|WITH)\b.*?)"
    rf"\s+LOG\s+ERRORS(?:\s+INTO\s+(?P<log>{_NAME}))?(?:\s*\([^()]*\))?(?:\s+REJECT\s+LIMIT\s+(?:UNLIMITED|\d+))?\s*$",
    re.IGNORECASE | re.DOTALL,
)

_EXPECTS = re.compile(r",?\s*CONSTRAINT\s+[\w\x00]+\s+EXPECT\s*\(", re.IGNORECASE)
_VIOLATED = re.compile(r"\s*ON\s+VIOLATION\s+(?:DROP\s+ROW|FAIL\s+UPDATE)", re.IGNORECASE)
_MADE_OF = re.compile(r"\bAS\s+(?=SELECT\b|WITH\b|FROM\b)", re.IGNORECASE)
_NO_COLUMNS = re.compile(r"\(\s*\)\s*$")
_WINDOW_OF = re.compile(
    rf"\bTABLE\s*\(\s*(?:TUMBLE|HOP|CUMULATE|SESSION)\s*\(\s*(?:DATA\s*=>\s*)?TABLE\s+(?P<table>{_NAME})"
    r"(?:\s+PARTITION\s+BY\s+[^(),]+)?\s*,\s*(?:TIMECOL\s*=>\s*)?DESCRIPTOR\s*\(\s*(?P<time>[\w\x00]+)\s*\)[^()]*\)\s*\)",
    re.IGNORECASE,
)

_DEFAULT = re.compile(
    rf"^(?P<table>\s*ALTER\s+TABLE\s+{_NAME}\s+)(?:WITH\s+(?:NO)?CHECK\s+)?ADD\s+(?:CONSTRAINT\s+{_NAME}\s+)?DEFAULT\s+"
    rf"(?P<value>[^,]+?)\s+FOR\s+(?P<column>[\w\x00]+)(?:\s+WITH\s+VALUES)?\s*$",
    re.IGNORECASE,
)
"""https://learn.microsoft.com/en-us/sql/t-sql/statements/alter-table-table-constraint-transact-sql"""


def rewritten(text: str, dialect: str) -> str:
    """The statement in a form that the parser reads; the same text where nothing of this kind is in it."""
    text = _piped(text, dialect)
    if dialect in _CONSTRAINED and _DEFINES_TABLE.match(text):
        text = _CHECKED.sub(" ", text)
    if dialect == "duckdb":
        text = as_operators(text)
    if dialect == "":
        text = _windows(_changed(text))
    if dialect == "databricks":
        text = _expected(text)
    if dialect in T_SQL:
        text = _DEFAULT.sub(r"\g<table>ALTER COLUMN \g<column> SET DEFAULT \g<value>", text)
    if dialect == "oracle":
        text = _stored(_logged(_THROUGH.sub(r"\1 \3 (\2)", text)))
    return text


def _listed(text: str) -> list[str]:
    """The items of a list, at the commas outside of parentheses."""
    items, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            items.append("")
        else:
            items[-1] += letter
    return items


def _piped(text: str, dialect: str) -> str:
    """`|> SET`, `|> DROP` and `|> RENAME` as `|> SELECT *` with what they change
    (https://cloud.google.com/bigquery/docs/reference/standard-sql/pipe-syntax).

    In Spark each assignment sees those before it
    (https://spark.apache.org/docs/latest/sql-pipe-syntax.html); in BigQuery none does.
    """
    found = _PIPE.search(text)
    while found is not None:
        end = end_of(text, found.end(), piped=True)
        items = _listed(text[found.end() : end])
        operator = found["operator"].upper()
        if operator == "DROP":
            made = f"|> SELECT * EXCEPT ({', '.join(i.strip() for i in items)}) "
        else:
            pattern, form = (_SET, "{value} AS {column}") if operator == "SET" else (_RENAMED, "{old} AS {new}")
            parts = [pattern.fullmatch(item) for item in items]
            if not all(parts):
                return text
            changes = [form.format(**part.groupdict()) for part in parts if part is not None]
            word = "REPLACE" if operator == "SET" else "RENAME"
            several = changes if operator == "SET" and dialect != "bigquery" else [", ".join(changes)]
            made = "".join(f"|> SELECT * {word} ({change}) " for change in several)
        text = text[: found.start()] + made + text[end:]
        found = _PIPE.search(text, found.start() + len(made))
    return text


def _expected(text: str) -> str:
    """Expectations of a pipeline's table: a row that does not meet one may be left out, so they decide about rows
    (https://docs.databricks.com/aws/en/ldp/expectations).
    """
    conditions: list[str] = []
    found = _EXPECTS.search(text)
    while found is not None:
        end = end_of(text, found.end())
        conditions.append(text[found.end() : end])
        violated = _VIOLATED.match(text, end + 1)
        text = text[: found.start()] + text[violated.end() if violated else end + 1 :]
        found = _EXPECTS.search(text)
    query = _MADE_OF.search(text) if conditions else None
    if query is None:
        return text
    head = _NO_COLUMNS.sub(" ", text[: query.start()])
    where = " AND ".join(f"({condition})" for condition in conditions)
    return "".join((head, "AS SELECT * FROM (", text[query.end() :], ") AS expected_rows WHERE ", where))


def _windows(text: str) -> str:
    """Flink's table functions of windows: the rows of the table with the window's times
    (https://nightlies.apache.org/flink/flink-docs-stable/docs/dev/table/sql/queries/window-tvf/).
    """
    made = r"(SELECT *, \g<time> AS window_start, \g<time> AS window_end, \g<time> AS window_time FROM \g<table>)"
    return _WINDOW_OF.sub(made, text)


def _stored(text: str) -> str:
    """Oracle's CREATE TABLE without what says how its segments are stored, behind its columns, if all of it is known
    (https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CREATE-TABLE.html).
    """
    found = _TABLE_OF.match(text)
    if found is None:
        return text
    end = end_of(text, found.end()) + 1
    return text[:end] if _SEGMENTS.fullmatch(text, end) else text


def _changed(text: str) -> str:
    """DB2's rows that a write in FROM has changed, as rows that a write in WITH returns
    (https://www.ibm.com/docs/en/db2/11.5?topic=statement-table-reference).
    """
    found = _CHANGED.search(text)
    if found is None or re.match(r"\s*WITH\b", text, re.IGNORECASE) or _CHANGED.search(text, found.end()):
        return text
    end = end_of(text, found.end())
    write, name = text[found.end() : end], "changed_rows"
    return f"WITH {name} AS ({write} RETURNING *) {text[: found.start()]}{name}{text[end + 1 :]}"


def _logged(text: str) -> str:
    """Oracle's LOG ERRORS: rows that the table refuses go into another, under the same names
    (https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/INSERT.html).
    """
    found = _LOGGED.match(text)
    if found is None:
        return text
    *schema, table = found["table"].split(".")
    log = found["log"] or ".".join((*schema, f"ERR$_{table[:25]}"))
    return f"{found['insert']} ALL {found['place']} INTO {log} {found['columns']} {found['query']}"
