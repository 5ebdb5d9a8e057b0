"""Whose values meet in the rows of a statement: which relations it joins, and by what.

`SELECT e.user_id, m.phone FROM users e JOIN users m ON e.manager_id = m.user_id` puts a manager's phone into other
people's rows: a row in which two persons meet is nobody's to delete.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import cast

from sqlglot import exp

from planners.locate.sql.branch_identifiers import relations, table_name
from planners.locate.sql.column_expressions import COUNTS
from planners.locate.sql.column_references import (
    Way,
    split,
    uncast,
    value_given,
    way_of,
)
from planners.locate.sql.grouping_sets import grouped_by
from planners.locate.sql.relation_rows import EACH, NONE, Origins, PersonKeys, Rows, Values
from planners.locate.sql.values_in_other_rows import Strays, names_shown, read_by, read_values, readings

Sources = tuple[Mapping[str, Rows], Sequence[exp.Expression], Sequence[tuple[str, str]]]
"""Relations by alias, what they are joined on, and the columns that USING names, each with its relation's alias."""

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
    whether any relation is not known. keys: what tells a person's rows.
    """

    tables: Callable[[str], Rows | None]
    apart: bool = False
    grouped: Origins = NONE
    opaque: bool = False
    keys: PersonKeys = EACH
    strays: Strays = field(default_factory=Strays)

    def statement(self, tree: exp.Expression | None) -> None:
        """All queries that give a statement its rows."""
        if isinstance(tree, exp.Merge):
            self.merge(tree)
        elif isinstance(tree, exp.Update):
            self.update(tree)
        elif tree is not None:
            ctes = self._named(tree, {})
            for query in _outermost(tree):
                self.rows(query, ctes)

    def query(self, tree: exp.Expression) -> Rows:
        """The rows of what makes a view."""
        return self.rows(next(iter(_outermost(tree)), None), {})

    def rows(self, node: exp.Expression | None, ctes: Mapping[str, Rows]) -> Rows:
        """What the rows of a query hold; notes joins on the way."""
        if node is None:
            return _NOBODY
        inside = self._named(node, ctes)
        if isinstance(node, exp.Subquery | exp.Lateral) and isinstance(node.this, exp.Query):
            # what a LATERAL is joined on stands inside: it counts as not joined
            return self.rows(cast(exp.Expression, node.this), inside)
        if isinstance(node, exp.SetOperation):
            left = self.rows(cast(exp.Expression, node.this), inside)
            right = self.rows(cast(exp.Expression, node.expression), inside)
            return _united(left, right)
        if isinstance(node, exp.Table):
            if not node.db and node.name.lower() in inside:
                return inside[node.name.lower()]
            known = self.tables(table_name(node))
            self.opaque |= known is None
            return known if known is not None else Rows(True, lambda name: NONE, opaque=True)
        self.opaque |= not isinstance(node, exp.Select)
        return self._select(node, inside) if isinstance(node, exp.Select) else _NOBODY

    def _named(self, node: exp.Expression, ctes: Mapping[str, Rows]) -> dict[str, Rows]:
        """These, and what the node's own WITH names."""
        clause, inside = node.args.get("with_"), dict(ctes)
        for cte in clause.expressions if clause is not None else ():
            inside[cte.alias.lower()] = self.rows(cte.this, inside)
        return inside

    def _select(self, node: exp.Select, ctes: Mapping[str, Rows]) -> Rows:
        sources, links, same = self._sources(node, ctes)
        grouped = self._told_by(grouped_by(node), sources, links, same)
        self.grouped |= grouped
        looked_up = [(inner, self._sources(inner, ctes)) for inner in _lookups(node.expressions)]
        shown, twins = _exposed(node.expressions, sources), _twins(node, [inner for inner, _ in looked_up])
        groups, equal = _groups(links, same, _persons(sources), self.keys), _equal(links, same, sources)
        self.strays.of_join(node.expressions, sources, groups, shown, equal)
        self.strays.of_picks(node, sources, grouped, self.keys, looked_up=False)
        self._looked_up(looked_up, shown, (sources, links, same))
        for inner, (more, conditions, _) in looked_up:
            # a value looked up row by row: as if its tables were joined
            brought = _exposed(inner.expressions, {**sources, **more})
            brought |= _taken(inner.expressions, {**sources, **more}) & twins
            if brought & set(more):
                self.apart |= bool(set(more) & set(sources))  # equal names: whose column is whose is not told
                sources, links, shown = {**sources, **more}, [*links, *conditions], shown | brought
        shown |= _taken(node.expressions, sources) & twins
        self._check({alias: rows for alias, rows in sources.items() if alias in shown}, links, same, sources)

        @cache  # a query that reads a column twice, above another that does, would ask for it four times
        def origins(way: Way) -> Origins:
            for projection in node.expressions:
                if projection.alias_or_name.lower() == way[0].lower():
                    return _column_origins(projection.unalias(), way[1:], sources)
            starred = any(p.is_star for p in node.expressions)
            return frozenset().union(*(s.origins(way) for s in sources.values())) if starred else NONE

        @cache
        def values(way: Way) -> Values:
            for projection in node.expressions:
                if projection.alias_or_name.lower() == way[0].lower():
                    return read_values(projection.unalias(), way[1:], sources)
            return frozenset(v for alias, rest in readings(way, sources) for v in sources[alias].values(rest))

        personal = any(sources[alias].values(way) for alias, way in read_by(node.expressions, sources))
        starred = any(p.is_star for p in node.expressions) and any(rows.personal for rows in sources.values())
        names = names_shown(node, sources)
        return Rows(bool(shown), origins, personal=personal or starred, values=values, names=names)

    def _told_by(
        self,
        entries: Iterable[exp.Expression],
        sources: Mapping[str, Rows],
        links: Iterable[exp.Expression],
        same: Iterable[tuple[str, str]],
    ) -> Origins:
        """What stands in columns; columns of one key only if all of them do, and of rows of one person."""
        groups = _groups(links, same, _persons(sources), self.keys)
        of_one: dict[str, set[str]] = defaultdict(set)
        for entry in entries:
            way = way_of(uncast(entry))
            found = _found(way, sources) if way is not None else None
            if found is not None:
                of_one[groups.get(found[0], found[0])] |= found[1]
        whole = [o if self.keys.together <= o else o - self.keys.together for o in of_one.values()]
        return frozenset[str]().union(*whole)

    def _looked_up(
        self, queries: Sequence[tuple[exp.Select, Sources]], owners: Collection[str], around: Sources
    ) -> None:
        """Notes strays of queries that give a value for each row: as if their tables were joined with these."""
        sources, links, same = around
        for inner, (more, conditions, used) in queries:
            if set(more) & set(sources):  # equal names: whose column is whose is not told
                self.strays.joined |= {v for a, way in read_by(inner.expressions, more) for v in more[a].values(way)}
                continue
            both, told, named = {**sources, **more}, [*links, *conditions], [*same, *used]
            groups = _groups(told, named, _persons(both), self.keys)
            self.strays.of_join(inner.expressions, both, groups, owners, _equal(told, named, both))
            self.strays.of_picks(inner, more, NONE, self.keys, looked_up=True)

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
        updates = [then for when in node.find_all(exp.When) if isinstance(then := when.args.get("then"), exp.Update)]
        if updates:
            self._check(sources, [node.args["on"]], [], sources)
            given = [value_given(entry) for then in updates for entry in then.expressions]
            self._changed(target, given, sources, [node.args["on"]])

    def update(self, node: exp.Update) -> None:
        """Values that come into rows which are there."""
        first, where = node.args.get("from_"), node.args.get("where")
        others = [first.this, *(j.this for j in first.this.args.get("joins") or ())] if first is not None else []
        sources = {t.alias_or_name.lower(): self.rows(t, {}) for t in (node.this, *others)}
        links = [where.this] if where is not None else []
        inside = Joins(self.tables, keys=self.keys)
        for query in _outermost(node):
            inside.rows(query, {})
        self.apart, self.grouped = self.apart or inside.apart, self.grouped | inside.grouped
        self.opaque |= inside.opaque
        self._changed(node.this, [value_given(entry) for entry in node.expressions], sources, links)

    def _changed(
        self,
        target: exp.Expression,
        given: Sequence[exp.Expression],
        sources: Mapping[str, Rows],
        links: Sequence[exp.Expression],
    ) -> None:
        owner = {target.alias_or_name.lower()}
        groups = _groups(links, [], _persons(sources), self.keys)
        self.strays.of_join(given, sources, groups, owner, _equal(links, [], sources))
        looked_up = [(inner, self._sources(inner, {})) for inner in _lookups(given)]
        self._looked_up(looked_up, owner, (sources, links, []))

    def _check(
        self,
        shown: Mapping[str, Rows],
        links: Iterable[exp.Expression],
        same: Iterable[tuple[str, str]],
        sources: Mapping[str, Rows],
    ) -> None:
        """Notes when the relations whose persons are shown are not joined, maybe over others, on a person's column."""
        groups = _groups(links, same, sources, self.keys)
        self.apart |= len({of for alias, of in groups.items() if alias in shown}) > 1


