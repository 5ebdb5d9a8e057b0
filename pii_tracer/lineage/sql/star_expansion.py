"""`*`, `t.*` and `struct.*` in a SELECT list and in the arguments of functions, with EXCEPT, REPLACE and RENAME."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.sql.expressions import evaluate, is_star, named_by_text
from pii_tracer.lineage.sql.relations import Elements, Field, Relation
from pii_tracer.lineage.sql.scopes import (
    Scope,
    Source,
    member,
    struct_fields,
    whole_row,
)

_PATTERNS = (exp.Like, exp.ILike, exp.SimilarTo, exp.Glob, exp.RegexpLike)


def star(
    item: exp.Expression, scope: Scope, resolve: Callable[[exp.Expression], Field]
) -> tuple[list[Field], list[Relation]]:
    """The columns a star stands for, and the relations whose unknown columns it takes along."""
    node = cast(exp.Star, item if isinstance(item, exp.Star) else item.find(exp.Star))
    sources: Sequence[Source] = scope.sources
    if not isinstance(item, exp.Star):
        prefix = [p.name for p in item.parts if not isinstance(p, exp.Star)] if hasattr(item, "parts") else []
        named = [s for s in scope.sources if ".".join(prefix).lower() in s.names]
        if not named:
            return _filtered(node, _struct(prefix, item, scope, resolve), resolve), []
        sources = [Source(named[0].names, named[0].relation)]
    excepted = _qualified_exceptions(node)
    if any(isinstance(s.relation, Elements) for s in sources):
        scope.findings.doubt("`*` selects from a function whose columns are not known")
    fields = [
        s.merged.get(f.name.lower(), f)
        for s in sources
        for f in s.relation.fields
        if f.name.lower() not in s.unseen and not any((n, f.name.lower()) in excepted for n in s.names)
    ]
    if isinstance(item, exp.Star):
        fields = scope.arranged(fields)
    unknown = [s.relation for s in sources if s.relation.open]
    if unknown and (node.args.get("except_") or node.args.get("rename") or node.args.get("replace")):
        scope.findings.doubt(
            "`* EXCEPT` selects from a table whose schema is not known: lineage also includes the excepted columns"
        )
    return _filtered(node, fields, resolve), unknown


def by_pattern(
    item: exp.Expression, scope: Scope, resolve: Callable[[exp.Expression], Field]
) -> tuple[list[Field], list[Relation]] | None:
    """DuckDB's `* LIKE 'a%'`: the columns of a star whose names fit. None for another expression.
    https://duckdb.org/docs/stable/sql/expressions/star
    """
    if not isinstance(item, _PATTERNS) or not is_star(item.this):
        return None
    fields, unknown = star(item.this, scope, resolve)
    like = item.expression
    if unknown or not isinstance(item, exp.Like | exp.ILike) or not isinstance(like, exp.Literal):
        scope.findings.doubt("a pattern selects columns: lineage assumes that it selects every column")
        return fields, unknown
    shape, wanted = _shape(like.name), not item.args.get("negate")
    return [f for f in fields if (shape.fullmatch(f.name.lower()) is not None) is wanted], unknown


def meant(node: exp.Expression, scope: Scope, resolve: Callable[[exp.Expression], Field]) -> Field | None:
    """What stands for columns that are not named one by one: a star, or a text that names them. None: neither."""
    if is_star(node):
        return spread(node, scope, resolve)
    if named_by_text(node):
        scope.findings.doubt("a pattern selects columns: lineage assumes that it selects every column")
        return spread(exp.Star(), scope, resolve)
    return None


def spread(item: exp.Expression, scope: Scope, resolve: Callable[[exp.Expression], Field]) -> Field:
    """A star among the arguments of a function: what every column it stands for brings, and its columns as members.

    Its expression, where there is one, has the columns in the star's place.
    """
    fields, unknown = star(item, scope, resolve)
    relation = Relation(fields, tuple(unknown))
    for table in relation.bases():
        scope.findings.doubt(f"the columns of {table} are not known: add its schema to the lineage sources")
    whole = whole_row(relation).alts[0]
    certain = [f.alts[0] for f in fields if len(f.alts) == 1 and f.alts[0].expression is not None]
    if unknown or len(certain) < len(fields) or item.index is None:
        return Field("", (whole,))
    named = isinstance(item.parent, exp.Struct)
    values = [cast(exp.Expression, alt.expression).copy() for alt in certain]
    if named:
        values = [
            exp.PropertyEQ(this=exp.to_identifier(field.name), expression=value)
            for field, value in zip(fields, values, strict=True)
        ]
    size = 1 + sum(alt.size for alt in certain)
    return Field("", (replace(whole, expression=exp.Tuple(expressions=values), size=size),))


def _struct(
    prefix: list[str], item: exp.Expression, scope: Scope, resolve: Callable[[exp.Expression], Field]
) -> list[Field]:
    """The fields of a struct, from the statement that made it or from its declared type."""
    found = _prefixed(prefix, item, scope, resolve)
    if len(found.alts) == 1 and found.alts[0].members:
        return list(found.alts[0].members.values())
    names = list(struct_fields(found.type))
    if not names:
        scope.findings.doubt(
            f"the fields of {'.'.join(prefix)} are not known: add its type to the schema in the lineage sources"
        )
        return [found.named(f"{prefix[-1] if prefix else ''}.*")]
    return [member(found, [name]).named(name) for name in names]


def _prefixed(
    prefix: list[str], item: exp.Expression, scope: Scope, resolve: Callable[[exp.Expression], Field]
) -> Field:
    """The struct before the star: a column, or any expression in parentheses."""
    if isinstance(item, exp.Dot):
        inner = item.this.unnest()
        if isinstance(inner, exp.Column):
            scope.findings.followed.add(id(inner))
            return resolve(inner)
        return Field(prefix[-1] if prefix else "", evaluate(item.this, resolve))
    scope.findings.followed.add(id(item))
    return resolve(exp.column(*[exp.to_identifier(p) for p in reversed(prefix[-4:])]))


def _qualified_exceptions(node: exp.Star) -> set[tuple[str, str]]:
    """`EXCEPT (t.a)` leaves the column a of other tables in."""
    return {
        (e.table.lower(), e.name.lower())
        for e in node.args.get("except_") or ()
        if isinstance(e, exp.Column) and e.table
    }


def _shape(pattern: str) -> re.Pattern[str]:
    """The pattern of ILIKE, for names in lower case."""
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern.lower())
    return re.compile("".join(parts), re.DOTALL)


def _filtered(node: exp.Star, fields: list[Field], resolve: Callable[[exp.Expression], Field]) -> list[Field]:
    excepted = {e.name.lower() for e in node.args.get("except_") or () if not (isinstance(e, exp.Column) and e.table)}
    renames = {e.this.name.lower(): e.alias for e in node.args.get("rename") or ()}
    replaced = {e.alias.lower(): e for e in node.args.get("replace") or ()}
    like = node.args.get("ilike")
    shape = _shape(like.name) if isinstance(like, exp.Literal) else None
    result = []
    for item in fields:
        key = item.name.lower()
        if key in excepted or (shape is not None and not shape.fullmatch(key)):
            continue
        if key in replaced:
            result.append(Field(renames.get(key, item.name), evaluate(replaced[key].this, resolve)))
        else:
            result.append(item.named(renames.get(key, item.name)))
    return result
