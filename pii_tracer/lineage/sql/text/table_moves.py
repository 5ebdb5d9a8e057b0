"""Statements that move whole tables, in forms the parser does not read: exports, imports, renames, exchanges.

Each form is one row of `_FORMS`: how it is written, and which of its two names the data comes from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from pii_tracer.lake.formats.registry import table_formats
from pii_tracer.lineage.sql.statement_effects import Effect
from pii_tracer.lineage.sql.text.table_name_pattern import TABLE

_PATH = r"'(?P<path>[^']*)'"
_PARTITION = r"(?:(?:SUB)?PARTITION\s*(?:\([^)]*\)|\w+)\s*)?"


@dataclass(frozen=True)
class Move:
    """All columns of `source` come to `target`. Names are as written; a path is without its quotes.

    only, without: the columns of the source that come, or that do not, where the statement lists them. versions: what
    says since when a row of the target holds, where it keeps versions; empty if it keeps none. fixed: the columns of
    the partition that comes, with their constants. swapped: whether the definitions of both go along with the rows.
    as_it_is: whether files change their table and are not written again, so that both have to have the same columns.
    """

    effect: Effect
    source: str
    target: str
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    versions: str = ""
    fixed: tuple[tuple[str, str], ...] = ()
    swapped: bool = False
    as_it_is: bool = False


@dataclass(frozen=True)
class _Form:
    pattern: re.Pattern[str]
    effect: Effect
    ways: tuple[tuple[str, str], ...]
    """(source, target) groups of the pattern."""
    dialects: frozenset[str] | None
    """Where it is written so; None: everywhere."""
    by_name: bool
    """Whether columns go where the same names are."""

    @property
    def swaps(self) -> bool:
        """Whether two tables take each other's name. Where rows are appended, partitions change their table."""
        return len(self.ways) > 1 and self.effect is Effect.REPLACE


def _form(
    pattern: str,
    effect: Effect,
    *ways: tuple[str, str],
    dialects: frozenset[str] | None = None,
    by_name: bool = False,
) -> _Form:
    return _Form(re.compile(rf"^\s*{pattern}", re.IGNORECASE | re.DOTALL), effect, ways, dialects, by_name)


_A, _B = rf"(?P<a>{TABLE})", rf"(?P<b>{TABLE})"
_ITS_NAME = r"(?:ID\s+)?(?:'[^']*'|\([^()]*\)|\w+)"
_EXCHANGE = rf"ALTER\s+TABLE\s+{_A}\s+EXCHANGE\s+{_PARTITION}WITH\s+TABLE\s+{_B}"
_FORMS = (
    # https://cwiki.apache.org/confluence/display/Hive/LanguageManual+ImportExport
    _form(rf"EXPORT\s+TABLE\s+{_A}\s*{_PARTITION}TO\s+{_PATH}", Effect.REPLACE, ("a", "path")),
    _form(
        rf"IMPORT\s+(?:EXTERNAL\s+)?TABLE\s+{_A}\s*(?P<part>{_PARTITION})FROM\s+{_PATH}", Effect.REPLACE, ("path", "a")
    ),
    # Hive moves the partition from the table named last; other engines exchange it
    _form(_EXCHANGE, Effect.APPEND, ("b", "a"), dialects=frozenset({"hive", "spark", "databricks", "spark2"})),
    _form(_EXCHANGE, Effect.APPEND, ("b", "a"), ("a", "b")),
    # ClickHouse and MySQL exchange, T-SQL moves
    _form(rf"EXCHANGE\s+TABLES\s+{_A}\s+AND\s+{_B}", Effect.REPLACE, ("a", "b"), ("b", "a")),
    _form(rf"ALTER\s+TABLE\s+{_A}\s+SWITCH\s+{_PARTITION}TO\s+{_B}", Effect.APPEND, ("a", "b")),
    _form(rf"ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?{_A}\s+SWAP\s+WITH\s+{_B}", Effect.REPLACE, ("a", "b"), ("b", "a")),
    _form(rf"RENAME\s+(?:TABLE\s+)?(?:IF\s+EXISTS\s+)?{_A}\s+TO\s+{_B}\s*$", Effect.RENAME, ("a", "b")),
    # https://docs.aws.amazon.com/redshift/latest/dg/r_ALTER_TABLE_APPEND.html
    _form(rf"ALTER\s+TABLE\s+{_A}\s+APPEND\s+FROM\s+{_B}", Effect.APPEND, ("b", "a"), by_name=True),
    # https://docs.databricks.com/aws/en/ldp/developer/ldp-sql-ref-apply-changes-into
    _form(
        rf"(?:APPLY\s+CHANGES|(?:CREATE\s+FLOW\s+{TABLE}\s+AS\s+)?AUTO\s+CDC(?:\s+ONCE)?)\s+INTO\s+{_A}\s+"
        rf"FROM\s+(?:STREAM(?:\s*\(\s*|\s+(?!KEYS\b)))?(?!(?:SELECT|WITH|STREAM(?!\s+KEYS))\b){_B}"
        r"(?![^\s`();,\"\[]|\s*\()",
        Effect.CHANGE,
        ("b", "a"),
    ),
    # https://clickhouse.com/docs/sql-reference/statements/alter/partition
    _form(
        rf"ALTER\s+TABLE\s+{_A}\s+(?:REPLACE|ATTACH)\s+PARTITION\s+{_ITS_NAME}\s+FROM\s+{_B}\s*$",
        Effect.APPEND,
        ("b", "a"),
        dialects=frozenset({"clickhouse"}),
    ),
    _form(
        rf"ALTER\s+TABLE\s+{_A}\s+MOVE\s+PARTITION\s+{_ITS_NAME}\s+TO\s+TABLE\s+{_B}\s*$",
        Effect.APPEND,
        ("a", "b"),
        dialects=frozenset({"clickhouse"}),
    ),
    _form(
        rf"CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_A}\s+CLONE\s+AS\s+{_B}(?:\s+ENGINE\b.*)?$",
        Effect.CLONE,
        ("b", "a"),
        dialects=frozenset({"clickhouse"}),
    ),
    # a second name for a table
    _form(
        rf"CREATE\s+(?:OR\s+REPLACE\s+)?(?:PUBLIC\s+)?(?:SYNONYM|ALIAS)\s+{_A}\s+FOR\s+(?:TABLE\s+)?{_B}\s*$",
        Effect.VIEW,
        ("b", "a"),
    ),
    _form(
        rf"CREATE\s+(?:OR\s+(?:REPLACE|ALTER)\s+)?STREAM\s+(?:IF\s+NOT\s+EXISTS\s+)?{_A}\s+(?:COPY\s+GRANTS\s+)?"
        rf"ON\s+(?:(?:DYNAMIC\s+|EVENT\s+|EXTERNAL\s+)?TABLE|VIEW)\s+{_B}",
        Effect.VIEW,
        ("b", "a"),
    ),
)
_COLUMNS = re.compile(
    r"\bCOLUMNS\s*(?P<all>\*\s*EXCEPT\s*)?\(?(?P<names>[\w`\s,]+?)(?:\)|\bSTORED\b|\bTRACK\b|$)", re.IGNORECASE
)
_SEQUENCE = re.compile(
    r"\bSEQUENCE\s+BY\s+(?P<by>.+?)\s*(?:\b(?:COLUMNS|STORED|TRACK)\b|;|$)", re.IGNORECASE | re.DOTALL
)
_KEEPS_VERSIONS = re.compile(r"\bSTORED\s+AS\s+SCD\s+TYPE\s+2\b", re.IGNORECASE)
_FIXED = re.compile(r"`?(?P<column>\w+)`?\s*=\s*(?P<quote>['\"]?)(?P<value>[^,'\")]*)(?P=quote)")
_NOTHING_NEW = re.compile(
    rf"^\s*(?:RESTORE\s+(?:TABLE\s+)?{TABLE}\s+TO|UNDROP|REFRESH\s+MATERIALIZED\s+VIEW)\b",
    re.IGNORECASE,
)


