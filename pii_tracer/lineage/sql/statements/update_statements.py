"""UPDATE, with FROM and joins, of a table or through a common table expression over one."""

from __future__ import annotations

from typing import TypeGuard, cast

from sqlglot import exp

from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sql.from_clauses import Ctes
from pii_tracer.lineage.sql.queries import Query
from pii_tracer.lineage.sql.relations import IDENTITY, Field, Relation
from pii_tracer.lineage.sql.scopes import Scope, Source, of_other_rows, shown
from pii_tracer.lineage.sql.statement_effects import Draft, Effect, by_name
from pii_tracer.lineage.sql.statements.computed_columns import with_computed
from pii_tracer.lineage.sql.statements.filled_columns import defaulted
from pii_tracer.lineage.sql.text.multi_target_writes import derived_target, listed
from pii_tracer.lineage.sql.text.procedure_bodies import T_SQL
from pii_tracer.lineage.sql.writes import assignments, called, one_by_one_set


def updated(query: Query, node: exp.Update) -> Draft:
    """The columns that are set, from what they are set to."""
    ctes = query.ctes_of(node)
    table = node.this
    scope = Scope(query.findings)
    clause = node.args.get("from_")
    derived = derived_target(node) if query.dialect in T_SQL else None
    named = listed(node) if query.dialect in T_SQL else _tables(clause)
    alias_of = next((s for s in named if _is_it(query, s, table)), None) if derived is None else None
    meant = alias_of if alias_of is not None else table
    through = _through(meant, ctes) if derived is None else query.relation(_query_of(derived), ctes)
    target = "" if through is not None else query.target(meant)
    query.findings.followed |= {id(table), id(meant)}
    if alias_of is None and derived is None:
        scope.sources.append(Source(called(table, target or table.name), through or query.lookup(target)))
    if clause is not None:
        scope.sources.append(query.source(clause.this, ctes, scope))
        query.joins(clause.this, scope, ctes)
    if isinstance(table, exp.Table) and table.args.get("joins"):
        query.joins(table, scope, ctes)
    own = table.alias_or_name.lower() if alias_of is None else alias_of.alias_or_name.lower()
    for source in scope.sources[alias_of is None and derived is None :]:
        if own not in source.names:
            of_other_rows(source, target)
    one_by_one = alias_of is None and through is None
    pairs = (one_by_one_set if one_by_one else assignments)(query, node.expressions, scope, ctes)
    if through is not None:
        target, pairs = _behind(query, meant, through, pairs)
    joined = isinstance(table, exp.Table) and bool(table.args.get("joins"))
    known = {c.lower() for c, _ in query.names.columns(target)} if joined else set()
    if known and any(name.lower() not in known for name, _ in pairs):
        query.findings.doubt(
            f"the statement sets a column that {shown([table.name])} does not have, so its table is not known"
        )
    query.findings.tables.pop(target, None)
    where = node.args.get("where")
    if where is not None:
        query.findings.note(query.field(where.this, scope, ctes), Subtype.FILTER)
    order = node.args.get("order")
    if order is not None:
        query.note(order.expressions, Subtype.SORT, scope, ctes)
    return Draft(Effect.CHANGE, target, with_computed(query, target, by_name(pairs)), left=defaulted(pairs))


def _through(table: exp.Expression, ctes: Ctes) -> Relation | None:
    """The common table expression, or the query in parentheses, that stands for the table."""
    if isinstance(table, exp.Table) and not table.args.get("db") and table.name.lower() in ctes:
        return ctes[table.name.lower()]()
    return None


def _behind(
    query: Query, table: exp.Expression, through: Relation, pairs: list[tuple[str, Field]]
) -> tuple[str, list[tuple[str, Field]]]:
    """The table whose columns are set through a query, and those columns: a query's column has to be one of them."""
    found: list[tuple[str, str, Field]] = []
    for name, item in pairs:
        column = through.get(name)
        deps = set(column.deps()) if column is not None else set()
        if len(deps) == 1 and (dep := deps.pop()).kind == IDENTITY:
            found.append((dep.table, dep.column, item))
    tables = {one for one, _, _ in found}
    if any(column.lower() != name.lower() for (name, _), (_, column, _) in zip(pairs, found, strict=False)):
        query.findings.doubt(f"the statement sets columns through {shown([table.name])}, which renames them")
    if len(tables) != 1 or len(found) != len(pairs):
        query.findings.opaque = True
        query.findings.doubt(f"the statement writes through {shown([table.name])} to a table that is not known")
        return query.names.of_text(table.name), pairs
    return tables.pop(), [(column, item) for _, column, item in found]


def _query_of(derived: exp.Subquery | exp.Lateral) -> exp.Expression:
    """The query that FROM lists or applies."""
    return cast(exp.Expression, derived.this) if isinstance(derived, exp.Lateral) else derived


def _is_it(query: Query, source: exp.Expression, table: exp.Expression) -> TypeGuard[exp.Table]:
    """Whether a table of FROM is the one that is written to: by its alias, or once more by its name."""
    if not isinstance(source, exp.Table) or not isinstance(table, exp.Table):
        return False
    if source.alias:
        return source.alias.lower() == table.name.lower() and not table.args.get("db")
    plain = not table.alias and isinstance(source.this, exp.Identifier)
    return plain and query.names.of(source).lower() == query.names.of(table).lower()


def _tables(clause: exp.Expression | None) -> list[exp.Table]:
    return list(clause.find_all(exp.Table)) if clause is not None else []
