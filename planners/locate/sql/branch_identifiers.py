"""Whether every row that a statement takes of the persons has an identifier, branch by branch of its query.

A row that names a person is the person's in all its columns. A branch of a UNION, or the kept side of an outer join,
that takes such a row on and gives no identifier leaves it where nobody finds it, however well the other branches do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from sqlglot import exp

from planners.locate.sql.column_expressions import COUNTS, fields_made
from planners.locate.sql.column_references import Way, split, way_of
from planners.locate.sql.grouping_sets import as_in_subtotals, has_subtotals

Gives = Callable[[Way], bool]
"""Whether an identifier of a person stands in a column, or at fields of it."""


@dataclass(frozen=True)
class Relation:
    """The rows of a table or of a query. reads: some of them are taken from rows that name persons. gives: the columns
    with an identifier in all of those. names: of its columns, None where they are not known. bare: some of those rows
    have no identifier at all. opaque: nothing is known of it, and nothing is held against it.
    """

    reads: bool
    gives: Gives
    names: tuple[str, ...] | None
    bare: bool = False
    opaque: bool = False

    @property
    def told(self) -> bool:
        """Whether its columns are known."""
        return not self.opaque and self.names is not None

    def fills(self, name: str, fields: Way = ()) -> bool:
        """Whether nothing is known to lack in the column, or in a field of it: as `gives`, and true where nothing is
        told.
        """
        if not self.told or not self.reads:
            return True
        known = [column.lower() for column in self.names or ()]
        return name.lower() in known and self.gives((name.lower(), *fields))

    def called(self, columns: Sequence[str]) -> Relation:
        """The same rows under other names of their columns; unknown where the names do not pair."""
        if not columns or self.names is None:
            return self
        if len(columns) != len(self.names):
            return UNKNOWN if self.reads else self
        before = dict(zip((c.lower() for c in columns), self.names, strict=True))

        def gives(way: Way) -> bool:
            return way[0].lower() in before and self.gives((before[way[0].lower()].lower(), *way[1:]))

        return Relation(self.reads, gives, tuple(columns), self.bare, self.opaque)


_NOTHING = Relation(False, lambda way: False, None)
UNKNOWN = Relation(True, lambda way: True, None, opaque=True)
"""A relation behind a name that lineage does not know, e.g. a view of a session."""

Tables = Callable[[str], Relation]


def named_in(clause: exp.Expression | None, outside: Mapping[str, Relation], tables: Tables) -> dict[str, Relation]:
    """The queries of a WITH clause by their names, beside those that are known outside."""
    inside = dict(outside)
    for cte in clause.expressions if clause is not None else ():
        if clause is not None and clause.args.get("recursive"):
            inside[cte.alias.lower()] = UNKNOWN
        inside[cte.alias.lower()] = _renamed(rows_of(cte.this, inside, tables), cte)
    return inside


def _renamed(rows: Relation, item: exp.Expression) -> Relation:
    """With the columns that an alias names: `AS t (a, b)`."""
    alias = item.args.get("alias")
    columns = [c.name for c in alias.args.get("columns") or ()] if alias is not None else []
    return UNKNOWN if columns and rows.names is None and rows.reads else rows.called(columns)


def rows_of(node: exp.Expression | None, ctes: Mapping[str, Relation], tables: Tables) -> Relation:
    """The rows of a query or of a table; `tables`: what a table holds, by its name in the statement."""
    if node is None:
        return _NOTHING
    inside = named_in(node.args.get("with_"), ctes, tables)
    if isinstance(node, exp.Subquery):
        plain = not (node.args.get("joins") or node.args.get("pivots"))
        return _renamed(rows_of(node.this, inside, tables), node) if plain else UNKNOWN
    if isinstance(node, exp.Union):
        sides = [rows_of(cast(exp.Expression, side), inside, tables) for side in (node.this, node.expression)]
        return _united(sides, by_name=bool(node.args.get("by_name")))
    if isinstance(node, exp.SetOperation):  # INTERSECT and EXCEPT: rows of the left side
        return rows_of(cast(exp.Expression, node.this), inside, tables)
    if isinstance(node, exp.Table):
        if node.args.get("pivots"):
            return UNKNOWN
        known = inside.get(node.name.lower()) if not node.db else None
        return known if known is not None else tables(table_name(node))
    return _select(node, inside, tables) if isinstance(node, exp.Select) else UNKNOWN


def table_name(table: exp.Table) -> str:
    """A table's name as the statement has it; a place in backticks."""
    return ".".join(f"`{part.name}`" if "/" in part.name else part.name for part in table.parts)


def _united(sides: Sequence[Relation], *, by_name: bool = False) -> Relation:
    """UNION: the columns have the names of the first side, and go by position."""
    reading = [side for side in sides if side.reads]
    first = sides[0].names
    if any(side.names is None or (first and len(side.names) != len(first)) for side in sides) or first is None:
        return Relation(bool(reading), lambda way: True, None, any(s.bare for s in sides), not reading)
    places = {name.lower(): n for n, name in reversed(list(enumerate(first)))}

    def gives(way: Way) -> bool:
        at = places.get(way[0].lower())
        if at is None:
            return False
        return all(
            side.gives((way[0].lower() if by_name else (side.names or ())[at].lower(), *way[1:])) for side in reading
        )

    return Relation(bool(reading), gives, first, any(side.bare for side in sides))


