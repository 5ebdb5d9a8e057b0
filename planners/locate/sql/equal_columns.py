"""Columns of other tables that a join makes equal to a person's column.

`SELECT o.cust, p.name FROM orders o JOIN people p ON o.cust = p.id` has the person's id in `cust` wherever it has the
person: the statement says the same with `p.id AS cust`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from planners.locate.sql.branch_identifiers import relations, table_name


@dataclass(frozen=True)
class Equal:
    """A column of a table, by the names that the statement has, and the person's column that it is equal to.

    as_numbers: the statement compares them as numbers, which texts can be equal as without being the same.
    """

    table: str
    column: str
    persons_table: str
    persons_column: str
    as_numbers: bool = False


Tells = Callable[[Equal], bool]
"""Whether the second column names a person, and the first is of a table of nobody and of the same type."""
Owner = Callable[[str, Collection[str]], str | None]
"""Which of some tables has a column, if exactly one has it."""


def with_persons_columns(
    tree: exp.Expression, tells: Tells, owner: Owner
) -> tuple[exp.Expression, frozenset[Equal]] | None:
    """The statement with the person's columns in the place of those that are equal to them; None: it has none."""
    often = Counter(table_name(t) for t in tree.find_all(exp.Table))
    left_out: set[tuple[str, str]] = set()
    while True:
        made = tree.copy()
        found = _all_replaced(made, tells, owner, left_out)
        times = Counter((equal.table, equal.column) for equal in found)
        elsewhere = {mine for mine, n in times.items() if n < often[mine[0]]}
        if not elsewhere:
            return (made, frozenset(found)) if found else None
        left_out |= elsewhere  # what the table has in another query, too, may be anything


def _all_replaced(
    tree: exp.Expression, tells: Tells, owner: Owner, left_out: Collection[tuple[str, str]]
) -> list[Equal]:
    """Replaces in all queries of a tree; one entry for each query and column."""
    ctes = {cte.alias.lower(): cast(exp.Expression, cte.this) for cte in tree.find_all(exp.CTE)}
    found: list[Equal] = []
    for select in list(tree.find_all(exp.Select)):
        tables = {alias: _Rows(item, ctes, owner) for alias, item, _ in relations(select)}
        for mine, told in _equal(select, tables, tells, owner).items():
            if (told[0].table, told[0].column) not in left_out and _replaced(select, mine, told, tables, owner):
                found.append(told[0])
    return found


def compared(tree: exp.Expression, owner: Owner) -> set[frozenset[tuple[str, str]]]:
    """Pairs of tables' columns of which a row has equal values wherever it has both, through outer joins, too.

    Of tables that stand several times in a statement nobody knows which of them an edge means.
    """
    ctes = {cte.alias.lower(): cast(exp.Expression, cte.this) for cte in tree.find_all(exp.CTE)}
    often = Counter(table_name(t) for t in tree.find_all(exp.Table) if t.find_ancestor(exp.Select))
    found: set[frozenset[tuple[str, str]]] = set()
    for select in tree.find_all(exp.Select):
        tables = {alias: _Rows(item, ctes, owner) for alias, item, _ in relations(select)}
        for condition, _ in _conditions(select, outer=True):
            for equality in _equalities(condition):
                sides = [_of(_uncast(side)[0], tables, owner) for side in (equality.this, equality.expression)]
                ends = [tables[side[0]].behind(side[1]) if side is not None else None for side in sides]
                pair = frozenset(end for end in ends if end is not None)
                if len(pair) == 2 and all(often[table] == 1 for table, _ in pair):
                    found.add(pair)
    return found


Mine = tuple[str, str]
"""The alias of a table, and a column of it in lower case."""


def _equal(
    select: exp.Select, tables: Mapping[str, _Rows], tells: Tells, owner: Owner
) -> dict[Mine, tuple[Equal, exp.Column]]:
    found: dict[Mine, tuple[Equal, exp.Column]] = {}
    for condition, always in _conditions(select):
        for equality in _equalities(condition):
            plain = [_uncast(side) for side in (equality.this, equality.expression)]
            sides = [_of(side, tables, owner) for side, _ in plain]
            if sides[0] is None or sides[1] is None:
                continue
            for (mine, column), (persons, key) in ((sides[0], sides[1]), (sides[1], sides[0])):
                ends = tables[mine].behind(column), tables[persons].behind(key)
                if persons not in always or mine == persons or ends[0] is None or ends[1] is None:
                    continue
                told = Equal(*ends[0], *ends[1], as_numbers=any(number for _, number in plain))
                if tells(told):
                    found.setdefault((mine, column), (told, exp.column(key, table=persons)))
    return found


def _uncast(node: exp.Expression) -> tuple[exp.Expression, bool]:
    """Without a cast that makes two whole numbers, or two texts, equal only if they are; whether it is to a number."""
    number = False
    while isinstance(node, exp.Paren) or (isinstance(node, exp.Cast) and _keeps(node.to)):
        number |= isinstance(node, exp.Cast) and not node.to.is_type("text")
        node = node.this
    return node, number


def _keeps(type_: exp.DataType) -> bool:
    """Whether a type has a value of its own for each whole number of 64 bits."""
    if type_.is_type("decimal"):
        digits = [int(size.name) for size in type_.expressions if size.name.isdigit()]
        return bool(digits) and digits[0] - sum(digits[1:]) >= _DIGITS
    return type_.is_type("bigint", "text")


