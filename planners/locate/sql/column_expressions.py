"""Recorded expressions over a column: where the column's value stands in the result, and what was done to it.

An identifier that is packed, renamed, cast or hashed can be found again; one that goes into an array, an unknown
function or a function of several columns is hidden; one that is only counted is nobody's any more. An aggregate or a
window can pick somebody else's value into a row: such places say so (`Place.group`, `Place.windows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import exp

from pii_tracer.common.str_enum import StrEnum
from pii_tracer.lineage.sql.text.literal_redaction import hidden
from pii_tracer.model.datasets import Access, FieldAccess, JsonAccess
from planners.locate.sql.column_references import (
    beyond,
    names_of,
    steps_of,
    way_of,
)
from planners.locate.sql.placeholder_tests import is_test_of_placeholders
from planners.locate.sql.spark_functions import ENGINES_DIFFER, INPUT, parse
from planners.locate.sql.whole_numbers import NotComputable


class Fate(StrEnum):
    """What becomes of a value. HIDDEN: it goes in and cannot be found by equality. COUNTED: it names nobody there."""

    FOUND = "found"
    HIDDEN = "hidden"
    COUNTED = "counted"


@dataclass(frozen=True)
class Place:
    """Where a column's value ends up in an expression's result.

    access: the way into the result (struct fields, JSON members).
    expression: what was done to the value on the way, over the column `x`; `x` alone when it is unchanged.
    group: an aggregate picked it out of a group's rows. windows: for each window that picked it, what the window is
    partitioned by: columns and fields of columns, each by its names with its table's before them. through: names of the
    functions it went through. instead: what a condition may put in its place, columns by their names; a constant has
    none.
    """

    access: tuple[Access, ...] = ()
    expression: str = INPUT
    group: bool = False
    windows: tuple[tuple[tuple[str, ...], ...], ...] = ()
    fate: Fate = Fate.FOUND
    through: frozenset[str] = frozenset()
    instead: frozenset[tuple[str, ...]] = frozenset()


PICKS = (
    exp.Max, exp.Min, exp.First, exp.Last, exp.AnyValue, exp.FirstValue, exp.LastValue, exp.Mode,
    exp.ArgMax, exp.ArgMin, exp.Lag, exp.Lead, exp.NthValue,
)  # fmt: skip
"""Aggregates whose result is one of the values they read: an identifier stays an identifier."""

COUNTS = (
    exp.Count, exp.CountIf, exp.ApproxDistinct, exp.Sum, exp.Avg, exp.Stddev, exp.StddevPop,
    exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp,
    exp.LogicalAnd, exp.LogicalOr,
)  # fmt: skip
"""Aggregates whose result no longer is any of the values. Every other aggregate hides them."""

_AGGREGATES_BY_NAME = frozenset({
    "histogram_numeric", "count_min_sketch", "hll_sketch_agg", "hll_union_agg", "percentile", "percentile_cont",
    "percentile_disc", "listagg", "string_agg", "map_agg", "multimap_agg", "set_agg", "wm_concat",
})  # fmt: skip
"""Aggregates that the parser knows as functions only: they hide what they read."""


@lru_cache(maxsize=100_000)
def locate(expression: str, column: str, access: tuple[Access, ...] = ()) -> tuple[Place, ...]:
    """Every place where `column` (at `access` inside it) ends up in the expression's result.

    An expression that does not parse, or in which the column's name does not occur, hides it. Without any place the
    value does not go in: it only decides, or another part of the column is read.
    """
    try:
        tree = parse(expression)
    except NotComputable:
        return (Place(fate=Fate.HIDDEN),)
    looked = _Look(column.lower(), access)
    if not any(looked.column in names_of(node) for node in tree.find_all(exp.Column)):
        return (Place(fate=Fate.HIDDEN),)
    return tuple(dict.fromkeys(looked.places(tree)))


@dataclass(frozen=True)
class _Look:
    """Looks for one column, or a part of it, in an expression."""

    column: str
    access: tuple[Access, ...]

    def places(self, node: exp.Expression) -> Iterator[Place]:
        read = self._reads(node)
        if read is not None:
            yield Place(read)
        elif isinstance(node, exp.Column):
            return
        elif isinstance(node, exp.Alias | exp.Paren | exp.IgnoreNulls | exp.RespectNulls):
            yield from self.places(node.this)
        elif isinstance(node, exp.Filter):
            nothing = not self._cleans([node.expression.this])
            yield from (_or_nothing(place) if nothing else place for place in self.places(node.this))
        elif isinstance(node, exp.Window):
            by = tuple(way for c in node.args.get("partition_by") or () if (way := way_of(c)) is not None)
            nothing = _may_be_empty(node)
            for place in self.places(node.this):
                seen = replace(place, group=False, windows=(*place.windows, by))
                yield _or_nothing(seen) if nothing else seen
        elif is_aggregate(node):
            yield from self._aggregated(node)
        elif isinstance(node, exp.Coalesce | exp.If | exp.Case | exp.Nullif):
            yield from self._chosen(node)
        elif isinstance(node, exp.Struct):
            for name, value in fields_made(node):
                for place in self.places(value):
                    yield replace(place, access=(FieldAccess(name=name), *place.access))
        elif isinstance(node, exp.JSONFormat):
            yield from self._packed(node)
        elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            yield from self._member(node)
        else:
            yield from self._function(node)

    def _chosen(self, node: exp.Expression) -> Iterator[Place]:
        """A conditional: the value where a branch has it, and something else where others have not."""
        branches = list(choices(node))
        found = [list(self.places(branch)) if branch is not None else [] for branch in branches]
        by_itself = not isinstance(node, exp.Coalesce) and self._cleans(_conditions(node))
        if isinstance(node, exp.Nullif) and not by_itself:
            found[0] = [_or_nothing(place) for place in found[0]]
        for number, places in enumerate(found):
            # of a coalesce only what stands before can come in its place: without the value there is no person
            rivals = branches[:number] if isinstance(node, exp.Coalesce) else branches
            beside = [] if by_itself else list(zip(rivals, found, strict=False))
            for place in places:
                others = [b for b, has in beside if all(p.access != place.access for p in has)]
                instead = frozenset(way for b in others for way in _ways_of(_field_of(b, place.access)))
                yield replace(place, instead=place.instead | instead)

    def _reads(self, node: exp.Expression) -> tuple[Access, ...] | None:
        """If the node reads the column, or a part of it that leads to the value: the access still left to go."""
        if isinstance(node, exp.Column):
            parts = names_of(node)
            # `payer.id` parses as column `id` of a table `payer`: a struct's field all the same
            readings = (tuple(parts[n + 1 :]) for n, part in enumerate(parts) if part == self.column)
            return next((left for f in readings if (left := beyond(f, self.access)) is not None), None)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            rest = self._reads(node.this)
            left = beyond((node.expression.name,), rest) if rest else None
            if left is not None:
                return left
        if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
            rest, path = self._reads(node.this), _json_path(node)
            if path and rest and isinstance(rest[0], JsonAccess) and rest[0].path[: len(path)] == path:
                below = rest[0].path[len(path) :]
                return (*((JsonAccess(path=below),) if below else ()), *rest[1:])
        return None

    def _aggregated(self, node: exp.Expression) -> Iterator[Place]:
        if isinstance(node, COUNTS):
            for place in self._inside(node):
                yield Place(fate=Fate.COUNTED, through=place.through)
        elif isinstance(node, PICKS):
            default = node.args.get("default")  # of the rows for which lag and lead find none
            sides = [list(self.places(side)) if side is not None else [] for side in (node.this, default)]
            nothing = isinstance(node, exp.Lag | exp.Lead | exp.NthValue) and not all(sides)
            for place in (*sides[0], *sides[1]):
                yield replace(_or_nothing(place) if nothing else place, group=True)
        else:
            for place in self._inside(node):
                yield Place(group=True, fate=_not_found(place), through=place.through | {function_name(node)})

    def _inside(self, node: exp.Expression) -> Iterator[Place]:
        for child in node.iter_expressions():
            yield from self.places(child)

    def _packed(self, node: exp.Expression) -> Iterator[Place]:
        """`to_json` of a struct turns the field steps into one JSON path."""
        for place in self.places(node.this):
            names: list[str] = []
            for step in place.access:
                names.extend([step.name] if isinstance(step, FieldAccess) else ())
            if not names or len(names) < len(place.access):  # a text inside the text, or the elements of a list
                yield replace(place, access=(), expression=INPUT, fate=_not_found(place))
            else:
                yield replace(place, access=(JsonAccess(path=tuple(names)),))

    def _member(self, node: exp.Dot) -> Iterator[Place]:
        """A field of a struct that an expression makes, as in `max(struct(paid_at, user_id)).user_id`."""
        for place in self.places(node.this):
            first = place.access[0] if place.access else None
            if isinstance(first, FieldAccess):
                if first.name.lower() == node.expression.name.lower():
                    yield replace(place, access=place.access[1:])
            elif not self._reads_column(node.this):
                yield replace(place, access=(), expression=INPUT, fate=_not_found(place))

    def _reads_column(self, node: exp.Expression) -> bool:
        """True for the bare column: then the other field of it is read, and the value does not go in."""
        return isinstance(node, exp.Column | exp.Dot) and self._reads(node) is not None

    def _function(self, node: exp.Expression) -> Iterator[Place]:
        """A function: of nothing but the value it can be evaluated again; of more than that it hides the value."""
        if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar) and self._reads(node.this) is not None:
            if _json_path(node) is None:
                yield Place(fate=Fate.HIDDEN)
            return
        children = list(node.iter_expressions())
        inside = [(number, list(self.places(child))) for number, child in enumerate(children)]
        touched = [(number, found) for number, found in inside if found]
        places = [p for _, found in touched for p in found]
        if not places:
            return
        through = frozenset.intersection(*(p.through for p in places)) | {function_name(node)}
        if all(p.fate is Fate.COUNTED for p in places):
            yield Place(fate=Fate.COUNTED, through=through)
        elif len(touched) == 1 and not self._other_columns(c for n, c in enumerate(children) if n != touched[0][0]):
            yield from (_applied(node, touched[0][0], place) for place in places)
        elif all(_unchanged(p) for p in places) and not self._other_columns(children) and _one_table(node):
            yield Place((), self._substituted(node), through=through)
        else:
            windows = tuple(dict.fromkeys(w for p in places for w in p.windows))
            yield Place(group=any(p.group for p in places), windows=windows, fate=Fate.HIDDEN, through=through)

    def _cleans(self, conditions: Iterable[exp.Expression]) -> bool:
        """Whether conditions only tell placeholders (`''`, `'n/a'`, NULL) from values, so that nobody's value goes."""
        return all(is_test_of_placeholders(c) and not self._other_columns([c]) for c in conditions)

    def _other_columns(self, nodes: Iterable[exp.Expression]) -> bool:
        return any(self._reads(c) is None for node in nodes for c in node.find_all(exp.Column))

    def _substituted(self, node: exp.Expression) -> str:
        made = node.transform(lambda part: exp.column(INPUT) if self._reads(part) == () else part)
        return made.sql(dialect="spark")


