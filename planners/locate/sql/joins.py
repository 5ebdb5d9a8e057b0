"""Whose values meet in the rows of a statement: which relations it joins, and by what.

`SELECT e.user_id, m.phone FROM users e JOIN users m ON e.manager_id = m.user_id` puts a manager's phone into other
people's rows: a row in which two persons meet is nobody's to delete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from planners.locate.sql.branch_identifiers import relations, table_name
from planners.locate.sql.column_expressions import COUNTS
from planners.locate.sql.qualified_columns import (
    Way,
    projected,
    split,
    uncast,
    way_of,
)

Origins = frozenset[str]
"""Columns of the subject's source whose values stand in a column."""

Columns = Callable[[Way], Origins]
"""Of a table: what stands there."""

NONE: Origins = frozenset()


@dataclass(frozen=True)
class Rows:
    """A relation inside a statement: whether its rows hold a person, and where. opaque: nothing is known of it."""

    carrier: bool
    origins: Columns
    opaque: bool = False


_NOBODY = Rows(False, lambda name: NONE)


def _outermost(tree: exp.Expression) -> list[exp.Expression]:
    """The queries that give a statement its rows."""
    if isinstance(tree, exp.Query):
        return [tree]
    body = tree.args.get("expression")
    if isinstance(body, exp.Query):
        return [cast(exp.Expression, body)]
    return [cast(exp.Expression, query) for query in tree.find_all(exp.Query) if not query.find_ancestor(exp.Query)]


@dataclass
class Joins:
    """Goes through a statement's queries. apart: as of `Statement.apart`. grouped: what its GROUP BYs name; opaque:
    whether any relation is not known.
    """

    tables: Callable[[str], Rows | None]
    apart: bool = False
    grouped: Origins = NONE
    opaque: bool = False

    def statement(self, tree: exp.Expression | None) -> None:
        """All queries that give a statement its rows."""
        if isinstance(tree, exp.Merge):
            self.merge(tree)
        elif tree is not None:
            for query in _outermost(tree):
                self.rows(query, {})

    def rows(self, node: exp.Expression | None, ctes: Mapping[str, Rows]) -> Rows:
        """What the rows of a query hold; notes joins on the way."""
        if node is None:
            return _NOBODY
        clause = node.args.get("with_")
        inside = dict(ctes)
        for cte in clause.expressions if clause is not None else ():
            inside[cte.alias.lower()] = self.rows(cte.this, inside)
        if isinstance(node, exp.Subquery | exp.Lateral) and isinstance(node.this, exp.Query):
            # what a LATERAL is joined on stands inside: it counts as not joined
            return self.rows(cast(exp.Expression, node.this), inside)
        if isinstance(node, exp.SetOperation):
            left = self.rows(cast(exp.Expression, node.this), inside)
            right = self.rows(cast(exp.Expression, node.expression), inside)
            return Rows(left.carrier or right.carrier, left.origins)
        if isinstance(node, exp.Table):
            if not node.db and node.name.lower() in inside:
                return inside[node.name.lower()]
            known = self.tables(table_name(node))
            self.opaque |= known is None
            return known if known is not None else Rows(True, lambda name: NONE, opaque=True)
        self.opaque |= not isinstance(node, exp.Select)
        return self._select(node, inside) if isinstance(node, exp.Select) else _NOBODY

    def _select(self, node: exp.Select, ctes: Mapping[str, Rows]) -> Rows:
        sources, links, same = self._sources(node, ctes)
        for entry in _grouping(node):
            self.grouped |= _column_origins(entry, (), sources)
        shown, twins = _exposed(node.expressions, sources), _twins(node)
        for inner in (s.this for p in node.expressions for s in _subqueries(p) if isinstance(s.this, exp.Select)):
            # a value looked up row by row: as if its tables were joined
            more, conditions, _ = self._sources(inner, ctes)
            brought = _exposed(inner.expressions, {**sources, **more})
            brought |= _taken(inner.expressions, {**sources, **more}) & twins
            if brought & set(more):
                self.apart |= bool(set(more) & set(sources))  # equal names: whose column is whose is not told
                sources, links, shown = {**sources, **more}, [*links, *conditions], shown | brought
        shown |= _taken(node.expressions, sources) & twins
        self._check({alias: rows for alias, rows in sources.items() if alias in shown}, links, same, sources)
        self.apart |= any(_looks_at_others(p, sources) for p in node.expressions)

        def origins(way: Way) -> Origins:
            for projection in node.expressions:
                if projection.alias_or_name.lower() == way[0].lower():
                    return _column_origins(projection.unalias(), way[1:], sources)
            starred = any(p.is_star for p in node.expressions)
            return frozenset().union(*(s.origins(way) for s in sources.values())) if starred else NONE

        return Rows(bool(shown), origins)

    def _sources(
        self, node: exp.Select, ctes: Mapping[str, Rows]
    ) -> tuple[dict[str, Rows], list[exp.Expression], list[tuple[str, str]]]:
        """The relations of FROM and JOIN by alias, what they are joined on, and the columns named by USING."""
        sources: dict[str, Rows] = {}
        links: list[exp.Expression] = [node.args["where"].this] if node.args.get("where") is not None else []
        same: list[tuple[str, str]] = []
        for alias, item, join in relations(node):
            sources[alias] = self.rows(item, ctes)
            if join is not None:
                links += [join.args["on"]] if join.args.get("on") is not None else []
                same += [(alias, c.name) for c in join.args.get("using") or ()]
        return sources, links, same

    def merge(self, node: exp.Merge) -> None:
        """The target's rows meet the source's."""
        target, using = node.this, node.args["using"]
        sources = {t.alias_or_name.lower(): self.rows(t, {}) for t in (target, using)}
        if any(isinstance(when.args.get("then"), exp.Update) for when in node.find_all(exp.When)):
            self._check(sources, [node.args["on"]], [], sources)

    def _check(
        self,
        shown: Mapping[str, Rows],
        links: Iterable[exp.Expression],
        same: Iterable[tuple[str, str]],
        sources: Mapping[str, Rows],
    ) -> None:
        """Notes when the relations whose persons are shown are not joined, maybe over others, on a person's column."""
        group = {alias: alias for alias, rows in sources.items() if rows.carrier}

        def join(a: str | None, b: str | None) -> None:
            if a in group and b in group:
                old, new = group[str(a)], group[str(b)]
                group.update({alias: new for alias, of in group.items() if of == old})

        for condition in links:
            for equal in _equalities(condition):
                left, right = _side(equal.this, sources), _side(equal.expression, sources)
                if left and right and left[1] & right[1]:
                    join(left[0], right[0])
        for alias, column in same:
            for other, rows in sources.items():
                if other != alias and rows.origins((column,)) & sources[alias].origins((column,)):
                    join(alias, other)
        self.apart |= len({of for alias, of in group.items() if alias in shown}) > 1


