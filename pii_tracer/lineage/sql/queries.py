"""Queries to relations: one pass over the statement, every scope resolved once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sql.column_aliases import aliases_of_columns, called_like_columns, projected
from pii_tracer.lineage.sql.expressions import evaluate, is_star
from pii_tracer.lineage.sql.from_clauses import Ctes, FromItems
from pii_tracer.lineage.sql.relations import (
    CONDITIONAL,
    MAX_ALTERNATIVES,
    TRANSFORMATION,
    Alt,
    Dep,
    Elements,
    Field,
    Relation,
    common_members,
    constant,
    fitting,
    limited,
    once_more,
    renamed,
    transformed,
    union,
    union_by_name,
)
from pii_tracer.lineage.sql.scopes import (
    Scope,
    Source,
    shown,
    whole_row,
)
from pii_tracer.lineage.sql.star_expansion import by_pattern, meant, star
from pii_tracer.lineage.sql.statements.sure_values import makes_nulls
from pii_tracer.lineage.sql.table_functions import columns_made, row_of

MAX_ROUNDS = 20
"""Rounds after which the dependencies of a recursive query are given up as not settled."""
_VALUES = {"postgres": "column{}", "redshift": "column{}", "snowflake": "column{}", "materialize": "column{}",
           "mysql": "column_{}", "trino": "_col{}", "presto": "_col{}", "athena": "_col{}",
           "sqlite": "column{}"}  # fmt: skip
_FROM_ZERO = frozenset({"mysql", "trino", "presto", "athena", "duckdb"})
"""What the columns of VALUES are called where no alias names them."""


class Query(FromItems):
    """Resolves the queries of one statement."""

    def relation(self, node: exp.Expression, ctes: Ctes | None = None, outer: Scope | None = None) -> Relation:
        """The columns that a query returns."""
        ctes = self._with(node, dict(ctes or {}), outer)
        if isinstance(node, exp.Subquery):
            inner = self.relation(node.this, ctes, outer)
            return self._tail(node, inner, Scope(self.findings, [Source((), inner)], outer), ctes)
        if isinstance(node, exp.SetOperation):
            return self._set(node, ctes, outer)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, outer)
        if isinstance(node, exp.Values):
            return self._values(node, ctes, outer)
        if isinstance(node, exp.Table):
            return self._table(node, ctes, Scope(self.findings, outer=outer)).relation
        self.findings.doubt(f"a query of kind {node.key} is not supported")
        self.findings.opaque = True
        return Relation([])

    def field(self, node: exp.Expression, scope: Scope, ctes: Ctes) -> Field:
        """What an expression of a scope is made from."""
        return Field("", evaluate(node, self.resolver(scope, ctes)))

    def ctes_of(self, node: exp.Expression) -> dict[str, Callable[[], Relation]]:
        """The WITH clause of a statement that is not a query itself."""
        return self._with(node, {}, None)

    def resolver(self, scope: Scope, ctes: Ctes, *, aliases_first: bool = False) -> Callable[[exp.Expression], Field]:
        def resolve(node: exp.Expression) -> Field:
            columns = meant(node, scope, resolve)
            if columns is not None:
                return columns
            if isinstance(node, exp.Parameter) or isinstance(node.this, exp.Parameter):
                return scope.positional(node)
            if isinstance(node, exp.Column):
                return scope.column(node, aliases_first=aliases_first)
            if isinstance(node, exp.Anonymous):
                return self._fetched(node, scope, ctes)
            if isinstance(node, exp.Exists):  # what it selects does not matter, only whether there are rows
                self.relation(node.this, ctes, scope)
                return constant("")
            inner = self.relation(node, ctes, scope)
            if isinstance(node.parent, exp.In | exp.Any | exp.All):
                self._decides(inner)
                return constant("")
            return inner.fields[0] if len(inner.fields) == 1 and not inner.open else whole_row(inner)

        return resolve

    def _fetched(self, node: exp.Anonymous, scope: Scope, ctes: Ctes) -> Field:
        """ClickHouse's dictGet('table', 'column', key) and joinGet: another table's value, by a key."""
        named = [a.name for a in node.expressions[:2] if isinstance(a, exp.Literal) and a.is_string]
        keys = [d for a in node.expressions for d in self.field(a, scope, ctes).deps()]
        deps = [Dep(d.table, d.column, CONDITIONAL.then(d.kind)) for d in keys]
        if len(named) == 2:
            self.findings.followed.add(id(node))
            table = self.names.of_text(named[0])
            self.findings.tables[table] = None
            found = self.lookup(table).get(named[1])
            if found is None:
                self.findings.doubt(f"column {shown(named[1:])} was not found in {table}")
            else:
                deps += [Dep(d.table, d.column, TRANSFORMATION.then(d.kind)) for d in found.deps()]
        return Field("", (Alt(None, tuple(deps)),))

    def _decides(self, relation: Relation) -> None:
        """A query in IN or EXISTS returns no value; what it selects decides which rows there are."""
        for item in relation.fields:
            self.findings.note(item, Subtype.FILTER)
        for table in relation.bases():
            self.findings.indirect[table, "*", Subtype.FILTER] = None

    def _with(self, node: exp.Expression, ctes: Ctes, outer: Scope | None) -> dict[str, Callable[[], Relation]]:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        for cte in clause.expressions:
            ctes[cte.alias.lower()] = self._cte(cte, dict(ctes), outer, recursive=bool(clause.args.get("recursive")))
        return ctes

    def _cte(self, cte: exp.CTE, ctes: Ctes, outer: Scope | None, *, recursive: bool) -> Callable[[], Relation]:
        done: list[Relation] = []
        names = [c.name for c in cte.args["alias"].columns] if cte.args.get("alias") else []

        def resolve() -> Relation:
            if not done:
                self.findings.followed.add(id(cte))
                body = cte.this
                recursion = isinstance(body, exp.Union) and _reads(body.expression, cte.alias)
                if recursion and (recursive or self.dialect in ("tsql", "oracle", "teradata")):
                    done.append(self._recursive(cte, body, names, ctes, outer))
                else:
                    done.append(self.renamed(self.relation(body, ctes, outer), names))
            return done[0]

        return resolve

    def _recursive(
        self,
        cte: exp.CTE,
        body: exp.Union,
        names: list[str],
        ctes: Ctes,
        outer: Scope | None,
    ) -> Relation:
        ctes = self._with(body, ctes, outer)
        anchor = renamed(self.relation(body.this, ctes, outer), names)
        known = anchor
        for _ in range(MAX_ROUNDS):
            current = known
            ctes[cte.alias.lower()] = lambda current=current: current  # type: ignore[misc]
            step = self.relation(body.expression, ctes, outer)
            grown = union(known, Relation([once_more(f) for f in step.fields], step.rest))
            if [_settled(f) for f in grown.fields] == [_settled(f) for f in known.fields]:
                return known
            known = grown
        self.findings.doubt(f"lineage could not determine all columns of the recursive query {cte.alias}")
        return known

    def _set(self, node: exp.SetOperation, ctes: Ctes, outer: Scope | None) -> Relation:
        left = self.relation(cast(exp.Expression, node.this), ctes, outer)
        right = self.relation(cast(exp.Expression, node.expression), ctes, outer)
        if not left.open and not right.open and len(left.fields) != len(right.fields) and not node.args.get("by_name"):
            self.findings.doubt("the queries of a UNION, INTERSECT or EXCEPT have different numbers of columns")
        if left.open != right.open or (left.open and right.open and not node.args.get("by_name")):
            self.findings.doubt("a UNION, INTERSECT or EXCEPT uses `*` of a table without a known schema")
        if isinstance(node, exp.Except):
            for item in right.fields:
                self.findings.note(item, Subtype.FILTER)
            result = left
        else:
            by_name = node.args.get("by_name") or self._fit(left, right)
            result = union_by_name(left, right) if by_name else union(left, right)
        if node.args.get("distinct"):
            for item in result.fields:
                self.findings.note(item, Subtype.GROUP_BY)
        return self._tail(node, result, Scope(self.findings, [Source((), result)], outer), ctes)

    def _fit(self, left: Relation, right: Relation) -> bool:
        """Whether sides pair by name, since nobody knows the positions of one of them."""
        if left.open or right.open or not any(f.loose for f in (*left.fields, *right.fields)):
            return False
        if fitting(left.fields, [f.name for f in right.fields]) and len(left.fields) == len(right.fields):
            return True
        self.findings.opaque = True
        self.findings.doubt(
            "a UNION, INTERSECT or EXCEPT pairs columns by position, and files do not show the order of the columns in "
            "`*`: list the columns in the statement"
        )
        return False

    def _tail(self, node: exp.Expression, result: Relation, scope: Scope, ctes: Ctes) -> Relation:
        """ORDER BY, SORT BY, DISTRIBUTE BY, CLUSTER BY, ClickHouse's LIMIT … BY."""
        scope.outputs = {f.name.lower(): f for f in reversed(result.fields)}
        for key in ("order", "sort", "cluster", "distribute"):
            clause = node.args.get(key)
            if clause is not None:
                keys = [o.this if isinstance(o, exp.Ordered) else o for o in clause.expressions]
                self._by_position(keys, Subtype.SORT, result, scope, ctes)
        for key in ("limit", "offset"):  # https://clickhouse.com/docs/sql-reference/statements/select/limit-by
            clause = node.args.get(key)
            self._by_position(clause.expressions if clause is not None else (), Subtype.FILTER, result, scope, ctes)
        return result

    def _by_position(
        self,
        keys: Sequence[exp.Expression],
        subtype: Subtype,
        result: Relation,
        scope: Scope,
        ctes: Ctes,
    ) -> None:
        """Keys of GROUP BY and ORDER BY: numbers count the output's columns, ALL means all of them."""
        for key in keys:
            if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(result.fields):
                self.findings.note(result.fields[int(key.name) - 1], subtype)
            elif isinstance(key, exp.Column | exp.Var) and key.name.upper() == "ALL" and scope.aliases:
                for item in result.fields:
                    self.findings.note(item, subtype)
            elif not isinstance(key, exp.Var):
                self.note([key], subtype, scope, ctes, aliases_first=True)

    def _values(self, node: exp.Values, ctes: Ctes, outer: Scope | None) -> Relation:
        scope = Scope(self.findings, outer=outer)
        rows = [row_of(r, self.dialect) for r in node.expressions]
        width = max((len(r) for r in rows), default=0)
        fields = []
        for number in range(width):
            cells = (a for row in rows if number < len(row) for a in self.field(row[number], scope, ctes).alts)
            called = _VALUES.get(self.dialect, "col{}").format(number + (self.dialect not in _FROM_ZERO))
            fields.append(Field(called, _of_rows(cells)))
        alias = node.args.get("alias")
        return renamed(Relation(fields), [c.name for c in alias.columns] if alias is not None else [])

    def _select(self, node: exp.Select, ctes: Ctes, outer: Scope | None) -> Relation:
        scope = Scope(self.findings, outer=outer)
        self.from_clause(node, scope, ctes)
        self._named_expressions(node, scope, ctes)
        result = self._projection(node, scope, ctes)
        result = result.or_none() if makes_nulls(node) else result
        if self.dialect == "clickhouse":
            for reason in aliases_of_columns(node, scope):
                self.findings.doubt(reason)
        for reason in called_like_columns(node, scope, self.dialect):
            self.findings.doubt(reason)
        if str(node.args.get("kind") or "").upper() == "VALUE":
            result = _members(result)
        for where in filter(None, (node.args.get("prewhere"), node.args.get("where"))):
            scope.late, scope.aliases = scope.aliases, {}
            self.note([where.this], Subtype.FILTER, scope, ctes)
            scope.aliases, scope.late = scope.late, {}
        self._grouping(node, result, scope, ctes)
        for key in ("having", "qualify"):
            clause = node.args.get(key)
            if clause is not None:
                self.note([clause.this], Subtype.FILTER, scope, ctes, aliases_first=True)
        connect = node.args.get("connect")
        if connect is not None:
            conditions = [c for k in ("start", "connect") if (c := connect.args.get(k)) is not None]
            self.note(conditions, Subtype.FILTER, scope, ctes)
        return self._tail(node, result, scope, ctes)

    def _named_expressions(self, node: exp.Select, scope: Scope, ctes: Ctes) -> None:
        """ClickHouse's WITH expression AS name."""
        clause = node.args.get("with_")
        for cte in clause.expressions if clause is not None else ():
            if cte.args.get("scalar") and not isinstance(cte.this, exp.Query | exp.Subquery):
                self.findings.followed.add(id(cte))
                scope.aliases[cte.alias.lower()] = self.field(cte.this, scope, ctes).named(cte.alias)

    def _grouping(self, node: exp.Select, result: Relation, scope: Scope, ctes: Ctes) -> None:
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            self.note(distinct.args["on"].expressions, Subtype.GROUP_BY, scope, ctes)
        elif distinct is not None:
            for item in result.fields:
                self.findings.note(item, Subtype.GROUP_BY)
        group = node.args.get("group")
        if group is None:
            return
        keys = list(group.expressions)
        for kind in ("grouping_sets", "cube", "rollup"):
            keys += [e for e in group.args.get(kind) or () if isinstance(e, exp.Expression)]
        flat = [k for key in keys for k in _flat(key)]
        self._by_position(flat, Subtype.GROUP_BY, result, scope, ctes)
        if group.args.get("all"):
            for projection in node.expressions:
                if not projection.find(exp.AggFunc):
                    self.note([projection.unalias()], Subtype.GROUP_BY, scope, ctes)

    def _projection(self, node: exp.Select, scope: Scope, ctes: Ctes) -> Relation:
        fields: list[Field] = []
        rest: list[Relation] = []
        resolve = self.resolver(scope, ctes, aliases_first=True)
        for item in node.expressions:
            applied = []
            while isinstance(item, exp.Apply) and (is_star(item.this) or isinstance(item.this, exp.Apply)):
                applied.append(item.expression.name or item.expression.sql())
                item = item.this
            starred = star(item, scope, resolve) if is_star(item) else by_pattern(item, scope, resolve)
            if starred is not None:
                more, unknown = starred
                fields += [_applied(f, applied) for f in more]
                rest += unknown
                continue
            if isinstance(item, exp.QueryTransform):
                fields += self._transform(item, scope, ctes)
                continue
            made = self._projected(item, resolve)
            fields += made
            for one in made:
                if isinstance(item, exp.Alias | exp.Aliases):
                    scope.aliases.setdefault(one.name.lower(), one)
        return Relation(fields, tuple(rest))

    def _projected(self, item: exp.Expression, resolve: Callable[[exp.Expression], Field]) -> list[Field]:
        alts = evaluate(item, resolve)
        if isinstance(item, exp.Aliases):
            names = [name.name for name in item.expressions]
            made = columns_made(item.this, names, lambda e: Field("", evaluate(e, resolve)))
            return made if made is not None else [Field(name, alts) for name in names]
        inner = item.unalias()
        if isinstance(inner, exp.Inline):
            self.findings.doubt("the columns of inline() are not known without names")
        if self.dialect == "duckdb" and isinstance(inner, exp.Explode) and isinstance(inner.this, exp.Struct):
            return [transformed(f) for f in common_members(evaluate(inner.this, resolve)).values()]
        if isinstance(item, exp.Column) and len(item.parts) == 1:
            return [replace(resolve(item), name=item.name, loose=False)] if alts else [Field(item.name, alts)]
        return [projected(item, alts, self.dialect)]

    def _transform(self, item: exp.QueryTransform, scope: Scope, ctes: Ctes) -> list[Field]:
        """A script: every input reaches every output."""
        self.findings.opaque = True
        self.findings.doubt("TRANSFORM runs a script: lineage assumes that every input reaches every output")
        deps = [d for e in item.expressions for d in self.field(e, scope, ctes).deps()]
        weak = tuple(dict.fromkeys(Dep(d.table, d.column, TRANSFORMATION.then(d.kind)) for d in deps))
        schema = item.args.get("schema")
        names = [c.name for c in schema.expressions] if schema is not None else ["key", "value"]
        return [Field(n, (Alt(None, weak),)) for n in names]


