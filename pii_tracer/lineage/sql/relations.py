"""Relations while a statement is resolved: columns, and for each what it was made from.

A column has one or more alternatives (the branches of a set operation); each has the expression over the statement's
source tables and the dependencies that expression brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sqlglot import exp

from pii_tracer.lineage.graph.edges import EdgeType, Subtype

MAX_EXPRESSION = 5_000
"""Beyond this many nodes a composed expression is given up: each step may double it."""

MAX_ALTERNATIVES = 32
"""Beyond this many branches a column keeps its dependencies and loses the expression."""

_STRENGTH = {Subtype.AGGREGATION: 0, Subtype.TRANSFORMATION: 1, Subtype.IDENTITY: 2}


@dataclass(frozen=True)
class Kind:
    """What happens to a value on the way: the transformation of one dependency."""

    type: EdgeType
    subtype: Subtype
    masking: bool = False

    def then(self, inner: Kind) -> Kind:
        """This happens to the outcome of `inner`.

        OpenLineage's rule (TransformationInfo.merge of its Spark integration): indirect wins, the outer one first;
        among direct ones the stronger wins; masking sticks.
        """
        return _after(self, inner)


@lru_cache(maxsize=1024)
def _after(outer: Kind, inner: Kind) -> Kind:
    masking = outer.masking or inner.masking
    if outer.type is EdgeType.INDIRECT:
        return replace(outer, masking=masking)
    if inner.type is EdgeType.INDIRECT or _STRENGTH[inner.subtype] < _STRENGTH[outer.subtype]:
        return replace(inner, masking=masking)
    return replace(outer, masking=masking)


IDENTITY = Kind(EdgeType.DIRECT, Subtype.IDENTITY)
TRANSFORMATION = Kind(EdgeType.DIRECT, Subtype.TRANSFORMATION)
MASKED = Kind(EdgeType.DIRECT, Subtype.TRANSFORMATION, masking=True)
AGGREGATION = Kind(EdgeType.DIRECT, Subtype.AGGREGATION)
COUNTED = Kind(EdgeType.DIRECT, Subtype.AGGREGATION, masking=True)
CONDITIONAL = Kind(EdgeType.INDIRECT, Subtype.CONDITIONAL)
WINDOW = Kind(EdgeType.INDIRECT, Subtype.WINDOW)


@dataclass(frozen=True)
class Dep:
    """One source column and what happened to it."""

    table: str
    column: str
    kind: Kind


@dataclass(frozen=True)
class Alt:
    """One way a column gets its value. members: the fields, when the value is a struct made in the statement.

    size: nodes of the expression's tree, at least. sure: it is known to give a value, neither NULL nor 0, where the
    columns of tables that it reads have one.
    """

    expression: exp.Expression | None
    deps: tuple[Dep, ...]
    members: Mapping[str, Field] = field(default_factory=dict, compare=False)
    size: int = field(default=1, compare=False)
    sure: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Field:
    """A column of a relation. type: its DDL type, where known (for the fields of structs).

    loose: `*` put it where it stands, and nobody knows in which order its table has its columns.
    unnamed: the query does not name it, and the engine does.
    """

    name: str
    alts: tuple[Alt, ...]
    type: str = ""
    loose: bool = field(default=False, compare=False)
    unnamed: bool = field(default=False, compare=False)

    def named(self, name: str) -> Field:
        return replace(self, name=name, unnamed=False)

    def deps(self) -> Iterator[Dep]:
        for alt in self.alts:
            yield from alt.deps


def constant(name: str) -> Field:
    """A column that comes from no table."""
    return Field(name, (Alt(None, ()),))


GENERATED = "generated"
"""The function that stands for a value which a sequence, a function in FROM, or the engine itself makes."""


def engine_made(name: str) -> Field:
    """A column that comes from no table, with a value that is no constant."""
    return Field(name, (Alt(exp.Anonymous(this=GENERATED), ()),))


def once_more(item: Field) -> Field:
    """A column of the step of a recursive query: it may be NULL, and a number that it makes another one each time."""
    read = [Alt(None, alt.deps) for alt in item.alts if alt.deps]
    told = [alt.expression for alt in item.alts if not alt.deps]
    plain = [one for one in told if isinstance(one, exp.Literal | exp.Null | exp.Boolean)]
    made = engine_made("").alts if len(plain) < len(told) else ()
    return Field(item.name, limited((*read, *(Alt(one, ()) for one in plain), *made)))


class Relation:
    """Columns in order. `rest` are relations whose further, unknown columns are columns of this one as well.

    made: rows that a function makes of constants; whatever its columns are called, they come from no table.
    padded: an outer join may have no row of it.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        rest: tuple[Relation, ...] = (),
        base: str | None = None,
        indirect: frozenset[tuple[str, str, Subtype]] = frozenset(),
        *,
        made: bool = False,
        padded: bool = False,
    ) -> None:
        self.fields = tuple(map(unsure, fields)) if padded else tuple(fields)
        self.rest = tuple(r.or_none() for r in rest) if padded else rest
        self.base = base
        self.indirect = indirect
        self.made = made
        self.padded = padded
        self._by_name: dict[str, Field] = {}
        for item in self.fields:
            self._by_name.setdefault(item.name.lower(), item)

    @property
    def open(self) -> bool:
        """True when not all columns are known."""
        return bool(self.rest) or (self.base is not None and not self.fields)

    def known(self, name: str) -> Field | None:
        return self._by_name.get(name.lower())

    def get(self, name: str) -> Field | None:
        """The column of that name; an open table is taken to have every column it is asked for."""
        found = self.known(name)
        if found is not None:
            return found
        if self.base is not None and self.open:
            item = table_field(self.base, name)
            return unsure(item) if self.padded else item
        found = next((f for r in self.rest if (f := r.known(name))), None)
        if found is not None:
            return found
        if self.made:
            return constant(name)
        asked = [f for r in self.rest if (f := r.get(name))]
        return Field(name, limited(a for f in asked for a in f.alts)) if asked else None

    def or_none(self) -> Relation:
        """The same, where an outer join may have no row of it, so that its columns are NULL."""
        return Relation(self.fields, self.rest, self.base, self.indirect, made=self.made, padded=True)

    def bases(self) -> Iterator[str]:
        """Tables whose columns are not known."""
        if self.base is not None and self.open:
            yield self.base
        for relation in self.rest:
            yield from relation.bases()

    def all_deps(self) -> Iterator[Dep]:
        """Everything that can reach any column; `*` stands for the unknown columns of a table."""
        for item in self.fields:
            yield from item.deps()
        for table in self.bases():
            yield Dep(table, "*", IDENTITY)


