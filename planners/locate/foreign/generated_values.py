"""Values that a statement makes itself, out of no column: `row_number()`, `monotonically_increasing_id()`, `range(9)`.

Lineage has no edge for such a value, as it has none for NULL or a constant. But a number that a statement counts can
be a person's number by chance, in a row of somebody else: a UNION of persons with counted merchants has both in one
column. So can a constant, as 1 for the system itself: it is known, and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lineage.sql.expressions import children
from pii_tracer.model.number_keys import can_be_one
from planners.locate.foreign.constant_values import TIMES, becomes_one, text_of
from planners.locate.sql.branch_identifiers import relations, table_name
from planners.locate.sql.column_expressions import COUNTS, PICKS, choices, fields_made
from planners.locate.sql.column_references import Way, split, way_of
from planners.locate.sql.spark_functions import compute
from planners.locate.sql.statement_rows import Statement, parsed
from planners.locate.sql.target_row_changes import Target, filled, inserted_values, inserts_into, listed
from planners.locate.sql.whole_numbers import NotComputable


class Kind(StrEnum):
    """What a value comes from. READ: a column of a table. MADE: neither that, nor constants which are nobody's key."""

    READ = "read"
    MADE = "made"
    CONSTANT = "constant"


Kinds = frozenset[Kind]
"""What a value comes from in some rows or others."""

_READ, _MADE, _CONSTANT = (frozenset({kind}) for kind in Kind)


@dataclass(frozen=True)
class _Relation:
    """The rows of a table or query. names: of its columns, None where they are not known. kinds: of a column, or of a
    field of it. somewhere: those of all its columns.
    """

    names: tuple[str, ...] | None
    kinds: Callable[[Way], Kinds]
    somewhere: Kinds = _READ

    def called(self, columns: Sequence[str]) -> _Relation:
        """Under other names of its columns. Where they do not pair, each column may be any."""
        if not columns:
            return self
        if self.names is None or len(self.names) != len(columns):
            return _Relation(tuple(columns), lambda way: self.somewhere, self.somewhere)
        before = dict(zip((c.lower() for c in columns), self.names, strict=True))

        def kinds(way: Way) -> Kinds:
            return self.kinds((before[way[0]].lower(), *way[1:])) if way[0] in before else _READ

        return _Relation(tuple(columns), kinds, self.somewhere)

    def unnamed(self) -> _Relation:
        """Of an INSERT by position into a table of unknown columns: what is called otherwise may be any of its own."""
        own = {name.lower() for name in self.names or ()}
        return _Relation(None, lambda way: self.kinds(way) if way[0] in own else self.somewhere, self.somewhere)


_UNTOLD = _Relation(None, lambda way: _READ)
_GROWING = _Relation(None, lambda way: _CONSTANT, _CONSTANT)
"""A recursive query inside itself: what is read there shows in its first branch."""

Names = Callable[[str], tuple[str, ...] | None]
"""The columns of a table by its name in a statement; None where they are not known."""


def makes(statement: Statement, way: Way, names: Names, target: Target, keys: Collection[str] = ()) -> bool:
    """Whether a statement brings rows with a value of its own making in a column, or in a field of it.

    way: in lower case. keys: values of the persons; a constant that is one of them counts as made. Nothing is said of
    a text that does not parse, or that brings no rows.
    """
    brought = _Reader(names, keys, statement.views).brought(statement.tree, target)
    return any(Kind.MADE in rows.kinds(way) for rows in brought)


