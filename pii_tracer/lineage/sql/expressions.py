"""What an expression does to the columns it reads: kinds of dependency, and its text over the source tables.

Rules are those of OpenLineage's Spark integration (ExpressionTraverser): values of CASE, IF and COALESCE are
TRANSFORMATION, what they decide by is CONDITIONAL; a window's partition and order are WINDOW; ranking functions take no
value from their order; hashes and `count` mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import cast

from sqlglot import exp

from pii_tracer.lineage.sql.accounting.function_names import AGGREGATE_NAMES, MASK_NAMES
from pii_tracer.lineage.sql.relations import (
    AGGREGATION,
    CONDITIONAL,
    COUNTED,
    IDENTITY,
    MASKED,
    MAX_ALTERNATIVES,
    MAX_EXPRESSION,
    TRANSFORMATION,
    WINDOW,
    Alt,
    Dep,
    Field,
    Kind,
    common_members,
    limited,
    transformed,
)
from pii_tracer.lineage.sql.statements.sure_values import has_value

_MASKS = (exp.MD5, exp.MD5Digest, exp.SHA, exp.SHA1Digest, exp.SHA2, exp.SHA2Digest, exp.StandardHash)
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile)
_RANK_NAMES = frozenset({"rank", "dense_rank", "row_number", "percent_rank", "cume_dist", "ntile"})
_OFFSETS = (exp.Lag, exp.Lead, exp.NthValue)
_LISTS = (exp.GroupConcat, exp.ArrayAgg, exp.JSONArrayAgg, exp.ArrayConcatAgg)
_LEAVE_STRUCTS_WHOLE = (
    exp.Paren, exp.ArrayAgg, exp.ArrayUniqueAgg, exp.Max, exp.Min, exp.First, exp.Last, exp.AnyValue, exp.ArgMax,
    exp.ArgMin, exp.FirstValue, exp.LastValue, exp.Lag, exp.Lead, exp.ArraySort, exp.ArrayDistinct,
    exp.ArrayReverse, exp.ArraySlice, exp.ArrayFilter, exp.ArrayMax, exp.ArrayMin, exp.Explode, exp.Limit, exp.Order,
    exp.IgnoreNulls, exp.RespectNulls, exp.HavingMax, exp.Distinct, exp.Filter, exp.WithinGroup, exp.Window,
)  # fmt: skip
"""What gives on a struct, or makes an array of structs or one of its elements, and no part of it by itself."""
_NESTED = (exp.Subquery, exp.Query, exp.Exists)
_WRAPPED = (exp.Binary, exp.Unary, exp.Between, exp.In)

Resolve = Callable[[exp.Expression], Field]
"""Answers a column, a star, what a text names or a nested query with what it stands for."""


def is_star(node: exp.Expression) -> bool:
    """`*`, `t.*` or `struct.*`."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column | exp.Dot) and node.is_star)


def named_by_text(node: exp.Expression) -> bool:
    """`IDENTIFIER('a')` and `COLUMNS('a.*')`: columns that a text names, which may be put together or given later."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() == "identifier"
    return node.key in ("dynamicidentifier", "columns")


def kind_of(node: exp.Expression) -> Kind:
    """What a function or operator does to its operands."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower().rsplit(".", 1)[-1]
        if name in MASK_NAMES:
            return MASKED
        return AGGREGATION if name in AGGREGATE_NAMES else TRANSFORMATION
    if isinstance(node, exp.Count | exp.CountIf):
        return COUNTED
    if isinstance(node, _MASKS):
        return MASKED
    if isinstance(node, exp.AggFunc) and not isinstance(node, (*_OFFSETS, *_RANKS)):
        return AGGREGATION
    if isinstance(node, exp.Func) and node.sql_name().lower() in MASK_NAMES:
        return MASKED
    return TRANSFORMATION


def _is_rank(node: exp.Expression) -> bool:
    return isinstance(node, _RANKS) or (isinstance(node, exp.Anonymous) and node.name.lower() in _RANK_NAMES)


