"""Statements that write: one function per kind, from the parsed statement to drafts of writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sql.column_placement import partition_columns, partition_values, placed
from pii_tracer.lineage.sql.from_clauses import Ctes
from pii_tracer.lineage.sql.multi_inserts import inserts
from pii_tracer.lineage.sql.queries import Query
from pii_tracer.lineage.sql.relations import Field, Relation, constant, limited
from pii_tracer.lineage.sql.scopes import Scope, Source, of_other_rows, shown
from pii_tracer.lineage.sql.statement_effects import Draft, Effect, by_name
from pii_tracer.lineage.sql.statements.computed_columns import with_computed
from pii_tracer.lineage.sql.statements.filled_columns import DEFAULT, with_values
from pii_tracer.lineage.sql.text.table_names import path_table

BARE = "lineage_out"
"""The output of a query that writes nowhere (a stable interface)."""


def drafted(query: Query, effect: Effect, target: str | None, relation: Relation, fields: list[Field]) -> Draft:
    """A write with what is unknown about it declared."""
    unknown = () if query.findings.opaque and not relation.fields else tuple(dict.fromkeys(relation.bases()))
    if unknown and [f.name for f in fields] != [f.name for f in relation.fields]:
        unknown = ()
    for table in unknown:
        query.findings.doubt(f"the columns of {table} are not known: add its schema to the lineage sources")
    return Draft(effect, target, fields, unknown)


def selected(query: Query, node: exp.Expression) -> Draft:
    """A query that writes nowhere, or SELECT … INTO."""
    into = _into(node)
    relation = query.relation(node)
    if into is not None:
        draft = drafted(query, Effect.REPLACE, query.target(into.this), relation, list(relation.fields))
        draft.fresh = True
        return draft
    return drafted(query, Effect.QUERY, BARE, relation, list(relation.fields))


def cached(query: Query, node: exp.Cache) -> Draft:
    """CACHE TABLE … AS: a view of the session; without a query it keeps a table's rows in memory."""
    name = query.target(node.this)
    if node.expression is None:
        return Draft(Effect.NONE, None)
    relation = query.relation(node.expression)
    return drafted(query, Effect.TEMPORARY, name, relation, list(relation.fields))


def _into(node: exp.Expression) -> exp.Into | None:
    """SELECT … INTO, of a set operation in its first SELECT."""
    while isinstance(node, exp.SetOperation | exp.Subquery):
        node = cast(exp.Expression, node.this)
    into = node.args.get("into")
    return into if isinstance(into, exp.Into) and isinstance(into.this, exp.Table) else None


def inserted(query: Query, node: exp.Insert) -> Draft:
    """INSERT INTO and OVERWRITE: by position, by name, with a column list, partitions, or into a directory."""
    place = node.this
    table = place.this if isinstance(place, exp.Schema) else place
    columns = _listed(query, place) if isinstance(place, exp.Schema) else []
    body = node.expression
    if body is None and isinstance(node.args.get("source"), exp.Expression):
        body = node.args["source"]
    if body is not None:
        _with_outer(node.args.get("with_"), body)
    effect = Effect.REPLACE if node.args.get("overwrite") else Effect.APPEND
    relation = query.relation(body) if body is not None else Relation([])
    if body is None and node.args.get("default"):  # DEFAULT VALUES
        return Draft(effect, query.target(table), ways=[()])
    if isinstance(table, exp.Directory):
        target = path_table(table.this.name.rstrip("/"))
        query.names.pair(target, format_of([node.args.get("stored")]))
        return drafted(query, effect, target, relation, list(relation.fields))
    if not isinstance(table, exp.Table):
        query.findings.opaque = True
        query.findings.doubt("what INSERT writes to is not named")
        return Draft(effect, None)
    target = query.target(table, query.ctes_of(node))
    if body is not None and _mentions(query, body, target) > 1:  # joined with itself: a row has values of others
        joined = Source((), relation)
        of_other_rows(joined, target)
        relation = joined.relation
    static, dynamic = _partitions(table, query.dialect)
    known = [c for c, _ in query.names.columns(target)]
    loose = not columns and query.names.loose(target)
    if not columns and known:
        fixed = {n.lower() for n in (*static, *dynamic)}
        columns = [c for c in known if c.lower() not in fixed] + list(dynamic)
        if len(columns) > len(relation.fields):
            made = {c.lower() for c, _ in query.names.computed(target)}
            columns = [c for c in columns if c.lower() not in made]
        if len(columns) > len(relation.fields) and query.dialect in _SKIPS_COUNTED:
            made = {c.lower() for c, constant in query.names.filled(target) if not constant}
            columns = [c for c in columns if c.lower() not in made]
        if query.dialect in _FILLS_LEADING and not relation.open and relation.fields:
            columns = columns[: len(relation.fields)]
    elif not columns and dynamic and not relation.open:
        names = [f.name for f in relation.fields]
        columns = [*names[: len(names) - len(dynamic)], *dynamic]
        query.findings.doubt(
            f"the schema of {target} is not in the lineage sources: lineage uses the column names of the query"
        )
    where = node.args.get("where")
    if where is not None and isinstance(where, exp.Expression):
        scope = Scope(query.findings, [Source((target.lower(),), query.lookup(target))])
        query.findings.note(query.field(where, scope, {}), Subtype.FILTER)
    named = bool(node.args.get("by_name"))
    if query.findings.evolves and known and not named and not loose:  # columns that only the query has are added
        columns = [*columns, *(f.name for f in relation.fields[len(columns) :])]
    fields = placed(query, target, relation, columns, named=named, loose=loose)
    fields += _conflict(query, node, table, target, fields)
    fields = by_name((f.name, f) for f in fields) if node.args.get("conflict") is not None else fields
    draft = drafted(query, effect, target, relation, fields)
    draft.partly = bool(table.args.get("partition") or node.args.get("partition") or where)
    draft.ways = _ways(draft, body, static, query.dialect)
    draft.fields = [*with_computed(query, target, draft.fields), *(constant(n) for n in static)]
    draft.fixed = partition_values(table.args.get("partition"))
    return draft


