"""Values of one person's row that a query puts into a row of somebody else.

`SELECT id, first_value(name) OVER (PARTITION BY city …) FROM people` writes another person's name beside `id`; so does
`orders o JOIN people p ON p.city = o.note`, `max(name)` of a city, or a value looked up by a city. Whoever deletes
that other person's rows by `id` leaves her name here. Only columns with identifiers are followed elsewhere
(`planners.locate.identifier_walk`): here every column of a row that names a person is hers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from pii_tracer.model.datasets import ColumnId
from planners.locate.sql.branch_identifiers import relations, table_name
from planners.locate.sql.column_expressions import COUNTS, is_aggregate
from planners.locate.sql.column_references import Way, split, uncast, way_of
from planners.locate.sql.relation_rows import Origins, PersonKeys, Rows, Values


@dataclass
class Strays:
    """What statements put into rows of others. joined: columns whose values come by a join that is not on the person.
    picked: those that a window or an aggregate picks out of several persons' rows; they count where the edge shows it.
    """

    joined: set[ColumnId] = field(default_factory=set)
    picked: set[ColumnId] = field(default_factory=set)

    def of_join(
        self,
        shown: Sequence[exp.Expression],
        sources: Mapping[str, Rows],
        groups: Mapping[str, str],
        owners: Collection[str],
        equal: Collection[tuple[str, Way]],
    ) -> None:
        """Note what is shown of relations that are not joined with the owner of the rows.

        groups: relations that are joined on a person's column have one word. owners: the aliases whose persons are
        shown. equal: columns that the join compares: they have what the other side has.
        """
        whose = {groups[alias] for alias in owners if alias in groups}
        if not whose or len(set(groups.values())) < 2:
            return
        for alias, way in read_by(shown, sources):
            foreign = alias in groups and (groups[alias] not in whose or len(whose) > 1)
            if foreign and (alias, way) not in equal:
                self.joined |= sources[alias].values(way)

    def of_picks(
        self, select: exp.Select, sources: Mapping[str, Rows], grouped: Origins, keys: PersonKeys, *, looked_up: bool
    ) -> None:
        """Note what windows and aggregates pick, unless out of one person's rows.

        grouped: what stands in the columns that the query groups by. looked_up: the query gives a value for each row
        of another one; what it is joined with there decides.
        """
        for projection in select.expressions:
            for node in _picking(projection, unknown=select.args.get("group") is not None):
                if isinstance(node, exp.Window):
                    parts = _partition(node, select)
                    own = any(map(keys.tell, _origins_of_one(parts, sources)))
                else:
                    own = looked_up or keys.tell(grouped)
                if not own:
                    self.picked |= {v for a, way in read_by([node], sources) for v in sources[a].values(way)}


def joined_tables(
    tree: exp.Expression, views: Mapping[str, exp.Expression], column: str
) -> Iterator[list[frozenset[str]]]:
    """Of each query of a statement the relations whose rows meet there, each as the tables that it is made of.

    Of one that changes `column` in rows that are there, the table with these and what it takes values from. views:
    those of the session that it reads, by their names.
    """
    trees = [tree, *views.values()]
    named = {**views, **{cte.alias.lower(): cte.this for one in trees for cte in one.find_all(exp.CTE)}}
    for one in trees:
        for node in one.find_all(exp.Select, exp.Merge, exp.Update):
            yield [_tables_of(item, named) for item in _meeting(node, column)]


def _meeting(node: exp.Expression, column: str) -> list[exp.Expression]:
    if isinstance(node, exp.Select):
        items = [item for _, item, _ in relations(node)]
        return [*items, *(query for shown in node.expressions for query in shown.find_all(exp.Subquery))]
    if isinstance(node, exp.Merge):
        thens = [then for when in node.find_all(exp.When) if isinstance(then := when.args.get("then"), exp.Update)]
        return [node.this, node.args["using"]] if any(_gives(then, column, node.args["on"]) for then in thens) else []
    if node.this is None:  # a part of a MERGE
        return []
    first = node.args.get("from_")
    others = [first.this] if first is not None else []
    return [node.this, *others, *node.find_all(exp.Subquery)] if _gives(node, column) else []


def _gives(update: exp.Expression, column: str, on: exp.Expression | None = None) -> bool:
    """Whether it puts another value into a column of rows than what these were found by."""
    equal = [e for e in (on.flatten() if isinstance(on, exp.And) else [on]) if isinstance(e, exp.EQ)]
    sides = [(uncast(e.this), uncast(e.expression)) for e in equal]
    given = [e for e in update.expressions if isinstance(e, exp.EQ)]
    if len(given) < len(update.expressions):  # a star: columns of equal names
        return not any(one.name.lower() == other.name.lower() == column for one, other in sides)
    mine = [uncast(e.expression) for e in given if e.this.name.lower() == column]
    found = [s for one, other in sides for s, t in ((one, other), (other, one)) if t.name.lower() == column]
    return any(value not in found for value in mine)


def _tables_of(item: exp.Expression, named: Mapping[str, exp.Expression]) -> frozenset[str]:
    """The tables below a relation; queries by their names are gone into."""
    found: set[str] = set()
    for table in item.find_all(exp.Table):
        inner = named.get(table.name.lower()) if not table.db else None
        rest = {name: query for name, query in named.items() if name != table.name.lower()}
        found |= _tables_of(inner, rest) if inner is not None else {table_name(table)}
    return frozenset(found)


def read_values(node: exp.Expression, way: Way, sources: Mapping[str, Rows]) -> Values:
    """Of what a projection gives, or of fields of it: the columns of tables whose values stand in it."""
    inner = way_of(uncast(node))
    if inner is not None and way:
        return frozenset(v for a, w in readings((*inner, *way), sources) for v in sources[a].values(w))
    return frozenset(v for a, w in read_by([node], sources) for v in sources[a].values(w))


def readings(way: Way, sources: Mapping[str, Rows]) -> list[tuple[str, Way]]:
    """The relations that a column can be of, each with the way from the column on; several where its name is not
    qualified and the relations' columns are not known."""
    named, rest = split(way, sources)
    if named is not None:
        return [(named, rest)]
    told = [alias for alias, rows in sources.items() if rows.names is not None and rest[0] in rows.names]
    return [(alias, rest) for alias in told or [a for a, rows in sources.items() if rows.names is None]]