def children(node: exp.Expression) -> Iterator[tuple[exp.Expression, Kind]]:
    """Operands with what happens to each."""
    if isinstance(node, exp.Paren | exp.Alias | exp.Aliases | exp.PivotAlias | exp.IgnoreNulls | exp.RespectNulls):
        yield node.this, IDENTITY
    elif isinstance(node, exp.Case):
        yield from _case(node)
    elif isinstance(node, exp.If | exp.Nvl2):
        yield node.this, CONDITIONAL
        yield from ((v, TRANSFORMATION) for k in ("true", "false") if (v := node.args.get(k)) is not None)
    elif isinstance(node, exp.Coalesce):
        for value in (node.this, *node.expressions):
            yield value, TRANSFORMATION
            yield value, CONDITIONAL
    elif isinstance(node, exp.Nullif):
        yield node.this, TRANSFORMATION
        yield node.this, CONDITIONAL
        yield node.expression, CONDITIONAL
    elif isinstance(node, exp.DecodeCase):
        yield from _decode(node)
    elif isinstance(node, exp.Window):
        yield from _window(node)
    elif isinstance(node, exp.Filter):
        yield node.this, IDENTITY
        yield node.expression.this, CONDITIONAL
    elif isinstance(node, exp.WithinGroup):
        yield node.this, IDENTITY  # the order of what is listed; a percentile is one of the values that it orders
        kind = CONDITIONAL if isinstance(node.this, _LISTS) else AGGREGATION
        yield from ((o.this, kind) for o in node.find_all(exp.Ordered))
    elif isinstance(node, exp.ArgMax | exp.ArgMin | exp.HavingMax):
        yield node.this, AGGREGATION if isinstance(node, exp.AggFunc) else IDENTITY
        yield node.expression, CONDITIONAL
    elif isinstance(node, exp.Order) and node.this is not None:
        yield node.this, IDENTITY
        yield from ((o.this, CONDITIONAL) for o in node.expressions)
    elif isinstance(node, exp.JSONArrayAgg) and node.args.get("order") is not None:
        yield node.this, AGGREGATION
        yield from ((o.this, CONDITIONAL) for o in node.args["order"].expressions)
    elif isinstance(node, exp.Grouping | exp.GroupingId):
        yield from ((e, CONDITIONAL) for e in node.expressions)
    else:
        kind = kind_of(node)
        yield from ((child, kind) for child in node.iter_expressions())


def _case(node: exp.Case) -> Iterator[tuple[exp.Expression, Kind]]:
    if node.this is not None:
        yield node.this, CONDITIONAL
    for branch in node.args.get("ifs") or ():
        yield branch.this, CONDITIONAL
        yield branch.args["true"], TRANSFORMATION
    if node.args.get("default") is not None:
        yield node.args["default"], TRANSFORMATION


def _decode(node: exp.DecodeCase) -> Iterator[tuple[exp.Expression, Kind]]:
    """DECODE(value, search, result, …, default)."""
    first, *rest = node.expressions
    yield first, CONDITIONAL
    for position, item in enumerate(rest):
        is_search = position % 2 == 0 and position + 1 < len(rest)
        yield item, CONDITIONAL if is_search else TRANSFORMATION


def _window(node: exp.Window) -> Iterator[tuple[exp.Expression, Kind]]:
    inner = node.this
    while isinstance(inner, exp.IgnoreNulls | exp.RespectNulls):
        inner = inner.this
    if not _is_rank(inner):
        yield inner, TRANSFORMATION
    for spec in (node, *_named_windows(node)):
        yield from ((part, WINDOW) for part in spec.args.get("partition_by") or ())
        if spec.args.get("order") is not None:
            yield from ((o.this, WINDOW) for o in spec.args["order"].expressions)


def _named_windows(node: exp.Window) -> Iterator[exp.Window]:
    """The windows that a window refers to by name, and those that they refer to."""
    select = node.find_ancestor(exp.Select)
    named = {w.name.lower(): w for w in select.args.get("windows") or ()} if select is not None else {}
    name = node.alias.lower()
    while name in named:
        spec = named.pop(name)
        yield spec
        name = spec.alias.lower()


def dependencies(expression: exp.Expression, resolve: Resolve) -> Iterator[Dep]:
    """What an expression reads, by all alternatives of the columns and nested queries in it."""
    found: dict[int, tuple[exp.Expression, Field]] = {}
    _leaves(expression, resolve, frozenset(), found)
    for _, item in found.values():
        yield from item.deps()