def unsure(item: Field) -> Field:
    """A column that may be NULL."""
    if not any(alt.sure for alt in item.alts):
        return item
    return replace(item, alts=tuple(replace(alt, sure=False) for alt in item.alts))


class Elements(Relation):
    """The elements of an array in a column, or rows that a function makes of columns, and whose columns nobody names:
    whatever is asked of one comes from there.
    """

    def __init__(self, column: Field) -> None:
        deps = tuple(Dep(d.table, d.column, TRANSFORMATION.then(d.kind)) for d in column.deps())
        self._members = {key: transformed(item) for key, item in common_members(column.alts).items()}
        self._element = Field(column.name, (Alt(None, deps, self._members),))
        super().__init__([self._element])

    def or_none(self) -> Relation:
        return self  # of these nothing is known to be there

    def get(self, name: str) -> Field:
        found = self._members.get(name.lower())
        return self.whole(name) if found is None else found.named(name)

    def whole(self, name: str) -> Field:
        """The element itself, under a name of its own."""
        return self._element.named(name)


def common_members(alts: Sequence[Alt]) -> Mapping[str, Field]:
    """The fields of a struct, where every alternative of it has the same ones."""
    if not alts or not alts[0].members or any(alt.members.keys() != alts[0].members.keys() for alt in alts):
        return {}
    if len(alts) == 1:
        return alts[0].members
    return {
        key: replace(item, alts=limited(a for alt in alts for a in alt.members[key].alts))
        for key, item in alts[0].members.items()
    }


def transformed(
    item: Field, kind: Kind = TRANSFORMATION, beside: Sequence[Dep] = (), text: exp.Expression | None = None
) -> Field:
    """A field of a struct that goes through a function together with it, its own fields too.

    beside: what decides about it. text: the function's outcome, of which it is a field.
    """
    told = None if text is None else exp.Dot(this=text, expression=exp.to_identifier(item.name))
    alts = []
    for alt in item.alts:
        deps = (*(Dep(d.table, d.column, kind.then(d.kind)) for d in alt.deps), *beside)
        members = {key: transformed(f, kind, beside, told) for key, f in alt.members.items()}
        alts.append(Alt(told, tuple(dict.fromkeys(deps)), members))
    return replace(item, alts=limited(alts))