@dataclass(frozen=True)
class _Reader:
    """Reads statements. views: those of the session that are known there, by name with their texts."""

    names: Names
    keys: Collection[str]
    views: tuple[tuple[str, str], ...] = ()

    def brought(self, tree: exp.Expression | None, target: Target) -> Iterator[_Relation]:
        """The rows that a statement brings into a table, under the names of the table's columns."""
        ctes = self._with(tree, {})
        if isinstance(tree, exp.Merge):
            source = tree.args["using"]
            rows = self._rows(source, ctes)
            for given in inserted_values(tree, target):
                yield self._columns(given, {source.alias_or_name.lower(): rows}) if given else rows
        elif isinstance(tree, exp.Insert | exp.MultitableInserts):
            for insert in inserts_into(tree, target):
                rows = self._rows(insert.args.get("expression"), self._with(insert, ctes))
                names = filled(insert, target)
                yield rows.called(names) if names or insert.args.get("by_name") else rows.unnamed()
        elif tree is not None:
            yield self._query(tree)

    def _query(self, tree: exp.Expression) -> _Relation:
        """The rows of a query, or of what a CREATE or CACHE makes of one."""
        if isinstance(tree, exp.Query):
            return self._rows(tree, {})
        body = tree.args.get("expression") if isinstance(tree, exp.Create | exp.Cache) else None
        return self._rows(body, self._with(tree, {})).called(listed(tree.this) if body is not None else ())

    def _with(self, tree: exp.Expression | None, outside: Mapping[str, _Relation]) -> dict[str, _Relation]:
        clause = tree.args.get("with_") if tree is not None else None
        inside = dict(outside)
        for cte in clause.expressions if clause is not None else ():
            if clause is not None and clause.args.get("recursive"):
                inside[cte.alias.lower()] = _GROWING
            inside[cte.alias.lower()] = _renamed(self._rows(cte.this, inside), cte)
        return inside

    def _rows(self, node: exp.Expression | None, ctes: Mapping[str, _Relation]) -> _Relation:
        inside = self._with(node, ctes)
        if isinstance(node, exp.Subquery | exp.Table) and node.args.get("pivots"):
            plain = node.copy()
            plain.set("pivots", None)
            rows = self._rows(plain, inside)
            for pivot in node.args["pivots"]:
                rows = _renamed(self._pivoted(rows, pivot), pivot)
            return rows
        if isinstance(node, exp.Subquery):
            return _renamed(self._rows(node.this, inside), node)
        if isinstance(node, exp.Union):
            sides = [self._rows(cast(exp.Expression, side), inside) for side in (node.this, node.expression)]
            return _united(sides, by_name=bool(node.args.get("by_name")))
        if isinstance(node, exp.SetOperation):  # INTERSECT and EXCEPT: rows of the left side
            return self._rows(cast(exp.Expression, node.this), inside)
        if isinstance(node, exp.Values):
            return self._values(node)
        if isinstance(node, exp.Table):
            return self._table(node, inside)
        if isinstance(node, exp.Lateral | exp.Unnest):
            return self._generated(node, node.this if isinstance(node, exp.Lateral) else node.expressions[0], inside)
        return self._select(node, inside) if isinstance(node, exp.Select) else _UNTOLD

    def _table(self, node: exp.Table, inside: Mapping[str, _Relation]) -> _Relation:
        if isinstance(node.this, exp.Func):
            return self._generated(node, cast(exp.Expression, node.this), inside)
        name = table_name(node)
        if not node.db and node.name.lower() in inside:
            return _renamed(inside[node.name.lower()], node)
        at = next((n for n in reversed(range(len(self.views))) if self.views[n][0] == name.lower()), None)
        tree = parsed(self.views[at][1]) if at is not None else None
        if tree is not None:
            return _renamed(_Reader(self.names, self.keys, self.views[:at])._query(tree), node)
        return _renamed(_Relation(self.names(name), lambda way: _READ), node)

    def _values(self, node: exp.Values) -> _Relation:
        """Rows that are written out."""
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
        names = [f"col{number}" for number in range(1, len(rows[0]) + 1)] if rows else []
        whole = [self._columns(list(zip(names, row, strict=False)), {}) for row in rows]
        return _renamed(_united(whole), node) if whole else _UNTOLD

    def _generated(self, node: exp.Expression, made: exp.Expression, inside: Mapping[str, _Relation]) -> _Relation:
        """The rows of a function in FROM, or of a LATERAL VIEW."""
        if isinstance(made, exp.Query):
            return _renamed(self._rows(made, inside), node)
        names = ("pos", "col") if isinstance(made, exp.Posexplode) else ("col",)
        if isinstance(made, exp.Anonymous) and made.name.lower() == "range":
            names = ("id",)
        alias = node.args.get("alias")
        told = tuple(c.name for c in alias.args.get("columns") or ()) if alias is not None else ()
        called = told or names
        kinds = self._kinds(made, (), {})

        def of(way: Way) -> Kinds:
            number = next((n for n, name in enumerate(called) if name.lower() == way[0]), None)
            return _MADE if isinstance(made, exp.Posexplode) and number == 0 else kinds

        return _Relation(called, of, kinds)

    def _pivoted(self, rows: _Relation, pivot: exp.Pivot) -> _Relation:
        """PIVOT makes columns of aggregates, UNPIVOT one column of several."""
        turned = bool(pivot.args.get("unpivot"))
        fields = [one for one in pivot.args.get("fields") or () if isinstance(one, exp.In)]
        parts = [value for one in fields for value in one.expressions] if turned else pivot.expressions
        kinds = frozenset[Kind]().union(*(self._kinds(part.unalias(), (), {"": rows}) for part in parts)) or _READ
        used = {column.name.lower() for part in parts for column in part.find_all(exp.Column)}
        used |= {one.this.name.lower() for one in fields}
        kept = [name for name in rows.names or () if name.lower() not in used]
        made = [one.this.name for one in fields] if turned else [c.name for c in pivot.args.get("columns") or ()]
        made += [one.name for one in pivot.expressions] if turned else []

        def of(way: Way) -> Kinds:
            return rows.kinds(way) if way[0] in {name.lower() for name in kept} else kinds

        return _Relation((*kept, *made) if rows.names is not None and made else None, of, rows.somewhere | kinds)

    def _select(self, node: exp.Select, ctes: Mapping[str, _Relation]) -> _Relation:
        sources = {alias: self._rows(item, ctes) for alias, item, _ in relations(node)}
        for lateral in node.args.get("laterals") or ():
            sources[(lateral.alias or f"#{len(sources)}").lower()] = self._rows(lateral, ctes)
        shown: list[tuple[str, exp.Expression]] = []
        untold: list[_Relation] = []
        for projection in node.expressions:
            if projection.is_star:
                only = projection.table.lower() if isinstance(projection, exp.Column) else ""
                if only and only not in sources:
                    untold.append(_fields_of(tuple(part.name.lower() for part in projection.parts[:-1]), sources))
                for alias, rows in sources.items():
                    if only in ("", alias):
                        shown += [(name, exp.column(name, table=alias)) for name in rows.names or ()]
                        untold += [rows] if rows.names is None else []
            elif isinstance(projection, exp.Aliases):
                shown += _several(projection)
            else:
                shown.append((projection.alias_or_name, projection.unalias()))
        made = self._columns(shown, sources, ctes)
        if not untold:
            return made
        somewhere = made.somewhere.union(*(rows.somewhere for rows in untold))
        return _Relation(None, lambda way: made.kinds(way).union(*(rows.kinds(way) for rows in untold)), somewhere)

    def _columns(
        self,
        shown: Sequence[tuple[str, exp.Expression]],
        sources: Mapping[str, _Relation],
        ctes: Mapping[str, _Relation] | None = None,
    ) -> _Relation:
        """The columns of a query by their names. One may read those before it, where no table has one so called."""
        names = tuple(name for name, _ in shown)
        places = {name.lower(): number for number, name in reversed(list(enumerate(names)))}

        def at(number: int, fields: Way) -> Kinds:
            def before(way: Way) -> Kinds:
                return at(places[way[0]], way[1:])

            earlier = tuple(name for name in names[:number] if places[name.lower()] < number)
            around = {**sources, _EARLIER: _Relation(earlier, before)} if sources and earlier else sources
            return self._kinds(shown[number][1], fields, around, ctes)

        somewhere = frozenset[Kind]().union(*(at(number, ()) for number in range(len(shown))))
        return _Relation(names, lambda way: at(places[way[0]], way[1:]) if way[0] in places else _READ, somewhere)

    def _kinds(
        self,
        value: exp.Expression,
        fields: Way,
        sources: Mapping[str, _Relation],
        ctes: Mapping[str, _Relation] | None = None,
    ) -> Kinds:
        """What a value, or a field of it, comes from."""

        def of(node: exp.Expression) -> Kinds:
            return self._kinds(node, fields, sources, ctes)

        way = way_of(value)
        if way is not None:
            return _resolved(way, fields, sources)
        text = text_of(value)
        if text is not None:
            return _MADE if can_be_one(text, self.keys) else _CONSTANT
        if isinstance(value, exp.Cast):
            kinds = of(value.this)
            return kinds | _MADE if Kind.CONSTANT in kinds and becomes_one(value, self.keys) else kinds
        if isinstance(value, exp.Window | exp.Filter | exp.Alias | exp.Paren | exp.JSONFormat):
            return of(value.this)
        if isinstance(value, PICKS):  # lag and lead may have a value for rows without another
            return of(value.this) | (of(value.args["default"]) if value.args.get("default") else frozenset())
        if isinstance(value, exp.Array | exp.Explode):
            return frozenset[Kind]().union(*map(of, value.iter_expressions())) or _CONSTANT
        if isinstance(value, exp.Nvl2):
            return of(value.args["true"]) | (of(value.args["false"]) if value.args.get("false") else _CONSTANT)
        if isinstance(value, exp.Exists) and isinstance(value.this, exp.Query):
            return _MADE if any(can_be_one(truth, self.keys) for truth in ("true", "false")) else _CONSTANT
        if isinstance(value, exp.Coalesce | exp.If | exp.Case | exp.Nullif):
            return (
                frozenset[Kind]().union(*(of(branch) for branch in choices(value) if branch is not None)) or _CONSTANT
            )
        if isinstance(value, exp.Struct):
            if not fields:
                return frozenset[Kind]().union(*(of(made) for _, made in fields_made(value)))
            found = [made for name, made in fields_made(value) if name.lower() == fields[0]]
            return self._kinds(found[0], fields[1:], sources, ctes) if found else _READ
        if isinstance(value, exp.Subquery):
            rows = self._rows(value.this, ctes or {})
            return rows.kinds((rows.names[0].lower(),)) if rows.names else rows.somewhere
        if isinstance(value, (*COUNTS, exp.Grouping, exp.GroupingId)):
            return _MADE
        if isinstance(value, _OF_TEXTS) and not fields and value.find(exp.Column, exp.Query) is None:
            return self._computed(value)
        # as lineage has it: what only decides which value comes is none, so that DECODE of constants makes them
        going_in = [child for child, kind in children(value) if kind.type == "DIRECT"]
        return _together(value, [self._kinds(child, (), sources, ctes) for child in going_in])

    def _computed(self, value: exp.Expression) -> Kinds:
        """What a function makes of constants."""
        try:
            made = compute(value.sql(dialect="spark"), "")
        except NotComputable:
            return _MADE
        return _MADE if made is not None and can_be_one(made, self.keys) else _CONSTANT