def _persons(sources: Mapping[str, Rows]) -> dict[str, Rows]:
    """The relations, of which all that have values of persons count as theirs."""
    return {alias: replace(rows, carrier=rows.carrier or rows.personal) for alias, rows in sources.items()}


def _groups(
    links: Iterable[exp.Expression],
    same: Iterable[tuple[str, str]],
    sources: Mapping[str, Rows],
    keys: PersonKeys,
) -> dict[str, str]:
    """The relations of persons; those that are joined, maybe over others, on a person's column have one word.

    On a key of several columns they are joined where each two relations are on all of them.
    """
    group = {alias: alias for alias, rows in sources.items() if rows.carrier}
    common: dict[tuple[str, str], Origins] = defaultdict(frozenset)

    def join(a: str | None, b: str | None) -> None:
        if a in group and b in group:
            old, new = group[str(a)], group[str(b)]
            group.update({alias: new for alias, of in group.items() if of == old})

    for condition in links:
        for equal in _equalities(condition):
            left, right = _side(equal.this, sources), _side(equal.expression, sources)
            if left and right:
                common[min(left[0], right[0]), max(left[0], right[0])] |= left[1] & right[1]
    for alias, column in same:
        mine = sources[alias].origins((column,))
        for other in sources.keys() - {alias}:
            common[min(alias, other), max(alias, other)] |= sources[other].origins((column,)) & mine
    for (one, other), origins in common.items():
        if keys.link(origins):
            join(one, other)
    return group


