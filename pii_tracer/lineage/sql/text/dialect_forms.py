"""Parsed statements in the form that rules read: names that the parser leaves in pieces, or in one."""

from __future__ import annotations

import re

from sqlglot import exp

from pii_tracer.lineage.sql.text.current_database import INNER_SCHEMA

_ARROW_IS_JSON = frozenset({"postgres", "redshift", "mysql", "sqlite", "oracle", "tsql", "fabric", "risingwave",
                            "materialize", "singlestore", "doris", "starrocks"})  # fmt: skip
"""Dialects in which `->` takes a member of JSON, and is no lambda."""
_DECORATOR = re.compile(r"(?P<table>.+)\$(?:\d{4,10}|__NULL__|__UNPARTITIONED__)")


def plain(node: exp.Expression, dialect: str) -> exp.Expression:
    """The same statement, changed in place."""
    if dialect == "clickhouse" and isinstance(node, exp.Create):
        _of_the_same_columns(node)
    for select in node.find_all(exp.Select) if dialect in ("tsql", "fabric") else ():
        for item in list(select.expressions):  # `'a' = b`: a name for the column
            if isinstance(item, exp.EQ) and isinstance(item.this, exp.Literal) and item.this.is_string:
                item.replace(exp.alias_(item.expression.copy(), item.this.name, quoted=True))
    for form in reversed(list(node.find_all(exp.ForClause))):  # the inner ones first
        node = _one_text(node, form)
    for item in list(node.find_all(exp.Columns)) if dialect == "duckdb" else ():
        if isinstance(item.parent, exp.Select) and item.arg_key == "expressions" and isinstance(item.this, exp.Star):
            item.replace(item.this)  # https://duckdb.org/docs/stable/sql/expressions/star: the same columns
    if isinstance(node, exp.Update | exp.Delete) and isinstance(node.this, exp.Subquery):
        _through_query(node, node.this)
    for clause in list(node.find_all(exp.With)):
        _searched(clause)
    for part in list(node.find_all(exp.Dot, exp.Table, exp.Lambda, exp.AlterRename, exp.NextValueFor)):
        if isinstance(part, exp.Lambda):
            if dialect in _ARROW_IS_JSON or (dialect == "duckdb" and isinstance(part.this, exp.Literal)):
                node = _extraction(node, part)
        elif isinstance(part, exp.NextValueFor):
            part.replace(exp.Anonymous(this="nextval", expressions=[exp.Literal.string(part.this.sql())]))
        elif isinstance(part, exp.AlterRename):
            _renamed_column(part)
        elif isinstance(part, exp.Dot):
            if isinstance(part.expression, exp.Func):
                _receiver(part.this)
            if not names_table(part):
                _column(part)
        elif part.args.get("db") == "" and dialect in INNER_SCHEMA:
            # https://learn.microsoft.com/sql/t-sql/language-elements/transact-sql-syntax-conventions-transact-sql,
            # https://docs.snowflake.com/en/sql-reference/name-resolution: `db..t` is in the database's own schema
            part.set("db", exp.to_identifier(INNER_SCHEMA[dialect]))
        elif dialect == "bigquery" and isinstance(part.this, exp.Identifier):
            # https://cloud.google.com/bigquery/docs/partitioned-tables: a partition of the table
            found = _DECORATOR.fullmatch(part.name)
            if found:
                part.this.set("this", found["table"])
    return node


def _through_query(node: exp.Update | exp.Delete, place: exp.Subquery) -> None:
    """Oracle's UPDATE and DELETE of a query: as of a common table expression
    (https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/UPDATE.html).
    """
    name = place.alias or "written_through"
    if isinstance(place.this, exp.Query) and node.args.get("with_") is None:
        cte = exp.CTE(this=place.this.copy(), alias=exp.TableAlias(this=exp.to_identifier(name)))
        node.set("with_", exp.With(expressions=[cte]))
        node.set("this", exp.to_table(name))


def _one_text(node: exp.Expression, clause: exp.ForClause) -> exp.Expression:
    """FOR JSON and FOR XML: one text of all rows and columns of the query
    (https://learn.microsoft.com/sql/relational-databases/json/format-query-results-as-json-with-for-json-sql-server).
    """
    query = clause.parent
    if not isinstance(query, exp.Select) or isinstance(query.parent, exp.SetOperation) or query.args.get("into"):
        return node
    if str(clause.args.get("kind")).upper() not in ("JSON", "XML"):
        return node
    rows = query.copy()
    rows.set("for_", None)
    row = exp.Anonymous(this="json_object", expressions=[exp.Star()])
    text = exp.Select(expressions=[exp.ArrayAgg(this=row)]).from_(rows.subquery("rows_of_text", copy=False))
    text.set("with_", rows.args.get("with_"))
    rows.set("with_", None)
    if query is node:
        return text
    query.replace(text)
    return node


