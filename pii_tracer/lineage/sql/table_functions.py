"""Relations that a FROM clause makes itself: LATERAL VIEW, UNNEST, table functions, PIVOT and UNPIVOT."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sql.expressions import evaluate
from pii_tracer.lineage.sql.relations import (
    CONDITIONAL,
    TRANSFORMATION,
    Alt,
    Dep,
    Field,
    Relation,
    limited,
)
from pii_tracer.lineage.sql.scopes import Scope, Source, struct_fields
from pii_tracer.lineage.sql.star_expansion import meant

_DEFAULT_NAMES = {"posexplode": ("pos", "col"), "posexplodeouter": ("pos", "col"), "unnest": ("col",)}


def generated(node: exp.Expression, scope: Scope, field: Callable[[exp.Expression], Field]) -> Relation:
    """Rows that a function makes of other columns: every column of it comes from all of its arguments."""
    maker = node if isinstance(node, exp.Unnest) else node.this
    operands = list(maker.expressions) if isinstance(maker, exp.Unnest) else [maker]
    made = [field(e) for e in operands]
    alias = node.args.get("alias")
    names = [c.name for c in alias.columns] if alias is not None else []
    expression = None if isinstance(maker, exp.Unnest) else (made[0].alts[0].expression if made[0].alts else None)
    deps = tuple(dict.fromkeys(Dep(d.table, d.column, TRANSFORMATION.then(d.kind)) for f in made for d in f.deps()))
    if not names and isinstance(node, exp.Unnest) and alias is not None and alias.this is not None:
        names = [alias.name]  # BigQuery: the alias names the element
    fields = [n for f in made for n in struct_fields(_element(f.type))]
    if not names:
        names = fields or list(_DEFAULT_NAMES.get(maker.key, ("col",) if isinstance(maker, exp.Explode) else ()))
    if not names:
        if deps:
            scope.findings.doubt(f"the columns of {maker.sql_name().lower()} are not known without names")
        names = ["col"]
    if isinstance(node, exp.Unnest) and node.args.get("offset"):
        offset = node.args["offset"]
        names = [*names, offset.name if isinstance(offset, exp.Expression) else "offset"]
    return Relation([Field(n, (Alt(expression, deps),)) for n in names], made=not deps)


def _element(type_: str) -> str:
    text = type_.strip()
    return text[6:-1] if text.lower().startswith("array<") and text.endswith(">") else ""


def pivoted(pivot: exp.Pivot, relation: Relation, scope: Scope) -> Relation:
    """Rows to columns, or columns to rows."""
    inner = Scope(scope.findings, [Source((), relation)], scope.outer)

    def resolve(node: exp.Expression) -> Field:
        columns = meant(node, inner, resolve)
        if columns is not None:
            return columns
        return inner.column(node) if isinstance(node, exp.Column) else Field("", ())

    if pivot.args.get("unpivot"):
        return _unpivoted(pivot, relation, inner, resolve)
    if relation.open:
        scope.findings.doubt("PIVOT of a table whose schema is not given: the columns it groups by are not known")
    aggregates = [(e, Field("", evaluate(e, resolve))) for e in pivot.expressions]
    keys = [c for f in pivot.args.get("fields") or () for c in f.this.find_all(exp.Column)]
    conditions = [d for c in keys for d in resolve(c).deps()]
    used = {c.name.lower() for e in pivot.expressions for c in e.find_all(exp.Column)}
    used |= {c.name.lower() for c in keys}
    grouped = [f for f in relation.fields if f.name.lower() not in used]
    for item in grouped:
        scope.findings.note(item, Subtype.GROUP_BY)
    names = [c.name for c in pivot.args.get("columns") or ()]
    if not names:
        scope.findings.doubt("the columns that PIVOT makes are not known")
    made = []
    for number, name in enumerate(names):
        _, aggregate = aggregates[number % len(aggregates)]
        extra = tuple(Dep(d.table, d.column, CONDITIONAL.then(d.kind)) for d in conditions)
        alts = (Alt(a.expression, tuple(dict.fromkeys((*a.deps, *extra)))) for a in aggregate.alts)
        made.append(Field(name, limited(alts)))
    return Relation([*grouped, *made], relation.rest)


def _unpivoted(
    pivot: exp.Pivot, relation: Relation, scope: Scope, resolve: Callable[[exp.Expression], Field]
) -> Relation:
    columns = [c for f in pivot.args.get("fields") or () for e in f.expressions for c in e.find_all(exp.Column)]
    used = {c.name.lower() for c in columns}
    values = [i.name for e in pivot.expressions for i in (e.expressions if isinstance(e, exp.Tuple) else [e])]
    names = [f.this.name for f in pivot.args.get("fields") or ()]
    result = [f for f in relation.fields if f.name.lower() not in used]
    result += [Field(n, (Alt(None, ()),)) for n in names]
    for number, value in enumerate(values):
        picked = columns[number :: len(values)]
        result.append(Field(value, limited(a for c in picked for a in resolve(c).alts)))
    if relation.open:
        scope.findings.doubt("UNPIVOT of a table whose schema is not given: the columns it keeps are not known")
    return Relation(result, relation.rest)
