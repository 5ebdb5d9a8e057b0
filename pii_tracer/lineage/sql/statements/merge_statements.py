"""MERGE: what each of its clauses writes, and which of the two sides a clause can see."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sql.column_placement import placed
from pii_tracer.lineage.sql.from_clauses import Ctes
from pii_tracer.lineage.sql.queries import Query
from pii_tracer.lineage.sql.relations import Field, Relation, constant
from pii_tracer.lineage.sql.scopes import Scope, Source, of_other_rows
from pii_tracer.lineage.sql.statement_effects import Draft, Effect, by_name
from pii_tracer.lineage.sql.statements.computed_columns import with_computed
from pii_tracer.lineage.sql.statements.filled_columns import DEFAULT, defaulted, with_values
from pii_tracer.lineage.sql.writes import assignments, called, is_default


def merged(query: Query, node: exp.Merge) -> Draft:
    """MERGE with every clause."""
    target_node = node.this
    ctes = query.ctes_of(node)
    target = query.target(target_node, ctes)
    scope = Scope(query.findings)
    into = Source(called(target_node, target), query.lookup(target))
    source = query.source(node.args["using"], ctes, scope)
    of_other_rows(source, target)
    scope.sources = [into, source]
    query.findings.tables.pop(target, None)
    if isinstance(node.args.get("on"), exp.Expression):
        query.findings.note(query.field(node.args["on"], scope, ctes), Subtype.JOIN)
    for name in (c.name for c in node.args.get("using_cond") or ()):
        for one in (into, source):
            found = one.relation.get(name)
            if found is not None:
                query.findings.note(found, Subtype.JOIN)
    pairs: list[tuple[str, Field]] = []
    ways: list[tuple[str, ...]] = []
    left: list[str] = []
    whens = node.args.get("whens")
    for when in whens.expressions if whens is not None else ():
        seen = scope
        if not when.args.get("matched"):  # one side has no row
            seen = Scope(query.findings, [into if when.args.get("source") else source], outer=scope)
        if when.args.get("condition") is not None:
            query.findings.note(query.field(when.args["condition"], seen, ctes), Subtype.FILTER)
        made = _clause(query, when.args["then"], target, seen, source.relation, ctes)
        if isinstance(when.args["then"], exp.Insert):
            ways.append(with_values([item.named(name) for name, item in made], query.dialect))
        else:
            left += defaulted(made)
        pairs += made
    unknown = _unknown(query, target, source.relation, pairs)
    fields = with_computed(query, target, by_name(pairs))
    return Draft(Effect.CHANGE, target, fields, unknown, ways=[] if unknown else ways, left=left)


def _unknown(query: Query, target: str, source: Relation, pairs: list[tuple[str, Field]]) -> tuple[str, ...]:
    if not any(name == "*" for name, _ in pairs):
        return ()
    pairs[:] = [p for p in pairs if p[0] != "*"]
    for table in source.bases():
        query.findings.doubt(
            f"the columns of {table} and of {target} are not known: add the schema of "
            "one of them to the lineage sources"
        )
    return tuple(dict.fromkeys(source.bases()))


def _clause(
    query: Query, then: exp.Expression, target: str, scope: Scope, source: Relation, ctes: Ctes
) -> list[tuple[str, Field]]:
    """What one WHEN clause writes, by target column."""
    known = [c for c, _ in query.names.columns(target)]
    if isinstance(then, exp.Update):
        if then.args.get("where") is not None:  # Oracle
            query.findings.note(query.field(then.args["where"].this, scope, ctes), Subtype.FILTER)
        if not then.expressions:
            query.findings.doubt(f"MERGE does not name the columns of {target} that it changes")
        every = next((e for e in then.expressions if isinstance(e, exp.Star)), None)
        if every is not None:
            return _all_columns(every, source, known, evolves=query.findings.evolves)
        return assignments(query, then.expressions, scope, ctes)
    if not isinstance(then, exp.Insert):
        if then.name.upper() not in ("DELETE", "DO NOTHING", "NOTHING"):
            query.findings.doubt(f"what {then.name.upper() or then.key} of a MERGE does is not known")
        return []
    if isinstance(then.this, exp.Var):
        return _row(query, then.this, target, source, known)
    if isinstance(then.this, exp.Star):
        return _all_columns(then.this, source, known, evolves=query.findings.evolves)
    columns = [c.name for c in then.this.expressions] if then.this is not None else known
    values = then.expression.expressions if isinstance(then.expression, exp.Tuple) else []
    if isinstance(then.expression, exp.Column | exp.Literal | exp.Func):
        values = [then.expression]
    if isinstance(then.this, exp.Tuple) and not then.expression:
        told = _values_alone(then.this, query.dialect)
        if told is None:
            return []
        columns, values = known, told
    if len(columns) != len(values):
        query.findings.doubt(f"columns and values of MERGE's insertion into {target} do not pair")
        fields = [query.field(v, scope, ctes) for v in values]
        return [(c, f) for c in columns for f in fields]
    made = (DEFAULT if is_default(v) else query.field(v, scope, ctes) for v in values)
    return list(zip(columns, made, strict=True))


def _values_alone(told: exp.Tuple, dialect: str) -> list[exp.Expression] | None:
    """The values of an INSERT that names no columns; None: it takes the defaults."""
    first = told.expressions[0] if len(told.expressions) == 1 else None
    if isinstance(first, exp.Anonymous) and first.name.upper() == "VALUES":
        return list(first.expressions)
    if isinstance(first, exp.Column) and first.name.upper() == "DEFAULT":
        return None
    return list(told.expressions) if dialect == "teradata" else []


def _row(query: Query, what: exp.Var, target: str, source: Relation, known: Sequence[str]) -> list[tuple[str, Field]]:
    """BigQuery's INSERT ROW: all columns of the source, by position."""
    if what.name.upper() != "ROW":
        query.findings.doubt(f"INSERT {what.name.upper()} of a MERGE is not known")
    return [(f.name, f) for f in placed(query, target, source, known, loose=query.names.loose(target))]


def _all_columns(every: exp.Star, source: Relation, known: Sequence[str], *, evolves: bool) -> list[tuple[str, Field]]:
    """`SET *` and `INSERT *` pair by name, but for those that EXCEPT names."""
    excepted = {e.name.lower() for e in every.args.get("except_") or ()}
    if known and not (evolves and source.fields):
        named = [c for c in known if c.lower() not in excepted]
        return [(c, f) for c in named if (f := source.get(c)) is not None]
    pairs = [(f.name, f) for f in source.fields if f.name.lower() not in excepted]
    return [*pairs, ("*", constant("*"))] if source.open else pairs