_OF_TEXTS = (exp.Concat, exp.DPipe, exp.Lower, exp.Upper, exp.Trim, exp.Add, exp.Sub, exp.Mul)
_PLAIN = (
    exp.Literal, exp.Null, exp.Boolean, exp.Interval, exp.Var, exp.DataType, exp.Concat, exp.DPipe, exp.Lower,
    exp.Upper, exp.Trim, exp.Array, exp.Tuple, exp.Explode, exp.Posexplode, exp.Inline, exp.Uuid, exp.Identifier,
    exp.Star, exp.CurrentUser, *TIMES,
)  # fmt: skip
"""What makes constants of constants. A UUID is drawn: it is no value that somebody else has."""


def _together(node: exp.Expression, parts: Iterable[Kinds]) -> Kinds:
    """What a function of parts comes from: where a column goes in, from that."""
    parts = list(parts)
    found: set[Kind] = {Kind.READ} if any(Kind.READ in part for part in parts) else set()
    if all(part - _READ for part in parts):
        made = not isinstance(node, _PLAIN) or any(Kind.MADE in part for part in parts)
        found.add(Kind.MADE if made else Kind.CONSTANT)
    return frozenset(found)


def _resolved(way: Way, fields: Way, sources: Mapping[str, _Relation]) -> Kinds:
    """Of a column of one of the sources; where several could have it, of each that is known to."""
    alias, rest = split(way, sources)
    rest = (*rest, *fields)
    if alias is not None:
        return sources[alias].kinds(rest)
    tables = [rows for alias, rows in sources.items() if alias != _EARLIER]
    having = [rows for rows in tables if _has(rows, rest[0])]
    if not having:
        earlier = sources.get(_EARLIER)
        having = [rows for rows in tables if rows.names is None]
        having += [earlier] if earlier is not None and _has(earlier, rest[0]) else []
    return frozenset[Kind]().union(*(rows.kinds(rest) for rows in having)) or _READ