def evaluate(expression: exp.Expression, resolve: Resolve) -> tuple[Alt, ...]:
    """The alternatives of an expression, from those of the columns and nested queries it reads."""
    found: dict[int, tuple[exp.Expression, Field]] = {}
    _leaves(expression, resolve, frozenset(), found)
    slots = list(found)
    size = 1
    for slot in slots:
        size *= max(1, len(found[slot][1].alts))
    if size > MAX_ALTERNATIVES:
        everything = {s: Alt(None, tuple(dict.fromkeys(found[s][1].deps()))) for s in slots}
        return (Alt(None, _deps(expression, everything)),)
    alts = []
    for choice in product(*(found[s][1].alts or (Alt(None, ()),) for s in slots)):
        chosen = dict(zip(slots, choice, strict=True))
        if (whole := chosen.get(id(expression.unalias()))) is not None:
            alts.append(replace(whole, sure=has_value(expression, chosen)))
        else:
            text, size = _substituted(expression, found, chosen)
            deps = _deps(expression, chosen)
            alone = text if len(alts) == 0 and all(len(item.alts) < 2 for _, item in found.values()) else None
            members = _members(expression, resolve, deps, alone)
            alts.append(Alt(text, deps, members, size, has_value(expression, chosen)))
    return limited(alts)


def _members(
    expression: exp.Expression, resolve: Resolve, deps: Sequence[Dep], text: exp.Expression | None
) -> Mapping[str, Field]:
    """Fields of a struct that the expression makes, or gives on: alone, or as the elements of an array."""
    node = expression.this if isinstance(expression, exp.Aliases) else expression.unalias()
    if isinstance(node, exp.Cast):
        return _row(node, resolve)
    if not isinstance(node, exp.Struct):
        return _given_on(cast(exp.Expression, node), resolve, deps, text)
    result: dict[str, Field] = {}
    for item in node.expressions:
        if isinstance(item, exp.PropertyEQ | exp.Alias):
            value = item.expression if isinstance(item, exp.PropertyEQ) else item.this
            name = item.this.name if isinstance(item, exp.PropertyEQ) else item.alias
        elif is_star(item):
            for alt in resolve(item).alts:
                result |= alt.members
            continue
        elif isinstance(item, exp.Column):
            value, name = item, item.name
        else:
            continue
        result[name.lower()] = Field(name, evaluate(value, resolve))
    return result


def _row(node: exp.Cast, resolve: Resolve) -> Mapping[str, Field]:
    """`CAST(ROW(a, b) AS ROW(x …, y …))`: a struct whose type names the fields (Trino)."""
    names = [d.name for d in node.to.expressions if isinstance(d, exp.ColumnDef)]
    values = node.this.expressions if node.to.is_type("struct") else []
    if not isinstance(node.this, exp.Struct | exp.Tuple | exp.Anonymous) or len(names) != len(values):
        return {}
    if isinstance(node.this, exp.Anonymous) and node.this.name.lower() != "row":
        return {}
    return {n.lower(): transformed(Field(n, evaluate(v, resolve))) for n, v in zip(names, values, strict=True)}


def _given_on(
    node: exp.Expression, resolve: Resolve, deps: Sequence[Dep], text: exp.Expression | None
) -> Mapping[str, Field]:
    """The fields of a struct that goes through a function which leaves it whole."""
    if isinstance(node, exp.Array | exp.Distinct):
        values = node.expressions
    elif isinstance(node, _LEAVE_STRUCTS_WHOLE) or (isinstance(node, exp.Bracket) and _counts(node)):
        values = [node.this]
    else:
        return {}
    members = common_members([alt for value in values for alt in evaluate(value, resolve)])
    kind = next((what for child, what in children(node) if child is values[0]), TRANSFORMATION) if members else IDENTITY
    if isinstance(node, exp.Max | exp.Min):  # the fields are compared one after the other
        decides = [Dep(d.table, d.column, CONDITIONAL.then(d.kind)) for f in members.values() for d in f.deps()]
    else:
        decides = [dep for dep in deps if dep.kind.type == "INDIRECT"]
    return {key: transformed(item, kind, decides, text) for key, item in members.items()}


def _counts(node: exp.Bracket) -> bool:
    """Whether `[…]` takes an element of an array by its position."""
    position = node.expressions[0] if len(node.expressions) == 1 else None
    return isinstance(position, exp.Literal) and not position.is_string


def _field_of(node: exp.Expression, resolve: Resolve) -> Field | None:
    """`(struct).field`, where the struct is made in the statement."""
    if not isinstance(node, exp.Dot) or not isinstance(node.expression, exp.Identifier):
        return None
    if isinstance(node.this, exp.Column | exp.Identifier):
        return None
    return common_members(evaluate(node.this, resolve)).get(node.expression.name.lower())


