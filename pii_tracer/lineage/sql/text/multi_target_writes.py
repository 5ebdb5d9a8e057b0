"""One statement that writes to several tables, as one statement for each of them.

Writes inside WITH clauses (https://www.postgresql.org/docs/current/queries-with.html#QUERIES-WITH-MODIFYING), rows that
T-SQL's OUTPUT puts into another table (https://learn.microsoft.com/sql/t-sql/queries/output-clause-transact-sql), and
ClickHouse's materialised views TO a table (https://clickhouse.com/docs/sql-reference/statements/create/view).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from sqlglot import exp

_WRITES = (exp.Insert, exp.Update, exp.Delete, exp.Merge)


def hoisted(node: exp.Expression) -> list[exp.Expression]:
    """The statement as statements that write to one table each, in the order in which they read each other's rows."""
    if isinstance(node, exp.Create | exp.Alter):
        return [one for part in _filled(node) for one in _kept_old(part)]
    return [one for part in _of_with(node) for split in _by_table(part) for one in _put_out(split)]


def _by_table(node: exp.Expression) -> list[exp.Expression]:
    """MySQL's UPDATE of joined tables, as one of each table that a column is set of
    (https://dev.mysql.com/doc/refman/8.4/en/update.html).
    """
    joins = node.this.args.get("joins") if isinstance(node, exp.Update) and isinstance(node.this, exp.Table) else None
    joined = {j.this.alias_or_name.lower(): n for n, j in enumerate(joins or ()) if isinstance(j.this, exp.Table)}
    result = [node]
    for name, number in joined.items():
        own = [e for e in node.expressions if isinstance(e.this, exp.Column) and e.this.table.lower() == name]
        if own and name != node.this.alias_or_name.lower():
            result.append(_turned(node, number, own))
            node.set("expressions", [e for e in node.expressions if not any(e is o for o in own)])
    return [one for one in result if one is not node or one.expressions or len(result) == 1]


def _turned(node: exp.Expression, number: int, own: list[exp.Expression]) -> exp.Expression:
    """The same UPDATE of another one of the joined tables."""
    joins = [j.copy() for j in node.this.args["joins"]]
    chosen = joins.pop(number)
    table, before = chosen.this, node.this.copy()
    before.set("joins", None)
    table.set("joins", [exp.Join(this=before, using=chosen.args.get("using")), *joins])
    conditions = [
        c.copy() for c in (chosen.args.get("on"), node.args["where"].this if node.args.get("where") else None) if c
    ]
    turned = exp.Update(this=table, expressions=[e.copy() for e in own])
    if conditions:
        turned.set("where", exp.Where(this=exp.and_(*conditions)))
    if node.args.get("with_") is not None:
        turned.set("with_", node.args["with_"].copy())
    return turned


def _of_with(node: exp.Expression) -> list[exp.Expression]:
    """The writes of the WITH clause, in order, and the statement itself, which reads what they return as a query."""
    clause = node.args.get("with_")
    if clause is None or not any(isinstance(cte.this, _WRITES) for cte in clause.expressions):
        return [node]
    result: list[exp.Expression] = []
    before: list[exp.Expression] = []
    for cte in clause.expressions:
        if isinstance(cte.this, _WRITES):
            write = cast(exp.Expression, cte.this.copy())
            if before:
                write.set("with_", exp.With(expressions=[c.copy() for c in before]))
            result.append(write)
            cte.set("this", _returned(cte.this))
        before.append(cte)
    return [*result, node]


def _returned(write: exp.Expression) -> exp.Select:
    """What a write returns: rows of its table, as they are after it (of a DELETE, as they were before)."""
    clause = write.args.get("returning")
    table = write.this.this if isinstance(write.this, exp.Schema) else write.this
    items = [e.copy() for e in clause.expressions] if clause is not None else [exp.Null()]
    if isinstance(write, exp.Merge):  # https://www.postgresql.org/docs/current/sql-merge.html: the source comes first
        return exp.Select(expressions=items).from_(write.args["using"].copy()).join(table.copy(), join_type="cross")
    query = exp.Select(expressions=items).from_(table.copy())
    for other in [*(write.args.get("using") or []), *_from(write)]:
        query = query.join(other.copy(), join_type="cross")
    where = write.args.get("where")
    return query.where(where.this.copy()) if where is not None else query


def _from(write: exp.Expression) -> list[exp.Expression]:
    clause = write.args.get("from_")
    return [clause.this] if clause is not None else []


