"""What the columns of a SELECT list are called: aliases that a name may mean, and names that engines give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import exp

from pii_tracer.lineage.sql.relations import Alt, Field
from pii_tracer.lineage.sql.scopes import Scope, shown

_OF_POSTGRES = frozenset({"postgres", "redshift", "materialize", "risingwave"})
_CALLED_LIKE_A_COLUMN = frozenset({*_OF_POSTGRES, "teradata"})
"""Dialects in which `mail (…)` of a column may be `mail`: with a type, a format or a title behind it (Teradata), or of
the row in the parentheses (https://www.postgresql.org/docs/current/rowtypes.html#ROWTYPES-USAGE)."""
_WITHOUT_STREAMS = frozenset({"spark", "spark2", "hive"})
"""Dialects whose parser takes `FROM STREAM t` for a table with an alias
(https://spark.apache.org/docs/latest/declarative-pipelines-programming-guide.html)."""
_NAMED_LATER = frozenset({"clickhouse", "sqlite", ""})
"""Dialects, Flink among those without a name, that call the second of two columns with one name otherwise."""


def aliases_of_columns(node: exp.Select, scope: Scope) -> Iterator[str]:
    """Why a name of the query may mean a column, or an expression of the list: a setting decides
    (https://clickhouse.com/docs/operations/settings/settings#prefer_column_name_to_alias).
    """
    names = [p for p in node.walk() if isinstance(p, exp.Column) and len(p.parts) == 1]
    for item in node.expressions:
        column = next((f for s in scope.sources if (f := s.relation.known(item.alias))), None)
        made = scope.aliases.get(item.alias.lower()) if isinstance(item, exp.Alias) else None
        if made is None or column is None or _columns(made) == _columns(column):
            continue
        own = {id(p) for p in item.walk()}
        if any(p.name == item.alias and id(p) not in own and p.parent_select is node for p in names):
            yield f"the name {shown([item.alias])} may mean the column or an alias of the query"


def called_like_columns(node: exp.Select, scope: Scope, dialect: str) -> Iterator[str]:
    """Why what the parser takes for a function may be a column of that name."""
    for part in (node.args.get("from_"), *(node.args.get("joins") or ())) if dialect in _WITHOUT_STREAMS else ():
        table = part.this if part is not None else None
        if not isinstance(table, exp.Table) or table.name.upper() != "STREAM" or len(table.parts) > 1:
            continue
        if any(s.relation.open for s in scope.sources if table.alias.lower() in s.names):
            yield f"STREAM before {shown([table.alias])} may be a table, or a word of the dialect databricks"
    for call in (call for item in node.expressions for call in item.find_all(exp.Anonymous)):
        may_be = dialect in _CALLED_LIKE_A_COLUMN or call.find(exp.Column) is None
        if may_be and any(s.relation.known(call.name) for s in scope.sources):
            yield f"{shown([call.name])} before parentheses may be a function or the column of that name"


def projected(item: exp.Expression, alts: tuple[Alt, ...], dialect: str) -> Field:
    """A column of a SELECT list under its name, or as the engine calls one that has no alias.

    https://cwiki.apache.org/confluence/display/Hive/LanguageManual+DDL#LanguageManualDDL-CreateTableAsSelect(CTAS);
    FigureColname of PostgreSQL's src/backend/parser/parse_target.c. Elsewhere, and where nothing keeps the column, it
    is called by the text of its expression.
    """
    plain = isinstance(item, exp.Alias | exp.Column | exp.Dot)
    if not plain and _is_read(item) and dialect == "hive":
        return Field(f"_c{item.index or 0}", alts, unnamed=True)
    if not plain and _is_read(item) and dialect in _OF_POSTGRES:
        return Field(_figured(item, dialect) or "?column?", alts, unnamed=True)
    if item.output_name:
        return Field(item.output_name, alts)
    counts = isinstance(item, exp.Count) and isinstance(item.this, exp.Star)
    text = "count(1)" if counts else item.sql(dialect=dialect, normalize_functions="lower")
    return Field(text, alts, unnamed=True)


def _is_read(item: exp.Expression) -> bool:
    """Whether a query around this one, or a table or view that it makes, has its columns by their names."""
    around = item.parent
    while isinstance(around, exp.Select | exp.SetOperation) or (isinstance(around, exp.Subquery) and not around.alias):
        around = around.parent
    return not (around is None or isinstance(around, exp.Insert))


def told_apart(fields: Sequence[Field], dialect: str) -> list[Field]:
    """The columns of a table that a query makes, where DuckDB gives another name to each that has one twice
    (https://duckdb.org/docs/stable/sql/dialect/keywords_and_identifiers#deduplicating-identifiers).
    """
    if dialect != "duckdb":
        return list(fields)
    found: list[Field] = []
    often: dict[str, int] = {}
    for item in fields:
        key = item.name.lower()
        number = often.get(key, 0)
        often[key] = number + 1
        found.append(item.named(f"{item.name}_{number}") if number else item)
    return found


def called_the_same(fields: Sequence[Field], dialect: str) -> Iterator[str]:
    """Columns that the engine calls otherwise, since a column before them has their name."""
    names = [f.name.lower() for f in fields]
    if dialect in _NAMED_LATER and len(set(names)) < len(names):
        yield "several columns of the query have the same name, so their names in the table are not known"


def by_given_names(fields: Sequence[Field], columns: Sequence[str]) -> list[Field]:
    """Columns without an alias as the schema of the table that they make calls them."""
    if len(columns) != len(fields):
        return list(fields)
    return [f.named(c) if f.unnamed else f for f, c in zip(fields, columns, strict=True)]


def _columns(item: Field) -> set[tuple[str, str]]:
    return {(dep.table, dep.column) for dep in item.deps()}


def _figured(item: exp.Expression, dialect: str) -> str:
    """PostgreSQL's name of an expression; empty where it has none of its own."""
    while isinstance(item, exp.Paren | exp.Collate | exp.Window | exp.Filter | exp.WithinGroup | exp.IgnoreNulls):
        item = item.this
    if isinstance(item, exp.Column | exp.Dot | exp.Bracket):
        return item.output_name or _figured(item.this, dialect)
    if isinstance(item, exp.Cast):
        return _figured(item.this, dialect) or item.to.sql(dialect).lower().split("(")[0]
    if isinstance(item, exp.Case):
        default = item.args.get("default")
        return _figured(default, dialect) or "case" if isinstance(default, exp.Expression) else "case"
    if isinstance(item, exp.Subquery):
        first = item.this.selects[0] if item.this.selects else None
        return "" if first is None else first.alias or _figured(first, dialect)
    if isinstance(item, exp.Binary | exp.Unary | exp.Literal | exp.Between | exp.In):
        return ""
    written = re.match(r"(?:\w+\.)*(\w+)\s*[(\[]", item.sql(dialect))
    return written[1].lower() if written is not None else ""