def _applied(item: Field, functions: Sequence[str]) -> Field:
    """ClickHouse's `* APPLY f`: a column after these functions."""
    for name in reversed(functions):
        item = Elements(item).whole(f"{name}({item.name})")
    return item


def _reads(node: exp.Expression, name: str) -> bool:
    return any(t.name.lower() == name.lower() and not t.args.get("db") for t in node.find_all(exp.Table))


def _settled(item: Field) -> set[tuple[tuple[Dep, ...], bool, exp.Expression | None]]:
    """What may change in a column of a recursive query from one round to the next."""
    return {(alt.deps, alt.sure, None if alt.deps else alt.expression) for alt in item.alts}


def _of_rows(cells: Iterable[Alt]) -> tuple[Alt, ...]:
    """What a column of VALUES holds. Of very many constants none is told, so that no expression names but some."""
    constants: dict[str, Alt] = {}
    others: list[Alt] = []
    for alt in cells:
        if alt.deps or alt.expression is None:
            others.append(alt)
        elif len(constants) <= MAX_ALTERNATIVES:
            constants.setdefault(alt.expression.sql(), alt)
    return limited((*others, *constants.values()))


def _members(result: Relation) -> Relation:
    """BigQuery's SELECT AS VALUE of a struct: its members are the columns."""
    alts = result.fields[0].alts if len(result.fields) == 1 and not result.open else ()
    names = [tuple(alt.members) for alt in alts]
    if not names or not names[0] or len(set(names)) > 1:
        return result
    return Relation(
        [Field(alts[0].members[n].name, limited(a for alt in alts for a in alt.members[n].alts)) for n in names[0]]
    )


def _flat(key: exp.Expression) -> list[exp.Expression]:
    """The columns of GROUPING SETS, CUBE and ROLLUP, one by one."""
    if isinstance(key, exp.GroupingSets | exp.Cube | exp.Rollup | exp.Tuple):
        return [k for e in key.expressions for k in _flat(e)]
    return _flat(key.this) if isinstance(key, exp.Paren) else [key]