_EARLIER = "#earlier"
"""The columns of a query before the one at hand, among its sources."""


def _has(rows: _Relation, column: str) -> bool:
    return column in [name.lower() for name in rows.names or ()]


def _fields_of(way: Way, sources: Mapping[str, _Relation]) -> _Relation:
    """The fields of a struct, as `s.*` shows them."""
    return _Relation(None, lambda inner: _resolved(way, inner, sources), _resolved(way, (), sources))


def _renamed(rows: _Relation, item: exp.Expression) -> _Relation:
    """With the columns that an alias names: `AS t (a, b)`."""
    alias = item.args.get("alias")
    return rows.called([c.name for c in alias.args.get("columns") or ()] if alias is not None else [])


def _several(projection: exp.Aliases) -> list[tuple[str, exp.Expression]]:
    """The columns of a function that makes several: `posexplode(list) AS (place, value)`."""
    names = [name.name for name in projection.expressions]
    if isinstance(projection.this, exp.Posexplode) and len(names) > 1:
        place = exp.Anonymous(this="pos")
        return [(names[0], place), *((name, cast(exp.Expression, projection.this)) for name in names[1:])]
    return [(name, cast(exp.Expression, projection.this)) for name in names]


def _united(sides: Sequence[_Relation], *, by_name: bool = False) -> _Relation:
    """UNION: the columns have the names of the first side, and go by position."""
    first = next((side.names for side in sides if side.names is not None), None)
    placed = [side if by_name else side.called(first or ()) for side in sides]
    somewhere = frozenset[Kind]().union(*(side.somewhere for side in sides))
    return _Relation(first, lambda way: frozenset[Kind]().union(*(side.kinds(way) for side in placed)), somewhere)