def names_shown(select: exp.Select, sources: Mapping[str, Rows]) -> tuple[str, ...] | None:
    """The names of a query's columns in lower case; None where a star hides them."""
    found: list[str] = []
    for projection in select.expressions:
        if projection.is_star:
            for alias in _starred(projection, sources):
                names = sources[alias].names
                if names is None:
                    return None
                found += names
        else:
            found.append(projection.alias_or_name.lower())
    return tuple(found)


def read_by(nodes: Iterable[exp.Expression], sources: Mapping[str, Rows]) -> Iterator[tuple[str, Way]]:
    """The relations and columns whose values go into the results of expressions."""
    for node in nodes:
        if node.is_star:
            for alias in _starred(node, sources):
                yield from ((alias, (name,)) for name in sources[alias].names or ())
        for column in _valued(node):
            way = way_of(column)
            if way is not None:
                yield from readings(way, sources)


def _starred(projection: exp.Expression, sources: Mapping[str, Rows]) -> list[str]:
    table = projection.table.lower() if isinstance(projection, exp.Column) else ""
    return [alias for alias in sources if table in ("", alias)]


def _valued(node: exp.Expression) -> Iterator[exp.Expression]:
    """Columns whose values go in: not what is counted, what only decides, or what a query inside reads."""
    if way_of(node) is not None:
        yield node
    elif isinstance(node, exp.Window | exp.Filter):
        yield from _valued(node.this)
    elif isinstance(node, exp.If):
        for side in ("true", "false"):
            if node.args.get(side) is not None:
                yield from _valued(node.args[side])
    elif isinstance(node, exp.Case):
        for part in (*node.args.get("ifs", ()), *([node.args["default"]] if node.args.get("default") else [])):
            yield from _valued(part)
    elif not isinstance(node, (*COUNTS, exp.Subquery)):
        for child in node.iter_expressions():
            yield from _valued(child)


def _picking(node: exp.Expression, *, unknown: bool) -> Iterator[exp.Expression]:
    """Windows and aggregates whose result is, or holds, values that they read. unknown: functions that nobody knows
    can be such."""
    picks = isinstance(node, exp.Window) or (is_aggregate(node) and not isinstance(node, COUNTS))
    if picks or (unknown and isinstance(node, exp.Anonymous)):
        yield node
    elif not isinstance(node, (*COUNTS, exp.Subquery)):
        for child in node.iter_expressions():
            yield from _picking(child, unknown=unknown)


def _partition(window: exp.Window, select: exp.Select) -> list[exp.Expression]:
    """What a window is partitioned by; one that is called by its name is looked up."""
    named = window.args.get("alias")
    if named is not None and not window.args.get("partition_by"):
        for told in select.args.get("windows") or ():
            if told.name.lower() == named.name.lower():
                return list(told.args.get("partition_by") or ())
    return list(window.args.get("partition_by") or ())


def _origins_of_one(nodes: Iterable[exp.Expression], sources: Mapping[str, Rows]) -> Iterator[Origins]:
    """What surely stands in columns, for those that are of the same relation together."""
    found: dict[frozenset[str], set[str]] = defaultdict(set)
    for node in nodes:
        way = way_of(uncast(node))
        read = readings(way, sources) if way is not None else []
        if read:
            found[frozenset(a for a, _ in read)] |= frozenset.intersection(*(sources[a].origins(w) for a, w in read))
    return (frozenset(origins) for origins in found.values())