def _field_of(made: exp.Expression | None, access: tuple[Access, ...]) -> exp.Expression | None:
    """What an expression that makes a struct, or packs one, puts at this place; others as a whole."""
    for name in steps_of(access):
        while isinstance(made, exp.Alias | exp.Paren | exp.JSONFormat):
            made = made.this
        if not isinstance(made, exp.Struct):
            return made
        made = next((value for told, value in fields_made(made) if told.lower() == name), None)
    return made


def _or_nothing(place: Place) -> Place:
    """The place, where in other rows NULL may stand for it."""
    return replace(place, instead=place.instead | {()})


def _may_be_empty(window: exp.Window) -> bool:
    """Whether its frame leaves the row itself out, so that it may hold no row at all."""
    frame = window.args.get("spec")
    sides = (frame.args.get("start_side"), frame.args.get("end_side")) if frame is not None else (None, None)
    return sides[0] == "FOLLOWING" or sides[1] == "PRECEDING"


def _not_found(place: Place) -> Fate:
    return Fate.COUNTED if place.fate is Fate.COUNTED else Fate.HIDDEN


def _applied(node: exp.Expression, number: int, place: Place) -> Place:
    """The place after the function, whose child of this number holds the value."""
    through = place.through | {function_name(node)}
    if place.fate is not Fate.FOUND or place.access:
        return replace(place, access=(), expression=INPUT, fate=_not_found(place), through=through)
    try:
        inner = parse(place.expression)
    except NotComputable:  # of another engine's function, as it was written here
        return replace(place, expression=INPUT, fate=Fate.HIDDEN, through=through)
    made = node.copy()
    list(made.iter_expressions())[number].replace(inner)
    return replace(place, expression=made.sql(dialect="spark"), through=through)