def _ways(draft: Draft, body: object, static: Sequence[str], dialect: str) -> list[tuple[str, ...]] | None:
    """The columns that rows come with a value for; DEFAULT in VALUES is none."""
    if draft.unknown:
        return None
    filled = set(with_values(draft.fields, dialect)) | {name.lower() for name in static}
    for row in body.expressions if isinstance(body, exp.Values) else ():
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        filled -= {f.name.lower() for f, cell in zip(draft.fields, cells, strict=False) if is_default(cell)}
    return [tuple(sorted(filled))]


def _with_outer(clause: exp.Expression | None, body: exp.Expression) -> None:
    """A query's WITH behind that of the statement around it: it may read what is named there."""
    own = body.args.get("with_")
    if clause is not None and own is not None:
        own.set("expressions", [*clause.expressions, *own.expressions])
        own.set("recursive", bool(own.args.get("recursive") or clause.args.get("recursive")))
    elif clause is not None:
        body.set("with_", clause)


def _mentions(query: Query, body: exp.Expression, table: str) -> int:
    named = (t for t in body.find_all(exp.Table) if isinstance(t.this, exp.Identifier))
    return sum(query.names.of(t) == table for t in named)


def _listed(query: Query, place: exp.Schema) -> list[str]:
    """The columns that an INSERT names, `* EXCEPT (…)` among them; a table may be named by a text there."""
    found: list[str] = []
    for item in place.expressions:
        if isinstance(item, exp.Star) and isinstance(place.this, exp.Table):
            known = [c for c, _ in query.names.columns(query.names.of(place.this))]
            excepted = {e.name.lower() for e in item.args.get("except_") or ()}
            if not known:
                query.findings.doubt(
                    "the columns of `*` are not known: add the schema of its table to the lineage sources"
                )
            found += [c for c in known if c.lower() not in excepted]
        else:
            found.append(item.name)
            if not isinstance(item, exp.Identifier | exp.ColumnDef | exp.Column):
                query.findings.doubt("what INSERT writes to is not named")
    return found


def _conflict(query: Query, node: exp.Insert, table: exp.Expression, target: str, fields: list[Field]) -> list[Field]:
    """ON CONFLICT and ON DUPLICATE KEY: what an existing row takes from the new one, called `excluded`."""
    clause = node.args.get("conflict")
    if clause is None or not clause.expressions:
        return []
    sources = [
        Source(called(table, target), query.lookup(target)),
        Source(("excluded", _new_row(node)), Relation(fields)),
    ]
    scope = Scope(query.findings, sources)
    ctes = query.ctes_of(node.expression if isinstance(node.expression, exp.Expression) else node)
    if clause.args.get("duplicate") and isinstance(node.expression, exp.Select):
        new = Scope(query.findings)  # MySQL: the tables that the new rows come from may be named
        query.from_clause(node.expression, new, ctes)
        scope.outer = new
    for call in list(clause.find_all(exp.Anonymous)) if clause.args.get("duplicate") else ():
        if call.name.upper() == "VALUES" and len(call.expressions) == 1:  # what the new row has in that column
            call.replace(exp.column(call.expressions[0].name, table="excluded"))
    where = clause.args.get("where")
    if where is not None:
        query.findings.note(
            query.field(where.this if isinstance(where, exp.Where) else where, scope, ctes), Subtype.FILTER
        )
    return [f.named(n) for n, f in one_by_one_set(query, clause.expressions, scope, ctes)]