_DIGITS = 19
"""Of the greatest whole number of 64 bits."""


def _conditions(select: exp.Select, *, outer: bool = False) -> Iterator[tuple[exp.Expression, frozenset[str]]]:
    """What joins and filters ask for, each with the relations that have no row where it does not hold.

    outer: those of a FULL join, too, which has rows of each.
    """
    items = list(relations(select))
    everything = frozenset(alias for alias, _, _ in items)
    if select.args.get("where") is not None:
        yield select.args["where"].this, everything
    for number, (alias, _, join) in enumerate(items):
        condition = join.args.get("on") if join is not None else None
        side = str(join.args.get("side") or "").upper() if join is not None else ""
        before = frozenset(name for name, _, _ in items[:number])
        held = {"": everything, "LEFT": frozenset({alias}), "RIGHT": before}.get(side, frozenset() if outer else None)
        if condition is not None and held is not None:
            yield condition, held
        if held is None:
            continue
        for name in _using(join):
            for other, _, _ in items[:number]:
                yield exp.EQ(this=exp.column(name, table=other), expression=exp.column(name, table=alias)), held


def _using(join: exp.Join | None) -> list[str]:
    return [c.name.lower() for c in join.args.get("using") or ()] if join is not None else []


def _equalities(condition: exp.Expression) -> Iterator[exp.EQ]:
    """Equalities that all rows satisfy: those connected by AND."""
    node = cast(exp.Expression, condition.unnest())
    if isinstance(node, exp.And):
        yield from _equalities(node.this)
        yield from _equalities(node.expression)
    elif isinstance(node, exp.EQ):
        yield node


def _of(node: exp.Expression, tables: Mapping[str, _Rows], owner: Owner) -> Mine | None:
    """The table that a plain column is of."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star) or node.args.get("db"):
        return None
    if node.table:
        return (node.table.lower(), node.name.lower()) if node.table.lower() in tables else None
    names = [rows.table for rows in tables.values()]
    name = owner(node.name, [n for n in names if n]) if all(names) else None
    aliases = [alias for alias, rows in tables.items() if rows.table == name]
    return (aliases[0], node.name.lower()) if len(aliases) == 1 else None


@dataclass(frozen=True)
class _Rows:
    """An item of a FROM clause. ctes: the queries of the statement by their names."""

    item: exp.Expression
    ctes: Mapping[str, exp.Expression]
    owner: Owner

    @property
    def table(self) -> str | None:
        """The name of the table that it is."""
        named = isinstance(self.item, exp.Table) and not self.item.args.get("pivots")
        return table_name(cast(exp.Table, self.item)) if named and self._query is None else None

    @property
    def _query(self) -> exp.Expression | None:
        item = self.item
        if isinstance(item, exp.Table):
            return None if item.db else self.ctes.get(item.name.lower())
        alias = item.args.get("alias")
        plain = isinstance(item, exp.Subquery) and not (
            item.args.get("pivots") or (alias is not None and alias.columns)
        )
        return cast(exp.Expression, item.this) if plain else None

    def behind(self, column: str) -> tuple[str, str] | None:
        """The table and column that one of its columns is, unchanged."""
        if self.table is not None:
            return self.table, column
        query = self._query
        if not isinstance(query, exp.Select) or query.args.get("laterals"):
            return None
        inside = {alias: _Rows(item, self.ctes, self.owner) for alias, item, _ in relations(query)}
        for projection in query.expressions:
            if projection.alias_or_name.lower() == column and isinstance(projection.unalias(), exp.Column):
                value = projection.unalias()
                alone = next(iter(inside)) if len(inside) == 1 and not value.table else None
                of = (alone, value.name.lower()) if alone is not None else _of(value, inside, self.owner)
                return inside[of[0]].behind(of[1]) if of is not None else None
        starred = len(inside) == 1 and any(
            isinstance(p, exp.Star) and not any(p.args.values()) for p in query.expressions
        )
        return next(iter(inside.values())).behind(column) if starred else None


def _replaced(
    select: exp.Select, mine: Mine, told: tuple[Equal, exp.Column], tables: Mapping[str, _Rows], owner: Owner
) -> bool:
    """Whether the column is shown as it is; it is replaced there, and where rows are grouped by it."""
    done = False
    shared = {name for _, _, join in relations(select) for name in _using(join)}

    def is_mine(node: exp.Expression) -> bool:
        unqualified = isinstance(node, exp.Column) and not node.table and node.name.lower() in shared
        return node.name.lower() == mine[1] if unqualified else _of(node, tables, owner) == mine

    for projection in list(select.expressions):
        if is_mine(projection.unalias()):
            named = exp.alias_(told[1].copy(), projection.alias_or_name, quoted=True)
            projection.replace(named)
            done = True
    group = select.args.get("group") if done else None
    for entry in list(group.expressions) if group is not None else []:
        if is_mine(entry):
            entry.replace(told[1].copy())
    return done


_KINDS = (
    frozenset({"tinyint", "smallint", "int", "integer", "bigint", "long", "short", "byte"}),
    frozenset({"string", "varchar", "text"}),
)


def same_kind(one: str, other: str, *, as_numbers: bool = False) -> bool:
    """Whether equal values of two types have one spelling: whole numbers, or texts that are compared as such."""
    plain = {name.lower().partition("(")[0].strip() for name in (one, other)}
    return any(plain <= kind for kind in (_KINDS[:1] if as_numbers else _KINDS))
