"""What the text of a recorded statement tells beyond its edges: whether the columns of a row belong to one person.

Edges say which column goes into which, not through which of two joined copies of a table, nor in which branch of a
UNION. Both decide whether a person's rows can be deleted by a key: `SELECT e.user_id, m.phone FROM users e JOIN users m
ON e.manager_id = m.user_id` puts a manager's phone into other people's rows.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from planners.branches import joined, table_name
from planners.expressions import COUNTS
from planners.skeleton import skeleton
from planners.ways import Way, projected, split, uncast, way_of

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


_NEIGHBOURS = re.compile(r"\b(lag|lead|first_value|last_value|nth_value|first|last)\b")
"""Functions of a window that look at other rows, in lower case."""


class Statement:
    """A statement's text, parsed once, when something is asked of it.

    Where the text is a single query its hundred columns are left out first (`planners.skeleton`): most of the time of
    parsing goes into them, and only a join of persons with persons has to look at them.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _tree(self) -> exp.Expression | None:
        return parsed(self._short or self.text)

    @cached_property
    def _short(self) -> str | None:
        return skeleton(self.text)

    @cached_property
    def _whole(self) -> exp.Expression | None:
        return self._tree if self._short is None else parsed(self.text)

    @property
    def known(self) -> bool:
        """False when the text does not parse; then nothing is known."""
        return self._tree is not None

    @cached_property
    def adds_rows(self) -> bool:
        """False for statements that only change rows which are there already."""
        if isinstance(self._tree, exp.Merge):
            return any(isinstance(w.args.get("then"), exp.Insert) for w in self._tree.find_all(exp.When))
        return not isinstance(self._tree, exp.Update)

    @property
    def tree(self) -> exp.Expression | None:
        """All of it, columns included."""
        return self._whole

    @cached_property
    def overwritten(self) -> frozenset[str]:
        """Columns (in lower case) that it gives other values in rows which are there already; not by `UPDATE SET *`."""
        if not isinstance(self._tree, exp.Update | exp.Merge):
            return frozenset()
        updates = self._tree.find_all(exp.Update) if self._tree is not None else ()
        given = [e.this for update in updates for e in update.expressions if isinstance(e, exp.EQ)]
        return frozenset(column.name.lower() for column in given if isinstance(column, exp.Column))

    @cached_property
    def joined(self) -> tuple[tuple[str, bool], ...] | None:
        """Of a single query the tables, and whether an outer join may leave them empty; None for other statements."""
        query = self._tree.find(exp.Select) if self._tree is not None and self._short is not None else None
        items = joined(query) if query is not None else []
        tables = [(item, may) for item, may in items if isinstance(item, exp.Table)]
        if not items or len(tables) < len(items):
            return None
        return tuple((table_name(table), may) for table, may in tables)

    @cached_property
    def joins_outer(self) -> bool:
        """Whether it has an outer join of any kind."""
        return self.outer or bool(self.preserved)

    @cached_property
    def grouping_levels(self) -> int:
        """How many of its queries group rows (or take distinct ones)."""
        if self._tree is None:
            return 0
        return sum(bool(s.args.get("group") or s.args.get("distinct")) for s in self._tree.find_all(exp.Select))

    def grouped_by(self, tables: Callable[[str], Rows | None]) -> Origins | None:
        """What stands in the columns and fields that its queries group rows by; None where a relation is not known.

        Entries of GROUP BY count as they are, cast at most: what an expression makes of a key tells several persons.
        tables: as of `apart`.
        """
        joins = _Joins(tables)
        joins.statement(self._whole)
        return None if joins.opaque else joins.grouped

    def apart(self, tables: Callable[[str], Rows | None]) -> bool:
        """Whether two relations with persons are joined otherwise than on a person's own column.

        tables: what a table's rows hold, by its name in the statement; None for a name that could be anything.
        """
        lower = self.text.lower()  # thousands of long texts: a plain word is found sooner than a pattern
        windows = "over" in lower and _NEIGHBOURS.search(lower) is not None
        single = self._short is not None and not windows
        if self._tree is None or (single and self._carriers(tables) < 2):
            return False
        joins = _Joins(tables)
        joins.statement(self._whole)
        return joins.apart

    def _carriers(self, tables: Callable[[str], Rows | None]) -> int:
        """How many relations of a single query hold a person, or could."""
        query = self._tree.find(exp.Select) if self._tree is not None else None
        found = [tables(table_name(table)) for table in query.find_all(exp.Table)] if query is not None else []
        return sum(rows is None or rows.carrier for rows in found)

    @cached_property
    def unites(self) -> bool:
        """Whether it has a UNION, INTERSECT or EXCEPT."""
        return bool(self._unions)

    @cached_property
    def _unions(self) -> tuple[exp.SetOperation, ...]:
        """Outermost set operations, each with all its branches."""
        found = self._tree.find_all(exp.SetOperation) if self._tree is not None else iter(())
        return tuple(u for u in found if not isinstance(u.parent, exp.SetOperation))

    @cached_property
    def outer(self) -> bool:
        """Whether it has a RIGHT or FULL join: any column may be missing in some rows."""
        return any(str(j.args.get("side") or "").upper() in ("RIGHT", "FULL") for j in _joined(self._tree))

    @cached_property
    def preserved(self) -> tuple[str, ...]:
        """With LEFT joins only: the tables whose rows all stay. Empty when there is no outer join."""
        found = []
        for select in self._tree.find_all(exp.Select) if self._tree is not None else ():
            first = select.args.get("from_")
            sides = {str(j.args.get("side") or "").upper() for j in select.args.get("joins") or ()}
            if first is not None and "LEFT" in sides:
                found += [table_name(table) for table in first.this.find_all(exp.Table)]
        return tuple(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def parsed(text: str) -> exp.Expression | None:
    """The tree, or None for what the parser does not understand (its warning about that is not for users).

    Who asks again gets the same tree: nobody changes it.
    """
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        tree = cast(exp.Expression, sqlglot.parse_one(text, dialect="spark"))
    except (SqlglotError, RecursionError):
        return None
    finally:
        logger.setLevel(level)
    return None if tree is None or isinstance(tree, exp.Command) else tree


def _joined(tree: exp.Expression | None) -> Iterator[exp.Join]:
    return tree.find_all(exp.Join) if tree is not None else iter(())


def _outermost(tree: exp.Expression) -> list[exp.Expression]:
    """The queries that give a statement its rows."""
    if isinstance(tree, exp.Query):
        return [tree]
    body = tree.args.get("expression")
    if isinstance(body, exp.Query):
        return [cast(exp.Expression, body)]
    return [cast(exp.Expression, query) for query in tree.find_all(exp.Query) if not query.find_ancestor(exp.Query)]


@dataclass
class _Joins:
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
        if isinstance(node, exp.Subquery):
            return self.rows(node.this, inside)
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
        first = node.args.get("from_")
        for join in [None, *(node.args.get("joins") or ())]:
            item = first.this if join is None and first is not None else join.this if join is not None else None
            if item is None or (join is not None and str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI")):
                continue
            alias = (item.alias_or_name or f"#{len(sources)}").lower()
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
    tables = [item for item, _ in joined(select) if isinstance(item, exp.Table)]
    inner = [s.this for p in select.expressions for s in _subqueries(p) if isinstance(s.this, exp.Select)]
    tables += [item for query in inner for item, _ in joined(query) if isinstance(item, exp.Table)]
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