def _select(node: exp.Select, ctes: Mapping[str, Relation], tables: Tables) -> Relation:
    sources, optional = _sources(node, ctes, tables)
    shown: list[tuple[str, exp.Expression]] = []
    for projection in node.expressions:
        if not projection.is_star:
            shown.append((projection.alias_or_name, projection.unalias()))
            continue
        named = _starred(projection, sources)
        if named is None:
            return _untold(sources)
        shown += named
    made = {c.name.lower() for lateral in node.args.get("laterals") or () for c in _lateral_columns(lateral)}
    listed = any(column.name.lower() in made for _, value in shown for column in value.find_all(exp.Column))
    if has_subtotals(node.args.get("group")):
        return _subtotals(node, shown, sources, optional, listed=listed)
    if listed:
        return _untold(sources)
    aggregated = bool(node.args.get("group")) or any(_adds_up(value) for _, value in shown)
    return of_columns(shown, sources, optional, aggregated=aggregated)


def _subtotals(
    node: exp.Select,
    shown: Sequence[tuple[str, exp.Expression]],
    sources: Mapping[str, Relation],
    optional: Collection[str],
    *,
    listed: bool,
) -> Relation:
    """Rows over several groups: an identifier that some of them leave out is not in all. listed: values of LATERAL
    VIEWs are shown, of which nothing is known.
    """
    least = as_in_subtotals(shown, node, sources)
    if listed:
        rows, kept = _untold(sources), _any_of(least)
        bare = any(True for _, value in shown for _ in _identified(value, sources))
    else:
        rows = of_columns(shown, sources, optional, aggregated=True)
        kept = of_columns(least, sources, optional, aggregated=True)
        bare = rows.reads
    names = kept.names if rows.opaque else rows.names
    bare &= not any(kept.gives((name.lower(),)) for name in names or ())
    return replace(rows, gives=kept.gives, names=names, bare=rows.bare or bare, opaque=False)


def _any_of(shown: Sequence[tuple[str, exp.Expression]]) -> Relation:
    """Columns of which any can have an identifier, but for those that take no value."""
    names = _apart(name for name, _ in shown)
    held = {name.lower() for name, (_, value) in zip(names, shown, strict=True) if any(True for _ in _ways(value))}
    return Relation(True, lambda way: way[0].lower() in held, names)


def _untold(sources: Mapping[str, Relation]) -> Relation:
    """A query whose columns are not known."""
    return UNKNOWN if any(rows.reads for rows in sources.values()) else _NOTHING


def _starred(projection: exp.Expression, sources: Mapping[str, Relation]) -> list[tuple[str, exp.Expression]] | None:
    """The columns of `*` or `t.*`; None where they are not known."""
    only = projection.table.lower() if isinstance(projection, exp.Column) else ""
    star = projection.this if isinstance(projection, exp.Column) else projection
    of = {alias: rows for alias, rows in sources.items() if only in ("", alias)}
    if not of or any(star.args.values()) or any(rows.names is None for rows in of.values()):
        return None
    return [(name, exp.column(name, table=alias)) for alias, rows in of.items() for name in rows.names or ()]


def _lateral_columns(lateral: exp.Expression) -> Collection[exp.Expression]:
    alias = lateral.args.get("alias")
    return alias.args.get("columns") or () if alias is not None else ()


def _adds_up(value: exp.Expression) -> bool:
    """Whether the value is an aggregate of several rows; over a window it stays in its row."""
    return any(not isinstance(found.parent, exp.Window) for found in value.find_all(exp.AggFunc))