def _twins(select: exp.Select) -> set[str]:
    """The aliases of a table that stands several times: whatever comes from one of them may be another person's."""
    inner = [s.this for p in select.expressions for s in _subqueries(p) if isinstance(s.this, exp.Select)]
    tables = [item for query in (select, *inner) for _, item, _ in relations(query) if isinstance(item, exp.Table)]
    names = Counter(table_name(table).lower() for table in tables)
    return {table.alias_or_name.lower() for table in tables if names[table_name(table).lower()] > 1}


def _taken(projections: Iterable[exp.Expression], sources: Mapping[str, Rows]) -> set[str]:
    """The relations with persons of which any value is shown, as far as the columns are qualified."""
    ways = [way_of(column) for p in projections for column in _columns(p)]
    named = {split(way, sources)[0] for way in ways if way is not None}
    return {alias for alias in named if alias is not None and sources[alias].carrier}


def _looks_at_others(projection: exp.Expression, sources: Mapping[str, Rows]) -> bool:
    """Whether a window over all rows puts a value of one person's row into another's."""
    for window in projection.find_all(exp.Window):
        picks = window.find(exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
        if picks is not None and not window.args.get("partition_by") and any(r.carrier for r in sources.values()):
            return True
    return False


def _grouping(select: exp.Select) -> list[exp.Expression]:
    """What every row of a query is grouped by; nothing where it has rows over several groups (ROLLUP, CUBE, …)."""
    group = select.args.get("group")
    if group is None or any(group.args.get(more) for more in ("rollup", "cube", "grouping_sets")):
        return []
    if group.args.get("all"):
        return [projection.unalias() for projection in select.expressions]
    return [entry for item in group.expressions for entry in (item, *projected(item, select))]


def _exposed(projections: Sequence[exp.Expression], sources: Mapping[str, Rows]) -> set[str]:
    """The relations of which a person's value goes into one of the columns."""
    found: set[str] = set()
    for projection in projections:
        if projection.is_star:
            table = projection.table.lower() if isinstance(projection, exp.Column) else ""
            found |= {alias for alias, rows in sources.items() if rows.carrier and table in ("", alias)}
        for column in _columns(projection):
            side = _side(column, sources)
            if side is not None and (side[1] or sources[side[0]].opaque):
                found.add(side[0])
            elif side is None and _alias(column, sources) is None:
                found |= {alias for alias, rows in sources.items() if rows.opaque}
    return found


def _columns(node: exp.Expression) -> Iterator[exp.Expression]:
    """Columns and their fields whose values go in: not what is only counted, and not those of queries inside."""
    if way_of(node) is not None:
        yield node
    elif not isinstance(node, (*COUNTS, exp.Subquery)):
        for child in node.iter_expressions():
            yield from _columns(child)


def _subqueries(node: exp.Expression) -> Iterator[exp.Subquery]:
    if isinstance(node, exp.Subquery):
        yield node
    elif not isinstance(node, COUNTS):
        for child in node.iter_expressions():
            yield from _subqueries(child)


def _equalities(condition: exp.Expression) -> Iterator[exp.Binary]:
    """Equalities that all rows satisfy: those connected by AND."""
    node = condition
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        yield from _equalities(node.this)
        yield from _equalities(node.expression)
    elif isinstance(node, exp.EQ | exp.NullSafeEQ):
        yield node


def _side(node: exp.Expression, sources: Mapping[str, Rows]) -> tuple[str, Origins] | None:
    """The relation and the origins of one side of an equality, casts put aside."""
    way = way_of(uncast(node))
    return _found(way, sources) if way is not None else None


def _found(way: Way, sources: Mapping[str, Rows]) -> tuple[str, Origins] | None:
    named, rest = split(way, sources)
    if named is not None:
        return named, sources[named].origins(rest)
    for alias, rows in sources.items():
        if rows.origins(rest):
            return alias, rows.origins(rest)
    return None


def _column_origins(node: exp.Expression, fields: Way, sources: Mapping[str, Rows]) -> Origins:
    """What stands in a column, or at fields of it, casts put aside; nothing is known of expressions."""
    way = way_of(uncast(node))
    found = _found((*way, *fields), sources) if way is not None else None
    return found[1] if found is not None else NONE


def _alias(node: exp.Expression, sources: Collection[str]) -> str | None:
    way = way_of(node)
    return split(way, sources)[0] if way is not None else None