def _searched(clause: exp.With) -> None:
    """SEARCH and CYCLE add columns to a recursive query: they are those of a query over it, of the same name.

    https://www.postgresql.org/docs/current/queries-with.html#QUERIES-WITH-RECURSIVE: the order and the path hold the
    values of the columns, the mark is decided by them.
    """
    search = clause.args.get("search")
    if search is None or not clause.expressions:
        return
    name = clause.expressions[-1].alias
    columns = [exp.column(c.strip()) for c in search.this.name.split(",")]
    values = exp.Array(expressions=columns)
    made = [exp.Star(), exp.alias_(values.copy(), search.expression.copy())]
    if str(search.args["kind"]).upper() == "CYCLE":
        mark = exp.Case(ifs=[exp.If(this=exp.Is(this=values.copy(), expression=exp.Null()), true=exp.true())])
        made = [exp.Star(), exp.alias_(mark, search.expression.copy())]
        if isinstance(search.args.get("using"), exp.Identifier):
            made.append(exp.alias_(values, search.args["using"].copy()))
    query = exp.Select(expressions=made).from_(exp.Table(this=exp.to_identifier(name)))
    clause.append("expressions", exp.CTE(this=query, alias=exp.TableAlias(this=exp.to_identifier(name))))
    clause.set("search", None)


def _of_the_same_columns(node: exp.Create) -> None:
    """`CREATE TABLE t AS s` makes an empty table with the columns of `s`; a table function in its place is read from
    (https://clickhouse.com/docs/sql-reference/statements/create/table).
    """
    origin = node.expression
    if node.kind == "TABLE" and isinstance(origin, exp.Table) and isinstance(origin.this, exp.Identifier):
        listed = node.args.get("properties") or exp.Properties(expressions=[])
        node.set("expression", None)
        node.set("properties", exp.Properties(expressions=[*listed.expressions, exp.LikeProperty(this=origin)]))


def _extraction(node: exp.Expression, arrow: exp.Lambda) -> exp.Expression:
    """`f(doc -> 'x')`, which the parser takes for a lambda: a member of the column's JSON."""
    columns = [exp.Column(this=p.copy()) if isinstance(p, exp.Identifier) else p.copy() for p in arrow.expressions]
    value = exp.Anonymous(this="json_extract", expressions=[*columns, arrow.this.copy()])
    if arrow is node:
        return value
    arrow.replace(value)
    return node


def _renamed_column(action: exp.AlterRename) -> None:
    """`ALTER TABLE t RENAME a TO b`: the word COLUMN may be missing."""
    alter = action.parent
    named = [o for o in alter.args.get("options") or () if isinstance(o, exp.ToTableProperty)] if alter else []
    if alter is not None and len(named) == 1:
        alter.set("options", [o for o in alter.args["options"] if o is not named[0]])
        action.replace(exp.RenameColumn(this=exp.column(action.this.this.copy()), to=exp.column(named[0].this.this)))


def is_name(part: exp.Identifier) -> bool:
    """Whether an identifier in an expression is the name of something, and no column: a field, an alias, a parameter
    of the lambda around it.
    """
    parent = part.parent
    if not isinstance(parent, _OF_VALUES) and (type(parent), part.arg_key) not in _VALUES:
        return True
    if (type(parent), part.arg_key) in _NAMING or (isinstance(parent, exp.Dot) and part.arg_key == "expression"):
        return True
    if isinstance(parent, exp.Anonymous) and parent.name.upper() == "VALUES":  # MySQL's row that would come
        return True
    around: exp.Expr | None = parent
    while around is not None and not isinstance(around, exp.Query):
        if isinstance(around, exp.Lambda) and part.name.lower() in {p.name.lower() for p in around.expressions}:
            return True
        if isinstance(around, exp.Comprehension | exp.Pivot):
            return True
        around = around.parent
    return False


_OF_VALUES = (exp.Func, exp.Binary, exp.Paren, exp.Tuple, exp.Unary, exp.Bracket, exp.Where, exp.Having, exp.Ordered)
_VALUES = frozenset({(exp.Select, "expressions"), (exp.Alias, "this"), (exp.Group, "expressions")})
_NAMING = frozenset({(exp.PropertyEQ, "this"), (exp.Collate, "expression"), (exp.XMLElement, "this"),
                     (exp.Kwarg, "this"), (exp.JSONExtract, "expression"), (exp.Unnest, "offset")})  # fmt: skip
"""Where an operator or a function has a name of something."""


def _receiver(value: exp.Expression) -> None:
    """`f(mail).method()`: the parser makes names of the columns in what a method is called on."""
    if isinstance(value, exp.Identifier):
        return  # `_column` knows it
    for name in list(value.find_all(exp.Identifier)):
        if is_name(name):
            continue
        if isinstance(name.parent, exp.Dot) and not isinstance(name.parent.expression, exp.Func):
            continue  # `t.mail`
        name.replace(exp.Column(this=name.copy()))


def names_table(dot: exp.Dot) -> bool:
    """Whether a dotted name is a table's that has many parts."""
    outer: object = dot
    while isinstance(outer, exp.Dot):
        outer = outer.parent
    return isinstance(outer, exp.Table)


def _column(dot: exp.Dot) -> None:
    """`n.c.value(…)`: the name before a method is a column."""
    row = dot.this.unnest() if isinstance(dot.this, exp.Paren) else None
    if isinstance(row, exp.Column) and isinstance(dot.expression, exp.Identifier):  # `(row).a`
        before = dict(zip(("table", "db", "catalog"), (p.copy() for p in reversed(row.parts[-3:])), strict=False))
        dot.replace(exp.Column(this=dot.expression.copy(), **before))
        return
    if not isinstance(dot.this, exp.Identifier) or not isinstance(dot.expression, exp.Identifier):
        if isinstance(dot.this, exp.Identifier) and not isinstance(dot.parent, exp.Dot):
            dot.set("this", exp.Column(this=dot.this.copy()))
        return
    dot.replace(exp.Column(this=dot.expression.copy(), table=dot.this.copy()))