def relations(node: exp.Select) -> Iterator[tuple[str, exp.Expression, exp.Join | None]]:
    """The relations of FROM and JOIN whose values can be shown, by alias, each with the join that brings it."""
    first, number = node.args.get("from_"), 0
    for join in [None, *(node.args.get("joins") or ())]:
        item = first.this if join is None and first is not None else join.this if join is not None else None
        if item is None or (join is not None and str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI")):
            continue
        yield (item.alias_or_name or f"#{number}").lower(), item, join
        number += 1


def joined(node: exp.Select) -> list[tuple[str, exp.Expression, bool]]:
    """The relations of FROM and JOIN by alias, and whether an outer join may leave them empty in a row."""
    found = list(relations(node))
    optional: set[int] = set()
    for number, (_, _, join) in enumerate(found):
        side = str(join.args.get("side") or "").upper() if join is not None else ""
        if side in ("RIGHT", "FULL"):
            optional |= set(range(number))
        if side in ("LEFT", "FULL"):
            optional.add(number)
    return [(alias, item, number in optional) for number, (alias, item, _) in enumerate(found)]


def _sources(
    node: exp.Select, ctes: Mapping[str, Relation], tables: Tables
) -> tuple[dict[str, Relation], frozenset[str]]:
    """The relations of FROM and JOIN by alias, and those that an outer join may leave empty in a row."""
    named = joined(node)
    found = {alias: rows_of(item, ctes, tables) for alias, item, _ in named}
    return found, frozenset(alias for alias, _, may in named if may)


def of_columns(
    shown: Sequence[tuple[str, exp.Expression]],
    sources: Mapping[str, Relation],
    optional: Collection[str],
    *,
    aggregated: bool,
) -> Relation:
    """A query's rows from its columns. Groups whose key is none of a person's hold aggregates and are not looked at."""
    taken = {alias for _, value in shown for alias in _taken(value, sources)}
    names = _apart(name for name, _ in shown)
    shown = [(name, value) for name, (_, value) in zip(names, shown, strict=True)]
    if any(sources[alias].opaque for alias in taken):
        return _any_of(shown)
    reading = {alias for alias in taken if sources[alias].reads}

    def in_all(value: exp.Expression) -> bool:
        branches = _alternatives(value)
        if branches:
            return all(map(in_all, branches))
        into = set(_identified(value, sources))
        return bool(into - set(optional)) or bool(into and reading <= into)

    by_name = {name.lower(): value for name, value in shown}

    def gives(way: Way) -> bool:
        value = by_name.get(way[0].lower())
        return value is not None and in_all(_made_field(value, way[1:]))

    identified = {alias for _, value in shown for alias in _identified(value, sources)}
    if aggregated and not identified:
        return _NOTHING
    told = {alias for alias in identified if not sources[alias].bare}
    # each row of an outer join has one side at least, where nothing is chosen by a condition
    always = {
        alias for _, value in shown if value.find(exp.Case, exp.If) is None for alias in _identified(value, sources)
    }
    found = any(in_all(value) for _, value in shown) or reading <= always
    bare = bool(reading) and (not found or (any(sources[alias].bare for alias in reading) and not told))
    return Relation(bool(reading), gives, names, bare)


def _made_field(value: exp.Expression, fields: Way) -> exp.Expression:
    """What stands in a field of a struct that the expression makes; the whole where that cannot be told."""
    value = cast(exp.Expression, value.unnest())
    if not fields or not isinstance(value, exp.Struct):
        return value
    found = [made for name, made in fields_made(value) if name.lower() == fields[0].lower()]
    return _made_field(found[0], fields[1:]) if len(found) == 1 else value


def _apart(names: Iterable[str]) -> tuple[str, ...]:
    """Names of columns; of those without a name, and of equal ones after the first, the places."""
    found: list[str] = []
    seen: set[str] = set()
    for number, name in enumerate(names):
        found.append(f"#{number}" if not name or name.lower() in seen else name)
        seen.add(name.lower())
    return tuple(found)


def _alternatives(value: exp.Expression) -> list[exp.Expression]:
    """What a condition may choose for the value; nothing where it is no conditional. NULL that nobody wrote is none."""
    value = cast(exp.Expression, value.unnest())
    if isinstance(value, exp.If):
        branches = [value.args.get("true"), value.args.get("false")]
    elif isinstance(value, exp.Case):
        branches = [*(branch.args["true"] for branch in value.args.get("ifs") or ()), value.args.get("default")]
    else:
        return []
    return [branch for branch in branches if branch is not None and not isinstance(branch, exp.Null)]


def _taken(value: exp.Expression, sources: Mapping[str, Relation]) -> Iterator[str]:
    """The relations of which a value goes in."""
    for way in _ways(value):
        found = _source_of(way, sources)
        if found is not None:
            yield found[0]


def _identified(value: exp.Expression, sources: Mapping[str, Relation]) -> Iterator[str]:
    """The relations of which an identifier goes in."""
    for way in _ways(value):
        found = _source_of(way, sources)
        if found is not None and sources[found[0]].gives(found[1]):
            yield found[0]


def _ways(node: exp.Expression) -> Iterator[Way]:
    """Columns and their fields whose values go in: not what is only counted, and not what only decides."""
    way = way_of(node)
    if way is not None:
        yield way
    elif isinstance(node, exp.Window):
        yield from _ways(node.this)
    elif isinstance(node, exp.If):
        for branch in (node.args.get("true"), node.args.get("false")):
            yield from _ways(branch) if branch is not None else ()
    elif isinstance(node, exp.Case):
        for branch in (*node.args.get("ifs", ()), node.args.get("default")):
            yield from _ways(branch) if branch is not None else ()
    elif not isinstance(node, (*COUNTS, exp.Subquery)):
        for child in node.iter_expressions():
            yield from _ways(child)


def _source_of(way: Way, sources: Mapping[str, Relation]) -> tuple[str, Way] | None:
    """The relation that a column is of; of several that could have it, one that reads persons' rows."""
    named, rest = split(way, sources)
    if named is not None:
        return named, rest
    for wanted in (True, False):
        for alias, rows in sources.items():
            has = rows.names is None or rest[0] in [name.lower() for name in rows.names]
            if rows.reads is wanted and has:
                return alias, rest
    return None
