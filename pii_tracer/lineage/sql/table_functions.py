"""Relations that a FROM clause makes itself: LATERAL VIEW, UNNEST, table functions, PIVOT and UNPIVOT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from pii_tracer.lineage.graph.edges import Subtype
from pii_tracer.lineage.sql.expressions import evaluate
from pii_tracer.lineage.sql.relations import (
    CONDITIONAL,
    TRANSFORMATION,
    Alt,
    Dep,
    Elements,
    Field,
    Relation,
    common_members,
    constant,
    engine_made,
    limited,
    transformed,
)
from pii_tracer.lineage.sql.scopes import Scope, Source, struct_fields
from pii_tracer.lineage.sql.star_expansion import meant

_DEFAULT_NAMES: Mapping[str, tuple[str, ...]] = {
    "posexplode": ("pos", "col"), "posexplodeouter": ("pos", "col"), "posexplode_outer": ("pos", "col"),
    "unnest": ("col",), "stringsplit": ("value", "ordinal"), "string_split": ("value", "ordinal"),
    "splittotable": ("seq", "index", "value"), "flatten": ("seq", "key", "path", "index", "value", "this"),
    "openjson": ("key", "value", "type"), "json_each": ("key", "value"), "jsonb_each": ("key", "value"),
    "json_each_text": ("key", "value"), "jsonb_each_text": ("key", "value"),
}  # fmt: skip
"""Columns of what functions make, where no alias names them."""


_ROWS_HAVE_A_WORD = frozenset({"trino", "presto", "athena", "mysql", "singlestore"})
"""Dialects that write a row of VALUES as `ROW(a, b)`, too (https://trino.io/docs/current/sql/values.html,
https://dev.mysql.com/doc/refman/8.4/en/values.html); elsewhere this is one column."""


def row_of(item: exp.Expression, dialect: str) -> list[exp.Expression]:
    """The columns of one row of VALUES."""
    columns = list(item.expressions) if isinstance(item, exp.Tuple) else [item]
    inner = columns[0].unnest() if len(columns) == 1 and dialect in _ROWS_HAVE_A_WORD else None
    if isinstance(inner, exp.Struct) or (isinstance(inner, exp.Anonymous) and inner.name.upper() == "ROW"):
        return list(inner.expressions)
    return columns


def generated(node: exp.Expression, scope: Scope, field: Callable[[exp.Expression], Field]) -> Relation:
    """Rows that a function makes of other columns: every column of it comes from all of its arguments."""
    maker = node if isinstance(node, exp.Unnest) else node.this
    operands = list(maker.expressions) if isinstance(maker, exp.Unnest) else [maker]
    made = [field(e) for e in operands]
    if isinstance(maker, exp.Unnest) and len(made) > 1 and (several := _side_by_side(node, made)) is not None:
        return several
    alias = node.args.get("alias")
    names = [c.name for c in alias.columns] if alias is not None else []
    expression = None if isinstance(maker, exp.Unnest) else (made[0].alts[0].expression if made[0].alts else None)
    deps = tuple(dict.fromkeys(Dep(d.table, d.column, TRANSFORMATION.then(d.kind)) for f in made for d in f.deps()))
    if not names and isinstance(node, exp.Unnest) and alias is not None and alias.this is not None:
        names = [alias.name]  # BigQuery: the alias names the element
    by_column = columns_made(maker, names, field)
    if by_column is not None:
        return Relation(by_column)
    members = common_members(made[0].alts) if len(made) == 1 else {}
    if isinstance(maker, exp.Unnest):
        members = {key: transformed(item) for key, item in members.items()}
        if len(names) == len(members) > 1:  # Trino: the fields are the columns
            return Relation([f.named(n) for f, n in zip(members.values(), names, strict=True)])
    fields = [n for f in made for n in struct_fields(_element(f.type))]
    if not names and isinstance(node, exp.Unnest) and members:
        return Relation(list(members.values()))
    if not names:
        names = fields or _told(maker, flattens=isinstance(node, exp.TableFromRows))
    if not names and deps:
        return Elements(Field("col", (Alt(expression, deps, members),)))
    names = names or ["col"]
    if isinstance(node, exp.Unnest) and node.args.get("offset"):
        offset = node.args["offset"]
        names = [*names, offset.name if isinstance(offset, exp.Expression) else "offset"]
    return Relation([Field(n, (Alt(expression, deps, members),)) for n in names], made=not deps)


def columns_made(
    maker: exp.Expression, names: Sequence[str], field: Callable[[exp.Expression], Field]
) -> list[Field] | None:
    """The named columns of a function that makes several, each of its own arguments; None: of all of them.

    https://spark.apache.org/docs/latest/api/sql/: `stack` lays its arguments out row by row, `inline` makes columns of
    the fields of structs, `explode` of a map keys and values; `posexplode` has a position before them.
    """
    found: list[Field] = []
    if isinstance(maker, exp.Stack) and isinstance(maker.this, exp.Literal) and maker.this.is_int and names:
        width = -(-len(maker.expressions) // max(1, int(maker.this.name)))
        for number in range(width):
            cells = [field(e) for e in maker.expressions[number::width]]
            deps = dict.fromkeys(Dep(d.table, d.column, TRANSFORMATION.then(d.kind)) for c in cells for d in c.deps())
            found.append(Field("", (Alt(None, tuple(deps)),)))
    elif isinstance(maker, exp.Inline):
        found = list(common_members(field(maker.this).alts).values())
        found = [transformed(f) for f in found]
    elif isinstance(maker, exp.Explode):
        inner = maker.this
        if isinstance(inner, exp.VarMap | exp.Map) and len(names) >= 2:
            sides = [inner.args.get("keys"), inner.args.get("values")]
            found = [transformed(field(side)) for side in sides if side is not None]
        elif isinstance(maker, exp.Posexplode) and len(names) == 2:
            found = [transformed(field(inner))]
        if isinstance(maker, exp.Posexplode) and found:
            found = [engine_made(""), *found]
    if len(found) != len(names) or not found:
        return None
    return [f.named(n) for f, n in zip(found, names, strict=True)]


def _side_by_side(node: exp.Expression, made: Sequence[Field]) -> Relation | None:
    """UNNEST of several arrays, each of which makes a column; None where a map may make two."""
    alias = node.args.get("alias")
    names = [c.name for c in alias.columns] if alias is not None else []
    if len(names) != len(made):
        return None
    return Relation([Elements(f).whole(n) for n, f in zip(names, made, strict=True)])


def _told(maker: exp.Expression, *, flattens: bool) -> list[str]:
    """The columns that a function names itself. flattens: the parser's EXPLODE is Snowflake's FLATTEN."""
    if isinstance(maker, exp.JSONTable | exp.OpenJSON | exp.XMLTable):
        told = [c.name for c in maker.find_all(exp.JSONColumnDef, exp.OpenJSONColumnDef, exp.ColumnDef) if c.name]
        if told or not isinstance(maker, exp.OpenJSON):
            return told
    if isinstance(maker, exp.Explode):
        return list(_DEFAULT_NAMES["flatten"]) if flattens else ["col"]
    return list(_DEFAULT_NAMES.get(maker.name.lower() if isinstance(maker, exp.Anonymous) else maker.key, ()))


def _element(type_: str) -> str:
    text = type_.strip()
    return text[6:-1] if text.lower().startswith("array<") and text.endswith(">") else ""


_VALUES_FIRST = frozenset({"bigquery"})
"""Dialects in which `*` has what UNPIVOT makes with the values before the names
(https://cloud.google.com/bigquery/docs/reference/standard-sql/query-syntax#unpivot_operator). Elsewhere names come
first, as in https://spark.apache.org/docs/latest/sql-ref-syntax-qry-select-unpivot.html."""
_ORDER_NOT_TOLD = frozenset({"tsql", "fabric", "teradata"})
"""Dialects whose documentation does not say in which order they are."""


def pivoted(pivot: exp.Pivot, relation: Relation, scope: Scope, dialect: str) -> Relation:
    """Rows to columns, or columns to rows."""
    inner = Scope(scope.findings, [Source((), relation)], scope.outer)

    def resolve(node: exp.Expression) -> Field:
        columns = meant(node, inner, resolve)
        if columns is not None:
            return columns
        return inner.column(node) if isinstance(node, exp.Column) else Field("", ())

    if pivot.args.get("unpivot"):
        return _unpivoted(pivot, relation, inner, resolve, dialect)
    if relation.open:
        scope.findings.doubt(
            "the grouping columns of PIVOT are not known: add the schema of its table to the lineage sources"
        )
    aggregates = [(e, Field("", evaluate(e, resolve))) for e in pivot.expressions]
    keys = [c for f in pivot.args.get("fields") or () for c in f.this.find_all(exp.Column)]
    conditions = [d for c in keys for d in resolve(c).deps()]
    used = {c.name.lower() for e in pivot.expressions for c in e.find_all(exp.Column)}
    used |= {c.name.lower() for c in keys}
    listed = pivot.args.get("group")
    if listed is None:
        grouped = [f for f in relation.fields if f.name.lower() not in used]
    else:  # DuckDB: only these columns stay
        grouped = [resolve(e).named(e.alias_or_name) for e in listed.expressions]
    for item in grouped:
        scope.findings.note(item, Subtype.GROUP_BY)
    names = [c.name for c in pivot.args.get("columns") or ()]
    if not names:
        scope.findings.doubt("the columns that PIVOT creates are not known")
    made = []
    for number, name in enumerate(names):
        _, aggregate = aggregates[number % len(aggregates)]
        extra = tuple(Dep(d.table, d.column, CONDITIONAL.then(d.kind)) for d in conditions)
        alts = (Alt(a.expression, tuple(dict.fromkeys((*a.deps, *extra)))) for a in aggregate.alts)
        made.append(Field(name, limited(alts)))
    return Relation([*grouped, *made], relation.rest)


def _unpivoted(
    pivot: exp.Pivot, relation: Relation, scope: Scope, resolve: Callable[[exp.Expression], Field], dialect: str
) -> Relation:
    columns = [c for f in pivot.args.get("fields") or () for e in f.expressions for c in e.find_all(exp.Column)]
    used = {c.name.lower() for c in columns}
    values = [i.name for e in pivot.expressions for i in (e.expressions if isinstance(e, exp.Tuple) else [e.unnest()])]
    names = [f.this.name for f in pivot.args.get("fields") or ()]
    result = [f for f in relation.fields if f.name.lower() not in used]
    named = [constant(n) for n in names]
    held = []
    for number, value in enumerate(values):
        picked = columns[number :: len(values)]
        held.append(Field(value, limited(a for c in picked for a in resolve(c).alts)))
    made = [*held, *named] if dialect in _VALUES_FIRST else [*named, *held]
    result += [replace(f, loose=dialect in _ORDER_NOT_TOLD) for f in made]
    if relation.open:
        scope.findings.doubt(
            "the columns that UNPIVOT keeps are not known: add the schema of its table to the lineage sources"
        )
    return Relation(result, relation.rest)
