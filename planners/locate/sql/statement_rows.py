"""What the text of a recorded statement tells beyond its edges: whether the columns of a row belong to one person.

Edges say which column goes into which, not through which of two joined copies of a table (`joins`), nor in
which branch of a UNION (`query_branches`). Both decide whether a person's rows can be deleted by a key.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import TypeVar, cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from planners.locate.sql.branch_identifiers import joined, table_name
from planners.locate.sql.column_expressions import COUNTS
from planners.locate.sql.grouping_sets import has_subtotals
from planners.locate.sql.joins import Joins
from planners.locate.sql.query_skeletons import Unnamed, skeleton, unnamed
from planners.locate.sql.relation_rows import EACH, Origins, PersonKeys, Rows
from planners.locate.sql.values_in_other_rows import Strays, joined_tables

_OVER = re.compile(r"over\b")
"""A window. Without a boundary in front, as of `skeleton`; INSERT OVERWRITE has none."""

_UNITES = re.compile(r"\b(?:union|intersect|except|minus|left|right|full|rollup|cube|grouping)\b", re.IGNORECASE)

Views = tuple[tuple[str, str], ...]
Told = tuple[str, Views]
Node = TypeVar("Node", bound=exp.Expression)


class Statement:
    """A statement's text, parsed once, when something is asked of it.

    Where the text is a single query its hundred columns are left out first (`query_skeletons`): most of the time of
    parsing goes into them, and only a join of persons with persons has to look at them. What is left is parsed once for
    all statements that differ by their tables alone.
    """

    def __init__(self, text: str, views: Views = ()) -> None:
        """views: those of its session that it reads, as of `JobRef`."""
        self.text, self.views = text, views

    @property
    def told(self) -> Told:
        """All that is recorded of it."""
        return self.text, self.views

    @cached_property
    def _read(self) -> str:
        """What is parsed of it."""
        return self.text if self._short is None else self._short.text

    @property
    def _tree(self) -> exp.Expression | None:
        return parsed(self._read)

    @cached_property
    def _short(self) -> Unnamed | None:
        short = skeleton(self.text)
        return None if short is None else unnamed(short)

    @cached_property
    def _whole(self) -> exp.Expression | None:
        return parsed(self.text)

    def _all(self, kind: type[Node]) -> Iterator[Node]:
        """Its nodes of a kind, outermost first."""
        return (node for node in _nodes(self._read) if isinstance(node, kind))

    def _called(self, table: exp.Table) -> str:
        """A table's name in the text."""
        name = table_name(table)
        return name if self._short is None else self._short.names.get(name, name)

    @property
    def known(self) -> bool:
        """False when the text does not parse; then nothing is known."""
        return self._tree is not None

    @property
    def single(self) -> bool:
        """Whether it is known to be one query of tables: all its rows are made in one way."""
        return self._short is not None and not self.views

    @cached_property
    def adds_rows(self) -> bool:
        """False for statements that only change rows which are there already."""
        return self.inserts if isinstance(self._tree, exp.Merge) else not isinstance(self._tree, exp.Update)

    @cached_property
    def inserts(self) -> bool:
        """Whether it is a MERGE that brings rows, or has several INSERTs."""
        if isinstance(self._tree, exp.Merge):
            return any(isinstance(when.args.get("then"), exp.Insert) for when in self._all(exp.When))
        return isinstance(self._tree, exp.MultitableInserts)

    def joined_tables(self, column: str) -> Iterator[list[frozenset[str]]]:
        """Of its queries, and of the views that it reads, the tables of which values can meet in one row; see there."""
        views = {name: tree for name, text in self.views if (tree := parsed(text)) is not None}
        yield from joined_tables(self._whole, views, column) if self._whole is not None else ()

    @property
    def tree(self) -> exp.Expression | None:
        """All of it, columns included."""
        return self._whole

    @cached_property
    def joined(self) -> tuple[tuple[str, bool], ...] | None:
        """Of a single query the tables, and whether an outer join may leave them empty; None for other statements."""
        query = next(self._all(exp.Select), None) if self._short is not None else None
        items = joined(query) if query is not None else []
        tables = [(item, may) for _, item, may in items if isinstance(item, exp.Table)]
        if not items or len(tables) < len(items):
            return None
        return tuple((self._called(table), may) for table, may in tables)

    @cached_property
    def joins_outer(self) -> bool:
        """Whether it has an outer join of any kind."""
        return self.outer or bool(self.preserved)

    @cached_property
    def grouping_levels(self) -> int:
        """How many of its queries group rows (or take distinct ones)."""
        return sum(bool(s.args.get("group") or s.args.get("distinct")) for s in self._all(exp.Select))

    def grouped_by(self, tables: Callable[[str], Rows | None], keys: PersonKeys = EACH) -> Origins | None:
        """What stands in the columns and fields that its queries group rows by; None where a relation is not known.

        Entries of GROUP BY count as they are, cast at most: what an expression makes of a key tells several persons.
        tables, keys: as of `apart`.
        """
        joins = Joins(tables, keys=keys)
        joins.statement(self._whole)
        return None if joins.opaque else joins.grouped

    def apart(self, tables: Callable[[str], Rows | None], keys: PersonKeys = EACH) -> bool:
        """Whether it, or a view that it reads, joins two relations with persons, and not on a person's own column.

        tables: what a table's rows hold, by its name in the statement; None for a name that could be anything.
        keys: which of a person's columns tell her only together.
        """
        return self._own_apart(tables, keys) or any(view._own_apart(tables, keys) for view in self._views)

    @cached_property
    def _views(self) -> tuple[Statement, ...]:
        return tuple(Statement(text) for _, text in self.views)

    def _own_apart(self, tables: Callable[[str], Rows | None], keys: PersonKeys) -> bool:
        if self._tree is None or (self._short is not None and self._carriers(tables) < 2):
            return False
        joins = Joins(tables, keys=keys)
        joins.statement(self._whole)
        return joins.apart

    def strays(self, tables: Callable[[str], Rows | None], keys: PersonKeys) -> Strays:
        """What it, or a view that it reads, puts of one person's row into rows of others.

        tables: as of `apart`; of relations that have values out of persons' rows. keys: what tells a person's rows.
        """
        found = Strays()

        def reading(upto: int) -> Joins:
            """Of the tables, and of the session's first views under their names."""

            def named(name: str) -> Rows | None:
                at = next((n for n in reversed(range(upto)) if self.views[n][0] == name.lower()), None)
                tree = parsed(self.views[at][1]) if at is not None else None
                return tables(name) if at is None or tree is None else reading(at).query(tree)

            return Joins(named, keys=keys, strays=found)

        if self._may_stray(tables):
            reading(len(self.views)).statement(self._whole)
        return found

    def _may_stray(self, tables: Callable[[str], Rows | None]) -> bool:
        """A single query of one relation without windows and groups puts nothing anywhere; without parsing it whole."""
        if self._short is None or self.views:
            return True
        lower = self.text.lower()  # thousands of long texts: a plain word is found sooner than a pattern
        return "group" in lower or bool(_OVER.search(lower)) or self._carriers(tables) > 1

    def _carriers(self, tables: Callable[[str], Rows | None]) -> int:
        """How many relations of a single query hold a person, or could."""
        found = [tables(self._called(table)) for table in self._all(exp.Table) if table.find_ancestor(exp.Select)]
        return sum(rows is None or rows.carrier or rows.personal for rows in found)

    @cached_property
    def adds_up(self) -> bool:
        """Whether it is a single query that groups rows and counts or sums some of them: nobody has a row there."""
        tree = self._whole
        query = tree.args.get("expression") if tree is not None and not isinstance(tree, exp.Query) else tree
        if not isinstance(query, exp.Select) or query.args.get("group") is None:
            return False
        return any(projection.find(*COUNTS) is not None for projection in query.expressions)

    @cached_property
    def subtotals(self) -> bool:
        """Whether a query of it has rows over several of its groups, in which what it groups by is missing."""
        return any(map(has_subtotals, self._all(exp.Group)))

    @cached_property
    def views_unite(self) -> bool:
        """Whether a view that it reads may unite queries, leave one side of a join empty, or have subtotals; without
        parsing it.
        """
        return any(_UNITES.search(text) for _, text in self.views)

    @cached_property
    def unites(self) -> bool:
        """Whether it has a UNION, INTERSECT or EXCEPT."""
        return bool(self._unions)

    @cached_property
    def _unions(self) -> tuple[exp.SetOperation, ...]:
        """Outermost set operations, each with all its branches."""
        return tuple(u for u in self._all(exp.SetOperation) if not isinstance(u.parent, exp.SetOperation))

    @cached_property
    def pivots(self) -> bool:
        """Whether it makes rows of columns, or columns of rows."""
        return any(self._all(exp.Pivot))

    @cached_property
    def outer(self) -> bool:
        """Whether it has a RIGHT or FULL join: any column may be missing in some rows."""
        return any(str(j.args.get("side") or "").upper() in ("RIGHT", "FULL") for j in self._all(exp.Join))

    @cached_property
    def preserved(self) -> tuple[str, ...]:
        """With LEFT joins only: the tables whose rows all stay. Empty when there is no outer join."""
        found = []
        for select in self._all(exp.Select):
            first = select.args.get("from_")
            sides = {str(j.args.get("side") or "").upper() for j in select.args.get("joins") or ()}
            if first is not None and "LEFT" in sides:
                found += [self._called(table) for table in first.this.find_all(exp.Table)]
        return tuple(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def parsed(text: str) -> exp.Expression | None:
    """The tree, or None for what the parser does not understand (its warning about that is not for users).

    Who asks again gets the same tree: nobody changes it.
    """
    logger = logging.getLogger("sqlglot")
    logger.disabled = True
    try:
        tree = cast(exp.Expression, sqlglot.parse_one(text, dialect="spark"))
    except (SqlglotError, RecursionError):
        return None
    finally:
        logger.disabled = False
    return None if tree is None or isinstance(tree, exp.Command) else tree


@lru_cache(maxsize=4096)
def _nodes(text: str) -> tuple[exp.Expression, ...]:
    """Of a text's tree, walked once for all that is asked of it; none where the text does not parse."""
    tree = parsed(text)
    return () if tree is None else tuple(cast(Iterator[exp.Expression], tree.walk()))