def _new_row(node: exp.Insert) -> str:
    """What MySQL's `VALUES (…) AS new` calls the new row."""
    return node.expression.alias.lower() if isinstance(node.expression, exp.Values) else ""


_FILLS_LEADING = frozenset({"postgres", "redshift", "materialize", "risingwave"})
"""Dialects in which INSERT without a list of columns fills the first ones
(https://www.postgresql.org/docs/current/sql-insert.html)."""
_SKIPS_COUNTED = frozenset({"tsql", "fabric", "redshift"})
"""Dialects in which INSERT without a list of columns passes over identities
(https://learn.microsoft.com/en-us/sql/t-sql/statements/insert-transact-sql)."""
_NAMES_PARTITIONS = frozenset({"oracle", "mysql", "singlestore", "starrocks", "doris"})
"""Dialects in which PARTITION (p) names a partition, and no column
(https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/INSERT.html,
https://dev.mysql.com/doc/refman/8.4/en/partitioning-selection.html,
https://docs.starrocks.io/docs/sql-reference/sql-statements/loading_unloading/INSERT/).
"""


def _partitions(table: exp.Expression, dialect: str) -> tuple[list[str], list[str]]:
    """Names of static and dynamic partition columns."""
    clause = table.args.get("partition")
    dynamic = []
    for item in clause.expressions if clause is not None else ():
        if not isinstance(item, exp.EQ) and dialect not in _NAMES_PARTITIONS:
            dynamic.append(item.name)
    return partition_columns(clause), dynamic


def assignments(query: Query, items: Sequence[exp.Expression], scope: Scope, ctes: Ctes) -> list[tuple[str, Field]]:
    """`SET column = expression`; `(a, b) = (query)` pairs by position.

    A struct's field counts for its column, with the value inside a struct: `contact.email = x` as `struct(x AS email)`.
    """
    pairs: list[tuple[str, Field]] = []
    for item in items:
        left, right = item.this, item.expression
        while isinstance(left, exp.Bracket) and isinstance(
            right, exp.Expression
        ):  # an element: the column has the others as well
            right, left = exp.Array(expressions=[right, *left.expressions]), left.this
        if isinstance(left, exp.Paren):
            left = exp.Tuple(expressions=[left.this])
        if isinstance(left, exp.Tuple):
            pairs += _each(query, left, right, scope, ctes)
        elif is_default(right):
            query.findings.followed.add(id(right))
            pairs.append((_way_of(left, scope)[0], DEFAULT))
        elif not isinstance(left, exp.Column | exp.Dot | exp.Identifier):
            query.findings.doubt(f"lineage does not follow values that are set in a part of kind {left.key.upper()}")
        else:
            column, *fields = _way_of(left, scope)
            if fields and any(column.lower() in s.names for s in scope.sources[1:]):
                query.findings.doubt(f"the statement sets a column of {shown([column])}, but writes to another table")
            for name in reversed(fields):
                part = exp.PropertyEQ(this=exp.to_identifier(name), expression=right)
                right = exp.Struct(expressions=[part])
            pairs.append((column, query.field(right, scope, ctes)))
    return pairs


_ONE_BY_ONE = frozenset({"mysql", "singlestore", "doris", "starrocks"})


def one_by_one_set(query: Query, items: Sequence[exp.Expression], scope: Scope, ctes: Ctes) -> list[tuple[str, Field]]:
    """Assignments; MySQL's see what those before them made (https://dev.mysql.com/doc/refman/8.4/en/update.html)."""
    if query.dialect not in _ONE_BY_ONE:
        return assignments(query, items, scope, ctes)
    pairs: list[tuple[str, Field]] = []
    own = scope.sources[0]
    for item in items:
        made = assignments(query, [item], scope, ctes)
        for name, new in made:
            fields = [new.named(f.name) if f.name.lower() == name.lower() else f for f in own.relation.fields]
            if all(f.name.lower() != name.lower() for f in fields):
                fields.append(new.named(name))
            old = own.relation
            rest, base = ((old,), None) if old.open else (old.rest, old.base)
            own.relation = Relation(fields, rest, base, old.indirect, made=old.made)
        pairs += made
    return pairs