@cache
def _conversions() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """By format: its statement that takes over a folder of Parquet files, which are the same under a new log.

    One about a table that has a name makes nothing new.
    https://docs.databricks.com/aws/en/sql/language-manual/delta-convert-to-delta
    """
    names = [one.name.value for one in table_formats() if one.takes_over_folders]
    form = r"^\s*CONVERT\s+TO\s+{}\b(?:\s+(?P<source>parquet\.(?P<folder>`[^`]*`)))?"
    return tuple((name, re.compile(form.format(name), re.IGNORECASE)) for name in names)


def _listed(move: Move, rest: str) -> Move:
    """What APPLY CHANGES says of the columns behind the names of its tables."""
    if move.effect is not Effect.CHANGE:
        return move
    listed, sequence = _COLUMNS.search(rest), _SEQUENCE.search(rest)
    names = tuple(n.strip().strip("`") for n in listed["names"].split(",")) if listed is not None else ()
    versions = sequence["by"] if sequence is not None and _KEEPS_VERSIONS.search(rest) else ""
    if listed is not None and listed["all"]:
        return replace(move, without=names, versions=versions)
    return replace(move, only=names, versions=versions)


def moves_of(text: str, dialect: str) -> tuple[Move, ...] | None:
    """The moves of a statement of these forms; empty when it brings no other table's data; None for any other."""
    for form in _FORMS:
        found = form.pattern.match(text) if form.dialects is None or dialect in form.dialects else None
        if found:
            names = {k: v for k, v in found.groupdict().items() if v is not None}
            fixed = tuple((one["column"], one["value"]) for one in _FIXED.finditer(names.get("part", "")))
            same = form.effect is Effect.APPEND and not form.by_name
            moves = [
                Move(form.effect, names[a], names[b], fixed=fixed, swapped=form.swaps, as_it_is=same)
                for a, b in form.ways
            ]
            return tuple(_listed(move, text[found.end() :]) for move in moves)
    for name, conversion in _conversions():
        if found := conversion.match(text):
            source = found["source"]
            return (Move(Effect.CLONE, source, f"{name}.{found['folder']}"),) if source else ()
    return () if _NOTHING_NEW.match(text) else None