@lru_cache(maxsize=65536)
def table_field(table: str, column: str, type_: str = "") -> Field:
    """A column of a table of the statement. Its expression is shared: whoever changes one, copies it first."""
    expression = exp.Column(this=exp.to_identifier(column), table=_qualifier(table))
    return Field(column, (Alt(expression, (Dep(table, column, IDENTITY),), sure=True),), type_)


def _qualifier(table: str) -> exp.Identifier:
    """The table's name as one identifier: dots stay, so that the text reads `db.table.column`."""
    plain = all(part.replace("_", "a").isalnum() and not part.isdigit() for part in table.split("."))
    return exp.Identifier(this=table, quoted=not plain)


def table_relation(table: str, columns: Sequence[tuple[str, str]], *, loose: bool = False) -> Relation:
    """A table with columns (name, type) where known; without, it is open. loose: as of `Field`."""
    return Relation([replace(table_field(table, name, type_), loose=loose) for name, type_ in columns], base=table)


def fitting(fields: Sequence[Field], names: Sequence[str]) -> bool:
    """Whether fields are called as some columns are, each by a name of its own, in whatever order."""
    called = {f.name.lower() for f in fields}
    return len(called) == len(fields) and called >= {name.lower() for name in names}


def in_order(relation: Relation, names: Sequence[str]) -> Relation:
    """What is written to a table, in the order of the table's columns; those that are not written are empty."""
    if not names or relation.open:
        return relation
    known = {name.lower() for name in names}
    others = [f for f in relation.fields if f.name.lower() not in known]
    return Relation([*(relation.known(name) or constant(name) for name in names), *others], indirect=relation.indirect)


def union(left: Relation, right: Relation) -> Relation:
    """Columns by position, named by the left side."""
    fields = [
        Field(a.name, limited((*a.alts, *b.alts)), a.type, a.loose or b.loose)
        for a, b in zip(left.fields, right.fields, strict=False)
    ]
    rest = (*left.rest, *right.rest)
    longer = max(left.fields, right.fields, key=len)
    fields += longer[len(fields) :]
    rest += tuple(r for r in (left, right) if r.base is not None and r.open)
    return Relation(fields, rest)


def union_by_name(left: Relation, right: Relation) -> Relation:
    """Columns by name; a column of one side alone stays."""
    fields = []
    for item in left.fields:
        other = right.get(item.name)
        alts = limited((*item.alts, *other.alts)) if other else unsure(item).alts  # NULL where it is missing
        fields.append(Field(item.name, alts, item.type, item.loose or bool(other and other.loose)))
    fields += [unsure(f) for f in right.fields if left.known(f.name) is None]
    rest = (*left.rest, *right.rest, *(r for r in (left, right) if r.base is not None and r.open))
    return Relation(fields, rest)


def renamed(relation: Relation, names: Sequence[str]) -> Relation:
    """A list of column aliases, by position. Where columns are not known, each may be any of them."""
    if relation.open and names:
        unknown = tuple(dict.fromkeys(Dep(d.table, d.column, TRANSFORMATION.then(d.kind)) for d in relation.all_deps()))
        return Relation([Field(n, (Alt(None, unknown),)) for n in names], indirect=relation.indirect)
    fields = [f.named(n) for f, n in zip(relation.fields, names, strict=False)]
    fields += relation.fields[len(fields) :]
    return Relation(fields, relation.rest, indirect=relation.indirect)


def limited(alts: Iterable[Alt]) -> tuple[Alt, ...]:
    """Without repetition; too many become one without an expression."""
    found: list[Alt] = []
    for alt in alts:
        if alt not in found:
            found.append(alt)
        elif not alt.sure:
            found[found.index(alt)] = alt
    if len(found) <= MAX_ALTERNATIVES:
        return tuple(found)
    constants = tuple(alt for alt in found if not alt.deps)
    if len(constants) == len(found) or len(constants) >= MAX_ALTERNATIVES:
        constants = ()
    return (Alt(None, tuple(dict.fromkeys(d for a in found for d in a.deps))), *constants)