def _each(query: Query, left: exp.Tuple, right: exp.Expression, scope: Scope, ctes: Ctes) -> list[tuple[str, Field]]:
    """`(a, b) = (query)`, `(x, y)` or `ROW(x, y)`: by position."""
    columns = [_way_of(c, scope)[0] for c in left.expressions]
    if isinstance(right, exp.Subquery | exp.Query):
        found = list(query.relation(right, ctes, scope).fields)
    else:
        listed = right.expressions if isinstance(right, exp.Tuple | exp.Anonymous) else [right.unnest()]
        values = [v for v in listed if isinstance(v, exp.Expression)]
        query.findings.followed |= {id(v) for v in values if is_default(v)}
        found = [DEFAULT if is_default(v) else query.field(v, scope, ctes) for v in values]
    if len(columns) != len(found) or (isinstance(right, exp.Anonymous) and right.name.upper() != "ROW"):
        query.findings.doubt("SET has a different number of columns and values")
        found = [Field("", limited(a for f in found for a in f.alts))] * len(columns)
    return list(zip(columns, found, strict=True))


def is_default(value: object) -> bool:
    """Whether a value is the word DEFAULT."""
    return isinstance(value, exp.Column) and value.sql().upper() == "DEFAULT"


def _way_of(node: exp.Expression, scope: Scope) -> list[str]:
    """The target's column that is assigned to, and the fields on the way into its structs."""
    parts = [p.name for p in node.parts] if isinstance(node, exp.Column | exp.Dot) else [node.name]
    for length in range(len(parts) - 1, 0, -1):
        if ".".join(parts[:length]).lower() in scope.sources[0].names:
            return parts[length:]
    return parts


def several(node: exp.MultitableInserts) -> list[exp.Insert]:
    """The INSERTs of one statement; one that is not understood has no query."""
    result = []
    for insert, doubt in inserts(node):
        if doubt is not None:
            insert.set("expression", None)
        result.append(insert)
    return result


def format_of(properties: Iterable[object]) -> str:
    """The format of files that a statement names."""
    found = next((p for p in properties if isinstance(p, exp.FileFormatProperty)), None)
    return found.this.name if found is not None and isinstance(found.this, exp.Expression) else ""


def called(node: exp.Expression, target: str) -> tuple[str, ...]:
    """What a table that is written to may be called in front of a column."""
    if node.alias:
        return (node.alias.lower(),)
    written = ".".join(p.name for p in node.parts).lower() if isinstance(node, exp.Table) else node.name.lower()
    return (*(written.split(".", n)[-1] for n in range(written.count(".") + 1)), target.lower())


def deleted(query: Query, node: exp.Delete) -> Draft:
    """DELETE: no column goes anywhere; what decides is noted."""
    ctes = query.ctes_of(node)
    named = [t for t in node.args.get("tables") or () if isinstance(t, exp.Table)]
    main = node.this if isinstance(node.this, exp.Table) else named[0]
    scope = Scope(query.findings)
    meant = {t.alias_or_name.lower(): t for t in [main, *main.find_all(exp.Table)]}
    first = meant.get(named[0].name.lower(), named[0]) if named else main
    behind = _behind(query, first, ctes)
    target = behind or query.target(first, ctes)
    query.findings.followed |= {id(t) for t in (*named, first)}
    if behind is not None:
        scope.sources.append(query.source(first, ctes, scope))
    elif first is main:
        scope.sources.append(Source(called(first, target), query.lookup(target)))
    else:
        scope.sources += [Source(called(first, target), query.lookup(target)), query.source(main, ctes, scope)]
    query.joins(main, scope, ctes)
    using = node.args.get("using")
    for item in using if isinstance(using, list) else ():
        scope.sources.append(query.source(item, ctes, scope))
        query.joins(item, scope, ctes)
    where = node.args.get("where")
    if where is not None:
        query.findings.note(query.field(where.this, scope, ctes), Subtype.FILTER)
    return Draft(Effect.DELETE, target)


def _behind(query: Query, table: exp.Table, ctes: Ctes) -> str | None:
    """The one table that a common table expression shows, whose rows go when its rows are deleted."""
    if table.args.get("db") or table.name.lower() not in ctes:
        return None
    tables = {d.table for d in ctes[table.name.lower()]().all_deps()}
    return tables.pop() if len(tables) == 1 else None