def _unchanged(place: Place) -> bool:
    return place == Place()


def function_name(node: exp.Expression) -> str:
    """The name by which people call a function, in lower case; operators have the parser's name."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


def _one_table(node: exp.Expression) -> bool:
    """Whether all columns are of one table: equal names of two tables are two values."""
    return len({column.table.lower() for column in node.find_all(exp.Column)}) <= 1


def is_aggregate(node: exp.Expression) -> bool:
    """Whether a function is known to give one value for many rows."""
    named = isinstance(node, exp.Anonymous) and node.name.lower() in _AGGREGATES_BY_NAME
    return named or isinstance(node, exp.AggFunc)


def _json_path(node: exp.Expression) -> tuple[str, ...] | None:
    """The members that a JSON path names; None when it holds anything else (an index, a wildcard)."""
    path = node.expression
    parts = path.expressions if isinstance(path, exp.JSONPath) else [path]
    if not all(isinstance(part, exp.JSONPathRoot | exp.JSONPathKey) for part in parts):
        return None
    keys = [part.this for part in parts if isinstance(part, exp.JSONPathKey)]
    return tuple(str(key) for key in keys) if all(isinstance(key, str) for key in keys) else None


def choices(node: exp.Expression) -> Iterator[exp.Expression | None]:
    """The parts of a conditional that can become its value; None for the NULL that nobody wrote."""
    if isinstance(node, exp.Coalesce):
        yield node.this
        yield from node.expressions
    elif isinstance(node, exp.Nullif):
        yield node.this
    elif isinstance(node, exp.If):
        yield node.args["true"]
        yield node.args.get("false")
    else:
        for branch in node.args.get("ifs", []):
            yield branch.args["true"]
        yield node.args.get("default")


def _conditions(node: exp.Expression) -> Iterator[exp.Expression]:
    """What a conditional is decided by."""
    if isinstance(node, exp.If):
        yield node.this
    elif isinstance(node, exp.Nullif):
        yield node.expression
    elif isinstance(node, exp.Case):
        yield from (node.this,) if node.this is not None else ()
        yield from (branch.this for branch in node.args.get("ifs", []))


def _ways_of(node: exp.Expression | None) -> Iterator[tuple[str, ...]]:
    """The columns in an expression by their names; nothing for one without any column, which is a constant."""
    columns = [tuple(names_of(column)) for column in node.find_all(exp.Column)] if node is not None else []
    yield from columns or [()]


def fields_made(node: exp.Struct) -> Iterator[tuple[str, exp.Expression]]:
    """The fields of a struct that an expression makes, by their names."""
    for position, item in enumerate(node.expressions, start=1):
        if isinstance(item, exp.PropertyEQ):
            yield item.this.name, item.expression
        elif isinstance(item, exp.Alias):
            yield item.alias, item.this
        elif isinstance(item, exp.Column):
            yield item.name, item
        else:
            yield f"col{position}", item


@lru_cache(maxsize=100_000)
def compose(inner: str, outer: str) -> str:
    """`outer` with its `x` replaced by `inner`."""
    if outer == INPUT:
        return inner
    replacement = parse(inner)
    tree = parse(outer).transform(lambda n: replacement.copy() if isinstance(n, exp.Column) and n.name == INPUT else n)
    return tree.transform(_once).sql(dialect="spark")


def _once(node: exp.Expression) -> exp.Expression:
    """What is done twice without effect is done once: an update may have run any number of times."""
    inner = node.expressions[0] if node.expressions else node.this
    same = isinstance(node, exp.Upper | exp.Lower) or node.name.lower() in ENGINES_DIFFER
    if same and type(inner) is type(node) and inner.name == (node.name if node.expressions else inner.name):
        return inner
    return node


@lru_cache(maxsize=100_000)
def shown(expression: str, column: str) -> str:
    """The expression for people: with the column's name in place of `x`, and without what stands in literals."""
    name = exp.column(exp.to_identifier(column))
    tree = parse(expression).transform(
        lambda n: name.copy() if isinstance(n, exp.Column) and n.name == INPUT and not n.table else n
    )
    return hidden(tree.sql(dialect="spark"))