def _equal(
    links: Iterable[exp.Expression], same: Iterable[tuple[str, str]], sources: Mapping[str, Rows]
) -> set[tuple[str, Way]]:
    """Columns of which a join takes only rows where another relation has the same value."""
    found: set[tuple[str, Way]] = {(alias, (column.lower(),)) for _, column in same for alias in sources}
    for condition in links:
        for equal in _equalities(condition):
            ways = [way_of(uncast(side)) for side in (equal.this, equal.expression)]
            sides = [readings(way, sources) if way is not None else [] for way in ways]
            if all(len(side) == 1 for side in sides) and sides[0][0][0] != sides[1][0][0]:
                found |= {side[0] for side in sides}
    return found


def _united(left: Rows, right: Rows) -> Rows:
    """The rows of both sides of a set operation: the columns are called as on the left."""

    def values(way: Way) -> Values:
        if left.names is None or right.names is None or way[0] not in left.names:
            return left.values(way) | right.values(way)
        place = left.names.index(way[0])
        name = right.names[place] if place < len(right.names) else way[0]
        return left.values(way) | right.values((name, *way[1:]))

    personal = left.personal or right.personal
    return Rows(left.carrier or right.carrier, left.origins, personal=personal, values=values, names=left.names)


def _twins(select: exp.Select, inner: Sequence[exp.Select]) -> set[str]:
    """The aliases of a table that stands several times: whatever comes from one of them may be another person's.

    inner: queries that give a value for each row.
    """
    tables = [item for query in (select, *inner) for _, item, _ in relations(query) if isinstance(item, exp.Table)]
    names = Counter(table_name(table).lower() for table in tables)
    return {table.alias_or_name.lower() for table in tables if names[table_name(table).lower()] > 1}


def _taken(projections: Iterable[exp.Expression], sources: Mapping[str, Rows]) -> set[str]:
    """The relations with persons of which any value is shown, as far as the columns are qualified."""
    ways = [way_of(column) for p in projections for column in _columns(p)]
    named = {split(way, sources)[0] for way in ways if way is not None}
    return {alias for alias in named if alias is not None and sources[alias].carrier}


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


def _lookups(projections: Sequence[exp.Expression]) -> list[exp.Select]:
    """The queries in expressions that give a value for each row."""
    return [s.this for p in projections for s in _subqueries(p) if isinstance(s.this, exp.Select)]


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


_SAME_PERSON = (exp.Cast, exp.Paren, exp.Lower, exp.Upper, exp.Trim, exp.SHA2, exp.SHA, exp.MD5)
"""Functions whose results are equal for equal identifiers, and for no other person's."""


def _side(node: exp.Expression, sources: Mapping[str, Rows]) -> tuple[str, Origins] | None:
    """The relation and the origins of one side of an equality, but for what is done to a value that still tells it."""
    while isinstance(node, _SAME_PERSON):
        node = node.this
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