def _put_out(write: exp.Expression) -> list[exp.Expression]:
    """OUTPUT … INTO: rows as they were before the write go first, as they are after it last."""
    clause = write.args.get("returning") if isinstance(write, _WRITES) else None
    into = _place(clause.args.get("into")) if clause is not None else None
    if clause is None or into is None:
        return [write]
    if isinstance(write, exp.Delete) and not write.this and len(write.args.get("tables") or ()) == 1:
        write.set("this", write.args["tables"][0])  # `DELETE t OUTPUT … WHERE`, without FROM
        write.set("tables", None)
    items = [exp.Literal.string("") if e.name == "$action" else e.copy() for e in clause.expressions]
    rows = exp.Select(expressions=items)
    table = write.this.this if isinstance(write.this, exp.Schema) else write.this
    around = [*_from(write), *_joined(write)]
    called = next(iter(write.args.get("tables") or ()), table).name  # DELETE t OUTPUT … FROM a AS t JOIN b
    query = derived_target(write) if isinstance(write, exp.Update) else None
    if isinstance(query, exp.Lateral):
        return [write]
    alias = next((t for one in (*around, table) for t in one.find_all(exp.Table) if t.alias_or_name == called), table)
    sides = {c.table.lower() for e in clause.expressions for c in e.find_all(exp.Column)} & {"deleted", "inserted"}
    meant = _bare(alias) if query is None else exp.Subquery(this=query.this.copy())
    named = [exp.alias_(meant.copy(), side, table=True) for side in sorted(sides)]
    around += [_alone(table)] if isinstance(write, exp.Delete) and called != table.alias_or_name else []
    others = [o.copy() for o in (*around, write.args.get("using")) if isinstance(o, exp.Expression)]
    for number, source in enumerate((*named, *others)):
        rows = rows.from_(source) if number == 0 else rows.join(source, join_type="cross")
    kept = exp.Insert(this=into, expression=rows)
    if write.args.get("with_") is not None:
        kept.set("with_", write.args["with_"].copy())
    write.set("returning", None)
    return [write, kept] if "inserted" in sides else [kept, write]


def derived_target(write: exp.Expression) -> exp.Subquery | exp.Lateral | None:
    """T-SQL's UPDATE of a query in FROM, by its alias
    (https://learn.microsoft.com/sql/t-sql/queries/update-transact-sql).
    """
    table = write.this
    if not isinstance(table, exp.Table) or table.args.get("db"):  # a name of several parts is no alias
        return None
    named = (one for one in listed(write) if one.alias_or_name.lower() == table.name.lower())
    found = next(named, None)
    return found if isinstance(found, exp.Subquery | exp.Lateral) else None


def listed(write: exp.Expression) -> Iterator[exp.Expression]:
    """What FROM of a write lists and joins, also in parentheses, but not what its queries read."""
    waiting = _from(write)[::-1]
    while waiting:
        source = waiting.pop()
        waiting += [join.this for join in (source.args.get("joins") or ())[::-1]]
        if isinstance(source, exp.Subquery) and not source.alias:
            waiting.append(source.this)
        else:
            yield source


def _alone(table: exp.Expression) -> exp.Expression:
    """A table without those that are joined with it."""
    plain = table.copy()
    plain.set("joins", None)
    return plain


def _joined(write: exp.Expression) -> list[exp.Expression]:
    """The relations that are joined with the table itself."""
    return [join.this for join in write.this.args.get("joins") or () if isinstance(join.this, exp.Expression)]


def _place(into: object) -> exp.Expression | None:
    """The table that OUTPUT writes to, with the columns that it names: the parser takes those for arguments.

    A name of several parts is one name here (`unparsed_clauses`).
    """
    if isinstance(into, exp.Identifier):
        return exp.to_table(into.name, dialect="tsql") if _IN_PARTS & set(into.name) else exp.Table(this=into.copy())
    if isinstance(into, exp.Anonymous):
        columns = into.expressions
        if not columns or not all(isinstance(c, exp.Column) and not c.table for c in columns):
            return None
        name = into.this if isinstance(into.this, exp.Identifier) else exp.to_identifier(into.name)
        return exp.Schema(this=_place(name), expressions=[c.this.copy() for c in columns])
    if isinstance(into, exp.Parameter):  # a variable that is a table
        return exp.Table(this=into.copy())
    return into if isinstance(into, exp.Table) else None


_IN_PARTS = frozenset(".@#[")


def _bare(table: exp.Table) -> exp.Table:
    return exp.Table(**{part: table.args[part].copy() for part in ("this", "db", "catalog") if table.args.get(part)})


def _kept_old(node: exp.Expression) -> list[exp.Expression]:
    """SYSTEM_VERSIONING with a HISTORY_TABLE: rows as they were go there, by name."""
    found = next((p for p in node.find_all(exp.WithSystemVersioningProperty) if isinstance(p.this, exp.Table)), None)
    if found is None:
        return [node]
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    rows = exp.select("*").from_(table.copy())
    kept = exp.Insert(this=found.this.copy(), expression=rows, by_name=True)
    found.pop()
    return [node, kept]


def _filled(node: exp.Create | exp.Alter) -> list[exp.Expression]:
    """CREATE MATERIALIZED VIEW … TO a table: the rows are the table's, by name, and the view shows them. ALTER VIEW …
    AS: the view is made anew.
    """
    if isinstance(node, exp.Alter):
        actions = node.args.get("actions") or []
        if len(actions) == 1 and isinstance(actions[0], exp.Delete):
            # https://clickhouse.com/docs/sql-reference/statements/alter/delete
            return [exp.Delete(this=node.this.copy(), where=actions[0].args["where"].copy())]
        if str(node.args.get("kind")).upper() != "VIEW" or len(actions) != 1 or not isinstance(actions[0], exp.Query):
            return [node]
        return [exp.Create(this=node.this.copy(), kind="VIEW", expression=actions[0].copy())]
    properties = node.args.get("properties")
    to = next((p for p in properties.expressions if isinstance(p, exp.ToTableProperty)), None) if properties else None
    if to is None or not isinstance(to.this, exp.Table) or not isinstance(node.expression, exp.Query):
        return [node]
    insert = exp.Insert(this=to.this.copy(), expression=node.expression.copy(), by_name=True)
    view = exp.Create(this=node.this.copy(), kind="VIEW", expression=exp.select("*").from_(to.this.copy()))
    return [insert, view]