def _is_leaf(node: exp.Expression) -> bool:
    """`$1`, `t.$1`, and functions that fetch another table's value by its name."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower().startswith(("dictget", "joinget"))
    position = node.this if isinstance(node, exp.Column) else node
    return isinstance(position, exp.Parameter) and isinstance(position.this, exp.Literal) and position.this.is_int


def _leaves(
    node: exp.Expression,
    resolve: Resolve,
    shadowed: frozenset[str],
    found: dict[int, tuple[exp.Expression, Field]],
) -> None:
    if isinstance(node, exp.Lambda):
        shadowed |= {p.name.lower() for p in node.expressions}
        _leaves(node.this, resolve, shadowed, found)
        return
    if is_star(node):  # among the arguments of a function; `count(*)` counts rows and reads no column
        if not (isinstance(node, exp.Star) and isinstance(node.parent, exp.Count)):
            found[id(node)] = (node, resolve(node))
        return
    if named_by_text(node):
        found[id(node)] = (node, resolve(node))
        return
    if _is_leaf(node):
        found[id(node)] = (node, resolve(node))
        return
    if isinstance(node, exp.Column):
        if node.parts[0].name.lower() not in shadowed:
            found[id(node)] = (node, resolve(node))
        return
    if isinstance(node, _NESTED) and not (isinstance(node, exp.Exists) and not isinstance(node.this, exp.Query)):
        found[id(node)] = (node, resolve(node))
        return
    field = _field_of(node, resolve)
    if field is not None:
        found[id(node)] = (node, field)
        return
    if isinstance(node, exp.PropertyEQ):
        _leaves(node.expression, resolve, shadowed, found)
        return
    for child in node.iter_expressions():
        _leaves(child, resolve, shadowed, found)
    if isinstance(node, exp.Window):
        for spec in _named_windows(node):
            for child in spec.iter_expressions():
                _leaves(child, resolve, shadowed, found)


def _deps(expression: exp.Expression, chosen: Mapping[int, Alt]) -> tuple[Dep, ...]:
    """Dependencies; of several direct ones between the same columns the strongest stays, masked only if all are."""
    raw: list[Dep] = []

    def walk(node: exp.Expression, kind: Kind) -> None:
        alt = chosen.get(id(node))
        if alt is not None:
            raw.extend(Dep(d.table, d.column, kind.then(d.kind)) for d in alt.deps)
            return
        for child, what in children(node):
            walk(child, kind.then(what))

    walk(expression, IDENTITY)
    return strongest(raw)


def strongest(deps: Sequence[Dep]) -> tuple[Dep, ...]:
    """One direct dependency per column, and one indirect one per column and subtype."""
    merged: dict[tuple[str, str, object], Dep] = {}
    for dep in deps:
        direct = dep.kind.type == "DIRECT"
        key = (dep.table.lower(), dep.column.lower(), None if direct else dep.kind.subtype)
        before = merged.get(key)
        if before is None:
            merged[key] = dep
            continue
        kind = before.kind.then(dep.kind)
        both = before.kind.masking and dep.kind.masking
        merged[key] = Dep(before.table, before.column, Kind(kind.type, kind.subtype, both))
    return tuple(merged.values())


def _substituted(
    expression: exp.Expression,
    found: Mapping[int, tuple[exp.Expression, Field]],
    chosen: Mapping[int, Alt],
) -> tuple[exp.Expression | None, int]:
    """The expression with its columns replaced by what they stand for, and how many nodes that is."""
    size = sum(alt.size for alt in chosen.values())
    if size > MAX_EXPRESSION or any(chosen[slot].expression is None and found[slot][1].alts for slot in found):
        return None, size
    for number, slot in enumerate(found):
        found[slot][0].meta["slot"] = number
    whole = expression.this if isinstance(expression, exp.Aliases) else expression.unalias()
    copy = cast(exp.Expression, whole.copy())
    order = list(found)
    nodes = cast(list[exp.Expression], list(copy.walk()))
    try:
        for node in nodes:
            slot_number = node.meta.get("slot")
            if slot_number is not None:
                value = chosen[order[slot_number]].expression
                copy = _replaced(copy, node, cast(exp.Expression, value))
    finally:
        for slot in found:
            found[slot][0].meta.pop("slot", None)
    return copy, size + len(nodes)


def _replaced(tree: exp.Expression, node: exp.Expression, value: exp.Expression) -> exp.Expression:
    new = value.copy()
    if is_star(node):
        node.replace(new.expressions)
        return tree
    if isinstance(new, _WRAPPED) and not isinstance(new, exp.Paren | exp.Dot) and isinstance(node.parent, _WRAPPED):
        new = exp.Paren(this=new)
    if node is tree:
        return new
    node.replace(new)
    return tree
