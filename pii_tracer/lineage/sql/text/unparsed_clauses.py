"""Clauses that the parser does not read, in a form that it reads; asked only where a statement did not parse.

They say how a table is stored, locked, refreshed or checked, and move no data. What decides about rows is kept, as a
clause of its own. Texts and quoted names are set aside first, so that nothing in them is taken for a clause.
"""

from __future__ import annotations

import re

from pii_tracer.lineage.sql.text.rewritten_forms import rewritten

_QUOTED = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|`[^`]*`|\$\$.*?\$\$|--[^\n]*|/\*.*?\*/", re.DOTALL)
_T = r"\x00\d+\x00"
_NAME = rf"(?:[\w.$#@\[\]]|{_T})+"


def _head(kind: str) -> str:
    return (
        rf"(\s*CREATE\s+(?:OR\s+(?:REPLACE|REFRESH)\s+)?{kind}\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}(?:\s*\([^()]*\))?)\s+"
    )


_STORED = (
    r"PARALLEL(?:\s+\d+)?|NOPARALLEL|(?:NO)?LOGGING|(?:NO)?COMPRESS(?:\s+FOR\s+\w+)?|PCTFREE\s+\d+|IGNORE|(?:NO)?CACHE"
    r"|ON\s+COMMIT\s+(?:DROP|(?:DELETE|PRESERVE)\s+ROWS)|TABLESPACE\s+\w+|BACKUP\s+(?:YES|NO)|DISTSTYLE\s+\w+|(?:NO\s+)?INMEMORY"
)
_REFRESHED = (
    rf"{_STORED}|SCHEDULE\s+(?:REFRESH\s+)?(?:EVERY\s+\d+\s+\w+|CRON\s+{_T}(?:\s+AT\s+TIME\s+ZONE\s+{_T})?)"
    rf"|TRIGGER\s+ON\s+UPDATE(?:\s+AT\s+MOST\s+EVERY\s+INTERVAL\s+{_T}?\s*\w+)?|GRACE\s+PERIOD\s+INTERVAL\s+{_T}\s+\w+"
    rf"|FRESHNESS\s*=\s*INTERVAL\s+{_T}\s+\w+|REFRESH_MODE\s*=\s*\w+|BUILD\s+(?:IMMEDIATE|DEFERRED)"
    r"|(?:NEVER\s+)?REFRESH(?:\s+(?:FAST|COMPLETE|FORCE|ON\s+COMMIT|ON\s+DEMAND|WITH\s+(?:ROWID|PRIMARY\s+KEY)))*"
    rf"|(?:ENABLE|DISABLE)\s+QUERY\s+REWRITE|AUTO\s+REFRESH\s+(?:YES|NO)|IN\s+CLUSTER\s+\w+|COMMENT\s+{_T}"
    r"|(?:CLUSTER|PARTITION(?:ED)?)\s+BY\s*\([^()]*\)|DISTRIBUTED\s+BY\s+\w+\([^()]*\)"
)
_VIEW, _FLINK = _head(r"MATERIALIZED\s+VIEW"), _head(r"MATERIALIZED\s+TABLE")
_TABLE, _PLAIN_VIEW = _head(r"(?:\w+\s+)?TABLE"), _head("VIEW")
_DECLARED = (
    r"WITH\s+REPLACE|ON\s+COMMIT\s+(?:PRESERVE|DELETE)\s+ROWS|IN\s+\w+"
    r"|NOT\s+LOGGED(?:\s+ON\s+ROLLBACK\s+(?:PRESERVE|DELETE)\s+ROWS)?"
)
_MORE = r"\b(?:SELECT|FROM|UNION|JOIN|INTO)\b"
_OUTPUT = r"\bOUTPUT\s+(?:(?!\b(?:SELECT|FROM|WHERE|VALUES|INTO|OUTPUT)\b).)*\bINTO\s+"
_RETURNED = r"(?:(?!\b(?:SELECT|FROM|WHERE|VALUES|INTO|OUTPUT|EXEC|EXECUTE|DEFAULT|OPTION|WITH)\b)[^;])*"
_COLUMN_OF = r"(?:(?!\bWHEN\b|\bSELECT\b|\bDELETE\s+WHERE\b|\bLOG\s+ERRORS\b).)*"
_PHYSICAL = (
    r"TABLESPACE\s+\w+|(?:PCTFREE|PCTUSED|INITRANS|MAXTRANS)\s+\d+|STORAGE\s*\([^()]*\)|(?:NO)?LOGGING|(?:NO)?COMPRESS"
    r"|REVERSE|NOSORT|SORT|(?:NO)?PARALLEL(?:\s+\d+)?|COMPUTE\s+STATISTICS|ONLINE|LOCAL|(?:IN)?VISIBLE"
)
_POLICIES = (
    rf"WITH\s+(?:(?:AGGREGATION|JOIN|STORAGE\s+LIFECYCLE|ROW\s+ACCESS|MASKING|PROJECTION)\s+POLICY\s+{_NAME}"
    r"(?:\s+(?:ON|USING|ENTITY\s+KEY|ALLOWED\s+JOIN\s+KEYS)\s*\((?:[^()]|\([^()]*\))*\))*|CONTACT\s*\([^()]*\))"
)
_FILE = (
    rf"^\s*LOAD\s+DATA\s+(?:LOW_PRIORITY\s+|CONCURRENT\s+)?(?:LOCAL\s+)?INFILE\s+({_T})\s+(?:REPLACE\s+|IGNORE\s+)?INTO\s+TABLE"
    rf"\s+({_NAME})(?:\s+CHARACTER\s+SET\s+\w+|\s+(?:FIELDS|COLUMNS|LINES)(?:\s+(?:OPTIONALLY\s+)?(?:TERMINATED|ENCLOSED|ESCAPED"
    rf"|STARTING)\s+BY\s+{_T})+|\s+IGNORE\s+\d+\s+(?:LINES|ROWS))*\s*"
)
"""MySQL's LOAD DATA up to its columns (https://dev.mysql.com/doc/refman/8.4/en/load-data.html)."""
_RULES: tuple[tuple[str, str, frozenset[str] | None], ...] = (
    (rf"^{_VIEW}(?:(?:{_REFRESHED})\s+)+AS\b", r"\1 AS", None),
    (rf"^{_FLINK}(?:(?:{_REFRESHED})\s+)*AS\b", r"\1 AS", None),
    (r"^(\s*CREATE\s+(?:OR\s+\w+\s+)?)MATERIALIZED\s+TABLE\b", r"\1TABLE", None),
    (rf"^{_TABLE}(?:(?:{_STORED})\s+)+AS\b", r"\1 AS", None),
    (rf"^{_PLAIN_VIEW}WITH\s*\((?:\s*\w+(?:\s*=\s*\w+)?\s*,?)*\)\s+AS\b", r"\1 AS", None),
    (r"^(\s*CREATE\s+(?:OR\s+\w+\s+)?)(?:HYBRID|MULTISET|COLUMN|ROW)\s+TABLE\b", r"\1TABLE", None),
    (r"^(\s*CREATE\s+(?:OR\s+\w+\s+)?)(?:(?:LOCAL|GLOBAL|PRIVATE)\s+)?TEMP(?:ORARY)?\s+(?:(?:COLUMN|ROW|READ\s+ONLY)\s+)?"
     r"TABLE\b", r"\1TEMPORARY TABLE", None),
    (rf"^\s*DECLARE\s+GLOBAL\s+TEMPORARY\s+TABLE\b(?P<rest>.*?)(?:\s+(?:{_DECLARED}))*\s*$",
     r"CREATE TEMPORARY TABLE\g<rest>", None),
    (rf"^\s*ALTER\s+(?:TABLE|(?:MATERIALIZED\s+)?VIEW)\s+(?:IF\s+EXISTS\s+)?((?:{_NAME}\.)?(\w+|{_T}))\s+SET\s+SCHEMA\s+(\w+|{_T})"
     r"\s*$", r"ALTER TABLE \1 RENAME TO \3.\2", frozenset({"postgres", "redshift", "duckdb"})),
    (r"^(\s*ALTER)\s+(?:MATERIALIZED\s+VIEW|(?:DYNAMIC|FOREIGN|EXTERNAL|HYBRID)\s+TABLE)\s+(?=(?:IF\s+EXISTS\s+)?"
     rf"{_NAME}\s+RENAME\b)", r"\1 TABLE ", None),
    (r"^(\s*DROP)\s+(?:DYNAMIC|FOREIGN|EXTERNAL|EVENT|HYBRID)\s+TABLE\b", r"\1 TABLE", None),
    (r"^(\s*CREATE\s+(?:OR\s+REPLACE\s+)?)(?:(?:NO\s+FORCE|FORCE|(?:NON)?EDITIONABLE|EDITIONING)\s+)+(?=VIEW\b)", r"\1",
     frozenset({"oracle"})),
    (rf"\bUSING\s+INDEX\b\s*(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|(?:(?:{_PHYSICAL})\s*)+|(?!ENABLE\b|DISABLE\b){_NAME})?",
     " ", frozenset({"oracle"})),
    (_POLICIES, " ", frozenset({"snowflake"})),
    (r"\b(ANTI|SEMI|ANY|ASOF)\s+OUTER\s+JOIN\b", r"\1 JOIN", frozenset({"clickhouse"})),
    (r"\b(LEFT|RIGHT|FULL|INNER)\s+ALL\s+(?:OUTER\s+)?JOIN\b|\bALL\s+(LEFT|RIGHT|FULL|INNER)\s+(?:OUTER\s+)?JOIN\b",
     r"\1\2 JOIN", frozenset({"clickhouse"})),
    (r"\b(JOIN\s+(?:(?!\bJOIN\b|\bON\b).)*?\bUSING)\s+(\w+(?:\s*,\s*\w+)*)\b"
     r"(?=\s*(?:$|\)|(?:WHERE|GROUP|ORDER|LIMIT|SETTINGS|FORMAT|UNION|GLOBAL|LEFT|RIGHT|INNER|FULL|JOIN)\b))",
     r"\1 (\2)", frozenset({"clickhouse"})),
    (r"\bWITH\s*\(\s*INDEX\s*=(?:[^()]|\([^()]*\))*\)", " ", frozenset({"tsql", "fabric"})),
    (r"\bWHERE\s+CURRENT\s+OF\s+(?:GLOBAL\s+)?@?\w+\s*$", " ", None),
    (rf"{_FILE}$", r"COPY \2 FROM \1 WITH (BY_POSITION true)", frozenset({"mysql"})),
    (rf"{_FILE}(\(\s*\w+(?:\s*,\s*\w+)*\s*\))\s*$", r"COPY \2 \3 FROM \1 WITH (BY_POSITION true)",
     frozenset({"mysql"})),
    (r"^(\s*DELETE)\s+(?:(?:LOW_PRIORITY|QUICK|IGNORE)\s+)+", r"\1 ", frozenset({"mysql"})),
    (r"^(\s*)REPLACE\s+(?:LOW_PRIORITY|DELAYED)\s+INTO\b", r"\1INSERT INTO", frozenset({"mysql"})),
    (r"\bWITH\s+(?:(?:CASCADED\s+|LOCAL\s+)?CHECK\s+OPTION|READ\s+ONLY)\b", " ", None),
    (r"\bADD\s+GENERATED\s+(?:ALWAYS|BY\s+DEFAULT)\s+AS\s+IDENTITY(?:\s*\([^()]*\))?",
     "SET DEFAULT nextval('identity')", frozenset({"postgres"})),
    (r"\bOVERRIDING\s+SYSTEM\s+VALUE\b", " ", None),
    (rf"^(\s*INSERT\s+INTO\s+{_NAME})\s+BY\s+POSITION\b", r"\1", frozenset({"duckdb"})),
    # several columns as one name, which `dialect_forms` takes apart
    (rf"\b(SEARCH\s+(?:DEPTH|BREADTH)\s+FIRST\s+BY|CYCLE)\s+(\w+(?:\s*,\s*\w+)+)\s+(?=SET\s+{_NAME})",
     r'\1 "\2" ', None),
    (r"(\bLIMIT\s+\d+(?:\s*,\s*\d+|\s+OFFSET\s+\d+)?\s+BY\s+[\w.]+(?:\s*,\s*[\w.]+)*)\s+LIMIT\s+\d+"
     r"(?:\s*,\s*\d+|\s+OFFSET\s+\d+)?", r"\1", frozenset({"clickhouse"})),
    (r"\bWITH\s+(?:UR|CS|RS|RR)\s*$", " ", None),
    (r"\)\s*VIRTUAL\b", ")", None),
    (rf"^(\s*INSERT\s+(?:INTO\s+)?{_NAME})\s+WITH\s*\(\s*\w+(?:\s*,\s*\w+)*\s*\)", r"\1 ",
     frozenset({"tsql", "fabric"})),
    # T-SQL's OUTPUT INTO: a name as one quoted name, which `multi_target_writes` takes apart, and behind WHERE. A
    # second OUTPUT returns rows.
    (rf"({_OUTPUT}{_NAME}(?:\s*\([^()]*\))?)\s+OUTPUT\s+{_RETURNED}", r"\1 ", frozenset({"tsql", "fabric"})),
    (rf"({_OUTPUT})(?=[^\s(]*[.@#\[])({_NAME})", r'\1"\2"', frozenset({"tsql", "fabric"})),
    (rf"({_OUTPUT})(\w+)(?=\s*\()", r'\1"[\2]"', frozenset({"tsql", "fabric"})),
    (rf"^(\s*DELETE\s+(?:FROM\s+)?{_NAME})\s+({_OUTPUT}(?:{_NAME}|\"[^\"]*\")(?:\s*\([^()]*\))?)(\s+WHERE\b.*)$",
     r"\1\3 \2", frozenset({"tsql", "fabric"})),
    (r"^(\s*(?:UPDATE|DELETE))\s+TOP\s*\(\s*\d+\s*\)(?:\s+PERCENT)?", r"\1 ", frozenset({"tsql", "fabric"})),
    (r"^(\s*INSERT)\s+(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY)\b", r"\1", frozenset({"mysql"})),
    (r"^\s*REPLACE\s+(?:LOW_PRIORITY\s+|DELAYED\s+)?(?!INTO\b|TABLE\b|VIEW\b)", "INSERT INTO ", frozenset({"mysql"})),
    (rf"\bLOCKING\s+(?:ROW|(?:TABLE\s+|VIEW\s+|DATABASE\s+)?{_NAME})\s+(?:FOR|IN)\s+\w+(?:\s+MODE)?", " ",
     frozenset({"teradata"})),
    (r"^\s*INS\s+(?:INTO\s+)?", "INSERT INTO ", frozenset({"teradata"})),
    (rf"^{_TABLE}(?:IGNORE|REPLACE)\s+(?:AS\s+)?(?=SELECT\b)", r"\1 AS ", frozenset({"mysql"})),
    (r"\bVERSIONS\s+BETWEEN\s+(?:SCN|TIMESTAMP)\s+\S+\s+AND\s+\S+", " ", frozenset({"oracle"})),
    (r"\|>\s*WINDOW\s", "|> EXTEND ", frozenset({"bigquery"})),
    (r"\s+ELSE\s+IGNORE\s*$", "", frozenset({""})),
    # https://docs.aws.amazon.com/redshift/latest/dg/r_MERGE.html: all rows of the source go in, by position
    (rf"^\s*MERGE\s+INTO\s+({_NAME})\s+USING\s+({_NAME})\s+ON\s+((?:(?!\bWHEN\b).)*)\s+REMOVE\s+DUPLICATES\s*$",
     r"INSERT INTO \1 SELECT \2.* FROM \2 LEFT JOIN \1 ON \3", frozenset({"redshift"})),
    (rf"^(\s*(?:SELECT|WITH)\b.*?)\s+INTO\s+OUTFILE\s+({_T})(?:(?!{_MORE}).)*?(\s+FROM\b.*)?$", r"COPY (\1\3) TO \2",
     frozenset({"mysql", "clickhouse", "doris", "starrocks"})),
    (rf"^(\s*UPDATE\s+{_NAME}(?:\s+(?!FROM\b)\w+)?\s+FROM\s+)(\w+)\s+(?=SET\b)", r"\1\2 AS \2 ",
     frozenset({"teradata"})),
    (rf"^\s*ALTER\s+TABLE\s+({_NAME})\s+(?:ON\s+CLUSTER\s+\S+\s+)?UPDATE\s+(?=\w+\s*=)", r"UPDATE \1 SET ",
     frozenset({"clickhouse"})),
    (r"^\s*WITH\s+SESSION\s+[\w.]+\s*=\s*\S+(?:\s*,\s*[\w.]+\s*=\s*\S+)*\s+(?=INSERT\b|CREATE\b|SELECT\b|MERGE\b)", "",
     frozenset({"trino"})),
    (r"(?<=\s)WITH\s+LABEL\s+[\w`]+(?=\s)", "", frozenset({"starrocks", "doris"})),
    (r"^\s*SUBMIT\s+TASK\s+(?:[\w.]+\s+)?AS\s+(?=INSERT\b|CREATE\b)", "", frozenset({"starrocks", "doris"})),
    (r"\s+EMIT\s+ON\s+WINDOW\s+CLOSE\s*$", "", frozenset({"risingwave"})),
    (r"(?<=\))\s*DATA\s+INITIALLY\s+DEFERRED\s+REFRESH\s+(?:DEFERRED|IMMEDIATE)[\w\s]*$", "", frozenset({""})),
    (rf"^{_TABLE}WITH\s*\((?:[^()]|\([^()]*\))*\)\s+AS\b", r"\1 AS", frozenset({"tsql", "fabric"})),
    (r"^(\s*MERGE)\s+TOP\s*\(\s*\d+\s*\)(?:\s+PERCENT)?", r"\1", frozenset({"tsql", "fabric"})),
    (r"^\s*EXECUTE\s+STATEMENT\s+SET\s+BEGIN\s+(?=INSERT\b)", "", frozenset({""})),
    # Oracle's conditions inside MERGE: https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/MERGE.html
    (rf"(?<=\s)DELETE\s+WHERE\s+({_COLUMN_OF})", r" WHEN MATCHED AND (\1) THEN DELETE ", frozenset({"oracle"})),
    (rf"(\bVALUES\s*\((?:[^()]|\([^()]*\))*\))\s*WHERE\s+({_COLUMN_OF})",
     r"\1 WHEN NOT MATCHED AND (\2) THEN DO NOTHING ", frozenset({"oracle"})),
)  # fmt: skip
_READ = tuple((re.compile(p, re.IGNORECASE | re.DOTALL), new, where) for p, new, where in _RULES)


def simpler(text: str, dialect: str) -> str:
    """The statement without clauses that the parser does not know; the same text where there are none."""
    kept: list[str] = []

    def aside(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\x00{len(kept) - 1}\x00"

    masked = _QUOTED.sub(aside, text)
    for pattern, new, dialects in _READ:
        if dialects is None or dialect in dialects:
            masked = pattern.sub(new, masked)
    masked = rewritten(masked, dialect)
    return re.sub(r"\x00(\d+)\x00", lambda found: kept[int(found[1])], masked)
